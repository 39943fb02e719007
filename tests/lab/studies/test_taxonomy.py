"""The generated dictionary of the study of knowledge graphs."""

from __future__ import annotations

import torch

from lab.studies.taxonomy import taxonomy
from vrgcn.targets.ranking import score_edges
from vrgcn.targets.triple_rules import simple_rules
from vrgcn.targets.triple_split import split_triples


def test_few_triples_name_a_word_and_reverses_of_a_third_of_the_test_triples_are_known() -> None:
    triples = split_triples(taxonomy(1_000)).triples
    assert triples is not None
    assert 1.2 < len(triples.train) / 1_000 < 1.8
    heads, relations, tails = triples.test.unbind(1)
    turned = {tuple(row) for row in torch.stack([tails, relations, heads], 1).tolist()}
    known = len(turned & {tuple(row) for row in triples.train.tolist()}) / len(turned)
    assert 0.25 < known < 0.5
    rule = simple_rules(triples)["other relations"]
    assert score_edges(rule, triples, "test", ("mrr",))["mrr"] > known - 0.1
