"""Numbers from a table to predictions, as a user goes: import, train, predict, evaluate, report."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from vrgcn.data.store import load_graph
from vrgcn.tasks.spread import number_text

MEAN, DEVIATION = 250_000.0, 40_000.0
NODES = 400


def write_houses(folder: Path) -> dict[str, float]:
    """houses.csv and near.csv: a price is told by the neighbours' wealth, and hardly by the house
    itself; ten are unknown. Gives the prices by id."""
    random = np.random.default_rng(0)
    features = random.normal(size=(NODES, 3))
    pairs = random.integers(NODES, size=(2 * NODES, 2))
    near = np.zeros((NODES, NODES))
    near[pairs[:, 0], pairs[:, 1]] = near[pairs[:, 1], pairs[:, 0]] = 1
    y = near @ features[:, 0] / near.sum(1).clip(min=1) + 0.1 * features[:, 1]
    prices = MEAN + DEVIATION * (y - y.mean()) / y.std()
    ids = [f"house-{i}" for i in range(NODES)]
    with (folder / "houses.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "wealth", "rooms", "age", "price"])
        for i, name in enumerate(ids):
            price = "" if i < 10 else f"{prices[i]:.2f}"
            rows.writerow([name, *(f"{value:.6f}" for value in features[i]), price])
    with (folder / "near.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "target"])
        rows.writerows([ids[a], ids[b]] for a, b in pairs)
    return dict(zip(ids, prices.tolist(), strict=True))


# Not smoothed: Correct & Smooth gives training nodes their own labels, whose scores say nothing.
TRAIN = ("--epochs", 60, "--dropout", 0, "--batch-size", 64, "--smooth", "never")


@pytest.fixture
def prices(vrgcn, tmp_path) -> dict[str, float]:
    """The prices of a graph that was imported to graphs/houses."""
    prices = write_houses(tmp_path)
    code, out, err = vrgcn(
        "import", "--nodes", "houses.csv", "--edges", "near.csv", "--label", "price",
        "--ratio", 0.6, 0.2, 0.2, "--task", "regression", "--out", "graphs/houses",
    )  # fmt: skip
    assert code == 0, err
    assert "label 'price' (numbers), split 0.6 0.2 0.2 evenly over the numbers" in out
    assert f"numbers from {described(prices)}; 10 of the nodes unlabelled" in out
    return prices


def described(prices: dict[str, float]) -> str:
    known = np.array(list(prices.values()))[10:]
    return (
        f"{known.min():,.0f} to {known.max():,.0f}, mean {known.mean():,.0f}, "
        f"deviation {known.std():,.0f}"
    )


@pytest.fixture
def houses(vrgcn, prices, tmp_path) -> Path:
    """A run of the default model."""
    code, _, err = vrgcn("train", "--graph", "graphs/houses", *TRAIN, "--out", "runs/houses")
    assert code == 0, err
    return tmp_path / "runs" / "houses"


def r2(predicted: np.ndarray, actual: np.ndarray) -> float:
    return 1 - ((predicted - actual) ** 2).sum() / ((actual - actual.mean()) ** 2).sum()


def test_numbers_come_back_in_their_unit_and_better_than_without_a_graph(vrgcn, prices, houses):
    code, _, err = vrgcn("predict", "runs/houses", "--out", "prices.csv")
    assert code == 0, err
    with open("prices.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "prediction"]
    assert [row["id"] for row in rows] == list(prices)
    predicted = np.array([float(row["prediction"]) for row in rows])
    actual = np.array(list(prices.values()))
    test = load_graph("graphs/houses").test.numpy()
    graph = r2(predicted[test], actual[test])
    assert graph > 0.8
    assert abs(predicted.mean() - MEAN) < 0.1 * DEVIATION
    assert r2(predicted[:10], actual[:10]) > 0.5  # these had no price

    flags = ("--graph", "graphs/houses", *TRAIN, "--model", "mlp", "--out", "runs/mlp")
    assert vrgcn("train", *flags)[0] == 0
    assert vrgcn("evaluate", "runs/mlp")[0] == 0
    mlp = json.loads(Path("runs/mlp/evaluation-test.json").read_text())
    assert mlp["r2"]["test"] < graph - 0.5

    vrgcn("predict", "runs/houses", "--out", "prices.parquet")
    table = pq.read_table("prices.parquet")
    assert table.column_names == ["id", "prediction"]
    np.testing.assert_allclose(table["prediction"].to_numpy(), predicted)
    vrgcn("predict", "runs/houses", "--out", "prices.npy", "--memory", "disk")
    array = np.load("prices.npy")
    assert (array.shape, array.dtype) == ((NODES,), np.float64)
    np.testing.assert_allclose(array, predicted)


def test_chosen_nodes_have_their_numbers_and_top_is_for_classes(vrgcn, houses):
    Path("some.txt").write_text("house-7\nhouse-3\n")
    vrgcn("predict", "runs/houses", "--out", "all.npy")
    vrgcn("predict", "runs/houses", "--out", "some.npy", "--nodes", "some.txt")
    np.testing.assert_allclose(np.load("some.npy"), np.load("all.npy")[[7, 3]], rtol=1e-6)
    code, _, err = vrgcn("predict", "runs/houses", "--out", "top.csv", "--top", 1)
    assert code == 1
    assert "--top: the model predicts numbers" in err


def test_training_prints_and_writes_the_error_and_keeps_the_smallest(vrgcn, prices):
    flags = ("--graph", "graphs/houses", *TRAIN, "--epochs", 15, "--out", "runs/mae")
    code, out, err = vrgcn("train", *flags, "--metric", "mae", "--loss", "mae")
    assert code == 0, err
    result = json.loads(Path("runs/mae/result.json").read_text())
    points = [json.loads(line) for line in Path("runs/mae/metrics.jsonl").read_text().splitlines()]
    scores = [point["val"] for point in points]
    assert result["metric"] == "MAE"
    assert result["val"] == min(scores)
    assert result["epoch"] == 1 + scores.index(min(scores))
    assert f"validation MAE {number_text(scores[0])}" in out
    assert f"test MAE {number_text(result['test'])} (kept epoch" in out
    config = Path("runs/mae/config.toml").read_text()
    assert 'metric = "mae"' in config
    assert 'loss = "mae"' in config
    assert vrgcn("evaluate", "runs/mae")[0] == 0
    numbers = json.loads(Path("runs/mae/evaluation-test.json").read_text())
    assert numbers["metric"] == "MAE"
    assert numbers["scores"]["test"] == pytest.approx(result["test"], rel=1e-5)


def test_evaluate_prints_three_scores_of_every_split_and_draws_them(vrgcn, prices, houses):
    code, out, err = vrgcn("evaluate", "runs/houses")
    assert code == 0, err
    numbers = json.loads((houses / "evaluation-test.json").read_text())
    assert vrgcn("predict", "runs/houses", "--out", "all.npy")[0] == 0
    graph = load_graph("graphs/houses")
    for name in ("train", "val", "test"):
        nodes = graph.split(name).numpy()
        errors = np.load("all.npy")[nodes] - graph.labels.numpy()[nodes]
        rmse, mae = np.sqrt((errors**2).mean()), abs(errors).mean()
        assert numbers["rmse"][name] == pytest.approx(rmse, rel=1e-6)
        assert numbers["mae"][name] == pytest.approx(mae, rel=1e-6)
        assert re.search(rf"{name} +RMSE [\d,.]+  MAE [\d,.]+  R2 0\.\d{{4}}  \(\d+ nodes\)", out)
    result = json.loads((houses / "result.json").read_text())
    assert (numbers["metric"], result["metric"]) == ("RMSE", "RMSE")
    assert numbers["scores"]["test"] == pytest.approx(result["test"], rel=1e-5)
    page = (houses / "evaluation-test.html").read_text(encoding="utf-8")
    assert "predicted and actual numbers" in page


def test_a_report_of_runs_on_numbers_marks_the_smallest_error(vrgcn, houses):
    flags = ("--graph", "graphs/houses", *TRAIN, "--model", "mlp", "--out", "runs/mlp")
    assert vrgcn("train", *flags)[0] == 0
    code, out, err = vrgcn("report", "runs/houses", "runs/mlp")
    assert code == 0, err
    assert "note" not in out
    page = re.sub(r'src="data:[^"]*"', "", Path("report.html").read_text())
    good, bad = (
        json.loads(Path(f"runs/{name}/result.json").read_text()) for name in ("houses", "mlp")
    )
    assert good["val"] < bad["val"]
    assert f'class="mark">{number_text(good["val"])}<' in page
    assert f'class="mark">{number_text(bad["val"])}<' not in page
    assert f'class="mark">{number_text(good["test"])}<' not in page  # nobody chooses by it
    assert "best validation RMSE" in page
    assert "Scores by class" not in page
    assert "R2" in page
    assert "not the same any more" not in page


def test_the_best_epoch_of_a_report_is_that_of_the_smallest_error(vrgcn, houses):
    (houses / "result.json").unlink()  # as if it were still training
    points = [json.loads(line) for line in (houses / "metrics.jsonl").read_text().splitlines()]
    best = min(points, key=lambda point: point["val"])
    assert vrgcn("report", "runs/houses")[0] == 0
    page = Path("report.html").read_text()
    cells = rf">{number_text(best['val'])}</td><td[^>]*>[^<]*</td><td[^>]*>{best['epoch']}</td>"
    assert re.search(cells, page)  # validation, test, epoch
    assert "Scores are of its best model so far" in page


def test_info_describes_the_numbers(vrgcn, prices):
    code, out, err = vrgcn("info", "--graph", "graphs/houses")
    assert code == 0, err
    assert re.search(rf"numbers +from {described(prices)}; known for 390 nodes", out)
    assert "homophily" not in out


def test_numbers_are_diagnosed(vrgcn, houses):
    flags = ("--passes", 4, "--compare", "ns", "cvd", "--epochs", 1)
    code, out, err = vrgcn("diagnose", "runs/houses", *flags)
    assert code == 0, err
    # Relative to the numbers' own spread: from 0 up, noise of 250,000 would hardly be seen.
    outputs = out[out.index("outputs") :]
    noise = re.search(r"ns\s.*?│[^│]*│\s*([\d.]+)%", outputs)
    assert noise
    assert float(noise[1]) > 3
    assert vrgcn("diagnose", "--graph", "graphs/houses", *flags, "--out", "d.html")[0] == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--metric", "accuracy"), "for regression there are rmse, mae, r2"),
        (("--class-weights", "balanced"), "--class-weights) means nothing for one number"),
    ],
)
def test_settings_of_classes_are_refused_for_numbers(vrgcn, prices, flags, words):
    code, _, err = vrgcn("train", "--graph", "graphs/houses", *flags, "--out", "runs/x")
    assert code == 1
    assert words in err
    assert not Path("runs/x").exists()


def test_a_model_of_numbers_is_not_for_a_graph_of_classes(vrgcn, houses):
    text = re.sub(r"[^,\n]+$", "cheap", Path("houses.csv").read_text(), flags=re.MULTILINE)
    Path("classes.csv").write_text(text.replace("cheap", "price", 1))
    flags = ("--nodes", "classes.csv", "--edges", "near.csv", "--label", "price")
    assert vrgcn("import", *flags, "--ratio", 0.6, 0.2, 0.2, "--out", "graphs/classes")[0] == 0
    code, _, err = vrgcn("evaluate", "runs/houses", "--graph", "graphs/classes")
    assert code == 1
    assert "the model was trained for one number per node, and the graph has one class" in err


def test_prices_without_a_task_are_classes_with_a_warning_that_names_it(vrgcn, tmp_path):
    write_houses(tmp_path)
    flags = ("--nodes", "houses.csv", "--edges", "near.csv", "--label", "price")
    code, out, _ = vrgcn("import", *flags, "--out", "graphs/classes")
    assert code == 0
    assert "warning: the label looks continuous: 390 different numbers" in out
    assert "import it with --task regression" in out


def test_evaluate_says_that_smoothed_training_nodes_have_their_own_labels(vrgcn, prices):
    flags = ("--graph", "graphs/houses", "--epochs", 2, "--smooth", "always", "--out", "runs/s")
    assert vrgcn("train", *flags)[0] == 0
    code, out, err = vrgcn("evaluate", "runs/s")
    assert code == 0, err
    assert "note: the scores of training nodes say nothing" in out
