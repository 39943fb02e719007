"""Settings of a training run. Imports no torch: the command line reads them before loading
anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from vrgcn.engine.estimators import Estimator, find_estimator
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.models.config import check_types, is_whole
from vrgcn.training.interval import Interval, duration

AUTO = "auto"


@dataclass(frozen=True)
class TrainConfig:
    """The training."""

    """Group estimator: how neighbours are averaged in training."""
    estimator: str = AUTO
    """Estimator, such as exact or two-way.

    It computes the average over neighbours in training. auto: two-way, or exact if that costs
    hardly more, as on graphs of low degree; a run prints which and why. exact; ns and is sample
    neighbours (GraphSAGE, FastGCN); cv and cvd correct the sample by the history; history reads
    neighbours only from it; two-way keeps histories of gradients too, two-way-cv with sampled
    neighbours; gradient-only samples only for the gradient. Or a composition
    SAMPLER/FORWARD/BACKWARD, such as uniform/corrected/none; docs/estimators.md."""
    fanout: tuple[int, ...] | None = None
    """Number of neighbours sampled per node besides itself: one number, or one per layer from the
    input. For two-way: neighbours are computed for nodes that have at most this many. None: 1, for
    two-way 3."""
    sample_size: int = 512
    """Nodes that the estimator `is` draws per layer."""
    preprocess: bool | None = None
    """Average the features once before training. None: if the model allows it."""
    propagation: Literal["gcn", "symmetric", "mean", "identity"] | None = None
    """Propagation matrix. None: the one the model is meant for."""
    inductive: bool = False
    """Train only on edges between training nodes; evaluate on all edges."""
    visit: Literal["auto", "train", "all"] = "auto"
    """Nodes that an epoch visits. `all` keeps every history fresh, as the theorems assume; only
    training nodes count in the loss in either case. auto: all if gradients have a history
    (two-way), because they pass through unlabelled nodes too; otherwise the training nodes."""

    history_dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    """Precision of the stored histories."""
    history_cap: int | None = None
    """Average the histories of at most this many neighbours of a node, drawn at random."""
    warm_start: bool = False
    """Fill the histories with an exact pass before the first epoch."""
    refresh: Literal["auto", "always", "never"] = "auto"
    """Before each epoch, recompute the histories that training reads but never visits. auto: if no
    neighbours are sampled (estimator `history`, or fanout 0), because nothing else writes them."""

    """Group training: epochs, steps and the loss."""
    epochs: int = 30
    """Passes over the training data.

    --visit says which nodes an epoch visits. --patience and --time-limit may stop the training
    earlier."""
    batch_size: int = 512
    """Nodes in a minibatch.

    With --pair-batches pairs it counts pairs."""
    batches: Literal["random", "blocks"] = "random"
    """How minibatches are drawn: random nodes, or blocks, which are random runs of --block
    consecutive nodes, for a graph on disk in the order that `vrgcn reorder` made:
    docs/scaling.md."""
    block: int = 32
    """Nodes in a run of --batches blocks."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """Optimiser."""
    learning_rate: float = 0.01
    """Learning rate.

    --schedule and --warmup change it during the training."""
    weight_decay: float | None = None
    """L2 penalty. None: 0; `vrgcn train` may take 0.0005 where few nodes have labels."""
    decay: Literal["first", "all"] = "first"
    """Weights under the L2 penalty: only the first weight matrix, or all parameters."""
    schedule: Literal["none", "cosine", "plateau"] = "none"
    """Learning rate over the epochs: constant; down to 0 along half a cosine; or halved whenever 6
    evaluations in a row bring no better validation score."""
    warmup: int = 0
    """Epochs in which the learning rate rises from zero to its full size, step by step."""
    average_weights: bool = True
    """Evaluate and keep an exponential average of the weights over about one epoch, instead of the
    weights of the last step. Steps and histories use the weights themselves."""
    clip: float | None = None
    """Maximum norm of a step's gradient; a larger gradient is scaled down to it. None: no limit."""
    loss: Literal["auto", "mse", "mae", "logistic", "bpr", "softmax"] = "auto"
    """Loss for regression: mean squared or mean absolute error; auto: squared. For pairs: logistic
    tells true pairs from negatives, bpr ranks a true partner above each negative, softmax above all
    of them together; auto: logistic. For classification it is the cross-entropy, which auto stands
    for too."""
    class_weights: Literal["none", "balanced"] = "none"
    """Weights of the classes in the loss. balanced: each class counts the same, however few
    training nodes have it."""
    label_smoothing: float = 0.0
    """Share of each training label that is spread evenly over all classes."""
    seed: int = 0
    """Seed of all random numbers.

    The same seed, options and number of threads give the same model."""

    """Group pairs."""
    negatives: int = 1
    """Pairs that are no edges, drawn anew in each epoch for each training pair (--predict
    edges)."""
    negative_sampling: Literal["uniform", "degree", "shared"] = "uniform"
    """How negatives are drawn: each node equally likely, or by its number of training pairs to the
    power 0.75. shared: all pairs of a minibatch have the same --negatives, each node equally
    likely; thousands are cheap. In minibatches of nodes they are nodes of the minibatch."""
    own_edges: Literal["auto", "keep", "redraw", "exclude"] = "auto"
    """Whether the edge of a training pair carries a message while that pair is scored. keep: it
    does. redraw: in each epoch a new --held-share of the training pairs is scored and carries no
    messages, the others carry messages and are not scored. exclude: the pairs of a minibatch of
    pairs carry no messages in it. auto: keep; where nodes of one kind have learned rows, redraw,
    and exclude in minibatches of pairs."""
    held_share: float = 0.5
    """Share of the training pairs that an epoch scores with --own-edges redraw."""
    negatives_avoid: Literal["train", "all"] = "train"
    """Known pairs that are never negatives in training: those of training, so that training knows
    nothing of other splits; or all, as many papers have it, which tells a little of what is held
    out: pairs that are never drawn."""
    temperature: float | None = None
    """What the loss of pairs divides scores by. None: 0.1 for the decoder cosine; for lift, what
    the training pairs' numbers ask for; 1 for others."""
    pair_batches: Literal["auto", "nodes", "pairs"] = "auto"
    """Minibatches for pairs. nodes: each node is visited once in an epoch, and its partners are
    read from a table; fast, with any estimator. pairs: all nodes of some pairs are computed; the
    reference, without two-way. --batch-size counts what is named. auto: nodes, or pairs for
    relational models; where `vrgcn train` chooses the model of pairs, what short trainings find."""

    """Group evaluation: scores, when to stop, and correction of predictions."""
    metric: str | None = None
    """Score to report, and to pick the best epoch by.

    For classes accuracy, micro-f1, macro-f1, roc-auc or average-precision; for numbers rmse, mae or
    r2; for pairs auc, ap, mrr, and hits@K, recall@K or ndcg@K for any K, such as hits@20. None:
    accuracy, micro-f1 if nodes have several classes, rmse for numbers, auc for pairs."""
    evaluate_every: int = 1
    """Epochs between exact evaluations on the validation nodes."""
    patience: int | None = None
    """Stop after this many evaluations without a better validation score; 0: never. None: `vrgcn
    train` stops after 10, or as many as make 100 steps; `fit` never."""
    time_limit: str | None = None
    """Stop after this much time, such as 90s, 10m or 2h.

    The best model until then is kept. All time counts, including evaluation and the time before a
    --resume. None: stop after the epochs."""
    select: Literal["best", "last"] = "best"
    """Weights to keep: those of the best validation score, or those of the last epoch."""
    diagnostics: int | None = None
    """Epochs between measurements of the histories' staleness and the gradient's noise, which do
    not change the training; 0: never. None: rarely enough to cost 1.5% of the training time."""

    """Group checkpoints: when to write them, and what to do after a failure."""
    checkpoint_every: str = "auto"
    """Interval between checkpoints, from which a run resumes: epochs (1) or minutes (10m), which
    also fall inside an epoch; 0: only when the run is interrupted. auto: 5 minutes, or longer if
    writing one would take more than 2% of the time. The first comes after the first epoch."""
    on_nan: Literal["stop", "rollback"] = "stop"
    """When the loss becomes NaN or infinite: stop, or continue from the last checkpoint with half
    the learning rate, at most three times."""
    on_full_disk: Literal["continue", "stop"] = "continue"
    """When the disk is too full for a checkpoint: continue without it, or stop."""

    """Group machine: memory, threads, devices and processes."""
    memory: Literal["ram", "disk"] = "ram"
    """Keep histories and tables of evaluation in memory, or in temporary files beside the
    checkpoints. disk: scaled and averaged features of a graph from disk are also files, computed
    once and kept in its folder `derived`. The results are the same to the bit."""
    threads: int | None = None
    """CPU threads. None: as PyTorch chooses."""
    device: str = "cpu"
    """Device, such as cpu or cuda.

    The model and the histories are kept there."""

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
            negatives=self.negatives,
        )
        at_least(1, evaluate_every=self.evaluate_every)
        at_least(0, patience=self.patience)
        at_least(1, threads=self.threads, history_cap=self.history_cap)
        at_least(0, weight_decay=self.weight_decay, seed=self.seed)
        if self.seed >= 2**63:
            raise InputError(f"seed must be below 2**63, not {self.seed}")
        at_least(0, diagnostics=self.diagnostics)
        at_least(0, warmup=self.warmup)
        if self.time_limit is not None and duration(self.time_limit) is None:
            raise InputError(f"time_limit {self.time_limit!r} is no time, such as 90s, 10m or 2h")
        for name in ("learning_rate", "clip", "temperature"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} must be positive, not {value}")
        if not 0 < self.held_share < 1:
            raise InputError(f"held_share must be between 0 and 1, not {self.held_share}")
        if not 0 <= self.label_smoothing < 1:
            raise InputError(
                f"label_smoothing is a share from 0 to below 1, not {self.label_smoothing}"
            )
        if self.warmup > self.epochs:
            raise InputError(
                f"warmup {self.warmup} is longer than the run, {setting('epochs', self.epochs)}"
            )


