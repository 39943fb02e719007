"""Settings of a training run. No torch here: the command line reads it before loading anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from vrgcn.engine.estimators import Estimator, find_estimator
from vrgcn.models.config import check_types, is_whole
from vrgcn.training.interval import Interval, duration

AUTO = "auto"


@dataclass(frozen=True)
class TrainConfig:
    """How it is trained."""

    estimator: str = AUTO
    """Estimate of the neighbour average. auto: two-way, or exact where that costs hardly more, as
    on graphs of low degree; a run says which and why. exact; ns and is sample neighbours
    (GraphSAGE, FastGCN); cv and cvd correct the sample by the history; history reads neighbours
    from it alone; two-way keeps histories of gradients too, two-way-cv with sampled neighbours;
    gradient-only samples for the gradient alone. Or a composition SAMPLER/FORWARD/BACKWARD, such as
    uniform/corrected/none; docs/estimators.md."""
    fanout: tuple[int, ...] | None = None
    """Neighbours sampled per node besides itself: one number, or one per layer from the input. Of
    two-way: the most neighbours of a node whose neighbours are computed. None: 1, of two-way 3."""
    sample_size: int = 512
    """Nodes that the estimator `is` draws per layer."""
    preprocess: bool | None = None
    """Average the features once before training. None: whenever the model allows it."""
    propagation: Literal["gcn", "mean", "identity"] | None = None
    """Propagation matrix. None: the one the model is meant for."""
    inductive: bool = False
    """Train on the edges among training nodes alone; evaluate on all edges."""
    visit: Literal["auto", "train", "all"] = "auto"
    """Nodes that an epoch visits. `all` keeps every history fresh, as the theorems assume; only
    training nodes count in the loss either way. auto: all where gradients have a history (two-way),
    which pass through unlabelled nodes too, else the training nodes."""

    history_dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    """Precision in which histories are kept."""
    history_cap: int | None = None
    """Average the histories of at most so many neighbours of a node, drawn at random."""
    warm_start: bool = False
    """Fill the histories by an exact pass before the first epoch."""
    refresh: Literal["auto", "always", "never"] = "auto"
    """Before each epoch, recompute histories that training reads but never visits. auto: when no
    neighbours are sampled (estimator `history`, or fanout 0), since nothing else writes them."""

    epochs: int = 30
    """Passes over the visited nodes."""
    batch_size: int = 512
    """Nodes in a minibatch."""
    batches: Literal["random", "blocks"] = "random"
    """Minibatches of random nodes, or of blocks: random runs of --block nodes that follow each
    other, for a graph on disk in the order that `vrgcn reorder` made: docs/scaling.md."""
    block: int = 32
    """Nodes in a run of --batches blocks."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """Optimiser."""
    learning_rate: float = 0.01
    """Learning rate."""
    weight_decay: float = 0.0
    """L2 penalty."""
    decay: Literal["first", "all"] = "first"
    """Weights under the L2 penalty: the first weight matrix alone, or all parameters."""
    schedule: Literal["none", "cosine", "plateau"] = "none"
    """Learning rate over the epochs: the same; down to 0 along half a cosine; or halved whenever 6
    evaluations in a row have brought no better validation score."""
    warmup: int = 0
    """Epochs in which the learning rate rises from nothing to its full size, step by step."""
    average_weights: bool = False
    """Evaluate and keep an exponential average of the weights over about one epoch, in place of the
    weights of the last step. Steps and histories use the weights themselves."""
    clip: float | None = None
    """Largest norm of a step's gradient; a larger one is scaled down to it. None: any."""
    loss: Literal["auto", "mse", "mae"] = "auto"
    """Loss of numbers: mean squared or mean absolute error; auto: squared. Of classes it is the
    cross-entropy, which auto stands for too."""
    class_weights: Literal["none", "balanced"] = "none"
    """Weights of the classes in the loss. balanced: each class counts the same, however few
    training nodes have it."""
    label_smoothing: float = 0.0
    """Share of each training label that is spread evenly over all classes."""
    metric: str | None = None
    """Score that is reported, and that decides which epoch is the best: of classes accuracy,
    micro-f1, macro-f1 or roc-auc; of numbers rmse, mae or r2. None: accuracy, micro-f1 where nodes
    have several classes, rmse for numbers."""
    evaluate_every: int = 1
    """Epochs between exact evaluations on the validation nodes."""
    patience: int | None = None
    """Stop after so many evaluations without a better validation score. None: never."""
    time_limit: str | None = None
    """Stop after so much time, such as 90s, 10m or 2h, with the best model until then: all time
    counts, that of evaluation and that before a --resume too. None: after the epochs."""
    select: Literal["best", "last"] = "best"
    """Weights to keep: of the best validation score, or of the last epoch."""
    diagnostics: int | None = None
    """Epochs between measurements of the histories' staleness and the gradient's noise, beside the
    training, which they do not change; 0: never. None: so seldom that they cost 1.5% of it."""

    checkpoint_every: str = "auto"
    """Between checkpoints, from which a run goes on: epochs (1) or minutes (10m), which come inside
    an epoch too; 0: only when the run is interrupted. auto: 5 minutes, longer where writing one
    would take more than 2% of the time."""
    on_nan: Literal["stop", "rollback"] = "stop"
    """When the loss becomes NaN or infinite: stop, or go on from the last checkpoint with half the
    learning rate, at most three times."""
    on_full_disk: Literal["continue", "stop"] = "continue"
    """When there is no room for a checkpoint: train on without, or stop."""

    memory: Literal["ram", "disk"] = "ram"
    """Keep histories and tables of evaluation in memory, or in files beside the checkpoints, gone
    afterwards. disk: scaled and averaged features of a graph from disk are files too, made once and
    kept in its folder `derived`. The same numbers come out, to the bit."""
    seed: int = 0
    """Seed of everything random."""
    threads: int | None = None
    """CPU threads. None: as PyTorch chooses."""
    device: str = "cpu"
    """Device of the model and the histories, such as cpu or cuda."""

    def __post_init__(self) -> None:
        if self.fanout is not None:
            object.__setattr__(self, "fanout", _fanout(self.fanout))
        object.__setattr__(self, "checkpoint_every", str(self.checkpoint_every))
        check_types(self)
        _check_estimator(self.estimator)
        Interval.parse(self.checkpoint_every)
        at_least(
            1,
            epochs=self.epochs,
            batch_size=self.batch_size,
            block=self.block,
            sample_size=self.sample_size,
        )
        at_least(1, evaluate_every=self.evaluate_every, patience=self.patience)
        at_least(1, threads=self.threads, history_cap=self.history_cap)
        at_least(0, weight_decay=self.weight_decay, seed=self.seed)
        if self.seed >= 2**63:
            raise ValueError(f"seed must be below 2**63, not {self.seed}")
        at_least(0, diagnostics=self.diagnostics)
        at_least(0, warmup=self.warmup)
        if self.time_limit is not None and duration(self.time_limit) is None:
            raise ValueError(f"time_limit {self.time_limit!r} is no time, such as 90s, 10m or 2h")
        for name in ("learning_rate", "clip"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name} must be positive, not {value}")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(
                f"label_smoothing is a share from 0 to below 1, not {self.label_smoothing}"
            )
        if self.warmup > self.epochs:
            raise ValueError(f"warmup {self.warmup} is longer than the run, epochs {self.epochs}")


