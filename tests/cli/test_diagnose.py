"""`vrgcn diagnose`: a run or a graph in, tables, advice and a page out."""

from __future__ import annotations

import builtins

import pytest

FEW = ("--passes", "3", "--epochs", "1", "--batch-size", "20", "--hidden", "8")


@pytest.fixture
def run_folder(vrgcn, graph_folder, tmp_path):
    flags = ("--model", "gcn", "--hidden", "8", "--learning-rate", "0.05", "--estimator", "cv")
    code, _, err = vrgcn(
        "train", "--graph", graph_folder, "--epochs", "9", "--batch-size", "20", "--fanout", "2",
        *flags, "--out", "runs/a",
    )  # fmt: skip
    assert code == 0, err
    return tmp_path / "runs" / "a"


def test_a_graph_is_diagnosed_by_the_model_of_the_options(vrgcn, graph_folder, tmp_path):
    code, out, err = vrgcn(
        "diagnose", "--graph", graph_folder, *FEW, "--model", "gcn", "--estimator", "cvd"
    )
    assert code == 0, err
    for name in ("exact", "ns", "is", "cv", "cvd", "history", "gradient-only"):
        assert f"│ {name} " in out
    assert "layer 2: P h" in out
    assert "after 1 epoch (6 steps) of training by cvd, learning rate 0.01, fan-out 1" in out
    assert "histories empty at first" in out
    assert "advice: " in out
    page = tmp_path / "runs" / "small-diagnosis.html"
    assert "page: runs/small-diagnosis.html" in out
    assert "Diagnosis of gcn on" in page.read_text(encoding="utf-8")


def test_a_run_is_diagnosed_by_its_settings_and_flags_win_over_them(vrgcn, run_folder):
    before = (run_folder / "model.safetensors").read_bytes()
    code, out, err = vrgcn("diagnose", "runs/a", "--passes", "3", "--compare", "ns", "cvd")
    assert code == 0, err
    assert "after 3 epochs (9 steps) of training by cv, learning rate 0.05, fan-out 2" in out
    assert "histories filled by an exact pass first" in out
    assert "│ cvd " in out
    assert (run_folder / "diagnosis.html").is_file()
    assert (run_folder / "model.safetensors").read_bytes() == before
    flags = ("--passes", "3", "--learning-rate", "0.001", "--compare", "cv", "--epochs", "2")
    code, out, err = vrgcn("diagnose", *flags, "runs/a", "--out", "pages/b.html")
    assert code == 0, err
    assert "after 2 epochs (6 steps) of training by cv, learning rate 0.001, fan-out 2" in out
    assert "│ cvd " not in out
    assert (run_folder.parents[1] / "pages" / "b.html").is_file()


def test_a_run_of_auto_is_diagnosed_by_what_auto_stood_for(vrgcn, graph_folder, tmp_path):
    flags = ("--epochs", 1, "--batch-size", 20, "--hidden", 8)
    assert vrgcn("train", "--graph", graph_folder, *flags, "--out", "runs/a")[0] == 0
    config = tmp_path / "runs" / "a" / "config.toml"
    text = config.read_text()
    assert 'estimator = "auto"' in text
    assert 'chosen_estimator = "exact"' in text
    config.write_text(text.replace('chosen_estimator = "exact"', 'chosen_estimator = "cv"'))
    code, out, err = vrgcn("diagnose", "runs/a", "--passes", 2, "--compare", "ns")
    assert code == 0, err
    assert "of training by cv," in out


def test_a_run_whose_graph_was_moved_is_diagnosed_where_it_is_now(vrgcn, graph_folder, tmp_path):
    ratio = ("--ratio", 0.5, 0.25, 0.25)
    flags = ("--epochs", 2, "--batch-size", 20, "--hidden", 8, "--out", "r")
    assert vrgcn("train", graph_folder, *ratio, *flags)[0] == 0
    graph_folder.rename(tmp_path / "moved")
    code, _, err = vrgcn("diagnose", "r")
    assert code == 1
    assert f"the graph of run r was in {graph_folder}; say where it is now with --graph" in err
    few = ("--passes", 2, "--epochs", 1, "--compare", "cv")
    code, out, err = vrgcn("diagnose", "r", "--graph", "moved", *few)
    assert code == 0, err
    assert "train=60, val=30, test=30" in out
    assert "drew its own split" not in out + err
    code, _, err = vrgcn("diagnose", "r", "--graph", "nowhere", *few)
    assert (code, "--graph: there is no folder nowhere" in err) == (1, True)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("runs/a", "--hidden", "16"), "--hidden 16: the run's model has 8"),
        (("runs/a", "--model", "graphsage"), "--model graphsage: the run's model has gcn"),
        (("runs/a", "--dataset", "cora"), "runs/a is a run, which is diagnosed on its own graph"),
        (
            ("runs/a", "--ratio", 0.5, 0.2, 0.3),
            "--ratio: runs/a is a run, which is diagnosed with its own (None); leave it out",
        ),
        (("runs/a", "--scaling", "row"), "--scaling: runs/a is a run, which is diagnosed with"),
        (("runs/a", "--split-seed", 3), "--split-seed: runs/a is a run, which is diagnosed with"),
        (("runs/nowhere",), "there is no folder runs/nowhere, and no data set of that name"),
        (("runs",), "runs is no graph: it has no meta.json"),
        (("small", "--dataset", "cora"), "small and --dataset cora: give one graph, not 2"),
        (("comunities",), "no data set of that name; did you mean communities?"),
        ((), "give a graph: the folder that"),
        (("runs/a", "--out", "page.png"), "page.png must end in one of .html, .htm"),
        (("runs/a/config.toml",), "runs/a/config.toml is a file, not the folder of a graph"),
    ],
)
def test_what_cannot_be_diagnosed_is_said_in_a_line(vrgcn, run_folder, flags, message):
    code, out, err = vrgcn("diagnose", *flags)
    assert code == 1
    assert message in err
    assert "Traceback" not in out + err


def test_too_few_passes_are_refused_before_a_graph_is_opened(vrgcn):
    code, _, err = vrgcn("diagnose", "--graph", "nowhere", "--passes", "1")
    assert code == 2
    assert "passes must be at least 2" in err


def test_without_matplotlib_it_says_what_to_install_before_any_work(
    vrgcn, graph_folder, monkeypatch
):
    real = builtins.__import__

    def missing(name, *args, **given):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **given)

    monkeypatch.setattr(builtins, "__import__", missing)
    code, out, err = vrgcn("diagnose", "--graph", graph_folder, *FEW)
    assert code == 1
    assert "pip install 'vrgcn[plots]'" in err
    assert out == ""


def test_a_run_is_diagnosed_whatever_ended_or_began_it(vrgcn, graph_folder):
    """Its warm-up and its time are over; its schedule and checkpoints were for validation."""
    few = ("--epochs", 6, "--batch-size", 20, "--hidden", 8, "--estimator", "cv")
    flags = ("--warmup", 5, "--schedule", "plateau", "--on-nan", "rollback", "--time-limit", "1h")
    code, _, err = vrgcn("train", graph_folder, *few, *flags, "--out", "r")
    assert code == 0, err
    code, out, err = vrgcn("diagnose", "r", "--passes", 2, "--compare", "ns")
    assert code == 0, err
    assert "after 3 epochs" in out
