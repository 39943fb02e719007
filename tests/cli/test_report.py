"""`vrgcn report`: pages of runs, finished or not, and what is said of folders that are none."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import named, small_graph
from vrgcn.data.store import save_graph
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.pages.runs.curves import EPOCHS, _score_axis, draw
from vrgcn.pages.runs.records import read_runs
from vrgcn.runs.config_file import write_settings


def text_of(path: Path) -> str:
    """The page without its figures, in a form that is easy to compare with."""
    return re.sub(r'src="data:[^"]*"', "", path.read_text())


def cells(page: str, row: str) -> list[str]:
    """The cells of the first table row that begins with a name."""
    found = re.search(rf"<tr><td[^>]*>{re.escape(row)}</td>(.*?)</tr>", page)
    assert found, f"there is no row {row}"
    return re.findall(r"<td[^>]*>(.*?)</td>", found[1])


def write_run(folder: Path, epochs: int = 3, *, done: bool = True, **options: object) -> Path:
    """A run by hand, without a model: its graph is not there either."""
    folder.mkdir(parents=True)
    config = {"graph": "/nowhere/papers", "estimator": "cv", "epochs": epochs, "fanout": [1]}
    write_settings(folder / "config.toml", config | options)
    points = [
        {
            "epoch": n,
            "loss": 1 / n,
            "val": 0.5 + n / 100,
            "seconds": 0.5 * n,
            "age": 2.0 * n,
            "sampled": 1.0,
            "history_reads": 4.0,
        }
        for n in range(1, epochs + 1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(p) + "\n" for p in points))
    if done:
        result = {
            "metric": "accuracy",
            "epoch": epochs,
            "val": 0.5 + epochs / 100,
            "test": 0.5,
            "seconds": 0.5 * epochs,
            "evaluation_seconds": 0.25,
        }
        (folder / "result.json").write_text(json.dumps(result))
    return folder


def change_metrics(run: Path, **values: object) -> None:
    path = run / "metrics.jsonl"
    points = [json.loads(line) | values for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(point) + "\n" for point in points))


@pytest.fixture
def trained(vrgcn, tmp_path: Path) -> Path:
    """runs/cvd and runs/exact on the same named graph."""
    save_graph(named(small_graph()), tmp_path / "graph")
    for estimator in ("cvd", "exact"):
        flags = ("--graph", "graph", "--epochs", 4, "--estimator", estimator)
        assert vrgcn("train", *flags, "--out", f"runs/{estimator}")[0] == 0
    return tmp_path / "runs"


def test_two_runs_side_by_side(vrgcn, trained, tmp_path):
    code, out, err = vrgcn("report", "runs/cvd", "runs/exact")
    assert code == 0, err
    assert out == "report of 2 runs: report.html\n"
    page = text_of(tmp_path / "report.html")
    assert "<h1>2 runs on graph</h1>" in page
    assert "http" not in page
    for name in ("cvd", "exact"):
        result = json.loads((trained / name / "result.json").read_text())
        numbers = cells(page, name)
        assert numbers[:2] == [f"{result['val']:.4f}", f"{result['test']:.4f}"]
        assert numbers[3:5] == [str(result["epoch"]), "4"]
        assert numbers[5] == f"{result['seconds']:.2f}"
        assert numbers[6] == f"{result['evaluation_seconds']:.2f}"
    assert cells(page, "exact")[8] == "0.0"
    assert cells(page, "cvd")[7] == "1.0"
    # Options: estimators are marked, and nothing else is.
    assert '<td>estimator</td><td class="mark">cvd</td><td class="mark">exact</td>' in page
    assert "<td>hidden</td><td>128</td><td>128</td>" in page
    # Two curves against two things each; of the run with histories their age and its common part.
    assert page.count("<figure>") == 6
    assert "Without histories: exact." in page


def test_scores_by_class_are_those_of_evaluate(vrgcn, trained, tmp_path):
    assert vrgcn("evaluate", "runs/cvd")[0] == 0
    numbers = json.loads((trained / "cvd" / "evaluation-test.json").read_text())
    assert vrgcn("report", "runs/cvd")[0] == 0
    page = text_of(tmp_path / "report.html")
    assert f"30 test nodes, macro-F1 {numbers['macro_f1']:.4f}" in page
    for place, name in enumerate(("amber", "blue", "cyan")):
        shares = [numbers[key][place] for key in ("precision", "recall", "f1")]
        assert cells(page, name)[:3] == [f"{share:.3f}" for share in shares]
        assert cells(page, name)[3] == str(numbers["support"][place])
    assert "not the same any more" not in page


def test_a_model_that_does_not_score_what_it_did_is_pointed_out(vrgcn, trained, tmp_path):
    path = trained / "cvd" / "result.json"
    result = json.loads(path.read_text())
    path.write_text(json.dumps(result | {"test": result["test"] - 0.2}))
    assert vrgcn("report", "runs/cvd")[0] == 0
    assert "cvd: the model&#x27;s test score is" in text_of(tmp_path / "report.html")


def test_without_its_graph_a_run_is_shown_without_scores_by_class(vrgcn, trained, tmp_path):
    (tmp_path / "graph").rename(tmp_path / "moved")
    code, out, err = vrgcn("report", "runs/cvd")
    assert code == 0, err
    assert "note: cvd: no scores by class: " in out
    page = text_of(tmp_path / "report.html")
    assert "cvd: no scores by class: " in page
    assert str(tmp_path / "graph") in page
    assert page.count("<figure>") == 6
    assert vrgcn("report", "runs/cvd", "--no-scores")[1] == "report of 1 run: report.html\n"
    assert "cores by class" not in text_of(tmp_path / "report.html")


def test_nothing_is_downloaded_for_a_report(vrgcn, trained, tmp_path, monkeypatch):
    config = trained / "cvd" / "config.toml"
    config.write_text(re.sub(r"graph = .*", 'dataset = "cora"', config.read_text()))
    monkeypatch.setattr("vrgcn.pages.runs.scores.open_graph", lambda *_: pytest.fail("opened"))
    code, out, _ = vrgcn("report", "runs/cvd", "--data-root", "empty")
    assert code == 0
    assert "the raw files of cora are not in empty; --data-root says where" in out


def test_an_unfinished_run_is_shown_as_far_as_it_came(vrgcn, trained, tmp_path):
    run = trained / "cvd"
    (run / "result.json").unlink()
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:2]) + lines[2][:20])
    code, _, err = vrgcn("report", "runs/cvd", "runs/exact")
    assert code == 0, err
    page = text_of(tmp_path / "report.html")
    assert "2 of 4 epochs are shown, the line of the next was cut off" in page
    numbers = cells(page, "cvd (unfinished)")
    best = max(json.loads(line)["val"] for line in lines[:2])
    assert numbers[:2] == [f"{best:.4f}", "–"]
    assert numbers[3:5] == ["–", "2 of 4"]
    assert "validation accuracy" in page.lower()
    assert "cvd (unfinished): 30 test nodes" in page
    # A last line that only lacks its end is whole.
    (run / "metrics.jsonl").write_text("".join(lines[:2]) + lines[2].rstrip())
    assert vrgcn("report", "runs/cvd", "--no-scores")[0] == 0
    page = text_of(tmp_path / "report.html")
    assert "3 of 4 epochs are shown." in page


def test_runs_that_are_called_alike_are_told_apart_and_one_given_twice_is_shown_once(
    vrgcn, tmp_path
):
    write_run(tmp_path / "a" / "x" / "run")
    write_run(tmp_path / "b" / "x" / "run")
    write_run(tmp_path / "b" / "other")
    runs = ("a/x/run", "b/x/run", "b/other", "a/x/../x/run/")
    code, out, err = vrgcn("report", *runs, "--no-scores", "--out", "pages/r.html")
    assert code == 0, err
    assert "note: 1 of the folders were given more than once" in out
    assert "report of 3 runs: pages/r.html" in out
    page = text_of(tmp_path / "pages" / "r.html")
    heads = "".join(f"<th>{name}</th>" for name in ("option", "a/x/run", "b/x/run", "other"))
    assert heads in page
    assert "The runs have the same options" in page


def test_graphs_and_metrics_are_kept_apart(vrgcn, trained, tmp_path):
    graph = small_graph()
    labels = torch.stack([graph.labels == 0, graph.labels != 1], dim=1).float()
    names = Names(classes=["odd", "even"])
    several = Graph(graph.edge_index(), graph.features, labels, train=graph.train,
                    val=graph.val, test=graph.test, names=names)  # fmt: skip
    save_graph(several, tmp_path / "several")
    assert vrgcn("train", "--graph", "several", "--epochs", 3, "--out", "runs/multi")[0] == 0
    (trained / "multi" / "result.json").unlink()  # its metric is still known, from the model
    assert vrgcn("report", "runs/cvd", "runs/multi", "runs/exact")[0] == 0
    page = text_of(tmp_path / "report.html")
    assert "<h1>3 runs on 2 graphs</h1>" in page
    assert page.index(">Curves: graph</h2>") < page.index(">Curves: several</h2>")
    assert "Validation micro-F1 after each epoch" in page
    assert "Validation accuracy after each epoch" in page
    table = page.partition("Curves: graph</h2>")[0]
    rows = {name: cells(table, name) for name in ("cvd", "multi (unfinished)")}
    assert [(row[0], row[-1]) for row in rows.values()] == [
        *(("accuracy", "graph"), ("micro-F1", "several"))
    ]
    assert cells(page, "even")[3] == str(int(labels[graph.test, 1].sum()))


def test_a_run_without_validation_nodes(vrgcn, tmp_path):
    run = write_run(tmp_path / "run")
    change_metrics(run, val=None)
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps(result | {"val": None, "test": None}))
    assert vrgcn("report", "run", "--no-scores")[0] == 0
    page = text_of(tmp_path / "report.html")
    assert cells(page, "run")[:3] == ["–", "–", "–"]
    assert "Without a validation score: run." in page
    assert page.count("<figure>") == 3  # the loss twice, and the age


def test_diagnostics_are_drawn_where_a_run_has_them(vrgcn, tmp_path):
    change_metrics(write_run(tmp_path / "old"), age=None)
    noisy = write_run(tmp_path / "noisy")
    change_metrics(noisy, age=None, staleness=None, gradient_noise=0.3, note="later", layers=[1])
    assert vrgcn("report", "old", "--no-scores")[0] == 0
    page = text_of(tmp_path / "report.html")
    assert page.count("<figure>") == 4
    assert "These runs keep no histories." in page
    assert vrgcn("report", "noisy", "--no-scores")[0] == 0
    page = text_of(tmp_path / "report.html")
    assert page.count("<figure>") == 5
    assert "Noise of a minibatch&#x27;s gradient" in page
    assert "Relative staleness" not in page


def test_twelve_runs_look_different(vrgcn, tmp_path):
    for number in range(12):
        write_run(tmp_path / f"run-{number}", seed=number)
    runs = [f"run-{number}" for number in range(12)]
    assert vrgcn("report", *runs, "--no-scores")[0] == 0
    page = (tmp_path / "report.html").read_text()
    legend = re.search(r'<ul class="legend">(.*?)</ul>', page)
    assert legend
    lines = set()
    for image in re.findall(r'base64,([^"]*)"', legend[1]):
        drawn = base64.b64decode(image).decode()
        style = re.search(r'id="line2d_1">.*?style="(fill: none; stroke.*?)"', drawn, re.DOTALL)
        assert style
        lines.add(style[1])
    assert len(lines) == 12  # by colour and dashes alone: markers are few
    assert re.findall(r"<span>(.*?)</span>", legend[1]) == runs


GOOD = b'{"epoch": 1, "loss": 1.0, "seconds": 0.5}\n'


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.toml", None, "run is not a run: it has no config.toml"),
        ("config.toml", b"epochs = ", "run/config.toml: not a TOML file"),
        ("metrics.jsonl", None, "run is not a run: it has no metrics.jsonl"),
        ("metrics.jsonl", b"", "run/metrics.jsonl has no epoch yet"),
        ("metrics.jsonl", GOOD[:20], "run/metrics.jsonl has no epoch yet"),
        ("metrics.jsonl", GOOD + b'{"epo\n' + GOOD, "run/metrics.jsonl, line 2 is not valid JSON"),
        ("metrics.jsonl", GOOD + GOOD + b'{"epo\n', "run/metrics.jsonl, line 3 is not valid JSON"),
        ("metrics.jsonl", GOOD + b"\xff\xfe\n", "run/metrics.jsonl, line 2 is not valid JSON"),
        ("metrics.jsonl", GOOD + b"[1, 2]\n", "line 2: [1, 2] is not an object"),
        ("metrics.jsonl", GOOD + b'{"epoch": 2, "loss": "low"}\n', "line 2: has no number 'loss'"),
        ("result.json", b"{", "run/result.json is not valid JSON"),
        ("result.json", b'{"metric": "accuracy"}', "run/result.json lacks epoch"),
    ],
)
def test_what_is_no_run_is_named(vrgcn, tmp_path, file, content, message):
    write_run(tmp_path / "good")
    path = write_run(tmp_path / "run") / file
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    code, _, err = vrgcn("report", "good", "run", "--no-scores")
    assert code == 1
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "report.html").exists()
    assert "there is no run folder gone" in vrgcn("report", "good", "gone")[2]


def test_a_page_that_could_not_be_written_is_refused_first(vrgcn, tmp_path):
    write_run(tmp_path / "run")
    (tmp_path / "folder.html").mkdir()
    for out, message in (("run/metrics.jsonl", "must end in one of"), ("folder.html", "a folder")):
        code, _, err = vrgcn("report", "run", "--out", out)
        assert code == 1
        assert message in err
    assert vrgcn("report")[2].startswith("vrgcn report: error: give at least one run")


def test_files_beside_the_runs_are_left_out_and_named(vrgcn, tmp_path):
    write_run(tmp_path / "runs" / "a")
    (tmp_path / "runs" / "cora-diagnosis.html").touch()
    given = ("runs/a", "runs/cora-diagnosis.html")
    code, out, err = vrgcn("report", *given, "--no-scores")
    assert code == 0, err
    assert "note: left out, for a run is a folder: cora-diagnosis.html" in out
    assert "report of 1 run: report.html" in out
    code, _, err = vrgcn("report", given[1])
    assert code == 1
    assert "runs/cora-diagnosis.html is a file; name the folder of a run" in err


def test_runs_that_are_called_like_seeds_have_a_mean_where_they_differ_in_nothing_else(
    vrgcn, tmp_path
):
    write_run(tmp_path / "runs" / "seed-a", estimator="cv", seed=0)
    write_run(tmp_path / "runs" / "seed-b", estimator="exact", seed=1)
    assert vrgcn("report", "runs/seed-a", "runs/seed-b", "--no-scores")[0] == 0
    assert "standard deviation" not in text_of(tmp_path / "report.html")
    write_run(tmp_path / "runs" / "seed-c", estimator="cv", seed=2)
    runs = [f"runs/seed-{name}" for name in "abc"]
    assert vrgcn("report", *runs, "--no-scores")[0] == 0
    page = text_of(tmp_path / "report.html")
    assert "runs: 2 seeds, marked their mean ± standard deviation" in page


def test_a_folder_that_is_called_trials_is_scored_as_any_other(vrgcn, trained, tmp_path):
    (tmp_path / "trials").mkdir()
    (trained / "cvd").rename(tmp_path / "trials" / "trial-1")
    assert vrgcn("report", "trials/trial-1")[0] == 0
    assert "trial-1: 30 test nodes" in text_of(tmp_path / "report.html")


def test_a_score_that_no_file_names_is_drawn_whatever_its_size(tmp_path):
    """The run has not finished and its model is gone; for regression the score is an error."""
    run = write_run(tmp_path / "run", done=False)
    change_metrics(run, val=500.0)
    [record] = read_runs([run])
    figure = draw([record], EPOCHS, _score_axis(record.metric), {record.label: 0})
    low, high = figure.axes[0].get_ylim()
    assert low < 500 < high
