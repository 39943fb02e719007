"""A generated knowledge graph like a dictionary's: words in hierarchies, few triples for each.

    kind_of, part_of     forests: each word below one that is more general
    derived_from         pairs of words of two hierarchies at corresponding places, in both
                         directions, as triples of their own
    similar_to           words that share a more general one, in both directions
    topic                words of a branch and one of a few topics

As in WN18RR, most entities have two to four triples, two thirds of the triples are hierarchies, and
a third are symmetric relations, whose test triples often have their other direction in training.
"""

from __future__ import annotations

import numpy as np
import torch

from vrgcn.graph.graph import Graph

TOPICS = 20


def taxonomy(words: int, seed: int = 0) -> Graph:
    """A graph of about 2.3 triples for each word, 93% for training, the others for validation and
    test."""
    rng = np.random.default_rng(seed)
    half = words // 2
    above = np.zeros(half, np.int64)
    fertility = rng.pareto(1.5, half) + 0.1
    for word in range(1, half):  # near in the order is near in meaning
        first = max(0, word - half // 8)
        own = fertility[first:word]
        above[word] = first + rng.choice(word - first, p=own / own.sum())
    nouns = np.stack([np.arange(1, half), above[1:]])
    twins = rng.permutation(half)[: half * 3 // 4]  # verbs that stand at the place of a noun
    verbs = half + np.arange(len(twins))
    verb_of = np.full(half, -1)
    verb_of[twins] = verbs
    parents = above.copy()
    for _ in range(6):  # the nearest more general noun that has a verb
        parents = np.where(verb_of[parents] < 0, above[parents], parents)
    below = twins[(verb_of[parents[twins]] >= 0) & (twins > 0)]
    actions = np.stack([verb_of[below], verb_of[parents[below]]])
    derived = np.stack([verbs, twins])
    derived = derived[:, rng.random(len(twins)) < 0.7]
    wholes = rng.permutation(half)[: half // 6]
    parts = np.stack([wholes, above[above[wholes]]])
    sisters = rng.permutation(np.arange(2, half))[: half // 8]
    order = np.argsort(above, kind="stable")
    place = np.empty(half, np.int64)
    place[order] = np.arange(half)
    others = order[np.minimum(place[sisters] + 1, half - 1)]
    similar = np.stack([sisters, others])[:, sisters != others]
    topical = rng.permutation(half)[: half // 10]
    topics = np.stack([topical, words - 1 - (topical * TOPICS // half)])
    relations = {
        "kind_of": np.concatenate([nouns, actions], 1),
        "derived_from": np.concatenate([derived, derived[::-1]], 1),
        "part_of": parts,
        "similar_to": np.concatenate([similar, similar[::-1]], 1),
        "topic": topics,
    }
    edges, columns = {}, {}
    for name, ends in relations.items():
        triple = ("word", name, "word")
        edges[triple] = torch.from_numpy(np.ascontiguousarray(ends))
        drawn = rng.random(ends.shape[1])
        columns[triple] = {
            "split": np.where(drawn < 0.93, "train", np.where(drawn < 0.965, "val", "test"))
        }
    return Graph.from_kinds({"word": words}, edges, edge_columns=columns)
