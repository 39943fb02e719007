"""The pages are right: their Python runs, their commands are understood, their map is true."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch

import vrgcn
from tests.scikit.conftest import Data
from tests.test_arrows import LAB_LAYERS, LAYERS
from vrgcn import (
    Graph,
    GraphSAGE,
    TrainConfig,
    fit,
    predict,
    save_graph,
)
from vrgcn.cli import COMMANDS
from vrgcn.cli.parsing import parse, parse_with_files
from vrgcn.cli.train import TrainOptions
from vrgcn.data.example import write_example
from vrgcn.engine.estimators import find_estimator
from vrgcn.graph.propagation import build_propagation
from vrgcn.training.listener import Callbacks
from vrgcn.tuning.space import SPACE

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(vrgcn.__file__).parent
PAGES = sorted(
    str(p.relative_to(ROOT))
    for p in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))
    if not any(part.startswith("_") for part in p.parts)  # what `make docs` wrote
)


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text(page), re.DOTALL)


def some_names() -> dict[str, Any]:
    """Return objects that pages use without creating them: a graph, its parts, a model."""
    generator = torch.Generator().manual_seed(0)
    names: dict[str, Any] = {
        "edge_index": torch.randint(60, (2, 300), generator=generator),
        "features": torch.randn(60, 8, generator=generator),
        "labels": torch.arange(60) % 3,
        "train_ids": torch.arange(0, 30),
        "val_ids": torch.arange(30, 45),
        "test_ids": torch.arange(45, 60),
        "acquaintances": (torch.rand(60, 60, generator=generator) < 0.05).float(),
        "torch": torch,
        "nn": torch.nn,
    }
    names["graph"] = Graph(
        names["edge_index"],
        names["features"],
        names["labels"],
        train=names["train_ids"],
        val=names["val_ids"],
        test=names["test_ids"],
    )
    torch.manual_seed(0)
    names["model"] = GraphSAGE(8, 16, 3)
    return names


def numbers() -> dict[str, Any]:
    """A graph of numbers around 1000."""
    generator = torch.Generator().manual_seed(1)
    labels = 1000 + 50 * torch.randn(600, generator=generator)
    features = torch.randn(600, 4, generator=generator)
    return {"graph": Graph([], features, labels, train=range(600), task="regression")}


def check_readme(names: dict[str, Any]) -> None:
    """What was printed is what the page shows, but for the digits of another processor."""
    (shown,) = blocks("README.md", "text")
    accuracy = re.search(r"test accuracy ([\d.]+)", shown)
    assert accuracy is not None
    assert abs(float(accuracy[1]) - names["run"].result["test"]) < 0.05
    best = names["run"].predictions().to_pandas(top=2)
    for line in shown.splitlines()[3:]:
        name, label, *_ = line.split()
        assert best.loc[name, "label_1"] == label, name


def check_diagnostics(names: dict[str, Any]) -> None:
    assert names["diagnosis"].estimators["cvd"].gradient.std > 0


def check_estimators(names: dict[str, Any]) -> None:
    composition = re.search(r"--estimator (\S+)", text("docs/ideas/estimators.md"))
    assert composition is not None
    assert names["estimator"] == find_estimator(composition[1])


def check_idea(names: dict[str, Any]) -> None:
    model = names["GCN"].__new__(names["GCN"])
    torch.nn.Module.__init__(model)
    model.layers = torch.nn.ModuleList([torch.nn.Linear(8, 4), torch.nn.Linear(4, 3)])
    graph = names["graph"]
    P = build_propagation("gcn", graph).to_dense()
    dense = model(graph.features, lambda h: P @ h)
    assert torch.allclose(predict(model, graph), dense, atol=1e-5)


def check_import(names: dict[str, Any]) -> None:
    assert str(names["summary"]) in text("docs/guides/tables.md")
    assert names["graph"].num_nodes == 7


def check_live(names: dict[str, Any]) -> None:
    live = names["live"]
    assert live.note == {"last": 17}
    graph = live.graph()
    assert graph.names.nodes.to_pylist() == [*range(60), 100]
    wanted = predict(live.saved, graph)
    assert torch.allclose(live.predict(range(60)).outputs, wanted[:60], atol=1e-5)


def check_objectives(names: dict[str, Any]) -> None:
    graph = names["graph"]
    below = graph.labels < predict(names["model"], graph)[:, 0]
    assert 0.85 < below.double().mean() < 0.95


def check_own_models(names: dict[str, Any]) -> None:
    graph = names["graph"]
    jumping = names["Jumping"](8, 16, 3, depth=3)
    fit(jumping, graph, TrainConfig(epochs=2))
    assert torch.isfinite(predict(jumping, graph)).all()


def check_own_parts(names: dict[str, Any]) -> None:
    graph = names["graph"]
    matrices, relational = names["matrices"], names["relational"]
    dense = {over: build_propagation(rule, graph).to_dense() for over, rule in matrices.items()}
    outputs = relational(graph.features, lambda h, over: dense[over] @ h)
    assert torch.allclose(names["outputs"], outputs, atol=1e-5)

    assert len(names["batches"]) == names["batches"].step / 20
    check_sampler(names["Coin"], graph)
    outputs = torch.export.load("gcn.pt2").module()(graph.features)
    assert torch.allclose(outputs, predict(names["gcn"], graph), atol=1e-5)


def check_sampler(kind: Callable[[float], Any], graph: Graph) -> None:
    """Certain coins are the exact product; others have its mean."""
    P, nodes = build_propagation("gcn", graph), torch.tensor([7, 0, 33])
    generator = torch.Generator().manual_seed(2)

    def drawn(chance: float) -> torch.Tensor:
        sample = kind(chance).sample(P, nodes, 0, generator)
        rows = sample.scale[:, None] * sample.edges.to_torch(torch.float32).to_dense()
        return rows.index_put((torch.arange(3), nodes), sample.own, accumulate=True)

    dense = P.to_dense()[nodes]
    assert torch.allclose(drawn(1.0), dense, atol=1e-6)
    assert not torch.allclose(drawn(0.3), dense, atol=1e-3)
    mean = torch.stack([drawn(0.3) for _ in range(4000)]).mean(0)
    # An entry's deviation is P √((1 - .3) / .3 / 4000) = .024 P; 5 of these.
    assert ((mean - dense).abs() <= 0.12 * dense + 1e-6).all()


def check_probabilities(names: dict[str, Any]) -> None:
    sets, test = names["sets"], names["graph"].test
    assert sets.shape == (len(test), 3)
    assert (sets.sum(1) >= 1).all()
    assert len(names["calibration"].scores) == names["calibration"].fitted == 15


def check_pyg(names: dict[str, Any]) -> None:
    data, sage = names["data"], names["sage"]
    full = sage(data.x, data.edge_index).detach()
    assert torch.allclose(names["outputs"], full, atol=1e-5)
    assert torch.allclose(names["saved"].predict(names["graph"]), full, atol=1e-5)
    assert names["hidden"].shape == (60, 32)
    assert names["users"].shape == (40, 3)
    full = names["residual"](data.x, data.edge_index).detach()
    assert torch.allclose(predict(names["residual"], names["graph"]), full, atol=1e-5)


def check_python(names: dict[str, Any]) -> None:
    assert names["losses"] == [point.loss for point in names["result"].curve]
    assert len(names["axes"]) == 2
    assert len(names["longer"].curve) == 5
    assert set(names["table"]["label"]) <= {"red", "green", "blue"}
    assert len(names["table"]) == len(names["papers"])
    two = names["two"].to_pandas()
    pandas.testing.assert_frame_equal(
        two, names["table"].loc[[3, 14], list(two.columns)], check_names=False
    )
    assert names["hidden"].shape == (240, 32)
    assert torch.equal(names["inputs"], names["graph"].features)
    assert list(names["named"].index) == list(range(len(names["outputs"])))
    assert names["found"].findings == []
    assert names["why"].id == 3
    assert names["measured"]["scores"]["test"] == names["run"].result["test"]
    assert names["partners"].column("rank").to_pylist() == [*range(1, 6)] * 2
    assert "Explanations" in Path("why.html").read_text(encoding="utf-8")
    assert "Curves" in Path("report.html").read_text(encoding="utf-8")
    listed = re.findall(r"`(on_\w+)\(", text("docs/guides/python.md"))
    assert set(listed) == {field.name for field in fields(Callbacks)}


def check_scikit(names: dict[str, Any]) -> None:
    assert list(names["best"].columns) == ["customer", "sku", "rank", "score"]
    assert len(names["best"]) == 10
    assert len(names["likely"]) == 50
    assert 0 < names["ndcg"] < 1
    assert names["accuracy"] > 0.8
    assert (names["classes"] == names["y"])[~names["train_mask"]].mean() > 0.8
    assert names["scores"].mean() > 0.8
    assert names["search"].best_score_ > 0.8
    assert names["mixed"].feature_names_in_.tolist() == ["age", "town", "joined"]
    assert names["mixed"].predict(names["people"]).tolist() == ["tea", "tea", "coffee", "coffee"]


def table_of_nodes() -> dict[str, Any]:
    """Return the data of a scikit-learn user: X, y, a mask, and edges."""
    data = Data()
    found = {"X": data.X.astype(np.float32), "y": data.codes, "edge_index": data.edge_index}
    papers = pandas.DataFrame(data.X, columns=list("abcdef")).assign(topic=data.y)
    cites = pandas.DataFrame(data.edge_index.T, columns=["source", "target"])
    return found | {"train_mask": data.train, "np": np, "papers": papers, "cites": cites}


def check_reliability(names: dict[str, Any]) -> None:
    losses = [[point.loss for point in names[run].curve] for run in ("result", "longer")]
    assert [len(losses[0]), len(losses[1])] == [3, 5]
    assert losses[1][:3] == losses[0]


def check_report(names: dict[str, Any]) -> None:
    assert "0.987" in Path("seeds.html").read_text(encoding="utf-8")


def check_rows_with_a_time(names: dict[str, Any]) -> None:
    assert names["graph"].relations["result-last-rows"].one_way
    assert names["predictions"].columns.tolist() == ["driver", "at", "label", "p_0", "p_1"]
    assert names["predictions"].driver.tolist() == ["Ada", "Bob"]


def check_scaling(names: dict[str, Any]) -> None:
    assert len(list(Path("big/derived").glob("*.npy"))) == 2
    assert Path("tables/outputs.bin").stat().st_size == names["outputs"].numel() * 4


def check_several_tables(names: dict[str, Any]) -> None:
    graph = names["graph"]
    assert dict(graph.kinds.sizes) == {"user": 3, "item": 2}
    assert list(graph.relations)[::2] == ["user-bought-item", "user-follows-user"]
    assert graph.names.classes == ["no", "yes"]


def check_relational(names: dict[str, Any]) -> None:
    store, model = names["store"], names["model"]
    assert store.kinds.range("item") == range(60, 90)
    assert names["predict"](model, store, kind="item").shape == (30, 3)


def check_training(names: dict[str, Any]) -> None:
    assert names["result"].stopped == "epochs"
    assert names["config"].schedule == "cosine"


def test_a_file_of_settings_is_understood(tmp_path: Path) -> None:
    (block,) = blocks("docs/guides/training.md", "toml")
    file = tmp_path / "settings.toml"
    file.write_text(block, encoding="utf-8")
    options = parse_with_files(TrainOptions, ["--config", str(file), "--epochs", "30"])
    assert (options.dataset, options.log) == ("communities", "tensorboard")
    assert options.model.hidden == 256
    wanted = {"epochs": 30, "schedule": "cosine", "warmup": 2, "clip": 1.0, "label_smoothing": 0.1}
    wanted |= {"class_weights": "balanced", "time_limit": "10m", "learning_rate": 0.003}
    assert {name: getattr(options.train, name) for name in wanted} == wanted


def check_audit(names: dict[str, Any]) -> None:
    assert names["done"].findings == []
    assert json.loads(Path("findings.json").read_text())["findings"] == []
    assert names["links"].graph.pairs is not None


def check_pairs(names: dict[str, Any]) -> None:
    assert names["embeddings"].shape == (60, 16)
    assert names["links"].num_edges < names["graph"].num_edges
    assert names["result"].metric.title == "AUC"


def check_knowledge(names: dict[str, Any]) -> None:
    triples = names["split"].triples
    assert names["split"].num_edges == len(triples.train)
    assert 4 * len(triples.test) < len(triples.train) < names["facts"].num_edges


def check_networks(names: dict[str, Any]) -> None:
    assert names["saved"].predict(names["graph"]).shape == (60, 3)


def check_tune(names: dict[str, Any]) -> None:
    assert len(names["found"].trials) == 3
    assert names["outputs"].shape == (60, 3)
    assert names["values"].keys() <= SPACE.keys()
    assert predict(names["model"], names["graph"]).shape == (60, 3)
    searched = (
        text("docs/guides/search.md").partition("## What is searched")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"(?m)^\| `(\w+)` \|", searched)
    assert rows == list(SPACE)


# Each page with Python, and what must be so after it was run.
CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "README.md": check_readme,
    "docs/guides/diagnostics.md": check_diagnostics,
    "docs/guides/knowledge-graphs.md": check_knowledge,
    "docs/guides/leaks.md": check_audit,
    "docs/guides/links.md": check_pairs,
    "docs/guides/live.md": check_live,
    "docs/guides/networks.md": check_networks,
    "docs/guides/objectives.md": check_objectives,
    "docs/guides/own-models.md": check_own_models,
    "docs/guides/own-parts.md": check_own_parts,
    "docs/guides/probabilities.md": check_probabilities,
    "docs/guides/pyg.md": check_pyg,
    "docs/guides/python.md": check_python,
    "docs/guides/relational.md": check_relational,
    "docs/guides/reports.md": check_report,
    "docs/guides/rows-with-a-time.md": check_rows_with_a_time,
    "docs/guides/scaling.md": check_scaling,
    "docs/guides/scikit.md": check_scikit,
    "docs/guides/search.md": check_tune,
    "docs/guides/several-tables.md": check_several_tables,
    "docs/guides/tables.md": check_import,
    "docs/guides/training.md": check_training,
    "docs/ideas/estimators.md": check_estimators,
    "docs/ideas/idea.md": check_idea,
    "docs/reference/reliability.md": check_reliability,
}


def test_every_page_with_python_is_checked() -> None:
    assert [page for page in PAGES if blocks(page, "python")] == sorted(CHECKS)


@pytest.mark.parametrize("page", CHECKS)
def test_the_python_of_a_page_does_what_the_page_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = some_names()
    if page == "README.md":  # left by the command above its Python
        write_example(Path("runs/demo"))
    if page == "docs/guides/scaling.md":
        save_graph(names["graph"], "big")
    if page == "docs/guides/objectives.md":
        names |= numbers()
    if page in ("docs/guides/python.md", "docs/guides/scikit.md"):
        names |= table_of_nodes()
    if page == "docs/guides/tables.md":
        for file, table in zip(("papers.csv", "cites.csv"), blocks(page, "csv"), strict=True):
            Path(file).write_text(table, encoding="utf-8")
    for number, block in enumerate(blocks(page, "python"), start=1):
        exec(compile(block, f"{page}, block {number}", "exec"), names)
    CHECKS[page](names)


def promises() -> list[list[str]]:
    """The rows of the tables of promises: cells, the last one the tests that show them."""
    rows = re.findall(r"(?m)^\| (.*) \|$", text("docs/reference/reliability.md"))
    cells = [re.split(r"(?<!\\) \| ", row) for row in rows]
    return [row for row in cells if not row[-1].startswith(("shown by", "---"))]


def test_every_promise_names_tests_that_there_are() -> None:
    rows = promises()
    assert len(rows) > 30
    for number, row in enumerate(rows):
        shown = row[-1]
        named = re.findall(r"`(tests/[\w/]+(?:\.py)?)", shown)
        assert named or (number and shown.startswith("the same")), row
        for path in named:
            assert (ROOT / path).exists(), path
            if path.endswith(".py"):
                assert re.search(r"(?m)^def test_", text(path)), path


def commands() -> Iterator[tuple[str, str]]:
    """Each line of a page's code that begins with `vrgcn`, its comment left out."""
    for page in PAGES:
        code = "".join(blocks(page, "sh")) + "".join(re.findall(r"(?m)^    .*\n", text(page)))
        for line in code.replace("\\\n", " ").splitlines():
            if line.split()[:1] == ["vrgcn"]:
                yield page, re.split(r"\s#", line)[0].strip()  # an address has a # too


