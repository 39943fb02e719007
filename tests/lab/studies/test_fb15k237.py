"""The graph of the study of FB15k-237: its official split, which nothing of the messages knows."""

from __future__ import annotations

from pathlib import Path

import torch

from lab.studies.fb15k237 import KnowsHeldOut, fb15k237
from tests.targets.test_triple_split import as_set, knowledge
from vrgcn.targets.triple_split import split_triples


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
    assert not triples.known_in_training.has(*held[:, [0, 2, 1]].unbind(1)).any()


def test_the_leak_that_is_measured_leaves_out_the_triples_of_all_splits() -> None:
    triples = split_triples(knowledge(), (0.6, 0.2, 0.2)).triples
    assert triples is not None
    source = KnowsHeldOut(triples, "softmax", 10**6)
    asked = source.ask(torch.arange(source.queries), torch.Generator().manual_seed(0))
    rows, places = asked.no_negative
    found = torch.stack([asked.sources[rows], asked.directions[rows], asked.candidates[places]])
    queries = as_set(torch.stack([asked.sources, asked.directions], dim=1))
    everything = triples.both_ways(torch.cat([triples.train, triples.val, triples.test]))
    assert as_set(found.t()) == {row for row in as_set(everything) if row[:2] in queries}
