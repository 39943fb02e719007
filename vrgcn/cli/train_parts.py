"""`vrgcn train` on the parts of a graph, in each of the processes that torchrun starts.

The first process writes the run's folder and prints; the others are silent. An error is reported by
the process that met it first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from vrgcn.cli.train import TrainOptions
from vrgcn.distributed.checkpoints import PartCheckpoints
from vrgcn.distributed.group import Group, joined, under_torchrun
from vrgcn.distributed.parts import Part, load_part, part_facts, read_parts
from vrgcn.distributed.trainer import PartTrainer, part_objective
from vrgcn.distributed.watching import PartWatch
from vrgcn.engine.devices import find_device, use_threads
from vrgcn.files.folder import OpenFolder
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import OFF, declarations
from vrgcn.files.wording import bytes_text, print_note, printable
from vrgcn.graph.sparse import is_dense
from vrgcn.models.models import build_model
from vrgcn.runs.folder import CHECKPOINTS, CONFIG
from vrgcn.runs.interrupts import stop_requests
from vrgcn.runs.record import former_model, recorded
from vrgcn.runs.resume import nothing_left, refuse_changes
from vrgcn.runs.training import end_told, summary
from vrgcn.training.listener import Callbacks, Listener, Listeners
from vrgcn.training.progress import EpochProgress
from vrgcn.training.result import TrainResult
from vrgcn.training.state import Epoch


def run_train_parts(options: TrainOptions) -> None:
    """Train as the options say, as one of several processes."""
    # What depends on a whole graph has its usual value.
    patience = 10 if options.train.patience is None else options.train.patience
    options = replace(
        options,
        model=options.model.settled(),
        train=replace(options.train, patience=patience),
    )
    assert options.graph is not None
    check_launch(options.graph, "train")
    _refuse_others(options)
    if options.out is None and options.resume is None:
        raise InputError("--out: name the folder of the run, which all processes have to know")
    use_threads(options.train.threads)
    with (
        joined(find_device(options.train.device), options.distributed.rank_timeout) as group,
        told_once(group),
    ):
        check_size(options.graph, group)
        _run(options, group)


def check_launch(graph: Path, command: str) -> None:
    """Raise if the process was started without others."""
    if not under_torchrun():
        parts = read_parts(graph)["parts"]
        raise InputError(
            f"{graph} has {parts} parts, one for each process: start them by torchrun "
            f"--nproc-per-node {parts} -m vrgcn {command} ... (docs/guides/machines.md)"
        )


def check_size(graph: Path, group: Group) -> None:
    parts = read_parts(graph)["parts"]
    if parts != group.size:
        raise InputError(
            f"{graph} has {parts} parts, and torchrun started {group.size} processes: start as "
            f"many as there are parts, or run vrgcn partition with --parts {group.size}"
        )


@contextmanager
def told_once(group: Group) -> Iterator[None]:
    """Let one process report an error; the others exit silently."""
    try:
        yield
    except Exception as error:
        if not group.reports(error):
            sys.exit(1)
        raise


def _run(options: TrainOptions, group: Group) -> None:
    options = _in_one_folder(options, group)
    if group.by_first(lambda: _nothing_left(options)):
        if group.first:
            finished = printable(_folder(options))
            print(f"{finished} has finished already; with more --epochs it resumes")
        return
    assert options.graph is not None
    with ExitStack() as stack:
        with OpenFolder(options.graph) as whole:  # watch the same files that are read
            watch = PartWatch(whole, group, print_note)
            part = load_part(whole, group.rank, verify=options.verify)
        # The first process locks the folder; if that fails, all processes raise.
        group.by_first(lambda: _begin(options, group, stack))
        folder = _folder(options)
        with end_told(folder) if group.first else nullcontext():
            _train(options, group, part, watch, folder)


def _in_one_folder(options: TrainOptions, group: Group) -> TrainOptions:
    """Return the options, which resume a run if the first process does. If one machine was
    restarted, its processes may have been started with --resume while the others began a new
    run."""
    ours = _folder(options)
    goes_on, first = group.by_first(lambda: (_goes_on(options, group), str(ours.absolute())))
    wrong = None
    if ours.resolve() != Path(first).resolve():
        wrong = f"--out: rank {group.rank} was told {ours}, and rank 0 {first}: name one folder"
    elif options.resume is not None and not goes_on:  # --overwrite must not start it over
        wrong = (
            f"--resume: rank {group.rank} was told to resume {ours}, and rank 0 to begin it by "
            "--out: tell all processes to --resume"
        )
    for mistake in group.everybody(wrong):  # all raise, and none waits for another
        if mistake is not None:
            raise InputError(mistake)
    if goes_on and options.resume is None:
        return replace(options, resume=ours, out=None, overwrite=False)
    return options


def _folder(options: TrainOptions) -> Path:
    folder = options.resume or options.out
    assert folder is not None
    return folder


def _goes_on(options: TrainOptions, group: Group) -> bool:
    """Return True if the run should be resumed: when asked to, or when this job began it and
    torchrun has restarted all processes. A run from before this job is not resumed unasked."""
    if options.resume is not None or options.out is None:
        return True
    return group.noted(_begun(options.out)) and (options.out / CONFIG).is_file()


def _begin(options: TrainOptions, group: Group, stack: ExitStack) -> None:
    folder = stack.enter_context(options.folder())
    group.note(_begun(folder))  # after an earlier run in the folder is removed


def _begun(folder: Path) -> str:
    return f"begun {folder.resolve()}"


def _nothing_left(options: TrainOptions) -> bool:
    if options.resume is not None:
        refuse_changes(options, options.resume)
    return nothing_left(options, options.resume)


def _train(options: TrainOptions, group: Group, part: Part, watch: PartWatch, folder: Path) -> None:
    graph, scaling = part.scaled(options.scaling)
    config = options.train
    outputs = part_objective(graph, config, part.shared).outputs
    model = build_model(
        options.model,
        graph.num_features,
        outputs,
        config.seed,
        sparse_features=not is_dense(graph.features),
    )
    trainer = PartTrainer(model.to(group.device), part, graph, config, options.distributed, group)

    def train(listener: Listener) -> TrainResult:
        trainer.listener = listener
        with stop_requests(quiet=not group.first, once=True) as stop:
            kept = PartCheckpoints(trainer, folder / CHECKPOINTS)
            if options.resume is not None:
                kept.resume()
            return kept.run(stop)

    if not group.first:
        train(Listeners(watch, Callbacks(on_note=lambda note: None)))
        return
    described = part.description
    print(
        f"{described['parts']} parts of a graph of {described['nodes']:,} nodes and "
        f"{described['edges']:,} edges\n{summary(model)}, features scaled: {scaling.kind}, "
        f"estimator {trainer.config.estimator}, halo {options.distributed.halo}, "
        f"writing to {printable(folder)}"
    )
    with EpochProgress(config.epochs, trainer.target.metric) as progress:
        result = recorded(
            folder,
            model,
            config,
            lambda listener: train(Listeners(watch, listener, progress)),
            options=options.as_dict(),
            facts=part_facts(described),
            listener=Callbacks(on_restore=_print_restored, on_note=print_note),
            former=former_model(folder, trainer.target.better, scored=config.select == "best"),
            resume=options.resume is not None,
        )
    print(f"{result}\nwritten to {printable(folder)}")
    sent = [point.exchanged for point in result.curve if point.exchanged is not None]
    if sent and group.size > 1:
        print(f"{bytes_text(sum(sent) // len(sent))} exchanged in the steps of an epoch")


def _print_restored(curve: list[Epoch]) -> None:
    print(f"resuming after epoch {len(curve)}")


def _refuse_others(options: TrainOptions) -> None:
    """Refuse options that are only for one process."""
    said = declarations(type(options))
    for name, value in options.as_dict().items():
        if said[name].whole and value not in OFF:
            raise InputError(
                f"{setting(name, value)} is for one process with the whole graph: leave it out"
            )
