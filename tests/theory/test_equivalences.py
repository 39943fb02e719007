"""Proves the equalities between estimators, bit for bit where the arithmetic is the same.

Without dropout cvd is cv; with fresh histories cv is exact; preprocessing changes nothing; the
value and the gradient of the correction R P̂ (h - h̄) can be taken apart; tables hold what theory
says they hold: exact activations after a warm start, rounded in half precision, with their ages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.messages import refused
from tests.theory.problems import (
    CLASSES,
    FEATURES,
    HIDDEN,
    MODELS,
    Embedded,
    FunctionalDropout,
    double_minibatches,
    error,
    exact_pass,
    random_graph,
)
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.history import Histories
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.passes import FirstPass

ROUNDING = 1e-12
GRAPH = random_graph()
BATCH = torch.tensor([40, 3, 59, 17, 8, 22, 57, 31])  # 57 and 59 are isolated


WITHOUT_DROPOUT = {
    "gcn": lambda: MODELS["gcn"](3),
    "gcn, dropout before": lambda: MODELS["gcn"](2, order="before"),
    "graphsage": lambda: MODELS["graphsage"](3),
    "nn.Dropout(0)": lambda: Embedded(2, nn.Dropout(0)),
    "F.dropout": FunctionalDropout,
}


@dataclass
class Record:
    """The result of some epochs of plain gradient descent."""

    outputs: list[Tensor]
    gradients: list[Tensor]
    batches: MiniBatches


def train(model: nn.Module, estimator: str | Estimator, rate: float, **settings: Any) -> Record:
    model.train()
    settings = {"nodes": "all", "batch_size": 16, "fanout": 1, "seed": 5, **settings}
    record = Record([], [], double_minibatches(model, GRAPH, estimator=estimator, **settings))
    for _ in range(3):
        for batch in record.batches:
            outputs = batch.run(model)
            gradients = torch.autograd.grad(
                F.cross_entropy(outputs, batch.labels), list(model.parameters())
            )
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter.sub_(rate * gradient)
            batch.commit()
            record.outputs.append(outputs.detach())
            record.gradients.extend(gradients)
    return record


@pytest.mark.parametrize("preprocess", [None, False])
@pytest.mark.parametrize("name", list(WITHOUT_DROPOUT))
def test_without_dropout_cvd_is_cv_to_the_last_bit(name: str, preprocess: bool | None) -> None:
    cv, cvd = (
        train(WITHOUT_DROPOUT[name](), estimator, 0.1, preprocess=preprocess)
        for estimator in ("cv", "cvd")
    )
    assert cv.batches.histories.tables.keys() == cvd.batches.histories.tables.keys()
    for key, table in cv.batches.histories.tables.items():
        assert torch.equal(table.values, cvd.batches.histories.tables[key].values)
        assert torch.equal(table.written, cvd.batches.histories.tables[key].written)
    for left, right in zip(cv.outputs, cvd.outputs, strict=True):
        assert torch.equal(left, right)
    for left, right in zip(cv.gradients, cvd.gradients, strict=True):
        assert torch.equal(left, right)


def test_with_dropout_cvd_is_not_cv() -> None:
    cv, cvd = (train(MODELS["gcn"](2, dropout=0.5), name, 0.1) for name in ("cv", "cvd"))
    assert not torch.equal(cv.outputs[-1], cvd.outputs[-1])


def run(model: nn.Module, estimator: str | Estimator, **settings: Any) -> tuple[Tensor, Tensor]:
    """Outputs and all gradients for BATCH, histories warm unless `warm=False`."""
    warm = settings.pop("warm", True)
    batches = double_minibatches(model, GRAPH, estimator=estimator, seed=3, **settings)
    if warm:
        batches.warm_start(model)
    outputs = batches.batch(BATCH).run(model)
    loss = F.cross_entropy(outputs, GRAPH.labels[BATCH])
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return outputs, torch.cat([gradient.flatten() for gradient in gradients])


MODELS_OF_THREE = {
    "gcn": lambda: MODELS["gcn"](3),
    "graphsage": lambda: MODELS["graphsage"](3),
    "embedded": lambda: Embedded(3),
}


@pytest.mark.parametrize("fanout", [0, 1, 3])
@pytest.mark.parametrize("estimator", ["cv", "cvd", "history"])
@pytest.mark.parametrize("name", list(MODELS_OF_THREE))
def test_with_fresh_histories_outputs_are_exact(name: str, estimator: str, fanout: int) -> None:
    model = MODELS_OF_THREE[name]()
    outputs, _ = run(model, estimator, fanout=fanout)
    wanted = exact_pass(model, GRAPH)[-1][BATCH]
    assert error(outputs, wanted) < ROUNDING
    cold, _ = run(model, estimator, fanout=fanout, warm=False)
    assert error(cold, wanted) > 1e-2


@pytest.mark.parametrize("preprocess", [None, False])
@pytest.mark.parametrize("name", list(MODELS_OF_THREE))
def test_the_exact_estimator_has_the_dense_formulas_outputs_and_gradients(
    name: str, preprocess: bool | None
) -> None:
    model = MODELS_OF_THREE[name]()
    outputs, gradients = run(model, "exact", preprocess=preprocess, warm=False)
    wanted = exact_pass(model, GRAPH)[-1][BATCH]
    loss = F.cross_entropy(wanted, GRAPH.labels[BATCH])
    wanted_gradients = torch.autograd.grad(loss, list(model.parameters()))
    assert error(outputs, wanted) < ROUNDING
    assert error(gradients, torch.cat([g.flatten() for g in wanted_gradients])) < ROUNDING


def test_with_a_fan_out_above_all_degrees_cv_has_the_exact_gradient() -> None:
    model = MODELS["gcn"](3)
    _, exact = run(model, "exact")
    _, every = run(model, "cv", fanout=100)
    _, one = run(model, "cv", fanout=1)
    assert error(every, exact) < ROUNDING
    assert error(one, exact) > 1e-2


@pytest.mark.parametrize("estimator", ["exact", "cv", "cvd", "history"])
@pytest.mark.parametrize("name", list(MODELS))
def test_preprocessing_changes_nothing_where_the_features_are_known(
    name: str, estimator: str
) -> None:
    # Hops are planned from the top, so both plans sample the same neighbours for calls 2 and 3.
    model = MODELS[name](3)
    cold = {"warm": False, "fanout": 2}
    outputs, gradients = run(model, estimator, preprocess=True, **cold)
    plain_outputs, plain_gradients = run(model, estimator, preprocess=False, **cold)
    assert error(outputs, plain_outputs) < ROUNDING
    assert error(gradients, plain_gradients) < ROUNDING


def test_preprocessing_spares_a_hop_and_changes_neighbour_sampling() -> None:
    model = MODELS["gcn"](2)
    sizes = {}
    for preprocess in (True, False):
        batches = MiniBatches(model, GRAPH, estimator="cv", preprocess=preprocess)
        sizes[preprocess] = batches.batch(BATCH).plan.sizes
    assert sizes[True][0] == sizes[True][1] == sizes[False][1] < sizes[False][0]
    with_it, _ = run(model, "ns", preprocess=True, warm=False)
    without, _ = run(model, "ns", preprocess=False, warm=False)
    assert error(with_it, without) > 1e-2


@pytest.mark.parametrize("name", list(MODELS))
def test_preprocessing_is_refused_where_dropout_comes_before_the_propagation(name: str) -> None:
    model = MODELS[name](2, dropout=0.5, order="before")
    with refused():
        MiniBatches(model, GRAPH, estimator="cvd", preprocess=True)
    assert not MiniBatches(model, GRAPH, estimator="cvd").setup.preprocess
    assert MiniBatches(MODELS[name](2, dropout=0.5), GRAPH, estimator="cvd").setup.preprocess


class Watched(nn.Module):
    """Keeps what its second call of propagate was given and answered."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.first = nn.Linear(FEATURES, HIDDEN, dtype=torch.float64)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        self.given = self.dropout(torch.tanh(self.first(propagate(x))))
        self.answer = propagate(self.given)
        return self.answer


