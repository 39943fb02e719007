"""Checks of what several processes can train, made before training begins."""

from __future__ import annotations

from torch import nn

from vrgcn.distributed.group import Group
from vrgcn.engine.estimators import Estimator
from vrgcn.engine.minibatches import MiniBatches
from vrgcn.engine.samplers import Sampler, passes_over
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.graph.graph import Graph
from vrgcn.models.node_table import node_tables
from vrgcn.training.config import TrainConfig


def _what_works() -> str:
    return (
        f"With parts there are: history and two-way {setting('fanout', (0,))} at any depth; "
        "two-way, cv and cvd where one propagation is estimated (two layers, the first "
        "preprocessed); two-way of more layers, which computes those of its few neighbours that "
        "are at home"
    )


def check_config(config: TrainConfig, graph: Graph, group: Group, visit: str) -> None:
    """Raise in all processes at once if settings need the whole graph in one process.

    visit: the nodes that epochs visit, "train" or "all"
    """
    if config.inductive:
        raise InputError(
            f"{setting('inductive', True)} has a matrix of its own, and parts are of the whole "
            "graph: partition a graph that has the edges among training nodes alone"
        )
    for name in ("memory", "batches"):
        if getattr(config, name) != getattr(TrainConfig, name):
            raise InputError(
                f"{setting(name, getattr(config, name))} is for one process with the whole graph: "
                "leave it out, and make more parts where memory is short"
            )
    if config.time_limit is not None:
        raise InputError(
            f"{setting('time_limit')} is of one process: with parts, let the scheduler end the "
            f"job, and continue with {setting('resume')}"
        )
    lengths = group.everybody(len(graph.train))
    if not any(lengths):
        raise InputError("the graph has no training nodes: give it a train split")
    if visit == "train" and not all(lengths):
        raise InputError(
            f"part {lengths.index(0)} has no training nodes to visit: make fewer parts, or "
            f"{setting('visit', 'all')}"
        )


def check_model(model: nn.Module) -> None:
    """Raise if the model would differ from process to process."""
    if node_tables(model):
        raise InputError(
            "the model has a row for each node of the whole graph, and each process knows a part "
            "of the nodes: train it in one process"
        )
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._NormBase) and module.track_running_stats:
            raise InputError(
                f"{name or 'the model'} ({type(module).__name__}) keeps statistics of the nodes "
                "that it has seen, which are others in each process: use LayerNorm"
            )


def check_estimator(batches: MiniBatches, name: str) -> None:
    """Raise if an estimator has to compute rows of another process."""
    estimator, matrices = batches.estimator, batches.setup.matrices
    levels = [level for level, over in enumerate(matrices) if over]
    sampler = batches.planner.sampler
    computes = any(sampler.computes_neighbours(level) for level in levels)
    if not levels or (estimator.keeps and not computes):
        return
    if isinstance(estimator.sampler, str) and not _at_home(estimator, sampler):
        raise InputError(f"the estimator {name} needs the whole graph. {_what_works()}")
    if len(levels) > 1 and not passes_over(estimator.sampler):
        raise InputError(
            f"the estimator {name} samples neighbours on {len(levels)} levels, and those of a "
            f"neighbour may be another process's. {_what_works()}"
        )


def _at_home(estimator: Estimator, sampler: Sampler) -> bool:
    """Return True if the neighbours that one of our samplers computes can be computed where they
    are read: it draws some for each node and samples their gradients with them, or computes those
    of some nodes alone."""
    ways = (estimator.forward, estimator.backward)
    if sampler.random:
        return not sampler.shared and ways == ("corrected", "sampled")
    return passes_over(estimator.sampler) and ways == ("corrected", "corrected")
