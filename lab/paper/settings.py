"""The paper's settings for each data set, and graphs as it trains on them.

The paper's D = 2 is fanout 1: a node's own edge is always exact, and one neighbour is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from torch import nn

from lab.harness.algorithms import ALGORITHMS, TWO_WAY
from lab.harness.graphs import scaled_graph
from lab.harness.units import Unit
from lab.paper.experiment import Choice
from vrgcn.data import DATASETS, find_dataset, root_folder
from vrgcn.data.synthetic import COMMUNITIES, community_graph
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.scaling import scale_graph
from vrgcn.graph.sparse import is_dense
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import build_model
from vrgcn.training.config import TrainConfig

FIGURES = (  # the data sets of all figures, in their order
    "citeseer",
    "cora",
    "pubmed",
    "nell-paper",
    "ppi-small",
    "communities",
    "reddit-like",
    "reddit2",
)
NOT_THE_PAPERS = (
    "two-way is not the paper's: it keeps histories of gradients too, visits all nodes where "
    "training is transductive, in minibatches of an eighth of them, and computes the neighbours of "
    "nodes with at most 3; where it is inductive its learning rate is .003."
)


@dataclass(frozen=True)
class Setting:
    """How the paper trains on a data set.

    label: what tables and figures call the data set
    train: `epochs` are those of the tables; weights are those of the last epoch, as in the paper
    convergence_epochs: of the figures that show curves
    runs: repetitions with different seeds
    two_way: what `two-way` has otherwise
    every: epochs between the points of a curve
    """

    dataset: str
    label: str
    model: ModelConfig
    train: TrainConfig
    convergence_epochs: int
    runs: int
    two_way: Mapping[str, Any]
    every: int = 1

    def curve_epochs(self, algorithm: str) -> int:
        """Return the epochs of a curve; the paper gives NS twice as many on Reddit."""
        twice = algorithm == "NS" and self.dataset in ("reddit", "reddit2")
        return self.convergence_epochs * (2 if twice else 1)

    def build(self, algorithm: str, graph: Graph, seed: int, **changes: Any) -> nn.Module:
        """Build the untrained model of an algorithm; changes: of ModelConfig, such as
        dropout=0.0."""
        config = replace(self.model, order=ALGORITHMS[algorithm].order, **changes)
        return build_model(
            config,
            graph.num_features,
            graph.num_classes,
            seed,
            sparse_features=not is_dense(graph.features),
        )

    def config(self, algorithm: str, seed: int, **changes: Any) -> TrainConfig:
        """Return how an algorithm trains; changes: of TrainConfig, such as epochs=3."""
        how = ALGORITHMS[algorithm]
        chosen: dict[str, Any] = {
            "estimator": how.estimator,
            "preprocess": how.preprocess,
            "seed": seed,
        }
        if how.propagation is not None:
            chosen["propagation"] = how.propagation
        if how.fanout is not None:
            chosen["fanout"] = how.fanout
        if algorithm == TWO_WAY:
            chosen |= {"fanout": None, "visit": "auto", **self.two_way}
        return replace(self.train, **chosen | changes)


# The paper's algorithm, whatever the defaults are: CVD, one neighbour, training nodes alone.
_PAPER = TrainConfig(
    estimator="cvd",
    fanout=(1,),
    visit="train",
    select="last",
    average_weights=False,
    weight_decay=0.0,
)


def _planetoid(
    dataset: str, label: str, *, sample_size: int, nodes: int, decay: float = 5e-4, **model: Any
) -> Setting:
    """A GCN on a few labelled nodes, which are one minibatch."""
    train = replace(
        _PAPER,
        epochs=200,
        batch_size=1000,
        weight_decay=decay,
        decay="first",
        sample_size=sample_size,
    )
    shape = replace(ModelConfig(model="gcn", hidden=32, dropout=0.5, layer_norm=False), **model)
    return Setting(dataset, label, shape, train, 400, 10, {"batch_size": -(-nodes // 8)}, every=4)


def _nell(dataset: str, label: str) -> Setting:
    return _planetoid(
        dataset, label, sample_size=105, nodes=65_755, decay=1e-5, hidden=64, dropout=0.1
    )


def _sage(
    dataset: str, label: str, *, epochs: int, curve: int, runs: int, hidden: int = 128
) -> Setting:
    """GraphSAGE with minibatches of 512, inductive."""
    model = ModelConfig(model="graphsage", hidden=hidden, dense=2, dropout=0.2, layer_norm=True)
    train = replace(_PAPER, epochs=epochs, batch_size=512, inductive=True)
    return Setting(dataset, label, model, train, curve, runs, {"learning_rate": 0.003})


SETTINGS = {
    setting.dataset: setting
    for setting in (
        # IS draws as many nodes as a batch has: as many as the others sample.
        _planetoid("citeseer", "Citeseer", sample_size=120, nodes=3_327),
        _planetoid("cora", "Cora", sample_size=140, nodes=2_708),
        _planetoid("pubmed", "PubMed", sample_size=60, nodes=19_717),
        _nell("nell-paper", "NELL"),
        _nell("nell", "NELL (as published)"),
        _sage("ppi", "PPI (24 graphs)", hidden=512, epochs=100, curve=100, runs=5),
        _sage("ppi-small", "PPI", hidden=512, epochs=100, curve=100, runs=5),
        _sage("reddit", "Reddit (115M edges)", epochs=30, curve=50, runs=5),
        _sage("reddit2", "Reddit", epochs=30, curve=50, runs=5),
        # Stand-ins for Reddit, trained in its way. The large ones take 100 s an exact epoch on two
        # cores and have converged after a few.
        _sage("reddit-like", "Reddit-like (generated)", epochs=6, curve=6, runs=1),
        _sage("reddit-like-strong", "Reddit-like, strong (generated)", epochs=6, curve=6, runs=1),
        _sage("communities", "Communities (generated)", epochs=30, curve=50, runs=5),
    )
}

# The graph of --quick: no files, made in no time, and as hard as `communities`.
_TINY = replace(COMMUNITIES, nodes=2_000, pairs=30_000, train=1_000, val=400, test=600)


def setting(dataset: str) -> Setting:
    """Return the paper's settings for a data set; the error lists the data sets that have some."""
    if dataset not in SETTINGS:
        find_dataset(dataset)  # a name that does not exist at all has its own error
        raise InputError(
            f"--datasets: the paper has no settings for {dataset}; there are {', '.join(SETTINGS)}"
        )
    return SETTINGS[dataset]


