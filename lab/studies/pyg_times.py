"""Records of the race against PyG as a table and a picture, and their place on the pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import median

import vrgcn
from lab.harness.blocks import write_block
from lab.harness.records import Record, in_order, of
from vrgcn.files.writing import write_text

OURS = "vrgcn train"
SHOWN = 0.12  # below the best score of a panel; what never comes as far is not seen
_BOTH = ("peer", "ours")
BELOW = 0.005  # of the target below the lower of the two best scores: a maximum is partly luck
ROOT = Path(vrgcn.__file__).resolve().parents[1]
RECORDS, PAGE, PICTURE = (
    "docs/results/pyg-race.jsonl",
    "docs/results/performance.md",
    "pyg-race.png",
)
BLOCK, BEFORE = "pyg-race", "## GPUs: what was checked"


def same(peer: str) -> str:
    """Name of ours with the network of a peer, such as vrgcn GCN for PyG GCN."""
    return peer.replace("PyG", "vrgcn")


@dataclass(frozen=True)
class Arrival:
    """One peer beside ours on one split of a graph.

    target: the lower of the two best validation scores, less BELOW
    ours, peer: seconds until then, at the learning rate that is there soonest
    rates: these two
    """

    target: float
    ours: float
    peer: float
    rates: tuple[float, float]
    best_ours: float
    best_peer: float


def arrivals(records: Sequence[Record], graph: str, ours: str, peer: str) -> list[Arrival]:
    """Return what each split of a graph gives, as far as both have records."""
    found = []
    for split in in_order(of(records, graph=graph), "split"):
        here = of(records, graph=graph, split=split)
        mine, theirs = of(here, method=ours), of(here, method=peer)
        if not mine or not theirs:
            continue
        best_ours, best_peer = max(map(_best, mine)), max(map(_best, theirs))
        target = min(best_ours, best_peer) - BELOW
        (first, rate), (second, other) = soonest(mine, target), soonest(theirs, target)
        found.append(Arrival(target, first, second, (rate, other), best_ours, best_peer))
    return found


def soonest(records: Sequence[Record], target: float) -> tuple[float, float]:
    """Return seconds and learning rate of the run that reaches a validation score first."""
    times = [(s, r["rate"]) for r in records if (s := seconds_to(r, target)) is not None]
    return min(times)


def seconds_to(record: Record, target: float) -> float | None:
    """Return the seconds until a validation score is reached; None: never."""
    return next((seconds for seconds, value in record["curve"] if value >= target), None)


def _best(record: Record) -> float:
    return max(value for _, value in record["curve"])


def table(records: Sequence[Record]) -> str:
    """A row for each graph, peer and network of ours; over several splits medians."""
    lines = [
        "| graph | mean degree | peer | ours | best validation score: the peer's | ours | target "
        "| seconds: the peer's | ours | times sooner |",
        "|" + "---|" * 10,
    ]
    for graph in in_order(records, "graph"):
        degree = of(records, graph=graph)[0]["degree"]
        for peer in peers(records):
            for ours in (OURS, same(peer)):
                found = arrivals(records, graph, ours, peer)
                if not found:
                    continue
                ratios = sorted(each.peer / each.ours for each in found)
                ratio = f"{median(ratios):.1f}"
                if len(ratios) > 1:
                    ratio += f" ({ratios[0]:.1f} to {ratios[-1]:.1f})"
                cells = [
                    *(graph, f"{degree:.0f}", _at(peer, found, 1), _at(ours, found, 0)),
                    *(_percent(found, name) for name in ("best_peer", "best_ours", "target")),
                    *(f"{median(getattr(e, name) for e in found):.1f}" for name in _BOTH),
                    ratio,
                ]
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def peers(records: Sequence[Record]) -> list[str]:
    """Methods of the records that are PyG's."""
    return [name for name in in_order(records, "method") if name.startswith("PyG")]


def _at(method: str, found: Sequence[Arrival], side: int) -> str:
    rates = dict.fromkeys(f"{each.rates[side]:g}" for each in found)
    return f"{method}, rate {' or '.join(rates)}"


