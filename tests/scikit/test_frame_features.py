"""VRGCNClassifier takes DataFrames with categories, dates, texts and gaps."""

from __future__ import annotations

import pickle

import numpy as np
import pandas
import pyarrow as pa
import pytest

from tests.messages import refused
from vrgcn import Graph, VRGCNClassifier, VRGCNRegressor

TOWNS = np.array(["Ulm", "Bonn", "Kiel"])


def people(count: int, seed: int) -> tuple[pandas.DataFrame, np.ndarray]:
    """People whose drink shows in their town; and what they drink."""
    rng = np.random.default_rng(seed)
    place = rng.integers(3, size=count)
    frame = pandas.DataFrame(
        {
            "age": np.where(rng.random(count) < 0.2, np.nan, rng.integers(18, 80, count)),
            "town": pandas.Categorical(TOWNS[place]),
            "joined": pandas.Timestamp("2024-01-01")
            + pandas.to_timedelta(rng.integers(365, size=count), unit="D"),
        }
    )
    return frame, np.where(place == 0, "tea", "coffee")


def test_categories_dates_and_gaps_are_encoded_as_the_import_does():
    frame, drinks = people(60, 0)
    classifier = VRGCNClassifier(epochs=20, random_state=0).fit(frame, drinks)
    assert classifier.n_features_in_ == 3
    assert classifier.feature_names_in_.tolist() == ["age", "town", "joined"]
    assert classifier.score(frame, drinks) > 0.95
    new, wanted = people(30, 1)
    assert (classifier.predict(new) == wanted).mean() > 0.95
    unseen = new.assign(town="Rome")
    assert len(classifier.predict(unseen)) == 30


def test_rows_of_one_fit_are_encoded_alike_in_each_library_and_after_pickling():
    frame, drinks = people(40, 0)
    classifier = VRGCNClassifier(epochs=3, random_state=0).fit(frame, drinks)
    wanted = classifier.predict_proba(frame)
    again = pickle.loads(pickle.dumps(classifier))
    assert (again.predict_proba(frame) == wanted).all()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    assert (classifier.predict_proba(table) == wanted).all()
    other = VRGCNClassifier(epochs=3, random_state=0).fit(table, drinks)
    assert (other.predict_proba(table) == wanted).all()


def test_gaps_are_filled_with_the_mean_that_fit_saw():
    frame = pandas.DataFrame({"age": [10.0, 20.0, np.nan, 30.0]})
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    regressor = VRGCNRegressor(epochs=1, random_state=0, scaling="none")
    regressor.fit(frame, [1.0, 2.0, 2.0, 3.0], edge_index=edges)
    assert regressor.graph_.names.features == ["age", "age.missing"]
    assert regressor.graph_.features[2].tolist() == [20.0, 1.0]
    lonely = pandas.DataFrame({"age": [np.nan, 90.0]})
    own = np.empty((2, 0), np.int64)
    filled = pandas.DataFrame({"age": [20.0, 90.0]})
    missing, known = (regressor.predict(x, edge_index=own) for x in (lonely, filled))
    assert missing[1] == known[1]


def test_rows_that_fit_saw_keep_their_edges():
    frame, drinks = people(30, 0)
    edges = np.array([np.arange(29), np.arange(1, 30)])
    classifier = VRGCNClassifier(epochs=2, random_state=0).fit(frame, drinks, edge_index=edges)
    with_edges = classifier.predict_proba(frame)
    assert (with_edges == classifier.predict_proba(frame, edge_index=edges)).all()
    with refused():
        classifier.predict(frame[:10])


def test_numbers_alone_stay_the_numbers_that_they_are():
    frame = pandas.DataFrame({"shop_id": range(6), "size": [1.0, 2, 3, 4, 5, 6]})
    edges = np.array([[0, 1], [1, 2]])
    classifier = VRGCNClassifier(epochs=1, random_state=0, scaling="none")
    classifier.fit(frame, [0, 1, 0, 1, 0, 1], edge_index=edges)
    assert isinstance(classifier.graph_, Graph)
    assert classifier.graph_.features[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["label", "split"])
def test_a_column_with_a_name_that_the_import_takes_is_refused(name):
    frame = people(10, 0)[0].rename(columns={"town": name})
    with refused():
        VRGCNClassifier(epochs=1).fit(frame, ["a", "b"] * 5)


def test_other_rows_need_the_columns_that_fit_saw():
    frame, drinks = people(20, 0)
    classifier = VRGCNClassifier(epochs=1, random_state=0).fit(frame, drinks)
    with refused():
        classifier.predict(np.zeros((20, 3)))
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame.drop(columns="town"))
