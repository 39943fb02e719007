"""An output stage is one class and one line of a table: a made-up one is saved, predicts, is
evaluated and goes live, alone and among others, and other code does not know it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from tests.baselines.problems import small
from tests.inference.test_model_file import change
from vrgcn import evaluate, load_run, train
from vrgcn.distributed.prediction import part_sweeps
from vrgcn.files.kinds import Kind
from vrgcn.graph.graph import Graph
from vrgcn.inference import MODEL
from vrgcn.inference.average import Average
from vrgcn.inference.calibration import Calibration, calibrate
from vrgcn.inference.embed import embeddings
from vrgcn.inference.predict import exact_sweeps, predict
from vrgcn.inference.saved import SavedModel, load_model, save_model
from vrgcn.inference.smoothing import Smoothing, Spreading
from vrgcn.inference.stage import RowStage, Stage, StagedOutputs
from vrgcn.inference.stages import STAGES
from vrgcn.inference.sweeps import KnownOutputs, Outputs
from vrgcn.live.live import Live
from vrgcn.models.models import GCN
from vrgcn.runs.card import facts_of, write_end
from vrgcn.tasks import find_task
from vrgcn.tasks.task import Task


@dataclass(frozen=True)
class Clipped(RowStage):
    most: float

    name = "clipped"
    title = "clipping"
    words = "clipped"
    kinds: ClassVar = {"most": Kind(lambda v: type(v) is float and v > 0, "a number above 0")}

    def rows(self, outputs: Tensor, task: Task) -> Tensor:
        return outputs.clamp(-self.most, self.most)


class Mean(Stage):
    """Outputs of each node are the mean of those of its neighbours."""

    name = "mean"
    title = "the mean"
    words = "averaged over neighbours"

    def on(self, inner: Outputs, task: Task, directory: Path | None) -> Outputs:
        return MeanOutputs(inner, directory)


class MeanOutputs(StagedOutputs):
    def stream(self, nodes: Tensor | None = None, layer: int | None = None) -> Any:
        if layer is not None:
            yield from self.inner.stream(nodes, layer)
            return
        spreading = Spreading(self.graph)
        asked = spreading.every if nodes is None else nodes
        yield asked, spreading.P.product(self.inner.outputs(), asked)

    def work(self, nodes: Tensor | None = None, layer: int | None = None) -> int:
        return self.inner.work(None, layer)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line of the table."""
    monkeypatch.setitem(STAGES, "clipped", f"{__name__}:Clipped")
    monkeypatch.setitem(STAGES, "mean", f"{__name__}:Mean")


CLIP = Clipped(0.05)
BOUNDS = (-0.05, 0.05)


def model() -> SavedModel:
    torch.manual_seed(0)
    return SavedModel.of(GCN(6, 8, 3))


def through(saved: SavedModel, folder: Path) -> SavedModel:
    save_model(saved, folder / MODEL)
    return load_model(folder)


def test_it_is_saved_loaded_and_predicts(tmp_path: Path) -> None:
    graph, plain = small(), model()
    loaded = through(plain.then(CLIP), tmp_path)
    assert loaded.stages == (CLIP,)
    wanted = predict(plain, graph).clamp(-0.05, 0.05)
    assert not torch.equal(wanted, predict(plain, graph))
    assert torch.equal(predict(loaded, graph), wanted)
    (tmp_path / "tables").mkdir()
    assert torch.equal(predict(loaded, graph, directory=tmp_path / "tables"), wanted)
    assert torch.equal(predict(loaded, graph, [7, 3]), predict(plain, graph, [7, 3]).clamp(*BOUNDS))
    assert torch.equal(embeddings(loaded, graph), embeddings(plain, graph))
    told: list[int] = []
    sweeps = exact_sweeps(loaded, graph, on_chunk=told.append)
    assert torch.equal(torch.cat([rows for _, rows in sweeps.stream()]), wanted)
    assert sum(told) == sweeps.work()


def every_order(graph: Graph) -> dict[str, SavedModel]:
    plain = model()
    labels = graph.labels
    assert labels is not None
    ids = graph.names.node_ids(graph.train.numpy())
    held = torch.rand(len(ids), 3, generator=torch.Generator().manual_seed(0)) / 9
    spread = Smoothing(0.9, 0.5, False, 1.0, 0.0, held, held, ids)
    task = find_task(graph.task)
    tempered = calibrate(task, predict(plain, graph), labels, graph.val)
    both = Average.of_members({"a": plain.then(CLIP), "b": plain.then(Mean())}, {"a": 1, "b": 3})
    return {
        "calibrated, then clipped": plain.then(tempered).then(CLIP),
        "clipped, smoothed, calibrated": plain.then(CLIP).then(spread).then(tempered),
        "smoothed, then its mean, clipped": plain.then(spread).then(Mean()).then(CLIP),
        "twice": plain.then(spread).then(CLIP).then(replace(spread, smooth=0.9)),
        "of an average": both.then(Mean()).then(tempered),
    }