def test_there_are_commands_on_the_pages() -> None:
    assert len({page for page, _ in commands()}) >= 7


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_a_command_on_a_page_is_understood(page: str, line: str) -> None:
    command, *flags = shlex.split(line)[1:]
    kind = COMMANDS[command].options
    assert isinstance(parse(kind, flags), kind)


def map_of_the_code() -> str:
    """The folders of the package, and the parts, the folders of lab and what can be added."""
    return (
        text("docs/ideas/idea.md").partition("## The way of the data")[2]
        + text("CONTRIBUTING.md").partition("## The map")[2].partition("## Results")[0]
    )


def test_the_first_page_and_every_guide_are_short() -> None:
    lengths = {page: len(text(page).splitlines()) for page in PAGES}
    assert lengths["README.md"] <= 120
    guides = {page: count for page, count in lengths.items() if page.startswith("docs/guides/")}
    assert len(guides) > 20
    assert not {page: count for page, count in guides.items() if count > 150}


def test_the_idea_fits_on_two_screens() -> None:
    assert len(text("docs/ideas/idea.md").splitlines()) <= 100


def test_every_file_and_folder_that_the_map_names_exists() -> None:
    named = re.findall(r"`([\w/]+(?:/|\.py))`", map_of_the_code())
    assert len(named) > 30
    for path in named:
        home = ROOT if path.startswith(("tests/", "vrgcn/", "lab/")) else PACKAGE
        assert (home / path).exists(), path


