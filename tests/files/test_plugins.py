"""Parts of another package are found by name: trained, sampled, read, predicted from the saved run;
a broken package is named, and only when its name is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv as pc
import pytest
import torch

from tests.cli.conftest import small_graph
from tests.messages import refused
from vrgcn import (
    GCN,
    SavedModel,
    TrainConfig,
    load_graph,
    load_model,
    load_run,
    save_graph,
    save_model,
    tasks,
)
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.samplers import sampler_class
from vrgcn.files import plugins
from vrgcn.models.config import ModelConfig
from vrgcn.models.plugins import made_by
from vrgcn.tasks import find_task

TINY = """
import json
from pathlib import Path

import pyarrow as pa
import torch
from torch import nn

from vrgcn.data.databases.source import Rows
from vrgcn.data.tables.encoders.numbers import NumberColumn
from vrgcn.engine.samplers.uniform import Uniform
from vrgcn.inference.stage import RowStage
from vrgcn.tasks.regression import Number

Path(__file__).with_suffix(".imported").touch()


class Wide(nn.Module):
    propagation = "mean"

    def __init__(self, in_features, classes, hidden):
        super().__init__()
        self.first = nn.Linear(in_features, hidden)
        self.last = nn.Linear(hidden, classes)

    def forward(self, x, propagate):
        return self.last(propagate(torch.relu(self.first(x))))


class Counting(Uniform):
    built = []

    @classmethod
    def build(cls, fanouts):
        cls.built.append(list(fanouts))
        return super().build(fanouts)


class Amount(Number):
    name = "amount"
    by_name = True


class LinesTable:
    title = "JSON lines"
    header_doubt = ""

    def __init__(self, path):
        self.name, self.notes = str(path), []
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        self._table = pa.Table.from_pylist(rows)
        self.columns = list(self._table.column_names)

    def kind(self, column):
        return self._table.schema.field(column).type

    def batches(self, columns):
        [batch] = self._table.select(list(columns)).combine_chunks().to_batches()
        yield 0, batch

    def where(self, rows):
        return [f"line {row + 1}" for row in rows]


class Ring:
    def __init__(self, url, *, write=False):
        self._size = int(url.address.rpartition("/")[2])

    def rows(self, what):
        numbers = list(range(self._size))
        columns = {"source": numbers, "target": numbers[1:] + numbers[:1]}
        table = pa.table(columns if what == "edges" else {"id": numbers, "x": numbers})
        return Rows(table.schema, iter(table.to_batches()))

    def close(self):
        pass


class Halved(RowStage):
    name, title, words = "halved", "halving", "halved"

    def rows(self, outputs, task):
        return outputs / 2


class Doubled(NumberColumn):
    kind = "doubled"

    def encode(self, cells, out, tell):
        super().encode(cells, out, tell)
        out *= 2
"""
POINTS = """
[vrgcn.models]
wide = tiny:Wide
broken = tiny_broken:Model
[vrgcn.samplers]
counting = tiny:Counting
[vrgcn.tasks]
amount = tiny:Amount
[vrgcn.table_files]
jsonl = tiny:LinesTable
[vrgcn.table_sources]
ring = tiny:Ring
[vrgcn.encoders]
doubled = tiny:Doubled
[vrgcn.stages]
halved = tiny:Halved
"""


def install(place: Path, name: str, points: str, **modules: str) -> None:
    """A package as pip leaves it: modules, and the metadata beside them."""
    about = place / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(points)
    for module, text in modules.items():
        (place / f"{module}.py").write_text(text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path in which packages are installed, among them a tiny one."""
    place = tmp_path / "site"
    install(place, "tiny", POINTS, tiny=TINY, tiny_broken="import not_there\n")
    monkeypatch.syspath_prepend(place)
    monkeypatch.chdir(tmp_path)
    caches = (plugins._found.cache_clear, tasks._plugin.cache_clear)
    for clear in caches:
        clear()
    yield place
    for clear in caches:
        clear()
    for module in ("tiny", "tiny_broken"):
        sys.modules.pop(module, None)


