"""`vrgcn predict` on the parts of a graph, in each of the processes that torchrun starts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from vrgcn.cli.exact_run import read_nodes
from vrgcn.cli.options import PredictOptions
from vrgcn.cli.predict import class_names
from vrgcn.cli.train_parts import check_launch, check_size, told_once
from vrgcn.data.predictions import check_path, prediction_file
from vrgcn.distributed.config import DistributedConfig
from vrgcn.distributed.group import joined
from vrgcn.distributed.parts import load_part
from vrgcn.distributed.prediction import gathered_outputs, part_sweeps, whole_names
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.training.runs import open_run


def run_predict_parts(options: PredictOptions, folder: Path) -> None:
    """Predict exactly, each process its own nodes; the first writes the file."""
    check_launch(folder, "predict")
    use_threads(options.threads)
    timeout = DistributedConfig().rank_timeout
    with joined(find_device(options.device), timeout) as group, told_once(group):
        check_size(folder, group)
        part = load_part(folder, group.rank)
        saved = open_run(options.run, group.device).saved
        classes = None if saved.regression else class_names(saved)
        group.by_first(
            lambda: check_path(options.out, None if classes is None else len(classes), options.top)
        )
        names, count = whole_names(folder, part), part.description["nodes"]
        nodes = None
        if options.nodes is not None:
            nodes = read_nodes(options.nodes, names, count)
        asked = count if nodes is None else len(nodes)
        sweeps = part_sweeps(saved, part, group)
        with ExitStack() as stack:
            file = None
            if group.first:
                file = stack.enter_context(
                    prediction_file(
                        options.out,
                        names,
                        classes,
                        multilabel=saved.multilabel,
                        count=asked,
                        top=options.top,
                    )
                )
            for chunk, outputs in gathered_outputs(sweeps, part, group, nodes):
                if file is not None:
                    file.write(chunk, outputs)
        if group.first:
            print(f"exact predictions of {asked:,} nodes written to {options.out}")
