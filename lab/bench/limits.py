"""The project's own limits, compared with the measurements of the same run."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from lab.bench.accuracy import PEER
from lab.bench.section import Section, Table

EXCESS = 500  # MB
SIGNIFICANT = 0.05
_SIGNS = {"≤": operator.le, "<": operator.lt, "≥": operator.ge}

Results = dict[str, Any]


@dataclass(frozen=True)
class Limit:
    """A limit: name [sign] bound; measure: from the results of all sections to the figure.

    `measure` raises KeyError if a needed result was not measured. decimals: of the printed figure.
    """

    name: str
    sign: str
    bound: float
    measure: Callable[[Results], float]
    decimals: int = 2


@dataclass(frozen=True)
class Verdict:
    """The verdict on a limit. measured, met: None if it was not measured"""

    limit: str
    bound: float
    measured: float | None
    met: bool | None


def _epoch_ratio(name: str) -> Callable[[Results], float]:
    return lambda r: r["epoch"]["algorithms"][name]["ratio_to_mlp"]["median"]


def _depth_ratio(layers: int, to: str = "ratio") -> Callable[[Results], float]:
    return lambda r: r["deep"]["steps"][f"{layers} layers"]["two-way"][to]["median"]


def _sooner(
    name: str, ours: str = "two-way", where: Callable[[Results], Results] | None = None
) -> Callable[[Results], float]:
    """Return how many times sooner than `name` we reach the target. A lower bound if only we reach
    it, and 0 if we do not."""

    def measure(r: Results) -> float:
        algorithms = where(r) if where else r["accuracy"]["algorithms"]
        mine, other = algorithms[ours], algorithms[name]
        return other["seconds"] / mine["seconds"] if mine["reached"] else 0.0

    return measure


def _excess(name: str) -> Callable[[Results], float]:
    return lambda r: r["accuracy"]["algorithms"][name]["memory"]["excess"] / 1e6


def _faster(dtype: str) -> Callable[[Results], float]:
    return lambda r: r["histories"]["average"]["dtypes"][dtype]["times_as_fast"]["median"]


def _loss_p(dtype: str) -> Callable[[Results], float]:
    """One-sided p of "less accurate than float32"."""

    def measure(r: Results) -> float:
        found = r["histories"]["accuracy"][dtype]
        return found["p"] / 2 if found["t"] < 0 else 1 - found["p"] / 2

    return measure


LIMITS = (
    Limit("history epoch / MLP", "≤", 1.25, _epoch_ratio("history")),
    Limit("CV+PP epoch / MLP", "≤", 1.75, _epoch_ratio("CV+PP")),
    Limit("CVD+PP epoch / MLP", "≤", 2.6, _epoch_ratio("CVD+PP")),
    Limit("two-way epoch / MLP", "≤", 1.6, _epoch_ratio("two-way")),
    *(
        Limit(f"two-way, {layers} layers, step / MLP", "≤", most, _depth_ratio(layers))
        for layers, most in ((3, 1.7), (4, 1.8))
    ),
    *(
        Limit(
            f"moving frame, {layers} layers, step / raw", "≤", 1.1, _depth_ratio(layers, "to_raw")
        )
        for layers in (2, 3, 4)
    ),
    Limit("two-way: times sooner than exact+PP", "≥", 7, _sooner("exact+PP"), 1),
    Limit("two-way: times sooner than CVD+PP", "≥", 1.4, _sooner("CVD+PP"), 1),
    Limit(
        "two-way, 3 layers: times sooner than exact+PP",
        "≥",
        10,
        _sooner("exact+PP", where=lambda r: r["deep"]["race"]),
        1,
    ),
    Limit("CVD+PP: times sooner than exact+PP", "≥", 4, _sooner("exact+PP", "CVD+PP"), 1),
    Limit(f"CVD+PP: times sooner than {PEER}", "≥", 25, _sooner(PEER, "CVD+PP"), 1),
    Limit("float16 history average, times as fast", "≥", 1.5, _faster("float16")),
    Limit("float16 less accurate, one-sided p", "≥", SIGNIFICANT, _loss_p("float16"), 3),
    Limit(
        "wide sparse features as auto takes them, step / 64 dense columns",
        "≤",
        2,
        lambda r: r["sparse"]["rows"][r["sparse"]["auto"]]["ratio"]["median"],
    ),
    Limit("epoch against V, exponent", "≤", 1.1, lambda r: r["growth"]["nodes"]["exponent"]),
    Limit("epoch against degree, exponent", "≤", 1.1, lambda r: r["growth"]["degree"]["exponent"]),
    *(
        Limit(
            f"MB beyond graph, features, tables: {name}",
            "≤",
            EXCESS,
            _excess(name),
            0,
        )
        for name in ("history", "two-way", "CV+PP", "CVD+PP")
    ),
    Limit(
        "vrgcn --help, seconds",
        "<",
        0.5,
        lambda r: r["startup"]["programs"]["vrgcn --help"]["seconds"]["median"],
    ),
    Limit(
        "an error of the command line, seconds",
        "<",
        0.5,
        lambda r: r["startup"]["mistakes"]["slowest"]["median"],
    ),
    Limit(
        "from vrgcn import * / import torch",
        "≤",
        1.2,
        lambda r: r["startup"]["programs"]["from vrgcn import *"]["ratio_to_torch"]["median"],
    ),
)


def judge(results: Results) -> list[Verdict]:
    """Compare every limit with the results of the sections that ran."""
    verdicts = []
    for limit in LIMITS:
        try:
            measured = limit.measure(results)
        except KeyError:
            measured = None
        met = None if measured is None else bool(_SIGNS[limit.sign](measured, limit.bound))
        verdicts.append(Verdict(limit.name, limit.bound, measured, met))
    return verdicts


def summary(results: Results) -> Section:
    verdicts = judge(results)
    rows = []
    for limit, verdict in zip(LIMITS, verdicts, strict=True):
        measured = "–" if verdict.measured is None else f"{verdict.measured:.{limit.decimals}f}"
        met = {None: "not measured", True: "yes", False: "no"}[verdict.met]
        rows.append([limit.name, f"{limit.sign} {limit.bound:g}", measured, met])
    table = Table("limits", ("", "limit", "measured", "met"), rows)
    return Section([table], {"limits": [asdict(verdict) for verdict in verdicts]})
