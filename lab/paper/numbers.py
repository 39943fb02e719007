"""Every number that the paper prints beside ours: one table at the top of the page.

Reddit is replaced by the generated graph, and PPI by rebuilt features if those were used:
`dataset_label` names both, so that they are not taken for the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from lab.harness.records import Record, of
from lab.paper.curves import settled
from lab.paper.cuts import cut_epochs
from lab.paper.paper import (
    SHARE_OF_NELL,
    SPEEDUP,
    TABLE1,
    TABLE3,
    TABLE4,
    TABLE4_DEEP,
    VALIDATION_OF_NS,
    Convergence,
)
from lab.paper.settings import setting
from lab.paper.table4 import arrival, paper_text, speedup
from lab.paper.wording import mean_text
from vrgcn.files.wording import counted

Row = list[str]
COLUMNS = ["in the paper", "what", "the paper", "ours", "by"]
NONE = "–"
STAND_INS = {"reddit2": "reddit-like"}  # used if the paper's own data is missing


def numbers(records: Mapping[str, Sequence[Record]]) -> list[Row]:
    """Return a row of `COLUMNS` for each.

    records: of each experiment, by its name
    """
    return [
        *_table1(records.get("table1", [])),
        *_table3(records.get("table3", [])),
        *_table4(records.get("table4", []), 2, TABLE4, "reddit-like", "Table 4"),
        *_table4(
            records.get("table4", []), 3, TABLE4_DEEP, "reddit-like-strong", "appendix, 3 layers"
        ),
        *_validation(records.get("fig-accuracy", [])),
    ]


def _table1(records: Sequence[Record]) -> Iterator[Row]:
    for dataset, size in TABLE1.items():
        found = of(records, dataset=dataset) or of(records, dataset=STAND_INS.get(dataset))
        ours = [NONE] * 4
        if found:
            record = found[-1]
            ours = [f"{record[name]:,}" for name in ("nodes", "edges")]
            ours += [f"{record[name]:,.3f}" for name in ("degree", "two_hop")]
        by = found[-1]["dataset"] if found else NONE
        names = ("V", "E", "degree", "2-hop")
        for name, paper, our in zip(names, size, ours, strict=True):
            yield ["Table 1", f"{setting(dataset).label}, {name}", f"{paper:,}", our, by]
    nell = of(records, dataset="nell-paper")
    share = f"{nell[-1]['two_hop'] / nell[-1]['nodes']:.1%}" if nell else NONE
    what = "share of NELL's nodes within two hops"
    yield ["Section 2", what, f"{SHARE_OF_NELL:.1%}", share, "nell-paper" if nell else NONE]


def _table3(records: Sequence[Record]) -> Iterator[Row]:
    for dataset in ("citeseer", "cora", "pubmed", "nell-paper", "ppi-small", "reddit2"):
        for algorithm, paper in TABLE3[dataset].items():
            found = of(records, dataset=dataset, algorithm=algorithm)
            scores = [100 * record["test"] for record in found if record["test"] is not None]
            yield [
                "Table 3",
                f"{setting(dataset).label}, {algorithm}, test score",
                f"{paper.mean} ± {paper.deviation}",
                mean_text(scores),
                _by(found, len(scores), cut_epochs(found)),
            ]


def _table4(
    records: Sequence[Record],
    layers: int,
    paper: Mapping[str, Convergence],
    stand_in: str,
    where: str,
) -> Iterator[Row]:
    mine = of(records, layers=layers)
    found = of(mine, dataset="reddit2") or of(mine, dataset=stand_in)
    for algorithm, row in paper.items():
        papers = paper_text(row)
        epochs, seconds = arrival(found, algorithm) if found else (NONE, NONE)
        for what, number, our in (
            ("epochs", papers[0], epochs),
            ("seconds", f"{papers[1]} (Titan X)", seconds),
        ):
            yield [where, f"{algorithm}, {what}", number, our, _by(found, len(found))]
    if layers == 2:
        yield [where, "CVD+PP faster than exact", f"{SPEEDUP:g} times", *_speedup(found)]


def _speedup(records: Sequence[Record]) -> tuple[str, str]:
    factor = speedup(records) if records else None
    return (NONE, NONE) if factor is None else (f"{factor:.1f} times", _by(records, len(records)))


def _validation(records: Sequence[Record]) -> Iterator[Row]:
    for dataset, paper in VALIDATION_OF_NS.items():
        found = of(records, dataset=dataset) or of(records, dataset=STAND_INS.get(dataset))
        ends = list(settled(found, "val").get("NS", {}).values())
        ours = f"{fmean(ends):.2f}" if ends else NONE
        what = f"{setting(dataset).label}, where NS's validation score converges"
        ns = of(found, algorithm="NS")
        by = _by(ns, len(ends), cut_epochs(ns, curves=True))
        yield ["Figure 3", what, f"{paper:g}", ours, by]


def _by(records: Sequence[Record], runs: int, cut: Sequence[str] = ()) -> str:
    """Describe our data set, the number of runs, and how their epochs were cut."""
    if not records or not runs:
        return NONE
    return ", ".join([records[0]["label"], counted(runs, "run"), *cut])