def value_and_gradient(estimator: str | Estimator) -> tuple[Tensor, Tensor]:
    """The estimate of P h for BATCH, and the gradient of a sum of it by h, histories stale."""
    model = Watched()
    batches = double_minibatches(model, GRAPH, estimator=estimator, fanout=2, seed=3)
    batches.warm_start(model)
    batches.histories.tables[1, "h"].values.mul_(0.5)
    answer = batches.batch(BATCH).run(model)
    generator = torch.Generator().manual_seed(4)
    weights = torch.randn(answer.shape, generator=generator, dtype=torch.float64)
    return answer, torch.autograd.grad((weights * answer).sum(), model.given)[0]


def test_value_and_gradient_of_the_correction_can_be_taken_apart() -> None:
    def part(forward: str, backward: str) -> tuple[Tensor, Tensor]:
        return value_and_gradient(Estimator("uniform", forward, backward))

    value, gradient = value_and_gradient("cv")
    base, base_gradient = part("history", "none")
    assert error(value, base) > 1e-2
    assert error(gradient, base_gradient) > 1e-2

    history, history_gradient = value_and_gradient("history")
    assert error(base, history) < ROUNDING
    own = len(BATCH)
    assert error(base_gradient[:own], history_gradient) < ROUNDING
    assert base_gradient[own:].abs().max() == 0

    only_gradient = part("history", "sampled")
    assert torch.equal(only_gradient[0], base)
    assert torch.equal(only_gradient[1], gradient)

    only_value = part("corrected", "none")
    assert torch.equal(only_value[0], value)
    assert torch.equal(only_value[1], base_gradient)


