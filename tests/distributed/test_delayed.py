"""`--halo delayed`: copies are a step behind, and everything that is on its way is in the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.distributed.problems import Case, graph_of, trainer_of, write
from tests.distributed.processes import in_processes
from vrgcn.distributed.checkpoints import PartCheckpoints
from vrgcn.distributed.group import Group
from vrgcn.distributed.trainer import PartTrainer
from vrgcn.engine.batch import Batch
from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import predict
from vrgcn.runs.interrupts import StopRequest
from vrgcn.training.listener import Callbacks

DEEP = Case("deep", "gcn", 3, "two-way", True, 40, {"fanout": (0,)})
DROPPED = Case("cvd with few labels", "graphsage", 2, "cvd", False, 40, {"visit": "train"})
FEW = Case("few at home", "graphsage", 3, "two-way", False, 40)
UNVISITED = Case("history, training nodes", "gcn", 3, "history", True, 40, {"visit": "train"})


def trained(trainer: PartTrainer) -> dict[str, Tensor]:
    while trainer.advance():
        pass
    weights = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    return weights | trainer.minibatches.histories.state_dict()


def copies_and_originals(trainer: PartTrainer) -> tuple[Tensor, Tensor]:
    """Return the halo's rows of the first table, and their owners' present rows."""
    table = trainer.minibatches.histories.tables[1, "h"].values
    renewed = table.clone()
    trainer.halo.renew(renewed)
    return table[trainer.halo.own :].clone(), renewed[trainer.halo.own :]


def keeps_newer(group: Group, folder: Path) -> bool:
    """Whether what a step computed of others' nodes stays, whatever their owners sent before."""
    trainer = trainer_of(group, folder, DROPPED)
    batches: list[Batch] = []
    trainer.listener = Callbacks(on_batch=batches.append)
    newest = []
    for step in range(4):
        trainer.advance()
        level = batches[-1].plan.levels[1].nodes
        newest.append((trainer.minibatches.histories.tables[1, "h"].written[level] == step).all())
    return all(newest)


