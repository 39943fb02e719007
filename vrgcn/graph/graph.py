"""The graph: adjacency, features, labels and split, checked once when it is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vrgcn.files.mistakes import InputError
from vrgcn.graph.kinds import Kinds
from vrgcn.graph.names import Names
from vrgcn.graph.pairs import EDGES, Pairs
from vrgcn.graph.predicted_edges import PredictedEdges
from vrgcn.graph.relations import Relation, Schema, build_adjacency, kept_entries, union
from vrgcn.graph.replacing import changed
from vrgcn.graph.sparse import CSR, full_precision, layout_word
from vrgcn.graph.validation import (
    SPLITS,
    check_edges,
    check_features,
    check_labels,
    check_split_labels,
    check_splits,
)
from vrgcn.tasks import find_task, implied_task

if TYPE_CHECKING:
    from vrgcn.graph.dated import Dated
    from vrgcn.graph.kept import Column
    from vrgcn.graph.mapped import Derived
    from vrgcn.graph.scaling import Scaling
    from vrgcn.graph.triples import Triples
    from vrgcn.graph.visible import Visible


class Graph:
    """A graph with node features, for classification of nodes or for numbers that they have.

    edge_index: (2, edges) integer; row 0 the source, row 1 the target, as in PyG. Node u averages
        over the edges into u. Duplicate edges are merged, their weights summed.
    features: (nodes, width) floating point, dense or sparse CSR, or both in `Blocks`.
    labels: (nodes,) integer, one class per node, -1 where unknown; or (nodes, classes) of 0 and 1,
        several classes per node, a row of -1 (or NaN) where unknown; or with task="regression"
        (nodes,) numbers, NaN where unknown.
    edge_weight: (edges,) floating point; without it every edge weighs 1.
    train, val, test: node ids, or a boolean mask over the nodes.
    undirected: every edge was given once and counts in both directions.
    names: the user's own names of nodes, classes and features.
    task: "classes", "multilabel" or "regression"; without it one of the first two, as the shape of
        the labels tells.
    edge_columns, node_columns: columns to keep for each edge or node, by name: numbers, datetime64
        or texts, (edges,) or (nodes,); see graph/kept.py.

    After construction: `adjacency` is the (nodes, nodes) CSR matrix A with A[u, v] the weight of
    the edge v -> u, columns ascending, its `values` None if no weights were given; `labels` is
    int64 (nodes,), float (nodes, classes) or float64 (nodes,), of which `task` says which;
    `num_classes` is 0 for numbers; each split is a sorted int64 tensor of ids, empty where none
    was given; `scaling` is what was done to the features by `scale_graph`, None if nothing was;
    `derived` keeps what is computed from the features beside a graph on disk, None elsewhere;
    `sums` are, in one part of a larger graph, the sums of its nodes' rows and columns of the larger
    graph's A, (nodes,) float64 each, and None in a graph that is whole.

    `kinds` are the kinds of nodes, the range of each in the one numbering, and `relations` the
    edges between them, by name. A graph of one table has one kind, called "" (`kinds.named` is
    False), and one relation, "edges". In a graph of several kinds (`from_kinds`) each relation that
    is not one-way has its reverse, `adjacency` is the union over all relations, made when it is
    first asked for, and the features are those of each kind in columns of their own.

    `kept` are columns of single edges and nodes: by the name of a relation or a kind, or by "edges"
    and "nodes" in a graph of one table, and then by their own name. Edges have them in the order
    of the adjacency's entries; empty where none were given.

    A graph of rows with a time of their own has `dated`: when its nodes became known, and which
    facts a row sees (graph/dated.py); None in every other graph.

    A graph whose nodes are split by time (`split_by_time`) has `visible`, the edges that training
    sees; None if the split hides no edges of itself.

    A graph whose edges are to be predicted (`split_pairs`) has `pairs`, its training, validation
    and test pairs; its adjacency has only the training pairs. Where the edges of all relations are
    to be predicted (`split_triples`) it has `triples` instead. None in every other graph.
    """

    features: Tensor
    labels: Tensor | None
    num_classes: int
    task: str
    train: Tensor
    val: Tensor
    test: Tensor
    names: Names
    kinds: Kinds
    relations: Mapping[str, Relation]
    kept: Mapping[str, Mapping[str, Column]] = {}
    scaling: Scaling | None = None
    derived: Derived | None = None
    sums: tuple[Tensor, Tensor] | None = None
    dated: Dated | None = None
    visible: Visible | None = None
    pairs: Pairs | None = None
    triples: Triples | None = None

    def __init__(
        self,
        edge_index: Any,
        features: Any,
        labels: Any = None,
        *,
        edge_weight: Any = None,
        train: Any = None,
        val: Any = None,
        test: Any = None,
        num_classes: int | None = None,
        undirected: bool = False,
        names: Names | None = None,
        task: str | None = None,
        edge_columns: Mapping[str, Any] | None = None,
        node_columns: Mapping[str, Any] | None = None,
    ) -> None:
        x = check_features(features)
        nodes = x.shape[0]
        edges, weight = check_edges(edge_index, edge_weight, nodes)
        y, num_classes, task = check_labels(labels, num_classes, nodes, task)
        splits = {"train": train, "val": val, "test": test}
        parts = {"features": x, "labels": y, "num_classes": num_classes, "task": task}
        parts |= zip(SPLITS, check_splits(splits, nodes), strict=True)
        A = build_adjacency(edges, weight, nodes, undirected)
        kinds, relations = Kinds.one(*x.shape), {EDGES: Relation.only(A)}
        vars(self).update(parts, kinds=kinds, relations=relations, names=names or Names())
        check_split_labels(self)
        self.names.check(nodes, num_classes, self.num_features)
        if edge_columns or node_columns:
            from vrgcn.graph.kept import columns_of_table

            kept = columns_of_table(A, edges, edge_columns or {}, node_columns or {}, undirected)
            vars(self).update(kept=kept)

    def __setattr__(self, name: str, value: Any = None) -> None:
        raise AttributeError(
            f"a Graph never changes: graph.replace({name}=...) returns another, which has it"
        )

    __delattr__ = __setattr__

    @classmethod
    def from_parts(
        cls,
        adjacency: CSR | None,
        features: Tensor,
        labels: Tensor | None,
        splits: dict[str, Tensor],
        num_classes: int,
        names: Names | None = None,
        task: str | None = None,
        kinds: Kinds | None = None,
        relations: Mapping[str, Relation] | None = None,
    ) -> Graph:
        """A graph from parts that were checked before, such as those of a saved graph.

        adjacency: None in a graph of several kinds, whose relations have the edges
        """
        graph = cls.__new__(cls)
        if adjacency is not None:
            kinds, relations = Kinds.one(*features.shape), {EDGES: Relation.only(adjacency)}
        vars(graph).update(
            {name: splits[name] for name in SPLITS},
            features=features,
            labels=labels,
            num_classes=num_classes,
            task=task or implied_task(labels),
            names=names or Names(),
            kinds=kinds,
            relations=relations,
        )
        return graph

    @classmethod
    def from_kinds(
        cls,
        features: Mapping[str, Any],
        edges: Mapping[tuple[str, str, str], Any],
        labels: Mapping[str, Any] | None = None,
        *,
        train: Any = None,
        val: Any = None,
        test: Any = None,
        target: str | None = None,
        undirected: Collection[tuple[str, str, str]] = (),
        one_way: Collection[tuple[str, str, str]] = (),
        ids: Mapping[str, Any] | None = None,
        classes: list[str] | None = None,
        columns: Mapping[str, list[str]] | None = None,
        num_classes: int | None = None,
        task: str | None = None,
        edge_columns: Mapping[tuple[str, str, str], Mapping[str, Any]] | None = None,
        node_columns: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Graph:
        """A graph of several kinds of nodes and several relations between them.

        features: for each kind (nodes of the kind, width), dense or sparse; where it has no
            features the number of its nodes, or None if `ids` tells it
        edges: by (source kind, relation, target kind), as ("user", "bought", "item"): (2, edges)
            numbers within each kind, sources, then targets; or a pair of these and a weight for
            each edge. A relation gets its reverse, "item-rev_bought-user", unless `one_way`
        labels: {kind: labels}, as in `Graph`: one kind has labels
        train, val, test: numbers within that kind, or a mask over it
        target: the kind with the labels, where there are none to tell
        undirected: relations of one kind whose edges count in both directions; they have no reverse
        one_way: relations whose edges carry messages from source to target only, such as those from
            the past to the future; they have no reverse
        ids: the user's own ids of the nodes of a kind
        classes, columns: names of the classes, and of the feature columns of a kind
        edge_columns, node_columns: columns to keep for each edge of a relation or node of a kind,
            {("user", "rated", "item"): {"rating": ..., "time": ...}}, {"user": {"joined": ...}}
        """
        from vrgcn.graph.from_kinds import graph_from_kinds

        return graph_from_kinds(
            features,
            edges,
            labels or {},
            splits={"train": train, "val": val, "test": test},
            target=target,
            undirected=undirected,
            one_way=one_way,
            ids=ids or {},
            classes=classes,
            columns=columns or {},
            num_classes=num_classes,
            task=task,
            edge_columns=edge_columns or {},
            node_columns=node_columns or {},
        )

    @cached_property
    def adjacency(self) -> CSR:
        return union(self.relations, self.num_nodes)

    @property
    def given(self) -> dict[str, Relation]:
        """The relations that are not the reverse of another, by name."""
        return {name: part for name, part in self.relations.items() if part.reverse_of is None}

    @property
    def edges(self) -> dict[str, CSR]:
        """The adjacency of each relation that was given, by name; "edges" in a graph of one
        table."""
        return {name: part.adjacency for name, part in self.given.items()}

    @property
    def target(self) -> str | None:
        """The named kind whose nodes have labels, if there is one."""
        return self.kinds.target or None

    @property
    def schema(self) -> Schema:
        """The kinds, between which of them each relation lies, and which edges have weights."""
        if not self.kinds.named:
            return Schema(self.kinds, weighted=frozenset([None] if self.weighted else []))
        ends = {name: (part.source, part.target) for name, part in self.relations.items()}
        weighted = {name for name, part in self.relations.items() if part.weighted}
        return Schema(self.kinds, ends, frozenset(weighted))

    @property
    def seen(self) -> Tensor:
        """The nodes that inductive training sees: the training nodes, and all of other kinds; all
        nodes where some edges are hidden by their time."""
        if self.visible is not None:
            return torch.arange(self.num_nodes)
        kinds = self.kinds
        others = [kinds.nodes(kind) for kind in kinds.names if kind != kinds.target]
        return torch.cat([self.train, *others]).sort().values

    @property
    def weighted(self) -> bool:
        """Whether edges have weights of their own; else each weighs 1."""
        return any(relation.weighted for relation in self.relations.values())

    @property
    def num_nodes(self) -> int:
        return self.features.shape[0]

    @property
    def num_edges(self) -> int:
        """Directed edges after merging; an undirected one counts twice, a self-loop once. Those of
        all relations, without their reverses."""
        return sum(A.num_entries for A in self.edges.values())

    @property
    def num_features(self) -> int:
        return self.features.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """Dtype used for computation: float32 where the features are kept in half precision."""
        return full_precision(self.features.dtype)

    @property
    def multilabel(self) -> bool:
        return find_task(self.task).several

    @property
    def labelled(self) -> Tensor:
        """(nodes,) bool: whether a node's label is known."""
        if self.labels is None or not self.labels.numel():  # several classes per node, of none
            return torch.zeros(self.num_nodes, dtype=torch.bool)
        return find_task(self.task).labelled(self.labels)

    def split(self, name: str) -> Tensor:
        """Node ids of `train`, `val` or `test`."""
        if name not in SPLITS:
            raise InputError(f"there is no split {name!r}; there are {', '.join(SPLITS)}")
        ids: Tensor = getattr(self, name)
        return ids

    def edge_index(self) -> Tensor:
        """(2, edges) in PyG's direction: sources, then targets."""
        return torch.stack([self.adjacency.indices, self.adjacency.row_of_entry])

    def replace(self, **parts: Any) -> Graph:
        """The same nodes with other parts, by the names of attributes; the only way to another
        graph.

        A new part drops those that it makes wrong, unless they are given too:

        features: (nodes, width); drop `scaling` and `derived`, and the names of the columns if
            there are more or fewer
        edges: the new adjacency of each relation whose edges change, "edges" in a graph of one
            table; reverses follow. Drops the kept columns of these edges, `visible`, `derived` and
            `sums`
        labels: as in `Graph`, or None; the number of classes, the task and the names of classes
            follow
        pairs, triples: drop the other
        train, val, test: as in `Graph`, or empty; drop nothing: `visible` stays, so that training
            never sees more than before
        """
        return changed(self, parts)

    def among(self, nodes: Tensor) -> Graph:
        """The same nodes with only the edges that have both ends in `nodes` (inductive training).

        Node ids, features and labels are shared, not copied.
        """
        inside = torch.zeros(self.num_nodes, dtype=torch.bool)
        inside[nodes] = True
        return self.replace(
            edges={
                name: kept_entries(A, inside[A.row_of_entry] & inside[A.indices])
                for name, A in self.edges.items()
            }
        )

    def in_training(self) -> Graph:
        """The same nodes with the edges that inductive training sees: those among `seen` nodes, or
        those that were there by the end of training."""
        if self.visible is None:
            return self.among(self.seen)
        return self.replace(
            edges={name: self.visible.adjacency(name, A) for name, A in self.edges.items()}
        )

    def only(self, relation: Relation) -> Graph:
        """The same nodes with the edges of one relation, as a graph of one table."""
        splits = {name: self.split(name) for name in SPLITS}
        return Graph.from_parts(
            *(relation.adjacency, self.features, self.labels, splits, self.num_classes),
            task=self.task,
        )

    def with_features(self, features: Tensor, scaling: Scaling | None = None) -> Graph:
        """The same graph with other features (nodes, width). scaling: what was done to them"""
        return self.replace(features=features, scaling=scaling)

    def with_splits(self, splits: dict[str, Tensor]) -> Graph:
        """The same graph with other training, validation and test nodes: sorted ids by name; a
        split that is not named has none."""
        return self.replace(**{name: splits.get(name, self.train[:0]) for name in SPLITS})

    @classmethod
    def from_pyg(cls, data: Any, task: str | None = None) -> Graph:
        """A graph from PyG's `Data`: x, edge_index, y, masks, edge_weight or edge_attr; or from
        `HeteroData`, whose node types become kinds and edge types relations.

        Masks hold true and false, or 0 and 1, for each node.

        task: "regression" where y holds numbers to be predicted
        """
        from vrgcn.graph.pyg import graph_from_pyg

        return graph_from_pyg(data, task)

    @classmethod
    def from_pandas(
        cls,
        nodes: Any,
        edges: Any,
        *,
        out: str | Path | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> Graph:
        """A graph from two DataFrames, a row for each node and a row for each edge.

        nodes: ids in a column `id`, or else in the index; None: the nodes that the edges name
        edges: the ids of the ends in columns `source` and `target`, or in its only two columns
        out: a folder to keep the graph in, for `load_graph` and for `like`
        verbose: print what was read, and warnings
        options: those of `vrgcn import` by name, such as label="topic", ratio=(0.6, 0.2, 0.2),
            features=["age", "f_*"], column="bio=text:64", fill="age=median", task="regression",
            directed=True, weight="strength", like="graphs/papers"
        """
        from vrgcn.data.frames import graph_from_pandas

        return graph_from_pandas(nodes, edges, out=out, verbose=verbose, **options)

    @classmethod
    def from_tables(
        cls,
        nodes: Mapping[str, Any],
        edges: Mapping[tuple[str, str, str], Any],
        *,
        out: str | Path | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> Graph:
        """A graph from several DataFrames: one for each kind of nodes and each relation.

        nodes: {kind: DataFrame}, ids as in `from_pandas`; a kind without a table has the nodes that
            edges name
        edges: {(source kind, relation, target kind): DataFrame}, ids as in `from_pandas`, or in
            columns that are called as the kinds
        options: those of `vrgcn import` by name, columns with their kind: label="user.churned",
            fill="item.price=median", drop=["user.zip"], weight="bought.amount"; and, of rows with
            a time of their own, dated={"result": "date"} and rows=("driver", DataFrame, "date"):
            the kinds that the rows name, the rows, and the column of their times
        """
        from vrgcn.data.frames import graph_from_tables

        return graph_from_tables(nodes, edges, out=out, verbose=verbose, **options)

    @classmethod
    def from_networkx(
        cls,
        G: Any,
        *,
        features: Any = None,
        out: str | Path | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> Graph:
        """A graph from NetworkX's: attributes of nodes become features, labels and split, the
        attribute `weight` of edges (weight="...": another) their weights; 1 where one has none.

        A multigraph whose nodes have an attribute `kind` becomes a graph of several kinds; the
        relation of an edge is its attribute `relation`, or else its key where that is a text.

        features: names of attributes; None: all that are nothing else; "degree": from the degrees,
            as where there are no attributes; "constant": 1 for every node
        options: as in `from_pandas`; the graph itself says whether it is directed
        """
        from vrgcn.data.frames import graph_from_networkx

        return graph_from_networkx(G, features=features, out=out, verbose=verbose, **options)

    @property
    def predicted(self) -> PredictedEdges | None:
        """The edges that are to be predicted; None if labels are."""
        return self.pairs or self.triples

    def to_pyg(self) -> Any:
        """The graph as PyG's `Data`, with masks, and edge_weight where it is weighted; as
        `HeteroData` where it has several kinds."""
        from vrgcn.graph.pyg import graph_to_pyg

        return graph_to_pyg(self)

    def __repr__(self) -> str:
        labels = find_task(self.task).described(self.num_classes)
        splits = ", ".join(f"{name}={len(self.split(name)):,}" for name in SPLITS)
        told = f"{labels}, {splits}" if self.predicted is None else str(self.predicted)
        kinds = ""
        if self.kinds.named:
            sizes = ", ".join(f"{name} {size:,}" for name, size in self.kinds.sizes.items())
            kinds = f"kinds=({sizes}), relations={len(self.edges):,}, "
        return (
            f"Graph(nodes={self.num_nodes:,}, {kinds}entries={self.num_edges:,}, "
            f"features={self.num_features:,}{layout_word(self.features)}, {told})"
        )