def test_the_map_has_every_folder_in_the_order_of_the_arrows() -> None:
    table = map_of_the_code().partition("| folder of `vrgcn/`")[2]
    rows = re.findall(r"(?m)^\| `(\w+)/` \|", table)
    assert rows == [folder for layer in LAYERS for folder in layer if folder in rows]
    assert set(rows) == {folder for layer in LAYERS for folder in layer}


def test_the_map_has_every_folder_of_lab_in_the_order_of_its_arrows() -> None:
    rows = re.findall(r"(?m)^\| `lab/(\w+)/` \|", map_of_the_code())
    assert rows == [folder for layer in LAB_LAYERS for folder in layer]


def test_every_folder_within_a_folder_is_on_the_map() -> None:
    inner = {str(p.parent.relative_to(PACKAGE)) for p in PACKAGE.glob("*/*/__init__.py")}
    assert inner
    for folder in inner:
        assert f"`{folder}/`" in map_of_the_code(), folder


def test_parts_and_tables_live_where_the_map_says() -> None:
    parts = re.findall(r"(?m)^\| `([A-Z]\w+)`[^|]* \| `([\w/]+)(?:/|\.py)`", map_of_the_code())
    tables = re.findall(r"`([A-Z]+)`, `([\w/]+)\.py`", map_of_the_code())
    assert len(parts) >= 9
    assert len(tables) >= 6
    for name, path in parts + tables:
        dotted = path.removesuffix("/__init__").replace("/", ".")
        assert hasattr(importlib.import_module(f"vrgcn.{dotted}"), name), (name, path)


