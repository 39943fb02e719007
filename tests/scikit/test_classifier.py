"""VRGCNClassifier: the graph counts, held-out labels are not seen, classes come back as given."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.messages import refused
from vrgcn import Graph, SavedModel, VRGCNClassifier, load_model, predict, save_model
from vrgcn.graph.names import Names

SMALL = {"epochs": 15, "hidden": 16, "random_state": 0}


def classifier(**given) -> VRGCNClassifier:
    return VRGCNClassifier(**{**SMALL, **given})


def masked(data, unknown=None):
    """y with the labels of all but the training rows unknown."""
    return np.where(data.train, data.y.astype(object), unknown)


@pytest.fixture(scope="module")
def fitted(data) -> VRGCNClassifier:
    return classifier().fit(data.X, masked(data), edge_index=data.edge_index)


def held_out(model, data, **given) -> float:
    return model.score(data.X, np.where(data.train, None, data.y.astype(object)), **given)


def test_edges_tell_what_features_do_not(data, fitted):
    alone = classifier().fit(data.X, masked(data))
    assert held_out(fitted, data) > 0.9
    assert held_out(alone, data) < held_out(fitted, data) - 0.1


def test_classes_are_sorted_and_probabilities_in_their_order(data, fitted):
    assert fitted.classes_.tolist() == ["blue", "green", "red"]
    chances = fitted.predict_proba(data.X)
    assert chances.shape == (240, 3)
    np.testing.assert_allclose(chances.sum(1), 1)
    assert (fitted.classes_[chances.argmax(1)] == fitted.predict(data.X)).all()


def test_predictions_are_the_exact_outputs_of_the_model(data, fitted):
    graph = Graph(data.edge_index, data.X.astype(np.float32))
    exact = predict(SavedModel.of(fitted.model_), graph).double().softmax(1)
    np.testing.assert_allclose(fitted.predict_proba(data.X), exact.numpy(), atol=1e-6)


def test_edges_given_once_count_both_ways_where_that_is_said(data, fitted):
    once = data.edge_index[:, : data.edge_index.shape[1] // 2]
    both = classifier(undirected=True).fit(data.X, masked(data), edge_index=once)
    assert (both.predict_proba(data.X) == fitted.predict_proba(data.X)).all()
    one_way = classifier().fit(data.X, masked(data), edge_index=once)
    assert (one_way.predict_proba(data.X) != fitted.predict_proba(data.X)).any()


def test_weights_of_edges_are_those_of_the_graph_they_make(data, fitted):
    weights = np.random.default_rng(0).random(data.edge_index.shape[1]).astype(np.float32)
    given = {"edge_index": data.edge_index, "edge_weight": weights}
    model = classifier().fit(data.X, masked(data), **given)
    graph = Graph(data.edge_index, data.X.astype(np.float32), edge_weight=weights)
    same = classifier().fit(graph, masked(data))
    assert (model.predict_proba(data.X) == same.predict_proba(graph)).all()
    assert (model.predict_proba(data.X, **given) == same.predict_proba(graph)).all()
    assert (model.predict_proba(data.X) != fitted.predict_proba(data.X)).any()


@pytest.mark.parametrize("unknown", [None, np.nan])
def test_labels_that_are_unknown_change_nothing_whatever_they_are(data, unknown):
    """The same weights, to the last bit, as with another truth under the mask."""
    wrong = np.where(data.train, data.y.astype(object), "blue")
    first = classifier().fit(data.X, masked(data, unknown), edge_index=data.edge_index)
    second = classifier().fit(data.X, wrong, edge_index=data.edge_index, train_mask=data.train)
    for mine, theirs in zip(first.model_.parameters(), second.model_.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_minus_one_is_unknown_as_in_semi_supervised_learning(data):
    codes = np.where(data.train, data.codes, -1)
    model = classifier(epochs=2).fit(data.X, codes, edge_index=data.edge_index)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.classes_.dtype == codes.dtype
    as_class = classifier(epochs=2, unlabeled=None).fit(data.X, codes, edge_index=data.edge_index)
    assert as_class.classes_.tolist() == [-1, 0, 1, 2]
    words = np.where(data.train, data.y, "?")
    other = classifier(epochs=2, unlabeled="?").fit(data.X, words, edge_index=data.edge_index)
    assert other.classes_.tolist() == ["blue", "green", "red"]


def test_a_single_class_beside_minus_one_is_doubted(data):
    with refused():
        classifier().fit(data.X, np.where(data.codes == 0, 1, -1))


def test_a_class_that_only_masked_rows_have_is_not_learned_of(data):
    y = data.codes.copy()
    y[~data.train] = 7
    model = classifier(epochs=1).fit(data.X, y, train_mask=data.train)
    assert model.classes_.tolist() == [0, 1, 2]


def test_other_rows_are_given_their_edges_or_refused(data, fitted):
    half = len(data.X) // 2
    with refused():
        fitted.predict(data.X[:half])
    moved = data.X + 1  # as many rows, and others
    with refused():
        fitted.predict(moved)
    inside = data.edge_index[:, (data.edge_index < half).all(0)]
    assert fitted.predict(data.X[:half], edge_index=inside).shape == (half,)


def test_a_pipeline_scales_first_and_predicts_on_the_edges_of_fit(data):
    pipe = make_pipeline(StandardScaler(), classifier(scaling="none"))
    pipe.fit(data.X, masked(data), vrgcnclassifier__edge_index=data.edge_index)
    assert (pipe.predict(data.X) == data.y)[~data.train].mean() > 0.9
    direct = classifier(scaling="none")
    scaled = StandardScaler().fit_transform(data.X)
    direct.fit(scaled, masked(data), edge_index=data.edge_index)
    assert (direct.predict(scaled) == pipe.predict(data.X)).all()
    assert direct.model_.trained_on.scaling.kind == "none"


def fixed(data) -> Graph:
    return Graph(data.edge_index, data.X.astype(np.float32))


def test_cross_validation_splits_the_nodes_of_a_fixed_graph(data):
    model = classifier(graph=fixed(data))
    scores = cross_val_score(
        model, np.arange(240), data.y, cv=KFold(3, shuffle=True, random_state=0)
    )
    assert scores.min() > 0.85
    column = np.arange(240)[:, None]
    predicted = cross_val_predict(model, column, data.y, cv=3, method="predict_proba")
    assert predicted.shape == (240, 3)


def test_labels_of_held_out_folds_cannot_be_seen(data):
    """With labels drawn at random nothing can be learned of those that are held out."""
    y = np.random.default_rng(1).permutation(data.y)
    graph = Graph(data.edge_index, data.X.astype(np.float32), data.codes, train=range(240))
    scores = cross_val_score(classifier(graph=graph), np.arange(240), y, cv=4)
    assert scores.mean() < 0.45  # chance is 1/3, its deviation 0.03


def test_a_grid_search_finds_settings_and_predicts_with_the_best(data):
    search = GridSearchCV(classifier(graph=fixed(data)), {"epochs": [1, 15]}, cv=2)
    search.fit(np.arange(240), data.y)
    assert search.best_params_ == {"epochs": 15}
    assert search.predict([3, 14]).shape == (2,)


def test_clones_share_the_graph_and_nothing_that_was_learned(data, fitted):
    graph = fixed(data)
    model = classifier(graph=graph, settings={"layer_norm": False})
    copied = clone(model)
    assert copied.graph is graph
    assert model.graph is graph
    assert copied.settings == model.settings
    assert copied.settings is not model.settings
    assert not hasattr(clone(fitted), "model_")


def test_a_fixed_graph_wants_numbers_of_nodes_each_once(data):
    model = classifier(graph=fixed(data))
    with refused():
        model.fit(data.X, data.y)
    with refused():
        model.fit([3, 3, 4], ["a", "b", "a"])
    with refused():
        model.fit([3, 240], ["a", "b"])


def test_a_graph_with_labels_and_splits_needs_no_y(data):
    names = Names(classes=["red", "green", "blue"], features=[f"f{i}" for i in range(6)])
    train, test = np.flatnonzero(data.train), np.flatnonzero(~data.train)
    graph = Graph(
        data.edge_index, data.X.astype(np.float32), data.codes, train=train, test=test, names=names
    )
    model = classifier().fit(graph)
    assert model.feature_names_in_.tolist() == names.features
    assert (model.predict(graph) == data.y)[~data.train].mean() == model.score(graph) > 0.9
    wrong = np.where(data.train, data.codes, (data.codes + 1) % 3)
    others = Graph(
        data.edge_index, data.X.astype(np.float32), wrong, train=train, test=test, names=names
    )
    assert model.score(others) < 0.1  # only the test nodes, whose labels differ there
    assert model.n_features_in_ == 6
    with refused():
        model.predict(graph, edge_index=data.edge_index)


def test_balanced_classes_are_found_though_they_are_rare(data):
    rare = (data.codes == 1) & (np.cumsum(data.codes == 1) <= 8)
    y = np.where(rare, "rare", "common")
    plain = classifier().fit(data.X, y)
    balanced = classifier(class_weight="balanced").fit(data.X, y)
    found = [(model.predict(data.X) == "rare").sum() for model in (plain, balanced)]
    assert found[1] > found[0] + 5


def test_sample_weights_move_what_is_predicted(data):
    heavy = np.where(data.codes == 1, 100.0, 1.0)
    plain, weighted = classifier(), classifier()
    plain.fit(data.X, data.y)
    weighted.fit(data.X, data.y, sample_weight=heavy)
    share = [(model.predict(data.X) == "green").mean() for model in (plain, weighted)]
    assert share[1] > share[0] + 0.2
    same = classifier(class_weight={"green": 100.0}).fit(data.X, data.y)
    assert (same.predict_proba(data.X) == weighted.predict_proba(data.X)).all()


@pytest.mark.parametrize(
    "weight",
    [-1.0, np.nan, 0.0],
)
def test_weights_of_classes_that_make_no_sense_are_refused(data, weight):
    given = dict.fromkeys(["red", "green", "blue"], weight)
    with refused():
        classifier(class_weight=given).fit(data.X, data.y)


def test_rows_of_weight_zero_are_not_trained_on(data):
    wrong = np.where(data.train, data.y, "blue")
    weights = data.train.astype(float)
    first = classifier().fit(data.X, wrong, weights, edge_index=data.edge_index)
    second = classifier().fit(data.X, masked(data), edge_index=data.edge_index)
    assert (first.predict_proba(data.X) == second.predict_proba(data.X)).all()


def test_several_classes_per_row(data):
    y = np.stack([data.codes == 0, data.codes != 1], axis=1).astype(float)
    y[~data.train] = np.nan
    model = classifier().fit(data.X, y, edge_index=data.edge_index)
    predicted = model.predict(data.X)
    assert predicted.shape == (240, 2)
    assert (predicted[~data.train, 0] == (data.codes == 0)[~data.train]).mean() > 0.9
    assert ((model.predict_proba(data.X) > 0.5) == predicted).all()


def test_validation_rows_choose_the_epoch_and_patience_ends_training(data):
    model = classifier(epochs=60, validation_fraction=0.2, patience=3)
    model.fit(data.X, data.y, edge_index=data.edge_index)
    assert model.n_iter_ < 60
    assert model.result_.val == max(point.val for point in model.result_.curve)
    with refused():
        classifier(patience=3).fit(data.X, data.y)
    mask = np.arange(240) < 120
    with refused():
        classifier().fit(data.X, data.y, train_mask=mask, val_mask=mask)


def test_data_frames_give_their_columns_names(data):
    pandas = pytest.importorskip("pandas")
    columns = [f"f{i}" for i in range(6)]
    frame = pandas.DataFrame(data.X, columns=columns, index=[f"n{i}" for i in range(240)])
    y = pandas.Series(data.y, dtype="string").mask(~data.train)  # pandas.NA where unknown
    model = classifier(epochs=2).fit(frame, y, edge_index=data.edge_index)
    assert model.feature_names_in_.tolist() == columns
    assert model.classes_.tolist() == ["blue", "green", "red"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[columns[::-1]])


def test_sparse_features_are_taken_as_they_are(data):
    sparse = csr_matrix(np.where(data.X > 0.5, data.X, 0))
    model = classifier().fit(sparse, masked(data), edge_index=data.edge_index)
    assert model.predict(sparse).shape == (240,)  # the same rows, their edges known
    assert model.model_.trained_on.scaling.kind == "row"


def test_dense_features_are_scaled_by_the_training_rows_unless_told_otherwise(data, fitted):
    assert fitted.model_.trained_on.scaling.kind == "standard"
    large = classifier().fit(1000 * data.X, masked(data), edge_index=data.edge_index)
    close = np.abs(large.predict_proba(1000 * data.X) - fitted.predict_proba(data.X)).max()
    assert close < 0.05


def test_settings_reach_training_and_unknown_ones_are_refused(data):
    model = classifier(settings={"layer_norm": False, "optimizer": "sgd"}, epochs=1)
    model.fit(data.X, data.y)
    assert model.model_.arguments["layer_norm"] is False
    with refused():
        classifier(settings={"epochs": 3}).fit(data.X, data.y)
    with refused():
        classifier(settings={"seed": 3}).fit(data.X, data.y)
    with refused():
        classifier(settings={"shedule": "cosine"}).fit(data.X, data.y)
    with refused():
        classifier(model="sage").fit(data.X, data.y)
    with refused():
        classifier(settings={"speed": 3}).fit(data.X, data.y)


def test_what_was_fitted_is_pickled_and_saved(data, fitted, tmp_path):
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(data.X) == fitted.predict(data.X)).all()
    save_model(fitted.model_, tmp_path / "model.safetensors")
    saved = load_model(tmp_path / "model.safetensors")
    assert saved.classes == ["blue", "green", "red"]
    outputs = saved.predict(fixed(data)).double().softmax(1).numpy()
    np.testing.assert_allclose(outputs, fitted.predict_proba(data.X), atol=1e-6)


def test_the_same_seed_learns_the_same_and_no_seed_another_each_time(data):
    def learned(seed):
        model = classifier(random_state=seed, epochs=2)
        return model.fit(data.X, data.y).predict_proba(data.X)

    assert (learned(3) == learned(3)).all()
    assert (learned(np.random.RandomState(3)) == learned(np.random.RandomState(3))).all()
    assert (learned(None) != learned(None)).any()


def test_vrgcn_itself_imports_no_scikit_learn_and_no_pandas():
    code = (
        "import sys, vrgcn; vrgcn.Graph, vrgcn.fit, vrgcn.predict, vrgcn.TrainResult\n"
        "print([name for name in ('sklearn', 'pandas', 'networkx', 'matplotlib') "
        "if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout == "[]\n"


def test_without_scikit_learn_the_error_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import vrgcn; vrgcn.VRGCNClassifier"
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "pip install 'vrgcn[sklearn]'" in out.stderr