def given_config(config: TrainConfig | None) -> TrainConfig:
    """The config that a caller gave, the default one for None; refuse anything else."""
    if config is None:
        return TrainConfig()
    if not isinstance(config, TrainConfig):
        raise TypeError(
            f"config must be a TrainConfig, not {config!r}: give its settings by name, such as "
            "TrainConfig(epochs=3)"
        )
    return config


def _fanout(given: Any) -> tuple[int, ...]:
    """The numbers of a fan-out; from Python, one number is natural."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    numbers = tuple(given) if several else (given,)
    if not all(map(is_whole, numbers)):
        raise ValueError(f"fanout must be a whole number, or one per layer, not {given!r}")
    if not numbers:
        raise ValueError("fanout needs at least one number")
    at_least(0, fanout=min(numbers))
    return numbers


def _check_estimator(name: Any) -> None:
    if not isinstance(name, str):
        own = "; one of your own: fit(estimator=...)" if isinstance(name, Estimator) else ""
        raise ValueError(f"estimator must be a name such as 'cvd', not {name!r}{own}")
    if name != AUTO:
        find_estimator(name)


def at_least(least: int, **values: float | None) -> None:
    """Refuse a named value that is smaller; None stands for a default."""
    for name, value in values.items():
        if value is not None and not value >= least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