@pytest.mark.parametrize("residual", [False, True])
def test_without_a_way_back_no_gradient_reaches_the_neighbours(residual: bool) -> None:
    model = Watched(dropout=0.5).train()
    estimator = Estimator("uniform", "corrected", "none", dropout_residual=residual)
    batches = double_minibatches(model, GRAPH, estimator=estimator, fanout=2, seed=3)
    answer = batches.batch(BATCH).run(model)
    (gradient,) = torch.autograd.grad(answer.sum(), model.given)
    assert gradient[: len(BATCH)].abs().sum() > 0
    assert len(gradient) > len(BATCH)
    assert gradient[len(BATCH) :].abs().max() == 0


@pytest.mark.parametrize("estimator", ["cv", "cvd"])
@pytest.mark.parametrize("name", list(MODELS_OF_THREE))
def test_a_warm_start_fills_the_tables_with_the_exact_activations(
    name: str, estimator: str
) -> None:
    model = MODELS_OF_THREE[name]()
    activations = exact_pass(model, GRAPH)[:-1]
    batches = double_minibatches(model, GRAPH, estimator=estimator)
    batches.warm_start(model)
    tables = batches.histories.tables
    first = 0 if name == "embedded" else 1
    assert sorted(tables) == [(level, "h") for level in range(first, 3)]
    for (level, _), table in tables.items():
        assert error(table.values, activations[level]) < ROUNDING
        assert table.written.eq(0).all()


def test_a_warm_start_knows_the_features_that_training_will_drop() -> None:
    model = MODELS["gcn"](2, dropout=0.5, order="before")
    batches = double_minibatches(model, GRAPH, estimator="cv")
    batches.warm_start(model)
    assert sorted(batches.histories.tables) == [(0, "h"), (1, "h")]
    assert torch.equal(batches.histories.tables[0, "h"].values, GRAPH.features)
    model.eval()
    assert error(batches.histories.tables[1, "h"].values, exact_pass(model, GRAPH)[1]) < ROUNDING


@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2**-11), ("bfloat16", 2**-8)])
@pytest.mark.parametrize("name", list(MODELS))
def test_half_precision_histories_are_the_same_up_to_their_rounding(
    name: str, dtype: str, unit: float
) -> None:
    # Each of 2 tables and 2 averages rounds once; averaging and LayerNorm keep that in proportion.
    model = MODELS[name](3)

    def outputs(dtype: str) -> Tensor:
        batches = MiniBatches(model, GRAPH, estimator="cv", history_dtype=dtype, seed=3)
        batches.warm_start(model)
        assert batches.histories.tables[1, "h"].values.dtype == getattr(torch, dtype)
        return batches.batch(BATCH).run(model)

    wanted = exact_pass(model, GRAPH)[-1][BATCH]
    assert error(outputs("float32"), wanted) < 1e-6
    assert unit / 50 < error(outputs(dtype), wanted) < 10 * unit


