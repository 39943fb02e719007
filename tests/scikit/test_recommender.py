"""`VRGCNRecommender` learns from pairs, returns the user's own ids, and is an estimator of
scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from tests.messages import refused
from vrgcn import VRGCNRecommender

USERS, ITEMS = 40, 30


def tastes() -> pd.DataFrame:
    """Even users chose even items, odd users odd ones: 6 items each."""
    rng = np.random.default_rng(0)
    rows = [
        (f"u{user}", 100 + item)
        for user in range(USERS)
        for item in user % 2 + 2 * rng.permutation(ITEMS // 2)[:6]
    ]
    return pd.DataFrame(rows, columns=["customer", "sku"]).sample(frac=1, random_state=1)


def short(**changes: object) -> VRGCNRecommender:
    settings = {"hidden": 16, "embedding": 16, "learning_rate": 0.02, "batch_size": 64}
    return VRGCNRecommender(**{"epochs": 12, "random_state": 0, **settings, **changes})


@pytest.fixture(scope="module")
def fitted() -> VRGCNRecommender:
    return short().fit(tastes())


def test_items_of_the_users_own_taste_are_recommended_under_their_ids(
    fitted: VRGCNRecommender,
) -> None:
    best = fitted.recommend(["u4", "u7"], top=3)
    assert list(best.columns) == ["customer", "sku", "rank", "score"]
    assert best["customer"].tolist() == ["u4"] * 3 + ["u7"] * 3
    assert best["rank"].tolist() == [1, 2, 3, 1, 2, 3]
    assert (best["sku"] % 2).tolist() == [0, 0, 0, 1, 1, 1]
    seen = set(map(tuple, tastes().to_numpy()))
    assert not seen & set(zip(best["customer"], best["sku"], strict=True))
    assert best["score"].to_numpy() == pytest.approx(fitted.score_pairs(best.iloc[:, :2]))


def test_all_users_get_items_and_pairs_that_are_known_are_left_out(
    fitted: VRGCNRecommender,
) -> None:
    best = fitted.recommend(top=100)
    assert len(best) == USERS * ITEMS - len(tastes())
    assert best["customer"].nunique() == USERS


def test_held_out_pairs_rank_higher_than_by_chance() -> None:
    pairs = tastes()
    found = short().fit(pairs[:200])
    by_chance = 20 / (ITEMS - 5)
    assert short(metric="recall@20").fit(pairs[:200]).score(pairs[200:]) > by_chance
    assert 0.4 < found.score(pairs[200:]) < 1


def test_features_reach_users_and_items_that_no_pair_names() -> None:
    pairs = tastes()
    users = pd.DataFrame({"kind": [k % 2 for k in range(USERS + 2)]})
    users.index = [f"u{k}" for k in range(USERS + 2)]
    items = pd.DataFrame({"sku": range(100, 100 + ITEMS), "odd": np.arange(ITEMS) % 2})
    found = short().fit(pairs, user_features=users, item_features=items)
    best = found.recommend(["u40", "u41"], top=4)
    assert (best["sku"] % 2).tolist() == [0] * 4 + [1] * 4


def test_arrays_number_users_and_items_from_0() -> None:
    pairs = np.stack([np.arange(60) % 20, np.arange(60) * 7 % 15], axis=1)
    found = short(epochs=2).fit(pairs, user_features=np.eye(20), item_features=np.ones((15, 2)))
    assert found.graph_.num_features == 22
    assert set(found.recommend([19], top=30)["item"]) <= set(range(15))


def test_validation_pairs_choose_the_epoch(fitted: VRGCNRecommender) -> None:
    found = short(validation_fraction=0.2).fit(tastes())
    assert found.result_.val is not None
    assert fitted.result_.val is None
    assert found.n_iter_ == 12


def test_parameters_are_those_of_scikit_learn_and_none_is_what_training_takes(
    fitted: VRGCNRecommender,
) -> None:
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    assert not hasattr(copied, "model_")
    assert repr(VRGCNRecommender(hidden=8)) == "VRGCNRecommender(hidden=8)"
    again = pickle.loads(pickle.dumps(fitted))
    assert again.recommend(["u1"], top=5).equals(fitted.recommend(["u1"], top=5))
    assert copied.set_params(settings={"layer_norm": True})._settings().model.layer_norm
    assert VRGCNRecommender()._settings().train.metric == "ndcg@20"


def test_the_same_seed_gives_the_same_scores(fitted: VRGCNRecommender) -> None:
    again = short().fit(tastes())
    assert (again.score_pairs(tastes()) == fitted.score_pairs(tastes())).all()
    other = short(random_state=1).fit(tastes())
    assert (other.score_pairs(tastes()) != fitted.score_pairs(tastes())).any()


@pytest.mark.filterwarnings("default:.*pairs are left out")
def test_a_grid_search_over_pairs_runs() -> None:
    search = GridSearchCV(short(epochs=1), {"hidden": [4, 8]}, cv=2)
    search.fit(tastes())
    assert search.best_score_ > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: short().fit(np.zeros((3, 3))), r"X must be pairs, \(pairs, 2\)"),
        (lambda: short().fit(np.zeros((0, 2))), "X has no pairs"),
        (lambda: short().fit(pd.DataFrame({"a": [1]})), "a column of users and one of items"),
        (lambda: short().fit(pd.DataFrame({"a": [1, None], "b": [1, 2]})), "first: row 1"),
        (lambda: short(settings={"hiden": 3}).fit(tastes()), "hidden"),
        (lambda: short(settings={"hidden": 3}).fit(tastes()), "given twice"),
        (lambda: short(validation_fraction=1).fit(tastes()), "validation_fraction"),
        (lambda: short().fit(tastes(), item_features=np.ones(3)), "item_features must be"),
        (lambda: short().recommend(), "not fitted"),
    ],
)
def test_mistakes_are_told(make: object, message: str) -> None:
    with pytest.raises(Exception, match=message):
        make()  # type: ignore[operator]


def test_unknown_users_are_told_and_left_out_of_scores(fitted: VRGCNRecommender) -> None:
    with refused():
        fitted.recommend(["nobody"])
    with refused():
        fitted.recommend(top=0)
    with refused():
        fitted.recommend("u1")
    new = fitted.recommend(["u1"], top=2)[["customer", "sku"]]
    odd = pd.concat([new, pd.DataFrame({"customer": ["nobody"], "sku": [101]})])
    with pytest.warns(UserWarning, match="1 of 3 pairs are left out"):
        assert fitted.score(odd) == pytest.approx(1.0)
    with refused():
        fitted.score(odd[2:])