def given_config(config: TrainConfig | None) -> TrainConfig:
    """Return the caller's config, or the default one for None; raise for anything else."""
    if config is None:
        return TrainConfig()
    if not isinstance(config, TrainConfig):
        raise TypeError(
            f"config must be a TrainConfig, not {config!r}: give its settings by name, such as "
            "TrainConfig(epochs=3)"
        )
    return config


def _fanout(given: Any) -> tuple[int, ...]:
    """Return the numbers of a fan-out; Python callers may give a single number."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    numbers = tuple(given) if several else (given,)
    if not all(map(is_whole, numbers)):
        raise InputError(f"fanout must be a whole number, or one per layer, not {given!r}")
    if not numbers:
        raise InputError("fanout needs at least one number")
    at_least(0, fanout=min(numbers))
    return numbers


def _check_estimator(name: Any) -> None:
    if not isinstance(name, str):
        own = "; one of your own: fit(estimator=...)" if isinstance(name, Estimator) else ""
        raise InputError(f"estimator must be a name such as 'cvd', not {name!r}{own}")
    if name != AUTO:
        find_estimator(name)


def at_least(least: int, **values: float | None) -> None:
    """Raise if a named value is smaller than `least`; None stands for a default."""
    for name, value in values.items():
        if value is not None and not value >= least:
            raise InputError(f"{name} must be at least {least}, not {value}")
