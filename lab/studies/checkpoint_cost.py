"""Cost of checkpoints: their seconds over the seconds of training.

    python -m lab.studies.checkpoint_cost                  # reddit-like, about 10 minutes
    python -m lab.studies.checkpoint_cost --every 0.5m --epochs 30             # 2 minutes
    python -m lab.studies.checkpoint_cost --dataset communities --epochs 2 --every 1

It prints how long one checkpoint takes, how large it is, the ratio at the interval asked for, and
the ratio at what `vrgcn train` does by default: one every 5 minutes, or less often where writing
takes more than 2% of the time. Exits with 1 if the latter is above 3%.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from vrgcn import GraphSAGE, TrainConfig, fit, load_dataset
from vrgcn.files.wording import bytes_text
from vrgcn.runs.checkpoint import checkpoints_in
from vrgcn.training.clock import Interval

LIMIT = 0.03


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="reddit-like")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--estimator", default="cvd")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--every", default="auto", help="as --checkpoint-every of vrgcn train")
    parser.add_argument("--history-dtype", default="float32")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    graph = load_dataset(asked.dataset)
    model = GraphSAGE(
        graph.num_features, hidden=asked.hidden, classes=graph.num_classes, dropout=0.2
    )
    config = TrainConfig(
        epochs=asked.epochs,
        estimator=asked.estimator,
        history_dtype=asked.history_dtype,
        threads=asked.threads,
        evaluate_every=asked.epochs,
        diagnostics=0,
    )
    sizes: list[int] = []
    with tempfile.TemporaryDirectory(dir=".") as folder:

        def measure() -> None:
            for path in checkpoints_in(Path(folder))[:1]:
                sizes.append(sum(file.stat().st_size for file in path.iterdir()))

        start = time.perf_counter()
        result = fit(
            model,
            graph,
            config,
            checkpoints=folder,
            checkpoint_every=asked.every,
            on_checkpoint=lambda: sizes.append(0),
            on_epoch=lambda _: measure(),
        )
        elapsed = time.perf_counter() - start
    written, size = sizes.count(0), max(sizes, default=0)
    each = result.checkpoint_seconds / written if written else float("nan")
    print(f"{graph}")
    print(f"{result.seconds:.1f} s of training in {elapsed:.1f} s, {written} checkpoints")
    if not written:
        print(f"none was due: {Interval.parse(asked.every)}; train for longer, or give --every")
        return 1
    ratio = result.checkpoint_seconds / result.seconds
    print(f"{each:.2f} s each (the first with the graph's fingerprint), {bytes_text(size)}")
    usual = Interval.parse("auto")
    assert usual.seconds is not None
    assert usual.share is not None
    default = each / max(usual.seconds, each / usual.share)
    print(f"checkpoints take {ratio:.2%} of training at {asked.every}")
    print(f"and {default:.2%} at the default; the limit is {LIMIT:.0%}")
    return max(default, ratio if asked.every == "auto" else 0.0) > LIMIT


if __name__ == "__main__":
    sys.exit(main())