ORDERS = (
    *(
        "calibrated, then clipped",
        "clipped, smoothed, calibrated",
        "smoothed, then its mean, clipped",
    ),
    *("twice", "of an average"),
)


@pytest.mark.parametrize("name", ORDERS)
def test_stages_combine_in_any_order(name: str, tmp_path: Path) -> None:
    graph = small()
    saved = every_order(graph)[name]
    loaded = through(saved, tmp_path)
    assert [stage.name for stage in loaded.stages] == [stage.name for stage in saved.stages]
    by_hand = predict(saved.before(Stage), graph)
    for stage in saved.stages:
        by_hand = stage.on(
            KnownOutputs(graph, by_hand.clone()), find_task(graph.task), None
        ).outputs()
    assert torch.equal(predict(loaded, graph), by_hand)
    (tmp_path / "tables").mkdir()
    assert torch.equal(predict(loaded, graph, directory=tmp_path / "tables"), by_hand)
    if not loaded.parts:
        live = Live(loaded, graph)
        torch.testing.assert_close(live.predict(range(240)).outputs, by_hand)
        live.add_edges([{"source": 3, "target": 9}])
        torch.testing.assert_close(
            live.predict(range(240)).outputs, predict(loaded, live.graph()), rtol=1e-5, atol=1e-5
        )


def test_a_run_with_it_is_evaluated_explained_and_described(tmp_path: Path) -> None:
    graph = small()
    settings: dict[str, Any] = {"hidden": 8, "epochs": 2, "smooth": "never", "diagnostics": 0}
    run = train(graph, out=tmp_path / "run", **settings)
    save_model(run.saved.then(Clipped(0.001)), tmp_path / "run" / MODEL)
    clipped = load_run(tmp_path / "run")
    assert float(clipped.predict().abs().max()) == pytest.approx(0.001)
    scores = evaluate(clipped).scores["scores"]
    assert graph.labels is not None
    hit = clipped.predict()[graph.test].argmax(1) == graph.labels[graph.test]
    assert scores["test"] == pytest.approx(float(hit.double().mean()))
    [explained] = clipped.explain([5])
    assert explained.value == pytest.approx(1 / 3, abs=1e-3)
    result = {"metric": "accuracy", "val": 0.5, "test": 0.5, "epoch": 1}
    write_end(tmp_path / "run", clipped.config, result, clipped.saved, facts_of(graph))
    assert "predictions are clipped" in (tmp_path / "run" / "README.md").read_text()


def test_code_asks_a_chain_for_what_a_stage_needs() -> None:
    graph = small()
    spread = model().then(Mean())
    live = Live(spread, graph)
    with pytest.raises(ValueError, match="that are averaged over neighbours are not known"):
        live.what_if([], [3])
    assert live.explain(3).note == "probabilities of the network, before the mean"
    with pytest.raises(ValueError, match="averaged over neighbours is predicted for a graph as a"):
        part_sweeps(spread, None, None)  # type: ignore[arg-type]
    supposed = Live(model().then(CLIP), graph).what_if([], [3]).outputs
    assert torch.equal(supposed, predict(model().then(CLIP), graph, [3]))


def test_sets_are_promised_only_for_outputs_as_they_were_calibrated() -> None:
    tempered = model().then(Calibration(2.0, None, 3, torch.rand(300).double().sort().values))
    assert tempered.calibration is not None
    assert tempered.then(CLIP).calibration is None
    assert tempered.then(CLIP).before(Calibration).stages == ()


def test_a_stage_that_a_file_describes_wrongly_is_refused(tmp_path: Path) -> None:
    save_model(model().then(CLIP), tmp_path / MODEL)
    for wrong, message in (
        ({"most": -1.0}, "clipped: most must be a number above 0, not -1.0"),
        ({"most": "absent"}, "clipped lacks most"),
        ({"most": 1.0, "least": 0.0}, "no stage 'clipped' has 'least'"),
        ({"name": "cut"}, "must be smoothed, calibrated, .*not 'cut'; if another package has it"),
    ):
        save_model(model().then(CLIP), tmp_path / MODEL)
        change(tmp_path / MODEL, place=1, stage=wrong)
        with pytest.raises(ValueError, match=rf"model\.safetensors.*{message}"):
            load_model(tmp_path)
