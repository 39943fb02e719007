"""The amount of work of each section: the real size, and a tiny one that checks that everything
runs."""

from __future__ import annotations

from dataclasses import dataclass

from vrgcn.data.synthetic import COMMUNITIES, CommunitySpec

# The graph of `--quick` in place of the data set: easy, so that the target is reached at once.
QUICK_GRAPH = CommunitySpec(
    nodes=1_000,
    pairs=10_000,
    classes=4,
    width=32,
    train=600,
    val=200,
    test=200,
    homophily=0.8,
    signal=2.0,
    contrast=2.0,
    tail=2.2,
    spread=10,
)


@dataclass(frozen=True)
class Growth:
    """The series of the section `growth`; each varies one thing and keeps the others.

    nodes, degree, hidden, layers, batch, fanout: the values of each series
    base_nodes, base_degree: of the series that keep the graph
    degree_nodes: nodes in the series of degrees
    """

    nodes: tuple[int, ...]
    degree: tuple[int, ...]
    hidden: tuple[int, ...]
    layers: tuple[int, ...]
    batch: tuple[int, ...]
    fanout: tuple[int, ...]
    base_nodes: int
    base_degree: int
    degree_nodes: int


@dataclass(frozen=True)
class Scale:
    """turns: how often what is compared takes turns; heavy_turns: where a turn takes seconds
    steps, slow_steps: steps of an algorithm in a turn, and of one that computes many neighbours
    hidden, batch, history_dtype: widths, minibatches and histories of the models
    epochs, slow_epochs: when time to accuracy gives up
    evaluations: validations per epoch; runs: seeds of time to accuracy
    average_weights: time to accuracy scores averaged weights, as training does by default
    target: the validation score to reach; later: higher ones, whose times are reported too
    depths: layers of the section `deep`; deep_graph, deep_target: of its race at three layers
    memory: the algorithms whose peak memory is measured; None for all
    growth: the series of that section
    seeds, seed_epochs, seed_graph: runs for the accuracy of 16-bit histories, and their graph
    starts: how often programs are started
    gemm, copy: size of the square product, and floats in the copy, that rate the machine
    """

    turns: int
    heavy_turns: int
    steps: int
    slow_steps: int
    hidden: int
    batch: int
    epochs: int
    slow_epochs: int
    evaluations: int
    runs: int
    target: float
    later: tuple[float, ...]
    depths: tuple[int, ...]
    deep_graph: CommunitySpec
    deep_target: float
    memory: tuple[str, ...] | None
    growth: Growth
    seeds: int
    seed_epochs: int
    seed_graph: CommunitySpec
    starts: int
    gemm: int
    copy: int
    history_dtype: str = "float16"
    average_weights: bool = True


FULL = Scale(
    turns=15,
    heavy_turns=3,
    steps=8,
    slow_steps=1,
    hidden=128,
    batch=512,
    epochs=10,
    slow_epochs=4,
    evaluations=4,
    runs=1,
    target=0.96,
    later=(0.98,),
    depths=(2, 3, 4),
    deep_graph=COMMUNITIES,
    deep_target=0.98,
    memory=None,
    growth=Growth(
        nodes=(25_000, 50_000, 100_000, 200_000),
        degree=(10, 25, 50, 100, 250, 500),
        hidden=(32, 64, 128, 256, 512),
        layers=(2, 3, 4),
        batch=(128, 256, 512, 1024, 2048),
        fanout=(1, 2, 4, 8, 16),
        base_nodes=50_000,
        base_degree=20,
        degree_nodes=20_000,
    ),
    seeds=10,
    seed_epochs=12,
    seed_graph=COMMUNITIES,
    starts=5,
    gemm=1024,
    copy=1 << 26,
)

QUICK = Scale(
    turns=2,
    heavy_turns=2,
    steps=2,
    slow_steps=1,
    hidden=16,
    batch=64,
    epochs=3,
    slow_epochs=3,
    evaluations=2,
    runs=1,
    target=0.8,
    later=(0.9,),
    depths=(2, 3),
    deep_graph=QUICK_GRAPH,
    deep_target=0.8,
    memory=("two-way", "exact+PP"),
    growth=Growth(
        nodes=(500, 1_000),
        degree=(10, 20),
        hidden=(8, 16),
        layers=(2, 3),
        batch=(64, 128),
        fanout=(1, 2),
        base_nodes=500,
        base_degree=10,
        degree_nodes=500,
    ),
    seeds=2,
    seed_epochs=1,
    seed_graph=QUICK_GRAPH,
    starts=1,
    gemm=128,
    copy=1 << 18,
)
