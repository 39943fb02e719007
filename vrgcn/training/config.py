"""Settings of a training run. Imports no torch: the command line reads them before loading
anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vrgcn.engine.config import EstimatorConfig
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import at_least, declarations, declared, positive
from vrgcn.pairs.config import PairConfig
from vrgcn.tasks.config import LossConfig
from vrgcn.training.clock import Interval, duration


@dataclass(frozen=True)
class TrainConfig(LossConfig, PairConfig, EstimatorConfig):
    """The training."""

    """Group training: epochs, steps and the loss."""
    epochs: int = declared(30, resume="run", lengthens=True, once=True)
    """Passes over the training data.

    --visit says which nodes an epoch visits. --patience and --time-limit may stop the training
    earlier."""
    batch_size: int = 512
    """Nodes in a minibatch.

    With --pair-batches pairs it counts pairs."""
    batches: Literal["random", "blocks"] = "random"
    """How minibatches are drawn: random nodes, or blocks, which are random runs of --block
    consecutive nodes, for a graph on disk in the order that `vrgcn reorder` made:
    docs/guides/scaling.md."""
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
    warmup: int = declared(0, once=True)
    """Epochs in which the learning rate rises from zero to its full size, step by step."""
    average_weights: bool = True
    """Evaluate and keep an exponential average of the weights over about one epoch, instead of the
    weights of the last step. Steps and histories use the weights themselves."""
    clip: float | None = None
    """Maximum norm of a step's gradient; a larger gradient is scaled down to it. None: no limit."""
    seed: int = 0
    """Seed of all random numbers.

    The same seed, options and number of threads give the same model."""

    """Group evaluation: scores, when to stop, and correction of predictions."""
    metric: str | None = None
    """Score to report, and to pick the best epoch by.

    For classes accuracy, micro-f1, macro-f1, roc-auc or average-precision; for numbers rmse, mae or
    r2; for pairs auc, ap, mrr, and hits@K, recall@K or ndcg@K for any K, such as hits@20. None:
    accuracy, micro-f1 if nodes have several classes, rmse for numbers, auc for pairs."""
    evaluate_every: int = 1
    """Epochs between exact evaluations on the validation nodes."""
    patience: int | None = declared(None, resume="run", lengthens=True)
    """Stop after this many evaluations without a better validation score; 0: never. None: `vrgcn
    train` stops after 10, or as many as make 100 steps, 30 over relations; `fit` never."""
    time_limit: str | None = declared(None, resume="always", lengthens=True, once=True)
    """Stop after this much time, such as 90s, 10m or 2h.

    The best model until then is kept. All time counts, including evaluation and the time before a
    --resume. None: stop after the epochs."""
    select: Literal["best", "last"] = "best"
    """Weights to keep: those of the best validation score, or those of the last epoch."""
    diagnostics: int | None = declared(None, resume="run")
    """Epochs between measurements of the histories' staleness and the gradient's noise, which do
    not change the training; 0: never. None: rarely enough to cost 1.5% of the training time."""

    """Group checkpoints: when to write them, and what to do after a failure."""
    checkpoint_every: str = declared("auto", resume="run")
    """Interval between checkpoints, from which a run resumes: epochs (1) or minutes (10m), which
    also fall inside an epoch; 0: only when the run is interrupted. auto: 5 minutes, or longer if
    writing one would take more than 2% of the time. The first comes after the first epoch."""
    on_nan: Literal["stop", "rollback"] = declared("stop", resume="run")
    """What to do if the loss becomes NaN or infinite: stop, or continue from the last checkpoint
    with half the learning rate, at most three times."""
    on_full_disk: Literal["continue", "stop"] = declared("continue", resume="run")
    """What to do if the disk is too full for a checkpoint: continue without it, or stop."""

    """Group machine: memory, threads, devices and processes."""
    memory: Literal["ram", "disk"] = declared("ram", resume="run")
    """Keep histories and tables of evaluation in memory, or in temporary files beside the
    checkpoints. disk: scaled and averaged features of a graph from disk are also files, computed
    once and kept in its folder `derived`. The results are the same to the bit."""
    threads: int | None = declared(None, resume="always")
    """CPU threads. None: as PyTorch chooses."""
    device: str = "cpu"
    """Device, such as cpu or cuda.

    The model and the histories are kept there."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "checkpoint_every", str(self.checkpoint_every))
        super().__post_init__()
        Interval.parse(self.checkpoint_every)
        at_least(1, epochs=self.epochs, batch_size=self.batch_size, block=self.block)
        at_least(1, evaluate_every=self.evaluate_every, threads=self.threads)
        at_least(0, weight_decay=self.weight_decay, seed=self.seed, warmup=self.warmup)
        at_least(0, patience=self.patience, diagnostics=self.diagnostics)
        positive(learning_rate=self.learning_rate, clip=self.clip)
        if self.seed >= 2**63:
            raise InputError(f"seed must be below 2**63, not {self.seed}")
        if self.time_limit is not None and duration(self.time_limit) is None:
            raise InputError(f"time_limit {self.time_limit!r} is no time, such as 90s, 10m or 2h")
        if self.warmup > self.epochs:
            raise InputError(
                f"warmup {self.warmup} is longer than the run, {setting('epochs', self.epochs)}"
            )


def free_settings(schedule: str | None) -> set[str]:
    """Return the settings of a training that may change when it resumes under a schedule: with a
    cosine, the number of epochs decides the rate of every step."""
    free = {name for name, said in declarations(TrainConfig).items() if said.resume != "never"}
    return free - ({"epochs"} if schedule == "cosine" else set())


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