def test_a_model_and_a_sampler_of_another_package_train_and_the_saved_run_predicts(
    vrgcn, site: Path, tmp_path: Path
) -> None:
    save_graph(small_graph(), tmp_path / "graph")
    flags = ("--model", "wide", "--hidden", 8, "--epochs", 12, "--fanout", 2)
    code, out, err = vrgcn(
        *("train", "graph", *flags, "--estimator", "counting/corrected/sampled", "--out", "run")
    )
    assert code == 0, err
    assert "Wide with " in out
    built = sys.modules["tiny"].Counting.built
    assert built
    assert all(fanouts == [2] for fanouts in built)
    run = load_run(tmp_path / "run")
    assert type(run.saved.model) is sys.modules["tiny"].Wide
    assert run.saved.num_classes == 3
    assert made_by(run.saved.model) == ("wide", {"in_features": 8, "classes": 3, "hidden": 8})
    assert run.result is not None
    assert run.result["test"] > 0.8
    code, _, err = vrgcn("predict", "run", "--out", "predictions.csv")
    assert code == 0, err
    label = pc.read_csv("predictions.csv").column("label").to_pylist()
    assert label == run.predict().argmax(1).tolist()
    code, _, err = vrgcn("train", "--resume", "run", "--epochs", 13)
    assert code == 0, err
    assert "Wide with " in (tmp_path / "run" / "README.md").read_text()


def test_without_its_package_a_saved_model_says_what_is_missing(
    vrgcn, site: Path, tmp_path: Path
) -> None:
    save_graph(small_graph(), tmp_path / "graph")
    flags = ("--model", "wide", "--hidden", 4, "--epochs", 1)
    assert vrgcn("train", "graph", *flags, "--out", "run")[0] == 0
    (site / "tiny-1.0.dist-info" / "entry_points.txt").write_text("")
    plugins._found.cache_clear()
    code, _, err = vrgcn("predict", "run", "--out", "p.csv")
    assert code == 1
    assert "holds the model 'wide' of another package, which is not installed here" in err


def test_settings_that_a_model_does_not_have_and_graphs_that_it_cannot_read_are_refused(
    vrgcn, site: Path, tmp_path: Path
) -> None:
    save_graph(small_graph(), tmp_path / "graph")
    code, _, err = vrgcn("train", "graph", "--model", "wide", "--layers", 3, "--out", "run")
    assert code == 1
    assert "--layers 3: the model 'wide' of the package tiny 1.0 has no such setting" in err
    code, _, err = vrgcn("train", "graph", "--model", "wide", "--predict", "edges", "--out", "run")
    assert code == 1
    assert "--model wide is a plug-in, which predicts labels of nodes of one kind: pairs" in err