# Kinds of additions, as the table names them.
ADDED = (
    *("a sampler", "a sampler with a setting", "an estimator", "a training flag", "a task"),
    *("a metric", "a model", "an encoder", "a table source", "a command", "a panel of a report"),
    *("a setting to be searched", "a data set"),
)


def rows_of_additions() -> dict[str, str]:
    """Return the files to write and the lines to add, by kind of addition; notes in brackets are
    left out."""
    table = map_of_the_code().partition("| to add | write | a line in |")[2].partition("\n\n")[0]
    rows = re.findall(r"(?m)^\| (an? [^|(]+?)(?: \([^|]*\))? \| (.*) \|$", table)
    assert len({name for name, _ in rows}) == len(rows)
    return dict(rows)


@pytest.mark.parametrize("thing", ADDED)
def test_the_map_says_how_to_add(thing: str) -> None:
    row = rows_of_additions()[thing]
    files = re.findall(r"`([\w/]+(?:/|\.py))`", row)
    assert files or row.startswith("the same"), row
    for file in files:
        assert (PACKAGE / file).exists(), file
    for name, path in re.findall(r"`([A-Z]\w+)`(?: runs)?, `([\w/]+)\.py`", row):
        module = importlib.import_module(
            "vrgcn." + path.removesuffix("/__init__").replace("/", ".")
        )
        assert hasattr(module, name), (name, path)


def test_a_class_or_table_in_a_row_stands_in_a_file_of_the_row() -> None:
    for thing, row in rows_of_additions().items():
        files = [PACKAGE / file for file in re.findall(r"`([\w/]+\.py)`", row)]
        sources = "".join(file.read_text(encoding="utf-8") for file in files)
        for name in re.findall(r"`([A-Z]\w+)`", row):
            assert re.search(rf"\b{name}\b", sources), (thing, name)
