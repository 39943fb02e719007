"""scikit-learn's own checks of estimators, and the reasons of those that do not apply.

docs/guides/scikit.md lists the same checks with the same reasons.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from vrgcn import VRGCNClassifier, VRGCNRegressor

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "scikit.md"
WEIGHTS = "minibatches are drawn at random: a row twice is not a row of weight 2 to the last bit"
UNKNOWN = "-1 is a class there, and an unknown label here; passes with `unlabeled=None`"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    "check_classifiers_classes": UNKNOWN,
}
PRECISION = (
    "outputs are in single precision: for a subset of the rows they differ in the last digit"
)
# Which passes or fails as the processor rounds; a test below has the tolerance that holds.
ROUNDED = {"check_methods_subset_invariance": PRECISION}
SMALL = {"epochs": 20, "hidden": 16}
LEARNING = ("train", "weight")  # checks that look at what was learned
# Checks that scikit-learn itself skips: one needs SCIPY_ARRAY_API, the other a decision_function.
SKIPPED = {
    "check_array_api_input",
    "check_classifiers_multilabel_output_format_decision_function",
}


def checks(estimator):
    for made, check in estimator_checks_generator(estimator, mark=None):
        name = getattr(check, "func", check).__name__
        if not any(word in name for word in LEARNING):
            made = clone(made).set_params(epochs=2)  # noqa: PLW2901
        if name not in SKIPPED | ROUNDED.keys():
            yield pytest.param(made, check, name, id=f"{type(made).__name__}-{name}")


every = [*checks(VRGCNClassifier(**SMALL)), *checks(VRGCNRegressor(**SMALL))]


@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks warn on purpose
@pytest.mark.parametrize(("estimator", "check", "name"), every)
def test_a_check_of_scikit_learn_passes(estimator, check, name):
    if name not in EXPECTED:
        check(estimator)
        return
    with pytest.raises((AssertionError, ValueError)):
        check(estimator)


@pytest.mark.filterwarnings("ignore")
def test_classes_may_be_anything_where_nothing_stands_for_unknown():
    [(estimator, check, _)] = [
        param.values
        for param in checks(VRGCNClassifier(**SMALL, unlabeled=None))
        if param.values[2] == "check_classifiers_classes"
    ]
    assert check(estimator) is None


@pytest.mark.parametrize("kind", [VRGCNClassifier, VRGCNRegressor])
def test_some_of_the_rows_are_predicted_as_all_are_to_single_precision(data, kind):
    y = data.y if kind is VRGCNClassifier else data.codes.astype(float)
    model = kind(**SMALL, random_state=0).fit(data.X, y)
    predict = model.predict_proba if kind is VRGCNClassifier else model.predict
    parts = np.concatenate([predict(data.X[i : i + 7]) for i in range(0, len(data.X), 7)])
    np.testing.assert_allclose(parts, predict(data.X), rtol=1e-4, atol=2e-6)


def test_the_page_lists_each_check_that_does_not_apply_and_why():
    page = PAGE.read_text(encoding="utf-8")
    for name, reason in (EXPECTED | ROUNDED).items():
        assert f"| `{name}` | {reason} |" in page