def _percent(found: Sequence[Arrival], name: str) -> str:
    return f"{100 * median(getattr(each, name) for each in found):.1f}"


def draw(records: Sequence[Record], file: Path) -> None:
    """Draw the best validation score so far by seconds, on the first split of each graph; of a peer
    at the rate that counts."""
    import matplotlib.pyplot as plt

    graphs = in_order(records, "graph")
    figure, panels = plt.subplots(
        1, len(graphs), figsize=(3.4 * len(graphs), 3.4), layout="constrained", squeeze=False
    )
    for panel, graph in zip(panels[0], graphs, strict=True):
        split = in_order(of(records, graph=graph), "split")[0]
        first = of(records, graph=graph, split=split)
        ends = []
        for name, colour, line in _lines(first):
            curve = _fastest(first, graph, name)["curve"]
            seconds, values = zip(*curve, strict=True)
            high = list(accumulate(values, max))
            panel.plot(seconds, high, color=colour, linestyle=line, label=name)
            ends.append(high[-1])
        panel.set(title=graph, xlabel="processor seconds", xscale="log")
        panel.set_ylim(max(min(ends) - 0.05, max(ends) - SHOWN), max(ends) + 0.01)
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("best validation score so far")
    # A method may be missing on some graphs.
    handles = {
        name: handle
        for panel in panels[0]
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    columns = min(5, 2 * len(graphs))
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=8,
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _lines(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Methods with their colours and line styles: a network in one colour, PyG's dashed."""
    known = dict.fromkeys(in_order(records, "method"))
    colours = ("tab:blue", "tab:green", "tab:purple")
    lines = [(OURS, "tab:red", "-")] if OURS in known else []
    for peer, colour in zip(peers(records), colours, strict=False):
        lines += [(same(peer), colour, "-")] if same(peer) in known else []
        lines.append((peer, colour, "--"))
    return lines


def _fastest(records: Sequence[Record], graph: str, method: str) -> Record:
    """Return the run of a method at the rate that counts beside its counterpart."""
    mine = of(records, method=method)
    counterparts = [p for p in peers(records) if method in (p, same(p))]
    for peer in counterparts:
        found = arrivals(records, graph, same(peer), peer)
        if found:
            return of(mine, rate=found[0].rates[int(method == peer)])[-1]
    return mine[-1]


def part(records: Sequence[Record]) -> str:
    """The part of the page about performance."""
    versions = "; ".join(in_order([r for r in records if "version" in r], "version"))
    return f"""## PyG on real graphs

![Best validation score so far by processor seconds, ours and PyG's](../images/{PICTURE})

{table(records)}

`.venv/bin/python -m lab.studies.pyg_race` measures this, and `--publish FILE` writes it here from
[the records](pyg-race.jsonl) (vrgcn {versions}). One thread. Ours is the network of
`vrgcn train --model graphsage`; the peers are GCN and GraphSAGE with skip connections and
LayerNorm, as wide and as deep, on the whole graph with PyG's layers on an adjacency in PyTorch's
CSR, at the best of three learning rates; `vrgcn GCN` and `vrgcn GraphSAGE` are these same networks
trained by `two-way`, at the same rates. They centre sparse features in their first layer
([the start](../ideas/two-way.md#the-start)), which PyG's do not. The target is the lower of the two
best validation scores less half a point. Preparations and steps count on both sides, evaluations on
neither."""


def publish(records: Sequence[Record], root: Path = ROOT) -> None:
    """Write the records, the picture and the part of the page below the folder `root`."""
    lines = (json.dumps(r, ensure_ascii=False, allow_nan=False) + "\n" for r in records)
    (root / RECORDS).parent.mkdir(parents=True, exist_ok=True)
    write_text(root / RECORDS, "".join(lines))
    draw(records, root / "docs" / "images" / PICTURE)
    page = (root / PAGE).read_text(encoding="utf-8")
    write_text(root / PAGE, write_block(page, BLOCK, part(records), BEFORE))
