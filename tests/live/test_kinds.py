"""Kinds and relations: after any changes a live model answers what `predict` answers on the graph
built anew."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages import refused
from vrgcn import Graph, predict
from vrgcn.inference.saved import SavedModel
from vrgcn.live.live import Live
from vrgcn.models.relational import RELATIONAL

WIDTHS = {"user": 3, "item": 2, "shop": 0}
RELATIONS = {"bought": ("user", "item"), "follows": ("user", "user"), "sold_by": ("item", "shop")}
WEIGHTED = "bought"


class Store:
    """Tables of users, items and shops as plain lists. Items have numbers for ids.

    one_way: names of relations without a reverse
    """

    def __init__(self, rng: np.random.Generator, one_way: tuple[str, ...] = ()) -> None:
        self.rng, self.one_way = rng, one_way
        self.nodes: dict[str, dict[Any, list[float]]] = {
            "user": {f"u{n}": self.features("user") for n in range(9)},
            "item": {n: self.features("item") for n in range(6)},
            "shop": {name: [] for name in "abc"},
        }
        self.edges: dict[str, dict[tuple[Any, Any], float]] = {name: {} for name in RELATIONS}
        for name in RELATIONS:
            for _ in range(12):
                self.edges[name][self.ends(name)] = self.weight()

    def features(self, kind: str) -> list[float]:
        return [float(x) for x in self.rng.normal(size=WIDTHS[kind]).round(3)]

    def weight(self) -> float:
        return float(self.rng.integers(1, 4)) / 2

    def some(self, kind: str) -> Any:
        names = sorted(self.nodes[kind])
        return names[int(self.rng.integers(len(names)))]

    def ends(self, relation: str) -> tuple[Any, Any]:
        source, target = RELATIONS[relation]
        return self.some(source), self.some(target)

    def graph(self) -> Graph:
        ids = {kind: sorted(rows) for kind, rows in self.nodes.items()}
        place = {k: {node: n for n, node in enumerate(names)} for k, names in ids.items()}
        edges: dict[tuple[str, str, str], Any] = {}
        for name, (source, target) in RELATIONS.items():
            ends = [[place[source][s], place[target][t]] for s, t in self.edges[name]]
            index = torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).t()
            weights = torch.tensor(list(self.edges[name].values()))
            edges[source, name, target] = (index, weights) if name == WEIGHTED else index
        features: dict[str, Any] = {
            kind: torch.tensor([self.nodes[kind][n] for n in names], dtype=torch.float64)
            if WIDTHS[kind]
            else len(names)
            for kind, names in ids.items()
        }
        return Graph.from_kinds(
            *(features, edges),
            target="user",
            ids=dict(ids.items()),
            num_classes=2,
            one_way=[triple for triple in edges if triple[1] in self.one_way],
        )

    def change(self) -> list[dict[str, Any]]:
        """Change the lists at random, and return the same changes as plain values."""
        step = self.rng.choice(5, p=[0.25, 0.15, 0.1, 0.3, 0.2])
        kind, name = str(self.rng.choice(list(WIDTHS))), str(self.rng.choice(list(RELATIONS)))
        if step == 0:
            return self._add(kind)
        if step == 1 and WIDTHS[kind]:
            node = self.some(kind)
            self.nodes[kind][node] = self.features(kind)
            rows = [{"id": node, "features": self.nodes[kind][node]}]
            return [{"change": "set_features", "rows": rows, "kind": kind}]
        if step == 2 and len(self.nodes[kind]) > 2:
            return self._remove(kind)
        if step == 4 and self.edges[name]:
            source, target = sorted(self.edges[name], key=str)[0]
            del self.edges[name][source, target]
            rows = [{"source": source, "target": target}]
            return [{"change": "remove_edges", "rows": rows, "relation": name}]
        return self._link(name, *self.ends(name))

    def _add(self, kind: str) -> list[dict[str, Any]]:
        number = int(self.rng.integers(3, 30))
        node = {"user": f"u{number}", "item": number, "shop": f"s{number}"}[kind]
        if self.rng.random() < 0.3:
            node = {"user": "u1", "item": 1, "shop": "a"}[kind]  # which may come back
        if node in self.nodes[kind]:
            return []
        self.nodes[kind][node] = self.features(kind)
        row = {"id": node} | ({"features": self.nodes[kind][node]} if WIDTHS[kind] else {})
        changes = [{"change": "add_nodes", "rows": [row], "kind": kind}]
        for name, ends in RELATIONS.items():
            if kind in ends:
                source, target = self.ends(name)
                pair = (node, target) if ends[0] == kind else (source, node)
                changes += self._link(name, *pair)
        return changes

    def _remove(self, kind: str) -> list[dict[str, Any]]:
        node = self.some(kind)
        del self.nodes[kind][node]
        for name, (source, target) in RELATIONS.items():
            self.edges[name] = {
                (s, t): weight
                for (s, t), weight in self.edges[name].items()
                if not (source == kind and s == node) and not (target == kind and t == node)
            }
        return [{"change": "remove_nodes", "ids": [node], "kind": kind}]

    def _link(self, name: str, source: Any, target: Any) -> list[dict[str, Any]]:
        row: dict[str, Any] = {"source": source, "target": target}
        weight = self.weight()
        if name == WEIGHTED:
            row["weight"] = weight
        before = self.edges[name].get((source, target), 0.0)
        self.edges[name][source, target] = before + weight
        return [{"change": "add_edges", "rows": [row], "relation": name}]


@pytest.mark.parametrize("rule", ["mean", "gcn"])
@settings(max_examples=6)
@given(
    seed=st.integers(0, 10_000),
    one_way=st.sampled_from([(), ("bought",), ("follows", "sold_by")]),
    more=st.sampled_from(
        [{}, {"layers": 3, "jumping": "cat", "skip": True}, {"transform_first": True}, {"bases": 2}]
    ),
)
def test_kinds_and_relations_to_the_last_bits_of_float64(
    rule: str, seed: int, one_way: tuple[str, ...], more: dict[str, Any]
) -> None:
    store = Store(np.random.default_rng(seed), one_way)
    graph = store.graph()
    torch.manual_seed(2)
    names = {"mean": "relational-graphsage", "gcn": "relational-gcn"}
    triples = [part.triple for part in graph.relations.values()]
    model = RELATIONAL[names[rule]](WIDTHS, triples, "user", 5, 2, rows={"shop": 3}, **more)
    saved = SavedModel(model.double(), rule, nodes=graph.names.unique())
    live = Live(saved, graph)
    for step in range(8):
        wanted = store.graph()
        users = wanted.names.ids_of("user").to_pylist()
        found = live.predict(users).outputs
        assert float((found - predict(saved, wanted)).abs().max()) < 1e-12
        if step == 5:
            live._fold()
        live.apply(store.change())
    assert [each.name for each in live.graph().given.values() if each.one_way] == [
        part.name for part in graph.given.values() if part.one_way
    ]


def test_the_reverse_of_a_one_way_relation_has_no_name() -> None:
    store = Store(np.random.default_rng(4), ("bought", "follows", "sold_by"))
    graph = store.graph()
    torch.manual_seed(2)
    triples = [part.triple for part in graph.relations.values()]
    model = RELATIONAL["relational-graphsage"](WIDTHS, triples, "item", 5, 2)
    live = Live(SavedModel(model.double(), "mean", nodes=graph.names.unique()), graph)
    bought = max(store.edges["bought"])
    assert {part["id"] for part in live.neighbours(bought[1], kind="item")} >= {bought[0]}
    assert all(part["kind"] == "user" for part in live.neighbours(bought[0], kind="user"))
    with refused():
        live.add_edges({"source": 3, "target": "u2", "weight": 1.0}, relation="rev_bought")


def test_explanations_name_kinds_and_relations_and_are_exact() -> None:
    store = Store(np.random.default_rng(4))
    graph = store.graph()
    torch.manual_seed(2)
    triples = [part.triple for part in graph.relations.values()]
    model = RELATIONAL["relational-gcn"](WIDTHS, triples, "user", 5, 2, rows={"shop": 3})
    saved = SavedModel(model.double(), "gcn", nodes=graph.names.unique())
    live = Live(saved, graph)
    users = sorted(store.nodes["user"])
    user = max(users, key=lambda node: sum(node in ends for ends in store.edges["bought"]))
    found = live.explain(user, kind="user")
    of = int(live.predict(user).outputs.argmax())
    looked = {(effect.relation, effect.kind) for effect in found.edges.effects}
    assert ("user-bought-item", "item") in looked
    assert found.edges.looked_at == found.edges.there

    def probability(changed: Store) -> float:
        graph = changed.graph()
        place = graph.names.ids_of("user").to_pylist().index(user)
        return float(predict(saved, graph, [place]).softmax(1)[0, of])

    for effect in found.edges.effects:
        name = str(effect.relation).split("-")[1]
        changed = copy.deepcopy(store)
        ends = [pair for pair in store.edges[name] if set(pair) == {user, effect.id}]
        for pair in ends if name != "follows" else ends[:1]:
            del changed.edges[name][pair]
        if len(ends) == 1:
            assert effect.without == pytest.approx(probability(changed), abs=1e-12)
    for effect in found.neighbours.effects:
        changed = copy.deepcopy(store)
        del changed.nodes[str(effect.kind)][effect.id]
        for name, (source, target) in RELATIONS.items():
            changed.edges[name] = {
                (s, t): weight
                for (s, t), weight in store.edges[name].items()
                if (source, s) != (effect.kind, effect.id)
                and (target, t) != (effect.kind, effect.id)
            }
        assert effect.without == pytest.approx(probability(changed), abs=1e-12)


def _of_store() -> Live:
    store = Store(np.random.default_rng(4))
    graph = store.graph()
    torch.manual_seed(2)
    triples = [part.triple for part in graph.relations.values()]
    model = RELATIONAL["relational-graphsage"](WIDTHS, triples, "user", 5, 2, rows={"shop": 3})
    return Live(SavedModel(model.double(), "mean", nodes=graph.names.unique()), graph)


def test_a_kind_keeps_a_node(tmp_path: Path) -> None:
    """Without one the graph could not be saved."""
    live = _of_store()
    every = {"change": "remove_nodes", "ids": ["a", "b", "c"], "kind": "shop"}
    with refused():
        live.apply(every)
    assert live.has("a", kind="shop")
    live.apply([every, {"change": "add_nodes", "rows": [{"id": "d"}], "kind": "shop"}])
    live.apply([{"change": "add_nodes", "rows": [{"id": "e"}], "kind": "shop"}])
    live.remove_nodes("e", kind="shop")
    with refused():
        live.remove_nodes("d", kind="shop")
    live.save(tmp_path / "state")
    assert live.graph().names.ids_of("shop").to_pylist() == ["d"]


@pytest.mark.parametrize(
    ("forward", "reverse", "row", "same"),
    [
        ("follows", "rev_follows", ("u1", "u2"), ("u2", "u1")),
        ("bought", "rev_bought", (3, "u2"), ("u2", 3)),
    ],
)
def test_ends_of_a_reverse_are_those_of_the_relation_that_is_named(
    forward: str, reverse: str, row: tuple[Any, Any], same: tuple[Any, Any]
) -> None:
    one, other = _of_store(), _of_store()
    weight = (1.5,) if forward == WEIGHTED else ()
    names = ("source", "target", "weight")
    one.add_edges(dict(zip(names, (*row, *weight), strict=False)), relation=reverse)
    other.add_edges(dict(zip(names, (*same, *weight), strict=False)), relation=forward)
    for node in ("u1", "u2"):
        assert one.neighbours(node) == other.neighbours(node)
    users = sorted(f"u{n}" for n in range(9))
    assert torch.equal(one.predict(users).outputs, other.predict(users).outputs)
    assert not torch.equal(one.predict(users).outputs, _of_store().predict(users).outputs)
