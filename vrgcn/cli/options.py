"""The options of each command. The text under a field is its help."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, get_args

from vrgcn.cli.flags import Positional, Repeated
from vrgcn.data.generate_spec import GenerateSpec
from vrgcn.data.tables.spec import ImportSpec, check_split_seed
from vrgcn.distributed.config import DistributedConfig
from vrgcn.engine.estimators import ESTIMATORS, find_estimator
from vrgcn.runs.settings import Settings
from vrgcn.training.config import TrainConfig, at_least
from vrgcn.tuning.space import SPACE, check_names


@dataclass(frozen=True)
class RunOptions(Settings):
    """What is trained, and the folder of the run."""

    graph_or_dataset: Positional[str | None] = None
    """A graph: the folder that `vrgcn import` wrote, or the name of a data set, whichever there is.
    --graph and --dataset say which is meant."""
    name: str | None = None
    """Name of the run. None: graph, model and estimator."""
    out: Path | None = None
    """Folder to write the run to; it must not exist yet. None: runs/NAME."""
    resume: Path | None = None
    """The folder of a run that was stopped or killed: go on with it, by its own options, from its
    newest checkpoint. With more --epochs also of one that has finished."""
    overwrite: bool = False
    """Begin again where the folder holds a run already: its files are removed first."""
    config: Path | None = None
    """TOML file with any of these options; flags win over it."""

    beside: ClassVar[tuple[str, ...]] = (
        *("graph_or_dataset", "name", "out", "resume", "overwrite", "config"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resume is None:  # older runs may have been started with a seed of nothing
            check_split_seed(self.split_seed, self.ratio)


@dataclass(frozen=True)
class TrainOptions(RunOptions):
    """Train a model on a graph and write the run to a folder."""

    seeds: int | None = None
    """So many runs that differ in the seed alone, --seed being the first, each a folder in that of
    the run, and a table of their means and deviations. --time-limit is that of each."""
    log: Literal["none", "tensorboard"] = "none"
    """Write the curve as events of TensorBoard too, to `tensorboard` in the run's folder."""
    distributed: DistributedConfig = field(default_factory=DistributedConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(2, seeds=self.seeds)


@dataclass(frozen=True)
class PartitionOptions:
    """Cut a graph into parts, one for each process that trains on it."""

    graph_or_dataset: Positional[str | None] = None
    """A graph: the folder that `vrgcn import` wrote, or the name of a data set, whichever there is.
    --graph and --dataset say which is meant."""
    parts: int = field(kw_only=True)
    """How many."""
    out: Path = field(kw_only=True)
    """Folder to write the parts to, each in a folder of its own; it must not exist yet."""
    method: Literal["auto", "metis", "ldg"] = "auto"
    """metis cuts the fewest edges and needs the graph in memory several times; ldg streams it.
    auto: metis where pymetis is installed and memory is enough."""
    dataset: str | None = None
    """A graph by name; `vrgcn datasets` lists them."""
    graph: Path | None = None
    """A graph from disk, a folder that `vrgcn import` wrote."""
    data_root: Path | None = None
    """Where raw files of named data sets lie or go. None: $VRGCN_DATA, or else data."""
    verify: bool = True
    """Read all of a graph on disk first, and compare its checksums."""

    def __post_init__(self) -> None:
        at_least(1, parts=self.parts)


@dataclass(frozen=True)
class TuneOptions(RunOptions):
    """Search for good settings on a graph within a time limit, and train with the best.

    The flags are the settings that are tried first, and of all that is not searched.
    """

    name: str | None = None
    """Name of the search. None: graph and -tuned."""
    resume: Path | None = None
    """The folder of a search that was stopped or killed: go on with it, by its own options. With
    more --trials or a longer --time-limit also of one that has finished."""
    trials: int | None = None
    """How many settings to try at most. None: 40, or as many as --time-limit allows, which counts
    all time, that of training the best again too."""
    search: tuple[str, ...] = tuple(SPACE)
    """Settings to vary; the others stay as they are given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, trials=self.trials)
        check_names(self.search)


@dataclass(frozen=True)
class ExactOptions:
    """A trained model on all nodes of a graph, or on some of them, exactly."""

    run: Positional[Path]
    """The folder of a run that `vrgcn train` wrote."""
    out: Path
    """File to write."""
    dataset: str | None = None
    """A graph by name in place of the one the model was trained on."""
    graph: Path | None = None
    """A graph from disk in place of the one the model was trained on."""
    data_root: Path | None = None
    """Where raw files of named data sets lie or go. None: where the run found them."""
    nodes: Path | None = None
    """Text file with one node id per line: these alone, in this order. None: all nodes."""
    memory: Literal["ram", "disk"] = "ram"
    """Keep hidden layers and scaled and averaged features in memory, or in files: beside --out and
    gone afterwards, or made once and kept in the folder of a graph from disk."""
    device: str = "cpu"
    """Device of the model, such as cpu or cuda."""
    threads: int | None = None
    """CPU threads. None: as PyTorch chooses."""


@dataclass(frozen=True)
class PredictOptions(ExactOptions):
    """Predict the classes or the numbers of nodes, exactly, with a trained model."""

    out: Path
    """File to write: .parquet or .csv (id, label, probabilities; of numbers id, prediction) or .npy
    (probabilities or numbers alone)."""
    top: int | None = None
    """Write only the most probable classes, so many of them, each with its probability."""


@dataclass(frozen=True)
class EmbedOptions(ExactOptions):
    """Write what a trained model makes of each node inside, exactly: embeddings."""

    out: Path
    """File to write: .parquet or .csv (id, e_0, e_1, ...) or .npy (the numbers alone)."""
    layer: int = -2
    """Which activations: -2 what the model propagates last, of gcn and graphsage the last hidden
    layer; -1 its outputs; 0 what it propagates first; 1 what it propagates next."""


@dataclass(frozen=True)
class EvaluateOptions:
    """Score a trained model on each split, and of classes class by class."""

    run: Positional[Path]
    """The folder of a run that `vrgcn train` wrote."""
    dataset: str | None = None
    """A graph by name in place of the one the model was trained on."""
    graph: Path | None = None
    """A graph from disk in place of the one the model was trained on."""
    data_root: Path | None = None
    """Where raw files of named data sets lie or go. None: where the run found them."""
    split: Literal["train", "val", "test"] | None = None
    """The split of the table by class and of the picture. None: test, else val, else train."""
    out: Path | None = None
    """Where to draw the picture (.png, .svg or .pdf). None: confusion-SPLIT.png, of numbers
    predicted-SPLIT.png, in the run's folder. The scores are written beside it, to
    evaluation-SPLIT.json; of a picture NAME.png to evaluation-NAME.json."""
    memory: Literal["ram", "disk"] = "ram"
    """Keep hidden layers and scaled and averaged features in memory, or in files: beside the
    picture and gone afterwards, or made once and kept in the folder of a graph from disk."""
    device: str = "cpu"
    """Device of the model, such as cpu or cuda."""
    threads: int | None = None
    """CPU threads. None: as PyTorch chooses."""


@dataclass(frozen=True)
class ReportOptions:
    """Show one or several runs on a page: curves, scores, options and what differs."""

    runs: Positional[tuple[Path, ...]]
    """Folders that `vrgcn train` wrote, finished or not."""
    out: Path = Path("report.html")
    """The page to write; one that is there is replaced."""
    scores: bool = True
    """Predict the test nodes of every run, for the scores by class."""
    data_root: Path | None = None
    """Where raw files of named data sets lie. None: where the runs found them."""
    device: str = "cpu"
    """Device of the models, such as cpu or cuda."""
    threads: int | None = None
    """CPU threads. None: as PyTorch chooses."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("give at least one run: a folder that `vrgcn train` wrote")


@dataclass(frozen=True)
class DiagnoseOptions(Settings):
    """Measure bias, noise and staleness of every estimator against the exact algorithm."""

    target: Positional[str | None] = None
    """The folder of a run, whose model and settings are taken, flags winning over them; or a graph,
    its folder or its name, on which the model that the options describe is trained first."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=3))
    compare: tuple[str, ...] = tuple(name for name in ESTIMATORS if name != "exact")
    """Estimators to measure beside exact and the one that trains, by name or composition."""
    passes: int = 100
    """Repeated passes of each, with new samples and dropout masks: more show smaller biases."""
    out: Path | None = None
    """Web page to write (.html). None: diagnosis.html in the run's folder; of a graph,
    runs/GRAPH-diagnosis.html."""
    config: Path | None = None
    """TOML file with any of these options; flags win over it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.compare:
            try:
                find_estimator(name)
            except ValueError as error:
                raise ValueError(f"compare: {error}") from None
        if self.passes < 2:  # before a graph is opened, or even downloaded
            raise ValueError(f"passes must be at least 2 to tell a variance, not {self.passes}")


@dataclass(frozen=True)
class DatasetsOptions:
    """List the graphs that can be named, and which of them are here."""

    data_root: Path | None = None
    """Where raw files of named data sets lie or go. None: $VRGCN_DATA, or else data."""


@dataclass(frozen=True)
class InfoOptions:
    """Describe a graph: size, degrees, labels, splits, memory."""

    graph_or_dataset: Positional[str | None] = None
    """A graph: the folder that `vrgcn import` wrote, or the name of a data set, whichever there is.
    --graph and --dataset say which is meant."""
    dataset: str | None = None
    """A graph by name; `vrgcn datasets` lists them."""
    graph: Path | None = None
    """A graph from disk, a folder that `vrgcn import` wrote."""
    data_root: Path | None = None
    """Where raw files of named data sets lie or go. None: $VRGCN_DATA, or else data."""
    verify: bool = False
    """Read all of a graph on disk first, and compare its checksums: one or two seconds for each
    gigabyte."""


@dataclass(frozen=True)
class ImportOptions(ImportSpec):
    """Make a graph of your own tables: CSV, TSV or Parquet files of nodes and edges."""

    # Each may be given again, for another column.
    column: Repeated[tuple[str, ...]] = ()
    fill: Repeated[tuple[str, ...]] = ()
    undirected: bool = False
    """An edge counts in both directions, as it does unless --directed is given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.undirected and self.like is not None:
            raise ValueError("--undirected and --like: give one of them; --like decides it")
        if self.undirected and self.directed:
            raise ValueError("--undirected and --directed: give one of them")


@dataclass(frozen=True)
class GenerateOptions(GenerateSpec):
    """Write a community graph of any size to disk, in pieces."""

    out: Path = Path("generated")
    """Folder of the graph; it must not exist yet."""


@dataclass(frozen=True)
class ReorderOptions:
    """Write a graph on disk again, its nodes in an order in which neighbours are close."""

    graph: Positional[Path]
    """The folder of a graph, as `vrgcn import` or `vrgcn generate` wrote it."""
    out: Path
    """Folder of the new graph; it must not exist yet."""
    method: Literal["auto", "metis", "ldg"] = "auto"
    """How parts are found. metis: fewest edges between them, in memory (needs pymetis); ldg: in
    passes over the files; auto: METIS wherever what is divided fits in memory."""
    block: int = 1024
    """Nodes of a block, about, whose neighbours are mostly in it or near."""

    def __post_init__(self) -> None:
        at_least(1, block=self.block)


@dataclass(frozen=True)
class DemoOptions:
    """Compare estimators on a built-in graph: one table, one picture, about a minute."""

    dataset: str = "communities"
    """The built-in graph."""
    epochs: int = 24
    """Epochs of each run."""
    out: Path = Path("runs/demo.png")
    """Where to draw the curves (.png or .svg)."""
    seed: int = 0
    """Seed of the graph, the models and the training."""
    threads: int | None = None
    """CPU threads. None: as PyTorch chooses."""

    def __post_init__(self) -> None:
        at_least(1, epochs=self.epochs, threads=self.threads)
        at_least(0, seed=self.seed)


SectionName = Literal[
    "epoch", "accuracy", "deep", "step", "growth", "peers", "inference", "histories", "startup"
]


@dataclass(frozen=True)
class BenchOptions:
    """Measure training, inference and start-up against an MLP, the machine and PyG."""

    sections: tuple[SectionName, ...] = get_args(SectionName)
    """What to measure. epoch: steps against the MLP; accuracy: time to a validation score, peak
    memory; deep: three and four layers; step: where the time goes; growth: cost against graph and
    model sizes; peers: PyG; inference: exact outputs of all nodes; histories: 16-bit tables;
    startup: --help, mistakes on the command line, imports."""
    dataset: str = "reddit-like"
    """A graph by name; `vrgcn datasets` lists them."""
    data_root: Path | None = None
    """Where raw files of named data sets lie or go. None: $VRGCN_DATA, or else data."""
    out: Path = Path("results/bench.json")
    """File for the numbers."""
    quick: bool = False
    """A tiny graph and a few steps, to see that everything runs; its figures mean nothing."""
    check: bool = False
    """Exit with 1 if a limit that was measured is missed."""
    threads: int = 2
    """CPU threads."""
    turns: int | None = None
    """How often what is compared takes turns. None: 15, quick 2."""
    target: float | None = None
    """Validation score to reach. None: 0.96, quick 0.8."""
    runs: int | None = None
    """Runs to the target, each with its own seed. None: 1."""
    epochs: int | None = None
    """Epochs after which a run to the target gives up. None: 10, quick 3."""
    slow_epochs: int | None = None
    """The same for NS (10, 25) and exact, whose epochs take long. None: 4, quick 3."""
    evaluations: int | None = None
    """Validations per epoch. None: 4, quick 2."""
    history_dtype: Literal["float32", "float16", "bfloat16"] = "float16"
    """Precision of the histories, but for the section `histories`, which compares them."""
    seeds: int | None = None
    """Runs for the accuracy of each precision of the histories. None: 10, quick 2."""

    def __post_init__(self) -> None:
        at_least(1, threads=self.threads, turns=self.turns, runs=self.runs, epochs=self.epochs)
        at_least(1, slow_epochs=self.slow_epochs, evaluations=self.evaluations)
        at_least(2, seeds=self.seeds)
        if self.target is not None and not 0 < self.target <= 1:
            raise ValueError(f"target is a score above 0 and at most 1, not {self.target}")
        if not self.sections:
            raise ValueError("sections: name at least one")


ExperimentName = Literal[
    "table1", "table2", "table3", "table4",
    "fig-loss", "fig-accuracy", "fig-testing", "fig-gradient", "fig-correlation", "all",
]  # fmt: skip


@dataclass(frozen=True)
class ReproduceOptions:
    """Run the paper's experiments and write a page with its numbers beside ours."""

    what: Positional[tuple[ExperimentName, ...]]
    """Tables and figures of the paper, or all of them."""
    datasets: tuple[str, ...] | None = None
    """Data sets; `vrgcn datasets` lists them. None: those of each experiment that are here."""
    runs: int | None = None
    """Runs with different seeds. None: as many as in the paper."""
    epochs: int | None = None
    """The most epochs of a run. None: as many as in the paper."""
    quick: bool = False
    """Everything in its smallest size, to see that it runs; its figures mean nothing."""
    out: Path | None = None
    """Folder of the records, figures and report.html. A run that was stopped goes on from there.
    None: results, or results-quick with --quick."""
    data_root: Path | None = None
    """Where raw files of named data sets lie. None: $VRGCN_DATA, or else data."""
    threads: int | None = None
    """CPU threads. None: as PyTorch chooses."""

    def __post_init__(self) -> None:
        if not self.what:
            raise ValueError("say what to reproduce: table1, fig-loss, ..., or all")
        at_least(1, runs=self.runs, epochs=self.epochs, threads=self.threads)
