"""Cost of the measurements beside the training: their seconds over those of training.

    python -m lab.studies.diagnostics_cost [--dataset communities]

Trains with the default setting of `diagnostics` and prints, for each estimator, how often it
measured and the ratio of the two times, as `fit` records them. Evaluation counts in neither.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from vrgcn import TrainConfig, fit, load_dataset
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import build_model


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Seconds of diagnostics over seconds of training.")
    parser.add_argument("--dataset", default="communities", help="a built-in graph")
    parser.add_argument("--estimators", nargs="+", default=["ns", "cv", "cvd", "history"])
    parser.add_argument("--epochs", type=int, default=48, help="of each")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def main(options: argparse.Namespace) -> None:
    graph = load_dataset(options.dataset)
    print(graph)
    table = Table("", "measured", "training s", "diagnostics s", "ratio")
    for estimator in options.estimators:
        config = TrainConfig(
            estimator=estimator,
            epochs=options.epochs,
            evaluate_every=options.epochs,
            threads=options.threads,
        )
        model = build_model(ModelConfig(), graph.num_features, graph.num_classes, seed=0)
        result = fit(model, graph, config)
        measured = sum(point.gradient_noise is not None for point in result.curve)
        ratio = result.diagnostics_seconds / result.seconds
        table.add_row(
            estimator,
            f"{measured} of {options.epochs} epochs",
            f"{result.seconds:.2f}",
            f"{result.diagnostics_seconds:.3f}",
            f"{ratio:.2%}",
        )
    Console().print(table)


if __name__ == "__main__":
    main(read_options())
