"""`vrgcn train`, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

import pytest
import torch

from vrgcn.data.store import load_graph, save_graph
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict
from vrgcn.inference.saved import load_model
from vrgcn.targets.label_split import random_split


def test_a_run_writes_its_config_its_metrics_and_its_model(vrgcn, graph_folder, tmp_path):
    code, out, _ = vrgcn(
        "train", "--graph", graph_folder, "--estimator", "cvd", "--epochs", 3,
        "--batch-size", 16, "--out", "here",
    )  # fmt: skip
    assert code == 0
    run = tmp_path / "here"
    config = tomllib.loads((run / "config.toml").read_text())
    assert config["epochs"] == 3
    assert config["estimator"] == "cvd"
    points = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [point["epoch"] for point in points] == [1, 2, 3]
    assert all(point["age"] is not None and point["val"] is not None for point in points)
    result = json.loads((run / "result.json").read_text())
    graph = load_graph(graph_folder)
    saved = load_model(run / "model.safetensors")
    scaled = graph.with_features(saved.scaling.apply(graph.features), saved.scaling)
    right = predict(saved.model, scaled, graph.test).argmax(1) == graph.labels[graph.test]
    assert result["test"] == pytest.approx(float(right.double().mean()), abs=1e-6)
    assert f"test accuracy {result['test']:.4f}" in out
    assert "written to here" in out


def test_output_that_is_no_terminal_is_one_plain_line_an_epoch(vrgcn, graph_folder):
    _, out, _ = vrgcn("train", "--graph", graph_folder, "--estimator", "cvd", "--epochs", 2)
    assert "\x1b" not in out
    assert sum(line.startswith("epoch ") for line in out.splitlines()) == 2
    assert "loss" in out
    assert "history age" in out


def test_runs_of_the_same_name_do_not_overwrite_each_other(vrgcn, graph_folder, tmp_path):
    for _ in range(2):
        assert vrgcn("train", "--graph", graph_folder, "--epochs", 1)[0] == 0
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == [
        "small-graphsage-exact",
        "small-graphsage-exact-2",
    ]


def test_an_out_folder_with_something_in_it_is_refused(vrgcn, graph_folder, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("kept")
    code, _, err = vrgcn("train", "--graph", graph_folder, "--out", "full")
    assert code == 1
    assert "--out: full exists already" in err
    assert (tmp_path / "full" / "precious.txt").read_text() == "kept"


def test_a_written_config_repeats_the_run_and_flags_win_over_it(vrgcn, graph_folder, tmp_path):
    first = ("--graph", graph_folder, "--epochs", 2, "--fanout", 1, 2, "--no-layer-norm")
    first = (*first, "--estimator", "cvd")
    vrgcn("train", *first, "--out", "a")
    assert vrgcn("train", "--config", "a/config.toml", "--out", "b")[0] == 0
    assert vrgcn("train", "--config", "b/config.toml", "--out", "c", "--fanout", 0)[0] == 0
    metrics = [(tmp_path / run / "metrics.jsonl").read_text().splitlines() for run in "abc"]
    losses = [[json.loads(line)["loss"] for line in lines] for lines in metrics]
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]
    assert tomllib.loads((tmp_path / "c" / "config.toml").read_text())["fanout"] == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch = 3", "c.toml: there is no option 'epoch'; did you mean 'epochs'?"),
        ("epochs = ", "c.toml: not a TOML file"),
        ("inductive = 3", "c.toml: inductive must be true or false, not 3"),
        ("fanout = [[1]]", "c.toml: fanout must be"),
    ],
)
def test_a_bad_config_file_is_named(vrgcn, tmp_path, text, message):
    (tmp_path / "c.toml").write_text(text)
    code, _, err = vrgcn("train", "--config", "c.toml", "--dataset", "communities")
    assert code == 1
    assert message in err


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ((), 1, "give a graph: the folder that"),
        (("--dataset", "a", "--graph", "b"), 1, "--dataset a and --graph b: give one graph, not 2"),
        (("--dataset", "nothing"), 1, "communities"),
        (("--graph", "nowhere"), 1, "nowhere"),
        (("--epochs", "0"), 2, "epochs must be at least 1"),
        (("--epochs", "many"), 2, "--epochs"),
        (("--estimator", "magic"), 2, "--estimator"),
        (("--fan-outs", "1"), 2, "--fanout"),
        (("--config", "no.toml"), 1, "--config: there is no file no.toml"),
    ],
)
def test_bad_flags_are_named_without_a_traceback(vrgcn, flags, code, message):
    exit_code, out, err = vrgcn("train", *flags)
    assert exit_code == code
    assert message in err
    assert "Traceback" not in out + err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--learning-rate", "1e30", "--no-layer-norm", "--batch-size", "8"), "loss became"),
        (("--fanout", "1", "1", "1"), "fanout has 3 entries but the model propagates 2 times"),
        (("--device", "nowhere"), "device 'nowhere' cannot be used on this machine"),
        (("--device", "meta"), "device 'meta' cannot be used on this machine"),
    ],
)
def test_a_run_that_fails_at_once_leaves_nothing_in_the_way(
    vrgcn, graph_folder, tmp_path, flags, message
):
    code, out, err = vrgcn("train", "--graph", graph_folder, *flags, "--out", "again")
    assert code == 1
    assert message in err
    assert "Traceback" not in out + err
    assert not (tmp_path / "again").exists()


def test_a_run_that_is_interrupted_keeps_its_best_model(vrgcn, graph_folder, tmp_path, monkeypatch):
    from vrgcn.training import progress

    shown = progress.EpochProgress.epoch

    def interrupt(self, point):
        if point.epoch == 3:
            raise KeyboardInterrupt
        shown(self, point)

    monkeypatch.setattr(progress.EpochProgress, "epoch", interrupt)
    flags = ("--graph", graph_folder, "--checkpoint-every", 0, "--out", "cut")
    code, out, err = vrgcn("train", *flags)
    assert code == 130
    assert "the best model so far is in cut" in out
    assert "interrupted" in err
    assert vrgcn("predict", "cut", "--out", "p.csv")[0] == 0


def test_a_graph_without_training_nodes_is_refused_with_advice(vrgcn, tmp_path):
    save_graph(Graph([[0], [1]], torch.randn(3, 2), torch.arange(3)), tmp_path / "unsplit")
    code, _, err = vrgcn("train", "--graph", "unsplit")
    assert code == 1
    assert "no labelled training nodes" in err
    assert "--split or --ratio" in err


def test_a_graph_without_labels_is_refused_with_what_can_be_predicted(vrgcn, tmp_path):
    save_graph(Graph([[0], [1]], torch.randn(3, 2)), tmp_path / "bare")
    users = {("user", "liked", "item"): torch.tensor([[0, 1], [1, 0]])}
    save_graph(Graph.from_kinds({"user": 2, "item": 2}, users), tmp_path / "shop")
    for graph, links in (("bare", "edges"), ("shop", "user-liked-item")):
        for flags in ((), ("--ratio", 0.6, 0.2, 0.2), ("--train-until", 2026)):
            code, _, err = vrgcn("train", "--graph", graph, *flags)
            assert code == 1
            assert f"the graph has no labels; predict its links: --predict {links}, or" in err


def test_a_folder_given_as_a_data_set_is_explained(vrgcn, graph_folder):
    code, _, err = vrgcn("train", "--dataset", graph_folder)
    assert code == 1
    assert f"say --graph {graph_folder}" in err


def test_the_paper_settings_that_are_not_followed_are_noted(vrgcn, graph_folder, monkeypatch):
    from vrgcn.data import opening

    monkeypatch.setattr(
        opening, "load_dataset", lambda name, data_root, verify: load_graph(graph_folder)
    )
    monkeypatch.setattr(opening, "_note", lambda *_: None)
    _, out, _ = vrgcn("train", "--dataset", "reddit", "--epochs", 1)
    assert "the paper trains on reddit inductively" in out
    _, out, _ = vrgcn("train", "--dataset", "reddit", "--epochs", 1, "--inductive")
    assert "the paper trains" not in out


def test_the_log_of_tensorboard_is_in_the_run_and_a_run_goes_on_with_it(
    vrgcn, graph_folder, tmp_path
):
    flags = ("--graph", graph_folder, "--out", "logged", "--checkpoint-every", 1)
    assert vrgcn("train", *flags, "--epochs", 2, "--log", "tensorboard")[0] == 0
    assert vrgcn("train", "--resume", "logged", "--epochs", 3)[0] == 0
    assert len(list((tmp_path / "logged" / "tensorboard").iterdir())) >= 2
    assert vrgcn("diagnose", "logged", "--passes", 2, "--epochs", 1)[0] == 0


def test_a_split_is_drawn_anew_and_found_again(vrgcn, graph_folder, tmp_path):
    flags = ("--graph", graph_folder, "--epochs", 2, "--checkpoint-every", 1)
    split = ("--ratio", 0.5, 0.25, 0.25)
    code, out, err = vrgcn("train", *flags, *split, "--split-seed", 3, "--out", "drawn")
    assert code == 0, err
    assert "train=60, val=30, test=30" in out
    given = load_graph(graph_folder)
    assert not torch.equal(random_split(given, split[1:], 3).test, given.test)
    result = json.loads((tmp_path / "drawn" / "result.json").read_text())
    code, out, _ = vrgcn("evaluate", "drawn")  # on the same test nodes
    assert f"{result['test']:.4f}" in out
    assert vrgcn("train", "--resume", "drawn", "--epochs", 3)[0] == 0
    again = vrgcn("train", "--config", "drawn/config.toml", "--split-seed", 2, "--out", "again")
    assert again[0] == 0, again[2]
    code, _, err = vrgcn("train", "--resume", "drawn", "--epochs", 4, "--split-seed", 2)
    assert (code, "split_seed was 3 and is 2" in err) == (1, True)
    assert vrgcn("train", *flags, "--out", "own")[0] == 0
    assert vrgcn("report", "drawn", "own")[0] == 0
    page = (tmp_path / "report.html").read_text()
    assert "small, split 50/25/25 by seed 3" in page
    assert "does not score" not in page


def test_shares_that_are_none_name_the_flag(vrgcn, graph_folder):
    code, _, err = vrgcn("train", "--graph", graph_folder, "--ratio", 0.9, 0.2, 0.2)
    assert code == 2
    assert "--ratio: the shares sum to 1.3, more than 1" in err


@pytest.mark.parametrize("command", ["train", "tune", "diagnose"])
def test_a_seed_of_no_split_names_the_flags(vrgcn, graph_folder, command):
    code, _, err = vrgcn(command, "--graph", graph_folder, "--split-seed", 3)
    assert code != 0
    assert "--split-seed 3: is the seed of --ratio, and without --ratio no split is drawn" in err


def test_a_run_that_was_started_with_a_seed_of_no_split_goes_on(vrgcn, graph_folder, tmp_path):
    flags = ("--graph", graph_folder, "--epochs", 2, "--checkpoint-every", 1)
    assert vrgcn("train", *flags, "--out", "old")[0] == 0
    config = tmp_path / "old" / "config.toml"
    text = config.read_text()
    assert "split_seed = 0" in text
    config.write_text(text.replace("split_seed = 0", "split_seed = 5"))
    code, _, err = vrgcn("train", "--resume", "old", "--epochs", 3)
    assert code == 0, err
    assert vrgcn("diagnose", "old", "--passes", 2, "--epochs", 1)[0] == 0


def test_a_run_imports_no_compiler_and_no_library_that_it_does_not_use(graph_folder, tmp_path):
    unused = ("torch._dynamo", "sympy", "torch_geometric", "vrgcn.pyg", "matplotlib", "sklearn")
    code = (
        "import sys; from vrgcn.cli import main\n"
        "try: main(sys.argv[1:])\n"
        f"finally: print([name for name in {unused} if name in sys.modules])"
    )
    flags = ("--graph", graph_folder, "--epochs", "1", "--out", tmp_path / "run")
    command = [sys.executable, "-c", code, "train", *map(str, flags)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "for comparison, " in done.stdout  # baselines are fitted too
    assert done.stdout.endswith("[]\n")