def test_a_row_written_at_step_s_has_age_step_minus_s() -> None:
    model = MODELS["gcn"](3)
    batches = double_minibatches(model, GRAPH, estimator="cv", nodes=BATCH, batch_size=2)
    written = {call: torch.full((GRAPH.num_nodes,), -1) for call in (1, 2)}
    for _ in range(3):
        for batch in batches:
            batch.run(model)
            for call, steps in written.items():
                steps[batch.plan.levels[call].nodes] = batches.step
            batch.commit()
    assert batches.step == 12
    ages = []
    for call, steps in written.items():
        table = batches.histories.tables[call, "h"]
        assert torch.equal(table.written, steps)
        assert table.values[steps == -1].abs().max() == 0
        ages.append(12 - steps[steps != -1])
        assert torch.equal(table.age(batches.step), ages[-1])
    assert batches.mean_age() == pytest.approx(float(torch.cat(ages).double().mean()))
    assert int(torch.cat(ages).min()) == 1  # the last commit was one step ago
    assert len(torch.cat(ages).unique()) > 4


class GeneratorOfItsOwn(nn.Module):
    """Drops by random numbers that are not PyTorch's default ones."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(FEATURES, CLASSES, dtype=torch.float64)
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x: Tensor, propagate: Any) -> Tensor:
        if self.training:
            x = x * torch.rand(x.shape, generator=self.generator, dtype=x.dtype)
        return self.last(propagate(x))


class WholePass(FirstPass):
    """A first pass that goes on to the model's end."""

    def __init__(self, *parts: Any, stop_after: int | None = None, **given: Any) -> None:
        super().__init__(*parts, **given)


@pytest.mark.parametrize("kind", ["gcn", "graphsage"])
def test_cvd_that_ends_its_first_pass_early_gives_the_same_bits(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> list[Tensor]:
        torch.manual_seed(3)
        model = MODELS[kind](3, dropout=0.3).train()
        batches = double_minibatches(model, GRAPH, estimator="cvd", batch_size=16, nodes="all")
        for batch in batches:  # histories that are not zero
            batch.run(model)
            batch.commit()
        torch.manual_seed(4)
        batch = batches.batch(BATCH)
        output = batch.run(model)
        output.square().sum().backward()
        batch.commit()
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        return [output, *gradients, *batches.histories.state_dict().values()]

    early = run()
    monkeypatch.setattr("vrgcn.engine.batch.FirstPass", WholePass)
    assert all(torch.equal(a, b) for a, b in zip(early, run(), strict=True))


def test_cvd_leaves_out_the_end_of_its_first_pass() -> None:
    model = MODELS["graphsage"](2, dropout=0.3).train()
    ends: list[bool] = []
    model.layers[-1].register_forward_hook(lambda module, *_: ends.append(module.training))
    batches = double_minibatches(model, GRAPH, estimator="cvd", batch_size=16, nodes="all")
    ends.clear()
    for _ in range(3):
        batches.batch(BATCH).run(model)
    assert ends == [True, True, True]


@pytest.mark.parametrize("kind", [GeneratorOfItsOwn, FunctionalDropout])
def test_cvd_runs_twice_where_the_model_is_random_however_it_draws(kind: type) -> None:
    model = kind().train()
    passes: list[bool] = []
    model.register_forward_hook(lambda module, *_: passes.append(module.training))
    batches = double_minibatches(model, GRAPH, estimator="cvd", batch_size=16, nodes="all")
    assert batches.setup.training.random == (kind is GeneratorOfItsOwn)
    passes.clear()
    batches.batch(BATCH).run(model)
    assert passes == [True]  # the first is cut short and its end not seen
    assert not batches.setup.evaluation.random


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_what_a_table_cannot_hold_becomes_its_largest_number(dtype: str) -> None:
    table = Histories(3, dtype).table(1, 2)
    table.write(torch.tensor([2, 0]), torch.tensor([[1e5, -1e39], [2.0, 3.0]]).double(), step=0)
    largest = torch.finfo(table.values.dtype).max
    assert table.values[2].tolist() == [min(largest, float(table.values[2, 0])), -largest]
    assert torch.isfinite(table.values).all()
    assert table.values[0].tolist() == [2.0, 3.0]