def test_tables_columns_and_tasks_of_another_package_are_read_by_name(
    vrgcn, site: Path, tmp_path: Path
) -> None:
    nodes = [{"id": i, "size": i / 2, "cost": float(i)} for i in range(8)]
    edges = [{"source": i, "target": (i + 1) % 8} for i in range(8)]
    for name, rows in (("nodes", nodes), ("edges", edges)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
    code, _, err = vrgcn(
        *("import", "--edges", "edges.jsonl", "--nodes", "nodes.jsonl", "--label", "cost"),
        *("--task", "amount", "--column", "size=doubled", "--out", "graph"),
        *("--ratio", 0.5, 0.25, 0.25),
    )
    assert code == 0, err
    graph = load_graph("graph")
    assert graph.features[:, 0].tolist() == [float(i) for i in range(8)]
    assert graph.task == "amount"
    assert type(find_task("amount")) is sys.modules["tiny"].Amount
    code, _, err = vrgcn("train", "graph", "--hidden", 4, "--epochs", 1, "--out", "run")
    assert code == 0, err
    assert load_run("run").saved.task == "amount"
    code, _, err = vrgcn("predict", "run", "--out", "p.csv")
    assert code == 0, err
    assert pc.read_csv("p.csv").column_names == ["id", "prediction"]
    code, _, err = vrgcn("evaluate", "run")
    assert code == 0, err


def test_a_source_of_another_package_is_read_by_its_scheme(vrgcn, site: Path) -> None:
    flags = ("--nodes", "ring:///12#nodes", "--edges", "ring:///12#edges", "--out", "g")
    code, _, err = vrgcn("import", *flags)
    assert code == 0, err
    graph = load_graph("g")
    assert (graph.num_nodes, graph.num_edges) == (12, 24)
    assert graph.features[:, 0].tolist() == [float(i) for i in range(12)]
    code, _, err = vrgcn("import", "--edges", "rings:///12#edges", "--out", "h")
    assert code
    assert "postgres://, ring://; did you mean ring://?" in err


def test_an_output_stage_of_another_package_is_saved_and_predicts(
    site: Path, tmp_path: Path
) -> None:
    import tiny

    plain = SavedModel.of(GCN(8, 4, 3))
    save_model(plain.then(tiny.Halved()), tmp_path / "m.safetensors")
    sys.modules.pop("tiny")
    loaded = load_model(tmp_path / "m.safetensors")
    graph = small_graph()
    assert torch.equal(loaded.predict(graph), plain.predict(graph) / 2)
    (site / "tiny-1.0.dist-info" / "entry_points.txt").write_text("")
    plugins._found.cache_clear()
    with refused():
        load_model(tmp_path / "m.safetensors")


def test_errors_list_plug_ins_and_a_broken_one_is_named_when_it_is_asked_for(
    vrgcn, site: Path, tmp_path: Path
) -> None:
    save_graph(small_graph(), tmp_path / "graph")
    code, _, err = vrgcn("train", "graph", "--model", "wid", "--out", "run")
    assert code == 2
    assert "'wid' is none of auto, gcn, graphsage, residual, mlp, lightgcn, labels, " in err
    assert "trees-tables, broken, wide; did you mean wide?" in err
    assert "did you mean wide?" in err
    with refused():
        ModelConfig(model="wid")  # type: ignore[arg-type]
    with refused():
        Estimator("counted")
    with refused():
        find_task("amounts")
    code, _, err = vrgcn("import", "--edges", "e.xyz", "--out", "g")
    (tmp_path / "e.xyz").write_text("a")
    code, _, err = vrgcn("import", "--edges", "e.xyz", "--out", "g")
    assert "and .parquet, .nt, .ttl, .jsonl; if it is text" in err
    assert not (site / "tiny.imported").exists()  # nothing so far asked for the package itself
    code, _, err = vrgcn("train", "graph", "--model", "broken", "--out", "run")
    assert code == 1
    assert "the plug-in 'broken' of the package tiny 1.0 cannot be loaded (tiny_broken:" in err
    assert "ModuleNotFoundError: No module named 'not_there'" in err
    assert vrgcn("train", "graph", "--model", "gcn", "--epochs", 1, "--out", "ours")[0] == 0


def test_names_of_vrgcns_own_and_of_two_packages_are_refused(
    vrgcn, site: Path, tmp_path: Path
) -> None:
    points = (
        "[vrgcn.models]\ngcn = other:Model\nwide = other:Model\n[vrgcn.samplers]\nfull = other:A\n"
    )
    install(site, "other", points, other="")
    plugins._found.cache_clear()
    save_graph(small_graph(), tmp_path / "graph")
    code, _, err = vrgcn("train", "graph", "--model", "gcn", "--epochs", 1, "--out", "run")
    assert code == 1
    assert "'gcn' is a name of vrgcn's own, and the package other 1.0 has an entry point" in err
    code, _, err = vrgcn("train", "graph", "--model", "wide", "--epochs", 1, "--out", "run")
    assert code == 1
    assert "several packages have an entry point 'wide' in the group vrgcn.models: " in err
    assert "the package tiny 1.0" in err
    assert "the package other 1.0" in err
    with refused():
        sampler_class("full")


def test_help_imports_no_plug_in_and_reads_no_metadata(site: Path) -> None:
    code = (
        "import sys\nfrom vrgcn.cli import main\n"
        "for words in (['--help'], ['train', '--help'], ['import', '--help']):\n"
        "    main(words)\n"
        "print('importlib.metadata' in sys.modules, 'tiny' in sys.modules)\n"
    )
    path = os.pathsep.join([str(site), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.splitlines()[-1] == "False False"


def test_a_plug_in_is_a_setting_of_python_too(site: Path) -> None:
    assert TrainConfig(estimator="counting/sampled/sampled").estimator.startswith("counting")
    assert ModelConfig(model="wide").model == "wide"  # type: ignore[arg-type]
    torch.manual_seed(0)
    from vrgcn.models.models import build_model

    one, two = (build_model(ModelConfig(model="wide"), 4, 2, seed) for seed in (0, 0))  # type: ignore[arg-type]
    assert torch.equal(one.first.weight, two.first.weight)
