"""`recommend`: the best new partners of nodes, by a run that predicts edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Literal

from vrgcn.data.databases.url import Place, place
from vrgcn.data.node_lists import listed_nodes
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import Placeholder, setting
from vrgcn.files.settings import at_least
from vrgcn.runs.run import Run, load_run
from vrgcn.targets.spec import TargetSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor

    from vrgcn.graph.graph import Graph
    from vrgcn.graph.predicted_edges import Ends
    from vrgcn.targets.ranking import Scorer


@dataclass(frozen=True)
class Recommended:
    """sources: how many nodes were asked about; count: of the pairs that were found
    table: the ids of both ends, rank and score; None if it was written to a file"""

    sources: int
    count: int
    table: pa.Table | None


def check_recommends(folder: Path, config: Mapping[str, Any], relation: str | None) -> None:
    """Raise if a run predicts no pairs, or several relations and none is named."""
    target = TargetSpec.of(config)
    if target.labels:
        raise InputError(
            f"{folder} predicts labels of nodes, and no pairs: train a run with "
            f"{setting('predict', Placeholder('RELATION'))}, such as user-bought-item (vrgcn info "
            f"lists them); of a graph without kinds, {setting('predict', 'edges')}"
        )
    if (target.kind == "relations") != (relation is not None):
        what = "say which to find targets in" if relation is None else "leave it out"
        named = setting("relation", Placeholder("NAME"))
        raise InputError(f"{named}: {folder} predicts {target.predict}: {what}")


def recommend(
    run: Run | str | Path,
    nodes: Any = None,
    *,
    top: int = 10,
    relation: str | None = None,
    by: str | None = None,
    dataset: str | None = None,
    graph: Graph | str | Path | None = None,
    data_root: str | Path | None = None,
    memory: Literal["ram", "disk"] = "ram",
    device: str = "cpu",
    threads: int | None = None,
    out: str | Place | None = None,
    append: bool = False,
    verbose: bool = False,
) -> Recommended:
    """Find the best new partners of nodes, as `vrgcn recommend` does. Known pairs of all splits are
    left out.

    run: a run or its folder
    nodes: an id or several, or the path of a text file with one in each line; None: all nodes
    top: partners of each node
    relation: to find targets in, if the run predicts the edges of all relations
    by: a simple rule in place of the model, by the name that `vrgcn evaluate` shows
    dataset, graph: a graph in place of the run's own; data_root: folder of raw files
    memory: "disk" keeps tables in files; device, threads: of the computation
    out: file to write, .parquet or .csv, or the address of a table, to which `append` adds rows;
        None: the table is returned
    verbose: print notes and show progress
    """
    import pyarrow as pa

    from vrgcn.data.databases.sending import destination
    from vrgcn.data.edge_tables import edge_batch, edge_file
    from vrgcn.engine.devices import use_threads
    from vrgcn.pairs.model import PairModel
    from vrgcn.runs.embedded import embed_run
    from vrgcn.runs.exact import ALL, opened_sweeps, shown
    from vrgcn.targets.best import Best, best_partners
    from vrgcn.targets.scored import scored_edges

    use_threads(threads)
    at_least(1, top=top)
    target = None if out is None else place(str(out))
    opened = run if isinstance(run, Run) else load_run(run, device)
    check_recommends(opened.folder, opened.config, relation)
    model = opened.saved.model
    assert isinstance(model, PairModel)
    with ExitStack() as stack:
        beside = target.parent if isinstance(target, Path) else Path(gettempdir())
        path = None
        if target is not None:
            path = stack.enter_context(destination(target, append=append))
        asked = stack.enter_context(
            opened_sweeps(
                opened,
                None,
                ALL,
                beside=beside,
                graph=graph,
                dataset=dataset,
                data_root=data_root,
                memory=memory,
                verbose=verbose,
            )
        )
        scored = scored_edges(asked.graph)
        assert scored is not None
        if by is None:
            with shown("embedding", asked.sweeps.work(None), verbose) as advance:
                embedded = embed_run(model, asked.graph, asked.sweeps, advance)
            scorer: Scorer = scored.scorer(embedded.decoder, embedded.embeddings)
        else:
            scorer = scored.rule(by, opened.config["embedding"])
        edges = scored.predicted
        direction = scored.direction(relation)
        ends = edges.ends(direction)

        def written(best: Best) -> pa.RecordBatch:
            ranks, scores = (pa.array(part.numpy()) for part in (best.ranks, best.scores))
            columns = {"rank": ranks, "score": scores}
            return edge_batch(asked.graph, edges, best.pairs, columns, direction)

        sources, batches, count = _sources(nodes, asked.graph, ends), [], 0
        schema = written(Best.none()).schema
        file = None if path is None else stack.enter_context(edge_file(path, schema))
        for best in best_partners(scorer, edges, sources, top, direction):
            if file is None:
                batches.append(written(best))
            else:
                file.write_batch(written(best))
            count += len(best.ranks)
    table = pa.Table.from_batches(batches, schema) if file is None else None
    return Recommended(len(sources), count, table)


def _sources(nodes: Any, graph: Graph, ends: Ends) -> Tensor:
    """Return the nodes that are asked about."""
    import torch

    where = setting("for", python="nodes=")
    if nodes is None:
        return torch.arange(ends.sources.start, ends.sources.stop)
    if isinstance(nodes, Path):
        return listed_nodes(nodes, graph.names, graph.num_nodes, ends.kinds[0], where)
    single = isinstance(nodes, str) or not isinstance(nodes, Iterable)
    ids = [nodes] if single else list(nodes)
    return torch.from_numpy(graph.names.places(ids, where, graph.num_nodes, ends.kinds[0]))
