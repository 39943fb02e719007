"""Twenty mistakes people make with several tables: each error names file, column, row and flag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.messages import refused
from vrgcn.data.tables import ImportSpec, import_tables

pytestmark = pytest.mark.usefixtures("told_as_flags")

FILES = {
    "users.csv": "id,age,churned\nu1,30,no\nu2,40,yes\nu3,50,no\n",
    "items.csv": "id,price\ni1,10\ni2,20\n",
    "orders.csv": "user,item\nu1,i1\nu2,i2\nu3,i1\n",
    "follows.csv": "source,target\nu1,u2\n",
}
NODES = ("user=users.csv", "item=items.csv")
EDGES = ("user-bought-item=orders.csv", "user-follows-user=follows.csv")


@dataclass(frozen=True)
class Mistake:
    """options, files: what differs from the right import; told: lines that the error must have"""

    told: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


MISTAKES = {
    "a misspelt kind": Mistake(
        (
            "--edges: usr-follows-user=follows.csv names the kind 'usr', and --nodes has user, "
            "item: did you mean --edges user-follows-user=follows.csv?",
        ),
        {"edges": (EDGES[0], "usr-follows-user=follows.csv")},
    ),
    "a misspelt kind in a flag": Mistake(
        ("--label usr.churned: there is no kind or relation 'usr'; did you mean user?",),
        {"label": ("usr.churned",)},
    ),
    "an edge between the wrong kinds": Mistake(
        (
            "orders.csv: column 'user' names a node that items.csv does not have, in 3 rows: 'u1' "
            "in row 1 (line 2), 'u2' in row 2 (line 3), 'u3' in row 3 (line 4); all of them are "
            "ids of 'user': is 'item' the right kind",
            "orders.csv: column 'item' names a node that users.csv does not have",
            "--source bought.COLUMN and --target bought.COLUMN",
        ),
        {
            "edges": ("item-bought-user=orders.csv", EDGES[1]),
            "source": "bought.user",
            "target": "bought.item",
        },
    ),
    "an id of another kind": Mistake(
        (
            "follows.csv: column 'target' names a node that users.csv does not have, in 1 row: "
            "'i2' in row 2 (line 3); all of them are ids of 'item'",
            "--unknown-nodes skip",
        ),
        files={"follows.csv": "source,target\nu1,u2\nu2,i2\n"},
    ),
    "a dangling id": Mistake(
        (
            "orders.csv: column 'item' names a node that items.csv does not have, in 1 row: 'i9' "
            "in row 2 (line 3); leave such edges out with --unknown-nodes skip, or make nodes of "
            "them with --unknown-nodes add",
        ),
        files={"orders.csv": "user,item\nu1,i1\nu2,i9\n"},
    ),
    "one column for both ends": Mistake(
        (
            "orders.csv: column 'user' cannot be both the source, of kind 'user', and the target, "
            "of kind 'item'; see --source bought.COLUMN and --target bought.COLUMN",
        ),
        {"source": "bought.user", "target": "bought.user"},
    ),
    "a label in the wrong table": Mistake(
        ("items.csv has no column 'churned' (--label); it has 'id', 'price'",),
        {"label": ("item.churned",)},
    ),
    "labels in two tables": Mistake(
        (
            "--label: user (users.csv) and item (items.csv) both have labels; one kind of nodes is "
            "predicted: give --label KIND.COLUMN, such as --label user.label",
        ),
        {"label": ()},
        {"users.csv": "id,label\nu1,a\nu2,b\nu3,a\n", "items.csv": "id,label\ni1,a\ni2,b\n"},
    ),
    "a label of a kind without a table": Mistake(
        (
            "--label shop.open: the kind 'shop' has no table, its nodes are those that edges name; "
            "give --nodes shop=FILE",
        ),
        {"edges": (*EDGES, "item-sold_by-shop=offers.csv"), "label": ("shop.open",)},
        {"offers.csv": "item,shop\ni1,s1\n"},
    ),
    "a label of a relation": Mistake(
        ("--label bought.user: is about tables of nodes, and 'user-bought-item' is none",),
        {"label": ("bought.user",)},
    ),
    "a split of another kind": Mistake(
        (
            "--split item.price: the labels are those of 'user' (users.csv), and so must the split "
            "be",
        ),
        {"split": "item.price"},
    ),
    "an empty relation": Mistake(
        ("orders.csv has a header and no rows under it (--edges user-bought-item=orders.csv)",),
        files={"orders.csv": "user,item\n"},
    ),
    "a kind named twice": Mistake(
        ("--nodes: names the kind user twice, as users.csv and items.csv; join the files",),
        {"nodes": ("user=users.csv", "user=items.csv")},
    ),
    "a relation named twice": Mistake(
        (
            "--edges: names the relation user-bought-item twice, as orders.csv and follows.csv; "
            "join the files",
        ),
        {"edges": (EDGES[0], "user-bought-item=follows.csv")},
    ),
    "a relation of two parts": Mistake(
        (
            "--edges: user-item=orders.csv: a relation is SOURCE-NAME-TARGET, such as "
            "user-bought-item, and 'user-item' has 2 of the three parts, or if a column of "
            "orders.csv names the relations, --relation-column COLUMN",
        ),
        {"edges": ("user-item=orders.csv",)},
    ),
    "a relation that is the reverse of another": Mistake(
        (
            "--edges: item-rev_bought-user is the reverse of user-bought-item, which is made with "
            "it; leave follows.csv out",
        ),
        {"edges": (EDGES[0], "item-rev_bought-user=follows.csv")},
    ),
    "a missing file": Mistake(
        ("--nodes: there is no file itms.csv (--nodes item=itms.csv)",),
        {"nodes": (NODES[0], "item=itms.csv")},
    ),
    "a file without a name": Mistake(
        (
            "--edges: follows.csv has no name, and other files have one; give --edges "
            "user-NAME-user=follows.csv",
        ),
        {"edges": (EDGES[0], "follows.csv")},
    ),
    "a relation column that is absent": Mistake(
        ("orders.csv has no column 'type' (--relation-column)",),
        {"edges": ("user-item=orders.csv",), "relation_column": "user-item.type"},
    ),
    "an edge without a relation": Mistake(
        (
            "orders.csv: column 'type' is empty, in 1 row: row 2 (line 3); name the relation of "
            "each edge",
        ),
        {"edges": ("user-item=orders.csv",), "relation_column": "type"},
        {"orders.csv": "user,item,type\nu1,i1,saw\nu2,i2,\n"},
    ),
    "a duplicate id within a kind": Mistake(
        (
            "items.csv: column 'id' repeats the id of an earlier row, in 1 row: 'i1' in row 2 "
            "(line 3)",
        ),
        files={"items.csv": "id,price\ni1,10\ni1,20\ni2,5\n"},
    ),
    "a kind that no relation names": Mistake(
        ("--nodes: shop=items.csv: no relation leads to or from the kind 'shop'; --edges has",),
        {"nodes": (*NODES, "shop=items.csv")},
    ),
    "a column that no table has": Mistake(
        ("--drop: no table has a column 'prise'; did you mean 'price'?",),
        {"drop": ("prise",)},
    ),
    "a direction": Mistake(
        ("--directed: a relation has a direction and gets its reverse; leave it out",),
        {"directed": True},
    ),
    "text among numbers, in two tables": Mistake(
        (
            "users.csv: column 'age' holds text where numbers should be, in 1 row: 'old' in row 9 "
            "(line 10)",
            "--column user.age=number:lenient",
            "follows.csv: column 'since' holds text where numbers should be, in 1 row: 'x' in row "
            "7 (line 8)",
            "--column follows.since=number:lenient",
        ),
        files={
            "users.csv": "id,age,churned\n"
            + "".join(f"u{i},{i},no\n" for i in range(1, 9))
            + "u9,old,yes\n",
            "follows.csv": "source,target,since\n"
            + "".join(f"u1,u{i},{i}\n" for i in range(2, 8))
            + "u1,u8,x\n",
        },
    ),
    "an edge with an empty end": Mistake(
        (
            "follows.csv: column 'source' is empty, in 1 row: row 1 (line 2); leave such edges out "
            "with --unknown-nodes skip",
        ),
        files={"follows.csv": "source,target\n,u2\n"},
    ),
    "rows of what is no relation": Mistake(
        (
            "--rows-as-nodes: 'orders' is no relation; there are user-bought-item, "
            "user-follows-user",
        ),
        {"rows_as_nodes": ("orders",)},
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_what_is_wrong_and_where(
    mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {**FILES, **mistake.files}.items():
        Path(name).write_text(text)
    before = sorted(tmp_path.iterdir())
    given = {"nodes": NODES, "edges": EDGES, "label": ("user.churned",), **mistake.options}
    with pytest.raises((ValueError, OSError)) as caught:
        import_tables(ImportSpec(out=Path("graph"), **given))
    for line in mistake.told:
        assert line in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before  # nothing is left behind


def test_there_are_at_least_twenty_mistakes() -> None:
    assert len(MISTAKES) >= 20


def test_mistakes_of_all_tables_are_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = FILES | {
        "users.csv": "id,age,churned\nu1,30,no\nu1,40,yes\nu2,1,no\nu3,2,no\n",
        "items.csv": "id,price\ni1,10\n,20\n",
        "orders.csv": "user,item\nu1,i1\nu7,i1\n",
        "follows.csv": "source,target\nu1,u8\n",
    }
    for name, text in wrong.items():
        Path(name).write_text(text)
    with refused() as caught:
        import_tables(ImportSpec(nodes=NODES, edges=EDGES, out=Path("graph")))  # type: ignore[arg-type]
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        *("users.csv", "items.csv", "orders.csv", "follows.csv")
    ]
