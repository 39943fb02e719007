"""`vrgcn recommend`: writes the best new partners of nodes to a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from vrgcn.cli.early_checks import check_file
from vrgcn.cli.exact_run import ExactOptions, read_nodes, too_large
from vrgcn.data.databases.url import Place
from vrgcn.files.mistakes import InputError
from vrgcn.files.printable import printable
from vrgcn.pages.destination import check_suffix
from vrgcn.runs.folder import read_config
from vrgcn.targets.spec import TargetSpec
from vrgcn.training.config import at_least


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

    def checked(self) -> Self:
        """Raise if the run predicts no pairs, or if a file does not exist."""
        checked = super().checked()
        at_least(1, top=self.top)
        target = TargetSpec.of(read_config(self.run))
        if target.labels:
            raise InputError(
                f"{self.run} predicts labels of nodes, and no pairs: train a run with --predict "
                "RELATION, such as user-bought-item (vrgcn info lists them); of a graph without "
                "kinds, --predict edges"
            )
        if (target.kind == "relations") != (self.relation is not None):
            raise InputError(
                f"--relation NAME: {self.run} predicts {target.predict}"
                + (": say which to find targets in" if self.relation is None else ": leave it out")
            )
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
    from vrgcn.data.databases.sending import destination
    from vrgcn.files.memory import memory_advice

    with (
        memory_advice(too_large(options, "recommend")),
        destination(options.out, append=options.append) as path,
    ):
        done = _recommend(options, path)
    print(f"{done} written to {printable(str(options.out))}")


def _recommend(options: RecommendOptions, out: Path) -> str:
    """Write the best partners to a file; return words for what was written."""
    import torch

    from vrgcn.cli.pair_run import embedded
    from vrgcn.data.pairs import scored_file
    from vrgcn.pairs.best import best_partners

    with embedded(options) as found:
        graph = found.graph
        pairs, scorer = found.edges.partners(found.decoder, found.embeddings, options.relation)
        sources = torch.arange(pairs.sources.start, pairs.sources.stop)
        if options.for_ is not None:
            sources = read_nodes(
                options.for_, graph.names, graph.num_nodes, pairs.kinds[0], "--for"
            )
        count = 0
        with scored_file(out, graph, pairs, ranked=True) as file:
            for best in best_partners(scorer, pairs, sources, options.top):
                file.write(best.pairs, rank=best.ranks, score=best.scores)
                count += len(best.ranks)
    return f"the best new partners of {len(sources):,} nodes, {count:,} pairs,"
