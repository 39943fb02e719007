"""`vrgcn recommend`: writes the best new partners of nodes to a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from vrgcn.cli.early_checks import check_file
from vrgcn.cli.exact_run import ExactOptions, too_large
from vrgcn.data.databases.url import Place
from vrgcn.files.mistakes import InputError
from vrgcn.files.settings import at_least
from vrgcn.files.wording import printable
from vrgcn.files.writing import check_suffix
from vrgcn.runs.folder import read_config
from vrgcn.runs.recommend import check_recommends


@dataclass(frozen=True)
class RecommendOptions(ExactOptions):
    """Flags of `vrgcn recommend`."""

    out: Place
    """File to write: .parquet or .csv, or a new table of a database, such as
    sqlite:///shop.db#recommended, with the columns source and target (or user and item, as their
    kinds are called), rank and score. Known pairs of all splits are left out."""
    top: int = 10
    """Partners of each node."""
    for_: Path | None = None
    """Text file with one node id per line: find partners for these nodes, in this order. None: for
    all nodes."""

    relation: str | None = None
    """For a run that predicts the edges of all relations: the relation to find targets in, such as
    bought, or its reverse, rev_bought, to find sources in."""

    by: str | None = None
    """A simple rule that recommends in place of the model, by the name that `vrgcn evaluate` shows,
    such as EASE."""

    def checked(self) -> Self:
        """Raise if the run predicts no pairs, or if a file does not exist."""
        checked = super().checked()
        at_least(1, top=self.top)
        check_recommends(self.run, read_config(self.run), self.relation)
        if self.nodes is not None:
            raise InputError("--nodes: recommend calls it --for")
        if self.for_ is not None:
            check_file(self.for_, "--for")
        if isinstance(self.out, Path):
            check_suffix(self.out, (".parquet", ".csv"))
        return checked


def run(options: RecommendOptions) -> None:
    """Score all pairs of the nodes in chunks and write the best; the file or table appears once it
    is complete."""
    from vrgcn.files.memory import memory_advice
    from vrgcn.runs.recommend import recommend

    with memory_advice(too_large(options, "recommend")):
        done = recommend(
            options.run,
            options.for_,
            top=options.top,
            relation=options.relation,
            by=options.by,
            dataset=options.dataset,
            graph=options.graph,
            data_root=options.data_root,
            memory=options.memory,
            device=options.device,
            threads=options.threads,
            out=options.out,
            append=options.append,
            verbose=True,
        )
    print(
        f"the best new partners of {done.sources:,} nodes, {done.count:,} pairs, written to "
        f"{printable(str(options.out))}"
    )
