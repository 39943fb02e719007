"""`vrgcn predict` and `vrgcn evaluate` on the parts of a graph, in each of the processes that
torchrun starts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import torch

from vrgcn.cli.evaluate import EvaluateOptions
from vrgcn.cli.predict import PredictOptions
from vrgcn.cli.train_parts import check_launch, check_size, told_once
from vrgcn.data.id_columns import IdColumns
from vrgcn.data.node_lists import listed_nodes
from vrgcn.data.predictions import check_prediction, prediction_file
from vrgcn.distributed.config import DistributedConfig
from vrgcn.distributed.group import joined
from vrgcn.distributed.parts import load_part
from vrgcn.distributed.prediction import evaluated_graph, gathered_outputs, part_sweeps, whole_names
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.files.mistakes import InputError
from vrgcn.graph.names import Names
from vrgcn.inference.regions import model_region
from vrgcn.pages.evaluation import evaluate_nodes
from vrgcn.runs.predict import Predicted, chosen_threshold, class_names, threshold_rule
from vrgcn.runs.run import open_run
from vrgcn.tasks import find_task


def check_memory(memory: str) -> None:
    """Refuse memory settings that parts do not support."""
    if memory != "ram":
        raise InputError(
            f"--memory {memory} is for one process with the whole graph: leave it out, and make "
            "more parts where memory is short"
        )


def run_predict_parts(options: PredictOptions, folder: Path) -> None:
    """Predict exactly, each process for its own nodes; the first process writes the file."""
    path = options.out
    assert isinstance(path, Path)  # tables are refused before
    check_launch(folder, "predict")
    use_threads(options.threads)
    timeout = DistributedConfig().rank_timeout
    with joined(find_device(options.device), timeout) as group, told_once(group):
        check_size(folder, group)
        check_memory(options.memory)
        part = load_part(folder, group.rank)
        saved = open_run(options.run, group.device).saved
        task, classes = find_task(saved.task), class_names(saved)
        group.by_first(lambda: check_prediction(path, task, len(classes), options.top))
        region = None if options.coverage is None else model_region(saved, options.coverage)
        threshold = chosen_threshold(options.run, saved, options.threshold)
        count, nodes = part.description["nodes"], None
        if (file := options.nodes) is not None:
            found = group.by_first(lambda: _asked(file, whole_names(folder, part), count))
            nodes = torch.tensor(found, dtype=torch.int64)
        asked = count if nodes is None else len(nodes)
        sweeps = part_sweeps(saved, part, group)
        with ExitStack() as stack:
            out = None
            if group.first:
                out = stack.enter_context(
                    prediction_file(
                        path,
                        IdColumns(whole_names(folder, part)),
                        task,
                        classes,
                        count=asked,
                        top=options.top,
                        region=region,
                        threshold=threshold,
                    )
                )
            for chunk, outputs in gathered_outputs(saved, sweeps, part, group, nodes):
                if out is not None:
                    out.write(chunk, outputs)
        if group.first:
            rule = threshold_rule(path, classes, threshold, options.threshold)
            said = None if options.top is not None else rule
            print(Predicted(f"predictions of {asked:,} nodes", path, rule=said))


def _asked(file: Path, names: Names, count: int) -> list[int]:
    """Return the numbers of the nodes that a file names; only the first process reads it."""
    numbers: list[int] = listed_nodes(file, names, count).tolist()
    return numbers


def run_evaluate_parts(options: EvaluateOptions, folder: Path) -> None:
    """Compute exact scores, each process for its own nodes; the first process prints them."""
    check_launch(folder, "evaluate")
    use_threads(options.threads)
    timeout = DistributedConfig().rank_timeout
    with joined(find_device(options.device), timeout) as group, told_once(group):
        check_size(folder, group)
        check_memory(options.memory)
        run = open_run(options.run, group.device)
        evaluated = evaluated_graph(run.saved, load_part(folder, group.rank), group)
        if evaluated is not None:
            evaluate_nodes(run, *evaluated, split=options.split, out=options.out).print()