def chosen_datasets(
    choice: Choice, default: tuple[str, ...], among: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """Return the data sets to work on: the requested ones, or the experiment's own; for --quick the
    tiny one. Data sets without raw files are left out (`absent` lists them).

    among: those that the experiment makes sense for; None: all
    """
    names = choice.datasets or (("communities",) if choice.quick else default)
    for name in names:
        setting(name)
    return tuple(
        name
        for name in names
        if (among is None or name in among) and _present(name, choice.data_root)
    )


def absent(choice: Choice) -> tuple[str, ...]:
    """Return the data sets without raw files, of the requested ones or else of all."""
    names = choice.datasets or (() if choice.quick else tuple(SETTINGS))
    return tuple(name for name in names if not _present(name, choice.data_root))


def _present(name: str, root: Path | None) -> bool:
    raw = DATASETS[name].raw
    return raw is None or bool(raw.present(raw.folder(root_folder(root))))


def dataset_label(dataset: str, choice: Choice) -> str:
    """Return the paper's name of a data set, with what readers must know about ours."""
    raw = DATASETS[dataset].raw
    note = None if raw is None else raw.note(raw.folder(root_folder(choice.data_root)))
    return setting(dataset).label + (" (rebuilt)" if note else "")


def runs_of(choice: Choice, dataset: str) -> int:
    """Return the number of seeds per algorithm."""
    return choice.runs or (2 if choice.quick else setting(dataset).runs)


def epochs_of(choice: Choice, papers: int, quick: int) -> int:
    """Return the epochs of a run: the paper's, unless fewer are requested; `quick` in a quick
    run."""
    return quick if choice.quick else min(papers, choice.epochs or papers)


def unit_per_seed(
    choice: Choice,
    datasets: tuple[str, ...],
    run: Callable[[str, int, Choice], dict[str, Any]],
    runs: Callable[[Choice, str], int] = lambda choice, _: choice.runs or 1,
    epochs: Callable[[str, Choice], int] | None = None,
) -> list[Unit]:
    """Return units of one model each: run(dataset, seed, choice).

    runs: seeds of a data set; one unless more are requested
    epochs: of a data set, if they may be cut
    """
    return [
        Unit(
            {"dataset": name, "seed": seed, "quick": choice.quick},
            partial(run, name, seed, choice),
            None if epochs is None else epochs(name, choice),
        )
        for name in chosen_datasets(choice, datasets)
        for seed in range(runs(choice, name))
    ]


def open_graph(dataset: str, choice: Choice) -> Graph:
    """Open the graph with its features scaled as in the paper; `communities` is tiny in --quick."""
    return _open(dataset, choice.quick and dataset == "communities", choice.data_root)


@lru_cache(maxsize=1)  # units come data set by data set, and one graph may fill the memory
def _open(dataset: str, tiny: bool, root: Path | None) -> Graph:
    if tiny:
        return scale_graph(community_graph(_TINY), find_dataset(dataset).scaling)[0]
    return scaled_graph(dataset, root)
