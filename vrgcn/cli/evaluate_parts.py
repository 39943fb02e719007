"""`vrgcn evaluate` on the parts of a graph, in each of the processes that torchrun starts."""

from __future__ import annotations

from pathlib import Path

from vrgcn.cli.evaluate import EvaluateOptions
from vrgcn.cli.predict_parts import check_memory
from vrgcn.cli.train_parts import check_launch, check_size, told_once
from vrgcn.distributed.config import DistributedConfig
from vrgcn.distributed.group import joined
from vrgcn.distributed.parts import load_part
from vrgcn.distributed.prediction import evaluated_graph
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.pages.evaluation import evaluate_nodes
from vrgcn.runs.run import open_run


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
