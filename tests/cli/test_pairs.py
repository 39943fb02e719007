"""`vrgcn train --predict edges`, and evaluate, predict, recommend and embed of such a run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from tests.cli.conftest import named, small_graph
from vrgcn.data.store import load_graph, save_graph
from vrgcn.inference.saved import load_model
from vrgcn.pairs.model import PairModel
from vrgcn.pairs.negatives import drawn_negatives
from vrgcn.runs.run import load_run
from vrgcn.targets.pair_split import split_pairs

FLAGS = (
    *("--predict", "edges", "--epochs", 3, "--batch-size", 40, "--hidden", 8, "--embedding", 4),
    *("--model", "gcn", "--estimator", "cvd", "--ratio", 0.7, 0.1, 0.2),
)


@pytest.fixture
def graph_folder(tmp_path: Path) -> Path:
    """A graph whose nodes are called n-0, n-1, ..."""
    save_graph(named(small_graph()), tmp_path / "named")
    return tmp_path / "named"


@pytest.fixture
def trained(vrgcn, graph_folder: Path, tmp_path: Path) -> tuple[Path, str]:
    run = tmp_path / "links"
    code, out, error = vrgcn("train", "--graph", graph_folder, *FLAGS, "--out", run)
    assert code == 0, error
    return run, out


def test_training_prints_the_rules_against_leaks_and_what_simple_rules_score(trained) -> None:
    run, out = trained
    assert "no leaks: validation and test pairs and their reverses carry no messages" in out
    assert "negatives contain no pair of their split or an earlier one" in out
    for rule in ("popularity", "common neighbours", "Adamic-Adar", "matrix factorisation"):
        assert f"for comparison, {rule}: validation AUC" in out
    result = json.loads((run / "result.json").read_text())
    assert result["metric"] == "AUC"
    assert isinstance(load_model(run).model, PairModel)


def test_evaluate_scores_the_test_pairs_that_training_left_out(vrgcn, trained) -> None:
    run, _ = trained
    code, out, error = vrgcn("evaluate", run)
    assert code == 0, error
    written = json.loads((run / "evaluation-test.json").read_text())
    result = json.loads((run / "result.json").read_text())
    assert written["scores"]["the model"]["auc"] == pytest.approx(result["test"], abs=1e-6)
    assert set(written["scores"]) == {
        *("the model", "popularity", "common neighbours", "Adamic-Adar", "matrix factorisation")
    }
    assert "NDCG@20" in out
    assert vrgcn("evaluate", run, "--split", "val")[0] == 0
    code, _, error = vrgcn("evaluate", run, "--split", "train")
    assert code == 1
    assert "--split train: training pairs carry messages" in error


def test_recommend_writes_new_partners_under_the_ids_of_the_user(
    vrgcn, trained, graph_folder: Path, tmp_path: Path
) -> None:
    run, _ = trained
    ids = tmp_path / "ids.txt"
    ids.write_text("n-7\nn-3\n")
    top = tmp_path / "top.parquet"
    code, out, error = vrgcn("recommend", run, "--top", 5, "--for", ids, "--out", top)
    assert code == 0, error
    assert "the best new partners of 2 nodes, 10 pairs" in out
    rows = pq.read_table(top).to_pylist()
    assert [row["source"] for row in rows] == ["n-7"] * 5 + ["n-3"] * 5
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5] * 2
    assert rows[0]["score"] >= rows[4]["score"]
    graph = load_graph(graph_folder)
    linked = {tuple(edge) for edge in graph.edge_index().t().tolist()}
    for row in rows:
        pair = int(row["source"][2:]), int(row["target"][2:])
        assert pair not in linked
        assert pair[0] != pair[1]


def test_predict_scores_pairs_as_embeddings_say(vrgcn, trained, tmp_path: Path) -> None:
    run, _ = trained
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("weight,target,source\n1,n-4,n-1\n1,n-1,n-4\n2,n-9,n-0\n")
    scored, embedded = tmp_path / "scored.csv", tmp_path / "e.npy"
    assert vrgcn("predict", run, "--pairs", pairs, "--out", scored)[0] == 0
    assert vrgcn("embed", run, "--out", embedded)[0] == 0
    z = np.load(embedded)
    assert z.shape == (120, 4)
    rows = list(csv.DictReader(scored.read_text().splitlines()))
    assert [(row["source"], row["target"]) for row in rows] == [
        ("n-1", "n-4"),
        ("n-4", "n-1"),
        ("n-0", "n-9"),
    ]
    for row in rows:
        u, v = int(row["source"][2:]), int(row["target"][2:])
        assert float(row["score"]) == pytest.approx(float(z[u] @ z[v]), rel=1e-4)


def test_a_run_that_is_resumed_with_other_negatives_is_refused(vrgcn, trained) -> None:
    run, _ = trained
    code, _, error = vrgcn("train", "--resume", run, "--epochs", 4, "--negatives", 2)
    assert code == 1
    assert "negatives was 1 and is 2" in error


def test_the_graph_of_a_run_has_the_training_pairs_alone(trained, graph_folder: Path) -> None:
    run, _ = trained
    opened = load_run(run).graph()
    drawn = split_pairs(load_graph(graph_folder), ratio=(0.7, 0.1, 0.2))
    assert opened.num_edges == drawn.num_edges < load_graph(graph_folder).num_edges


def test_mistakes_are_explained(vrgcn, trained, graph_folder: Path, tmp_path: Path) -> None:
    run, _ = trained
    out = tmp_path / "out.csv"
    code, _, error = vrgcn("predict", run, "--out", out)
    assert code == 1
    assert "predicts pairs of edges: give them by --pairs FILE" in error
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("source,target\nn-1,n-999\n")
    code, _, error = vrgcn("predict", run, "--pairs", pairs, "--out", out)
    assert code == 1
    assert "column 'target': 1 nodes are not in the graph, first: 'n-999'" in error
    code, _, error = vrgcn("train", "--graph", graph_folder, "--predict", "links")
    assert code == 1
    assert "--predict links: the graph offers labels, edges" in error
    nodes = tmp_path / "nodes"
    plain = ("--epochs", 1, "--no-baseline", "--out", nodes)
    assert vrgcn("train", "--graph", graph_folder, *plain)[0] == 0
    code, _, error = vrgcn("recommend", nodes, "--out", out)
    assert code == 1
    assert "predicts labels of nodes, and no pairs" in error
    code, _, error = vrgcn("predict", nodes, "--pairs", pairs, "--out", out)
    assert code == 1
    assert "--pairs:" in error
    assert not out.exists()


@pytest.fixture
def negatives(graph_folder: Path, tmp_path: Path) -> Path:
    """A table of 40 pairs that are no edges, half of them for validation."""
    graph = load_graph(graph_folder)
    links = split_pairs(graph, ratio=(0.7, 0.1, 0.2))
    assert links.pairs is not None
    drawn = drawn_negatives(links.pairs, 40, torch.Generator().manual_seed(3))
    path = tmp_path / "no-edges.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "target", "split"])
        for place, (u, v) in enumerate(drawn.tolist()):
            rows.writerow([f"n-{u}", f"n-{v}", "valid" if place % 2 else "test"])
    return path


def test_pairs_are_ranked_among_given_negatives(
    vrgcn, graph_folder: Path, negatives: Path, trained, tmp_path: Path
) -> None:
    run, _ = trained
    code, out, error = vrgcn("evaluate", run, "--negatives", negatives)
    assert code == 0, error
    assert "among 20 given negatives" in " ".join(out.split())
    found = json.loads((run / "evaluation-test.json").read_text())["scores"]["the model"]
    assert found["hits@20"] == found["hits@100"] == 1.0  # as many negatives as places
    flags = (*FLAGS, "--metric", "hits@3", "--val-negatives", negatives)
    flags = (*flags, "--test-negatives", negatives, "--out", tmp_path / "given")
    code, out, error = vrgcn("train", "--graph", graph_folder, *flags)
    assert code == 0, error
    assert "for comparison, matrix factorisation: validation Hits@3" in out
    result = json.loads((tmp_path / "given" / "result.json").read_text())
    assert result["metric"] == "Hits@3"
    code, out, error = vrgcn("evaluate", tmp_path / "given")
    assert code == 0, error
    assert "among 20 given negatives" in " ".join(out.split())
    written = json.loads((tmp_path / "given" / "evaluation-test.json").read_text())["scores"]
    assert written["the model"]["hits@3"] == pytest.approx(result["test"], abs=1e-6)


def test_given_negatives_that_are_edges_or_nothing_are_refused(
    vrgcn, graph_folder: Path, trained, tmp_path: Path
) -> None:
    run, _ = trained
    wrong = tmp_path / "wrong.csv"
    one, other = load_graph(graph_folder).edge_index()[:, 0].tolist()
    wrong.write_text(f"source,target\nn-{one},n-{other}\n")
    code, _, error = vrgcn("evaluate", run, "--negatives", wrong)
    assert code == 1
    assert f"1 of 1 negatives are known pairs of edges, first: 'n-{one}' and 'n-{other}'" in error
    wrong.write_text("source,target,split\nn-1,n-2,train\n")
    code, _, error = vrgcn("evaluate", run, "--negatives", wrong)
    assert code == 1
    assert "wrong.csv has no test pairs" in error
    code, _, error = vrgcn("evaluate", run, "--negatives", tmp_path / "nowhere.csv")
    assert code == 1
    assert "--negatives: there is no file" in error


def test_the_page_of_a_run_shows_rules_beside_the_model_and_says_where_they_win(
    vrgcn, trained, tmp_path: Path
) -> None:
    run, _ = trained
    code, out, error = vrgcn("report", run, "--out", tmp_path / "page.html")
    assert code == 0, error
    assert "no scores" not in out
    page = (tmp_path / "page.html").read_text()
    assert vrgcn("evaluate", run)[0] == 0
    scores = json.loads((run / "evaluation-test.json").read_text())["scores"]
    assert f"{scores['Adamic-Adar']['mrr']:.4f}" in page
    assert f"{scores['the model']['auc']:.4f}" in page
    better = any(scores["Adamic-Adar"][key] > value for key, value in scores["the model"].items())
    assert ("does better than the model by" in page) >= better
    assert "when training ended" not in page  # the recorded score is that of today


def test_a_run_is_diagnosed_with_its_own_pairs(vrgcn, trained, tmp_path: Path) -> None:
    run, _ = trained
    code, out, error = vrgcn("diagnose", run, "--epochs", 1, "--passes", 2)
    assert code == 0, error
    assert "gradient" in out
    assert (run / "diagnosis.html").is_file()


def test_a_search_finds_settings_of_pairs(vrgcn, graph_folder: Path, tmp_path: Path) -> None:
    flags = (*FLAGS, "--trials", 2, "--search", "learning_rate", "loss")
    code, out, error = vrgcn("tune", graph_folder, *flags, "--out", tmp_path / "tuned")
    assert code == 0, error
    assert "searching learning_rate, loss" in out
    assert "a simple rule on training pairs" in " ".join(out.split())
    assert "embeddings of different networks have no average" in out
    best = tmp_path / "tuned" / "best"
    assert vrgcn("recommend", best, "--out", tmp_path / "top.csv")[0] == 0
    assert vrgcn("evaluate", best)[0] == 0
    code, out, _ = vrgcn("tune", "--resume", tmp_path / "tuned")
    assert "has finished already" in out
    code, _, error = vrgcn("tune", "--resume", tmp_path / "tuned", "--trials", 3)
    assert code == 0, error
    assert vrgcn("report", tmp_path / "tuned", "--no-scores", "--out", "tuned.html")[0] == 0