def checks(group: Group, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # Copies are what the originals were a step ago.
    trainer = trainer_of(group, folder / "directed", DEEP)
    before, behind = None, []
    for _ in range(4):
        trainer.advance()
        copies, originals = copies_and_originals(trainer)
        behind.append(before is not None and torch.equal(copies, before))
        before = originals
    found["one step behind"] = behind
    found["not up to date"] = not torch.equal(copies, originals)
    # Every second step only: they are older.
    seldom = trainer_of(group, folder / "directed", DEEP, halo_every=2)
    trained(trainer)
    trained(seldom)
    state = trainer.minibatches.histories.state_dict()
    found["moves"] = {name: move.clone() for name, move in state.items() if "move" in name}
    found["ages"] = [t.progress.curve[-1].halo_age for t in (trainer, seldom)]
    found["staleness"] = trainer.progress.curve[-1].halo_staleness
    found["exchanged"] = [t.progress.curve[-1].exchanged for t in (trainer, seldom)]
    found["what was computed here stays"] = keeps_newer(group, folder / "undirected")
    # A state that is put back in the middle of an epoch leads to the same bits.
    mid_epoch = None
    for case, path in ((DEEP, "directed"), (DROPPED, "undirected"), (FEW, "undirected")):
        unbroken = trainer_of(group, folder / path, case)
        for _ in range(3):
            unbroken.advance()
        state = unbroken.state()
        mid_epoch = state if case is DEEP else mid_epoch
        wanted = trained(unbroken)
        again = trainer_of(group, folder / path, case)
        again.restore(state)
        mine = trained(again)
        found[case.name] = all(torch.equal(mine[name], wanted[name]) for name in wanted)
    # One that is put back where rows do not wait: copies are originals from then on.
    exact = trainer_of(group, folder / "directed", DEEP, halo="exact")
    exact.restore(mid_epoch)
    found["exact from the first"] = torch.equal(*copies_and_originals(exact))
    lazy = trainer_of(group, folder / "directed", UNVISITED)
    trained(lazy)
    found["unvisited rows that are written"] = int(
        (lazy.minibatches.histories.tables[1, "h"].written[: lazy.halo.own] >= 0).sum()
    )
    # One checkpoint of all processes, from which a new run goes on.
    unbroken = trainer_of(group, folder / "directed", DEEP)
    for _ in range(3):
        unbroken.advance()
    PartCheckpoints(unbroken, folder / "checkpoints").write()
    wanted = trained(unbroken)
    again = trainer_of(group, folder / "directed", DEEP)
    kept = PartCheckpoints(again, folder / "checkpoints")
    found["resumed"] = kept.resume()
    mine = trained(again)
    found["the same bits"] = all(torch.equal(mine[name], wanted[name]) for name in wanted)
    found["outputs"] = again.sweeps.outputs()
    found["nodes"] = again.part.nodes[: again.part.own].clone()
    found["weights"] = {name: value.clone() for name, value in again.model.state_dict().items()}
    return found


def moved(group: Group, folder: Path) -> dict[str, Any]:
    """Go on in three parts with what two had."""
    trainer = trainer_of(group, folder / "three", DEEP)
    notes: list[str] = []
    trainer.listener = Callbacks(on_note=notes.append)
    kept = PartCheckpoints(trainer, folder / "checkpoints")
    resumed = kept.resume()
    table = trainer.minibatches.histories.tables[1, "h"]
    rows = table.values[: trainer.halo.own].clone()
    state = trainer.optimizer.state_dict()
    kept.run(StopRequest())
    return {
        "resumed": resumed,
        "notes": notes,
        "rows": rows,
        "nodes": trainer.part.nodes[: trainer.part.own].clone(),
        "groups": len(state["param_groups"]),
        "epochs": len(trainer.progress.curve),
    }


def test_delayed_halos_states_checkpoints_and_predictions(tmp_path: Path) -> None:
    directed = graph_of(directed=True, trained=40)
    write(directed, tmp_path / "directed", 2)
    write(directed, tmp_path / "three", 3)
    write(graph_of(directed=False, trained=40), tmp_path / "undirected", 2)
    found = in_processes(2, checks, tmp_path)
    for rank in found:
        assert rank["one step behind"] == [False, True, True, True]
        assert rank["not up to date"]
        assert rank["ages"][0] < rank["ages"][1]
        assert 0 < rank["staleness"] < 2
        assert all(rank["exchanged"])
        for case in (DEEP, DROPPED, FEW):
            assert rank[case.name], case.name
        assert rank["what was computed here stays"]
        assert rank["exact from the first"]
        assert rank["resumed"]
        assert rank["the same bits"]
        assert rank["unvisited rows that are written"] > 20  # by refreshing, not by visits
    first, second = found
    assert set(first["moves"]) == {f"{level}.{kind}.move" for level in (1, 2) for kind in "hg"}
    for name, move in first["moves"].items():
        assert move.any()
        assert torch.equal(move, second["moves"][name]), name
    assert all(torch.equal(first["weights"][n], second["weights"][n]) for n in first["weights"])
    assert_exact(directed, found)

    moved_to = in_processes(3, moved, tmp_path)
    old = torch.cat([rank["nodes"] for rank in found])
    assert torch.equal(old.sort().values, torch.arange(directed.num_nodes))
    for rank in moved_to:
        assert rank["resumed"]
        assert rank["epochs"] == 2
        assert rank["rows"].abs().sum() > 0
        assert any("had 2 parts and resumes with 3" in note for note in rank["notes"])


def assert_exact(graph: Graph, ranks: list[dict[str, Any]]) -> None:
    """Outputs that the processes computed of their own nodes are those of one process."""
    model = DEEP.build()
    model.load_state_dict(ranks[0]["weights"])
    wanted = predict(model.eval(), graph)
    for rank in ranks:
        torch.testing.assert_close(rank["outputs"], wanted[rank["nodes"]], rtol=1e-9, atol=1e-11)
