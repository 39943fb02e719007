"""The graph of the study of FB15k-237: its official split, which nothing of the messages knows."""

from __future__ import annotations

from pathlib import Path

from lab.studies.fb15k237 import fb15k237
from vrgcn.triples.split import split_triples


def test_the_official_split_has_its_published_sizes(real_data: Path) -> None:
    graph = split_triples(fb15k237(real_data / "fb15k237"))
    triples = graph.triples
    assert triples is not None
    assert graph.num_nodes == 14_541
    assert len(triples.relations) == 237
    assert [len(triples.split(name)) for name in ("train", "val", "test")] == [
        272_115,
        17_535,
        20_466,
    ]
    given = (part for part in graph.relations.values() if part.reverse_of is None)
    assert sum(part.num_edges for part in given) == 272_115
    held = triples.both_ways(triples.test)
    assert not triples.known_in_training.has(*held.unbind(1)).any()
