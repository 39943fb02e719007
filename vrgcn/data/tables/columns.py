"""Find the role of each column of a table, by the user's settings or else by its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from shlex import quote

import pyarrow as pa

from vrgcn.data.tables.overrides import Override, matches, parse_fills
from vrgcn.data.tables.problems import Collected
from vrgcn.data.tables.reading import Table
from vrgcn.data.tables.rows import ROW
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.values import is_list, is_number, is_text
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import COLUMN, setting

# Column names of the two ends of an edge, besides source and target.
ENDS = (("src", "dst"), ("from", "to"))
END_NAMES = frozenset({"source", "target", *sum(ENDS, ())})
_ROLES = ("id", "split", "source", "target", "weight")  # settings that name one column


@dataclass(frozen=True)
class NodeColumns:
    """Roles of the columns of a node table.

    aside: columns that are left out although no setting asks for it
    """

    id: str
    features: list[str]
    label: list[str]
    split: str | None
    aside: list[str]

    @property
    def used(self) -> list[str]:
        used = [self.id, *self.features, *self.label, *([self.split] if self.split else [])]
        return list(dict.fromkeys(used))

    def without(self, columns: list[str]) -> NodeColumns:
        """Return the same columns with some features moved to `aside`."""
        features = [column for column in self.features if column not in columns]
        return replace(self, features=features, aside=[*self.aside, *columns])


@dataclass(frozen=True)
class EdgeColumns:
    """Roles of the columns of an edge table.

    aside: columns that are left out although no setting asks for it
    relation: column that names the relation of each edge; None if all are of one
    features: columns that become features of the nodes at the ends
    kept: columns that are kept for each edge
    """

    source: str
    target: str
    weight: str | None
    aside: list[str]
    relation: str | None = None
    features: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def used(self) -> list[str]:
        optional = [self.weight, self.relation]
        used = [self.source, self.target, *filter(None, optional), *self.features, *self.kept]
        return list(dict.fromkeys(used))

    def with_features(self, features: Sequence[str]) -> EdgeColumns:
        """Return the same columns with some that were left aside as features."""
        aside = [column for column in self.aside if column not in features]
        return replace(self, features=tuple(features), aside=aside)


def node_columns(
    table: Table, spec: ImportSpec, chosen: list[str] | None = None, labelled: bool = True
) -> NodeColumns:
    """Find the columns of the id, the features, the labels and the split.

    chosen: the feature columns; None to find them by the settings
    labelled: False if nodes of another kind have the labels: a column `label` is then a feature
        like any other, and a column `split` is left aside
    """
    left = _without_dropped(table, spec)
    id_column, label, split, features = left[0], [], None, []
    missing = Collected()  # errors, reported together
    with missing.step():
        id_column = named_column(table, spec.id, "id") or ("id" if "id" in left else left[0])
    with missing.step():
        label = _left(table, spec.label, "label", left) or [c for c in left if c == "label"]
    with missing.step():
        split = named_column(table, spec.split, "split") or ("split" if "split" in left else None)
    if not labelled:
        label, split = [], None
    with missing.step():
        features = _left(table, spec.features, "features", left)
    said = said_of_features(spec)
    for name, patterns in said.items():
        with missing.step():
            _matching(table, patterns, name)
    missing.raise_if_any()
    taken = {id_column, *label, split}
    rest = [column for column in left if column not in taken]
    if chosen is not None:
        features = chosen
        rest = [column for column in rest if column not in chosen]
    elif spec.features:
        rest = []
    elif spec.features_file is not None:
        features = []
    else:
        # A column without a name is an index that some other program wrote.
        features = [column for column in rest if column and (labelled or column != "split")]
        rest = [column for column in rest if column not in features]
    columns = NodeColumns(id_column, features, label, split, rest)
    _check_roles(table, columns)
    for name, patterns in said.items():
        check_features(table, patterns, name, features)
    for column in [id_column, *label, *filter(None, [split])]:
        _check_readable(table, column, lists=column in label)
    return columns


def said_of_features(spec: ImportSpec) -> dict[str, list[str]]:
    """The patterns of columns that settings about features name, by setting."""
    return {
        "column": [Override.parse(text).pattern for text in spec.column],
        "fill": [pattern for pattern, _ in parse_fills(spec.fill) if pattern is not None],
    }


def edge_features(table: Table, columns: EdgeColumns, spec: ImportSpec) -> list[str]:
    """Return the columns of edges of which features are made: those that the settings name, or else
    all that have no other role; a column `split` is none."""
    chosen = _matching(table, spec.features, "features")
    for column in chosen:
        if column not in columns.aside:
            raise InputError(
                f"{table.name}: column {column!r} cannot be a feature and an end, the weight or "
                f"the relation of an edge ({setting('features')})"
            )
    chosen = chosen or [column for column in columns.aside if column not in ("", "split")]
    for name, patterns in said_of_features(spec).items():
        roles = "an end, the weight or the relation of an edge"
        check_features(table, patterns, name, chosen, roles)
    return chosen


def edge_columns(
    table: Table,
    spec: ImportSpec,
    kinds: tuple[str, str] = ("", ""),
    relation_column: str | None = None,
) -> EdgeColumns:
    """Find the columns of the two ends, the weight and the relation.

    kinds: names of the kinds at the ends; columns may be called by them, such as user and item_id
    relation_column: the column that names the relation of each edge, if it is given
    """
    left = _without_dropped(table, spec)
    found: dict[str, str | None] = {}
    missing = Collected()  # errors, reported together
    for name, given in (
        ("source", spec.source),
        ("target", spec.target),
        ("weight", spec.weight),
        ("relation_column", relation_column),
    ):
        with missing.step():
            found[name] = named_column(table, given, name)
    missing.raise_if_any()
    relation = found.pop("relation_column")
    left = [column for column in left if column != relation]
    for name, given in found.items():
        if given is None and name in left and name not in found.values():
            found[name] = name
    if found["source"] is found["target"] is None:
        pair = next((pair for pair in ENDS if set(pair) <= set(left)), (None, None))
        found["source"], found["target"] = pair
    if kinds[0] != kinds[1]:
        for name, kind in zip(("source", "target"), kinds, strict=True):
            called = [c for c in left if c not in found.values() and is_called(c, kind)]
            if found[name] is None and len(called) == 1:
                found[name] = called[0]
    ends = [name for name in ("source", "target") if found[name] is None]
    free = [column for column in left if column not in found.values()]
    doubt = f"; {table.header_doubt}" if table.header_doubt else ""
    if len(free) < len(ends):
        raise InputError(
            f"{table.name} has no column for the {ends[-1]} of an edge; it has "
            f"{shown_columns(table.columns)}. Is the delimiter right? See {setting('delimiter')}"
        )
    if ends and len(free) > len(ends):
        both = " and ".join(setting(end, COLUMN) for end in ends)
        example = " ".join(
            setting(end, column, typed=quote(column))
            for end, column in zip(ends, free, strict=False)
        )
        raise InputError(
            f"{table.name}: which of {shown_columns(free)} is the {' and the '.join(ends)} of an "
            f"edge? Give {both}, such as {example}{doubt}"
        )
    found.update(zip(ends, free, strict=False))
    source, target, weight = found["source"], found["target"], found["weight"]
    assert source is not None
    assert target is not None
    for column in (source, target):
        _check_readable(table, column, lists=False)
    kind = table.kind(weight) if weight else pa.float64()
    if not (is_number(kind) or is_text(kind)):
        raise InputError(f"{table.name}: column {weight!r} holds {kind}, which is no number")
    if source == target and kinds[0] != kinds[1]:
        raise InputError(
            f"{table.name}: column {source!r} cannot be both the source, of kind {kinds[0]!r}, and "
            f"the target, of kind {kinds[1]!r}; see {setting('source', COLUMN)} and "
            f"{setting('target', COLUMN)}"
        )
    aside = [column for column in left if column not in (source, target, weight)]
    return EdgeColumns(source, target, weight, aside, relation)


def is_called(column: str, kind: str) -> bool:
    """True if a column of edges is called by a kind: user, user_id, UserId, users."""
    plain = column.lower().replace("_", "").replace(" ", "").removesuffix("id").removesuffix("s")
    return plain == kind.lower().replace("_", "").removesuffix("s")


def check_dropped(tables: Sequence[Table], patterns: Sequence[str]) -> None:
    """Refuse a pattern of `drop` that matches no column of any table."""
    columns = [column for table in tables for column in table.columns]
    for pattern in patterns:
        if any(matches(column, pattern) for column in columns):
            continue
        if len(tables) == 1:
            raise _missing(tables[0], pattern, "drop")
        close = get_close_matches(pattern, columns, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        have = "; ".join(f"{table.name} has {shown_columns(table.columns)}" for table in tables)
        raise InputError(f"{setting('drop')}: there is no column {pattern!r}{hint or ';'} {have}")


def check_asked_for(spec: ImportSpec) -> None:
    """Refuse to drop a column by its name that another setting names too; `_left` checks `label`
    and `features`."""
    for name in _ROLES:
        column = getattr(spec, name)
        if column is not None and column in spec.drop:
            raise InputError(f"{setting('drop')} and {setting(name)} both name {column!r}")


def dropped(column: str, patterns: Sequence[str], asked: Container[str] = ()) -> bool:
    """True if settings leave a column out.

    asked: columns that other settings name, which a pattern does not cover
    """
    return column in patterns or (
        column not in asked and any(matches(column, pattern) for pattern in patterns)
    )


def asked_columns(spec: ImportSpec) -> set[str]:
    """The names of columns in settings that give a column a role or a kind."""
    roles = {column for name in _ROLES if (column := getattr(spec, name)) is not None}
    said = [pattern for patterns in said_of_features(spec).values() for pattern in patterns]
    return roles | {*spec.label, *spec.features, *said}


def _without_dropped(table: Table, spec: ImportSpec) -> list[str]:
    asked = asked_columns(spec)
    left = [column for column in table.columns if not dropped(column, spec.drop, asked)]
    if not left:
        raise InputError(f"{table.name}: {setting('drop')} leaves no column")
    return left


def named_column(table: Table, column: str | None, name: str) -> str | None:
    """Return the column that a setting names; refuse one that the table lacks."""
    if column is not None and column not in table.columns:
        raise _missing(table, column, name)
    return column


def _matching(table: Table, patterns: Sequence[str], name: str) -> list[str]:
    """Return the columns that match the patterns, in the order of the patterns, then of the
    file."""
    found: list[str] = []
    missing = Collected()
    for pattern in patterns:
        exact = [pattern] if pattern in table.columns else []
        columns = exact or [column for column in table.columns if matches(column, pattern)]
        if not columns:
            with missing.step():
                raise _missing(table, pattern, name)
        found += columns
    missing.raise_if_any()
    return list(dict.fromkeys(found))


def _left(table: Table, patterns: Sequence[str], name: str, left: list[str]) -> list[str]:
    """Return the columns that match the patterns and are not dropped; refuse a dropped column that
    a pattern names exactly."""
    found = _matching(table, patterns, name)
    twice = [pattern for pattern in patterns if pattern in table.columns and pattern not in left]
    if twice:
        raise InputError(f"{setting('drop')} and {setting(name)} both name {shown_columns(twice)}")
    kept = [column for column in found if column in left]
    if found and not kept:
        raise InputError(
            f"{table.name}: {setting('drop')} leaves none of the columns of {setting(name)}"
        )
    return kept


def _missing(table: Table, column: str, name: str) -> InputError:
    close = get_close_matches(column, table.columns, n=1)
    hint = f"did you mean {close[0]!r}? It has" if close else "it has"
    doubt = f"; {table.header_doubt}" if table.header_doubt else ""
    return InputError(
        f"{table.name} has no column {column!r} ({setting(name)}); {hint} "
        f"{shown_columns(table.columns)}{doubt}"
    )


def shown_columns(columns: list[str]) -> str:
    """Return the first ten names, and how many more there are, but for that of row numbers."""
    columns = [column for column in columns if column != ROW]
    shown = ", ".join(map(repr, columns[:10]))
    return shown if len(columns) <= 10 else f"{shown} and {len(columns) - 10} more"


def _check_roles(table: Table, columns: NodeColumns) -> None:
    roles = [columns.id, *columns.features, *columns.label, *filter(None, [columns.split])]
    [(column, count)] = Counter(roles).most_common(1)
    if count > 1:
        raise InputError(
            f"{table.name}: column {column!r} cannot be two of id, feature, label and split"
        )


def check_features(
    table: Table,
    patterns: Sequence[str],
    name: str,
    features: Sequence[str],
    roles: str = "the id, the label or the split",
) -> None:
    """Refuse a pattern that matches no feature column: the setting would have no effect.

    roles: words for what other columns are
    """
    for pattern in patterns:
        found = _matching(table, [pattern], name)
        if not set(found) & set(features):
            raise InputError(
                f"{table.name}: {setting(name)} is about features, and of {shown_columns(found)} "
                f"none is made: it is {roles}, or is left out"
            )


def _check_readable(table: Table, column: str, lists: bool) -> None:
    kind = table.kind(column)
    inner = kind.value_type if lists and is_list(kind) else kind
    if not (is_number(inner) or is_text(inner)):
        raise InputError(f"{table.name}: column {column!r} holds {kind}; it must be text or number")
