"""A target, a metric and a split that the package does not have: each is added through one table,
and is then the equal of those that it has. docs/ideas/idea.md says which files that takes."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

from tests.targets import ordinal, test_contract
from tests.targets.shop import LIKED, evaluated, save
from vrgcn import Run, load_graph, tasks
from vrgcn.files import plugins
from vrgcn.targets import spec, ways
from vrgcn.targets.opening import open_target
from vrgcn.targets.spec import TargetSpec
from vrgcn.targets.ways import Listed
from vrgcn.tasks import metrics

IDEA = Path(__file__).parents[2] / "docs" / "ideas" / "idea.md"
POINTS = "[vrgcn.tasks]\nordinal = tests.targets.ordinal:Ordinal\n"
# The files of the package that an addition changes: a line in a table, or a setting.
TOUCHED: dict[str, tuple[ModuleType, ...]] = {
    "ordered classes": (tasks,),
    "a metric": (metrics,),
    "a split of pairs": (ways, spec),
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package with the task on the path, its metric in the table."""
    place = tmp_path_factory.mktemp("site")
    about = place / "ordinal-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ordinal\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    caches = (plugins._found.cache_clear, tasks._plugin.cache_clear)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(place)
        patch.setitem(metrics.METRICS, "steps", ordinal.STEPS)
        for clear in caches:
            clear()
        yield place
    for clear in caches:
        clear()


@pytest.fixture(scope="module")
def store(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("ordinal") / "store", task="ordinal")


@pytest.fixture(scope="module")
def runs(store: Path) -> Callable[[str], Run]:
    trained = test_contract.train(store, store.parent / "run", "labels")
    return lambda name: trained


def test_ordered_classes_keep_the_contract_of_targets(
    runs: Callable[[str], Run], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_contract.test_a_run_that_is_resumed_and_one_on_disk_have_the_bits_of_one_that_was_not(
        runs, store, tmp_path / "bits", "labels"
    )
    monkeypatch.setattr(
        test_contract, "save", lambda folder, garbage: save(folder, garbage=garbage, task="ordinal")
    )
    test_contract.test_nothing_of_the_test_split_changes_a_bit_of_what_is_trained(
        runs, tmp_path / "leak", "labels"
    )


def test_ordered_classes_are_scored_by_the_metric_and_predicted_by_name(
    vrgcn, runs: Callable[[str], Run], tmp_path: Path
) -> None:
    run = runs("labels")
    graph = run.graph()
    outputs = torch.as_tensor(run.predict(graph))
    assert outputs.shape == (len(graph.kinds.nodes("user")), 4)
    assert run.result is not None
    assert run.result["metric"] == "steps"
    labels = graph.labels[graph.test]
    assert run.result["test"] == pytest.approx(ordinal.steps(outputs[graph.test], labels))
    assert vrgcn("evaluate", run.folder)[0] == 0
    assert evaluated(run.folder, "steps") == pytest.approx(run.result["test"], abs=1e-6)
    code, _, error = vrgcn("predict", run.folder, "--out", tmp_path / "p.csv")
    assert code == 0, error
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert [row["label"] for row in rows[:9]] == ["abcd"[n] for n in outputs[:9].argmax(1)]
    assert all(sum(float(row[f"p_{c}"]) for c in "abcd") == pytest.approx(1) for row in rows)


@dataclass(frozen=True)
class Thirds(TargetSpec):
    """A split by a setting that the package does not have."""

    thirds: bool = False


def by_thirds(pairs: Listed, spec: TargetSpec, generator: torch.Generator) -> Tensor:
    return torch.arange(len(pairs.sources)) % 3


def test_a_split_of_a_table_of_its_own_hides_what_it_holds_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ways.WAYS, "thirds", by_thirds)
    graph = open_target(Thirds(predict=LIKED, thirds=True), load_graph(save(tmp_path / "store")))
    pairs = graph.pairs
    assert pairs is not None
    assert len(pairs.train) == len(pairs.val) == len(pairs.test)
    A = graph.edges[LIKED]
    seen = {*zip(A.indices.tolist(), A.row_of_entry.tolist(), strict=True)}
    assert not seen & {tuple(row) for row in torch.cat([pairs.val, pairs.test]).tolist()}
    assert seen == {tuple(row) for row in pairs.train.tolist()}


def test_the_map_says_which_files_an_addition_touches() -> None:
    rows = re.findall(r"^\| ([^|`]+) \| ([^|]+) \|$", IDEA.read_text(), flags=re.M)
    said = {what: {*re.findall(r"`([\w/]+\.py)`", files)} for what, files in rows}
    for what, touched in TOUCHED.items():
        root = Path(plugins.__file__).parents[1]
        files = {Path(str(module.__file__)).relative_to(root).as_posix() for module in touched}
        assert said[what] == files
