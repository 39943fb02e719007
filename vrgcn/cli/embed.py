"""`vrgcn embed`: writes exact activations of one layer of a trained model to a file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from vrgcn.cli.exact_run import ExactOptions, too_large
from vrgcn.data.databases.url import Place
from vrgcn.files.wording import printable


@dataclass(frozen=True)
class EmbedOptions(ExactOptions):
    """Flags of `vrgcn embed`."""

    out: Place
    """File to write: .parquet or .csv (id, e_0, e_1, ...) or .npy (only the numbers); or a new
    table of a database, such as sqlite:///shop.db#embeddings."""
    layer: int | None = None
    """Activations to write: -2 is what the model propagates last, for gcn and graphsage the last
    hidden layer; -1 its outputs; 0 what it propagates first; 1 what it propagates next. None: -2,
    and -1 for a run that predicts pairs, whose outputs are the embeddings."""
    of: str | None = None
    """Kind of nodes to embed, in a graph of several kinds. None: all kinds; with --nodes the kind
    that has labels."""


def run(options: EmbedOptions) -> None:
    """Compute the embeddings and write them; the file or table appears once it is complete."""
    from vrgcn.data.databases.sending import destination
    from vrgcn.files.memory import memory_advice

    with (
        memory_advice(too_large(options, "embed the nodes")),
        destination(options.out, append=options.append) as path,
    ):
        done = _embed(options, path)
    print(f"{done} written to {printable(str(options.out))}")


def _embed(options: EmbedOptions, out: Path) -> str:
    """Write the embeddings to a file; return words for what was written."""
    from vrgcn.data.embeddings import embedding_file
    from vrgcn.data.predictions import check_path
    from vrgcn.engine.devices import find_device, use_threads
    from vrgcn.inference.embed import find_layer
    from vrgcn.inference.predict import check_outputs
    from vrgcn.runs.exact import ALL, opened_sweeps, shown
    from vrgcn.runs.run import open_run

    use_threads(options.threads)
    run = open_run(options.run, find_device(options.device))
    check_path(out)
    of = options.of or (ALL if options.nodes is None else None)
    with opened_sweeps(
        run,
        options.nodes,
        of,
        beside=options.folder,
        graph=options.graph,
        dataset=options.dataset,
        data_root=options.data_root,
        memory=options.memory,
        verbose=True,
    ) as opened:
        sweeps, nodes = opened.sweeps, opened.nodes
        usual = -2 if run.target.labels else -1
        layer = find_layer(sweeps, usual if options.layer is None else options.layer)
        with shown("embedding", sweeps.work(nodes, layer)) as advance:
            sweeps.on_chunk = advance
            chunks = sweeps.stream(nodes, layer)
            first = next(chunks)
            width = first[1].shape[1]
            with embedding_file(out, opened.ids, count=opened.count, width=width) as file:
                for chunk, h in chain([first], chunks):
                    check_outputs(opened.graph, chunk, h, what="embedding")
                    file.write(chunk, h)
    return f"exact embeddings of {opened.count:,} nodes, {width} numbers each,"
