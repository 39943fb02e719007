"""The whole import: check the columns, read the nodes, read the edges, write the graph.

Every kind of nodes is read by the same code, in a folder of its own, and so is every relation. The
features of a kind become blocks of those of all nodes. A graph of one table has one kind and one
relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from vrgcn.data.databases.opening import TableOpener
from vrgcn.data.store import write_array, write_meta
from vrgcn.data.store_format import KeptPlace, RelationPlace
from vrgcn.data.tables.dated.edges import forget_unknown_targets
from vrgcn.data.tables.dated.sight import Sight, look_back
from vrgcn.data.tables.feature_files import append_columns, join_features
from vrgcn.data.tables.features import (
    copy_features,
    structural_features,
)
from vrgcn.data.tables.ids import look_alikes
from vrgcn.data.tables.kept import read_kept_nodes, write_columns
from vrgcn.data.tables.limits import respect_limit
from vrgcn.data.tables.opening import Opener, open_source
from vrgcn.data.tables.overrides import parse_fills
from vrgcn.data.tables.problems import Collected
from vrgcn.data.tables.read_tables import ReadKind, ReadRelation, Watch, read_kinds, read_relations
from vrgcn.data.tables.recipe import ImportRecipe
from vrgcn.data.tables.recipe_file import write_recipes
from vrgcn.data.tables.roles import Plan
from vrgcn.data.tables.sources import KindSource, OpenedTables
from vrgcn.data.tables.spec import ImportSpec
from vrgcn.data.tables.summary import ImportSummary, summarise
from vrgcn.data.tables.telling import remarks
from vrgcn.files.mistakes import InputError
from vrgcn.files.writing import new_folder
from vrgcn.graph.dated import Dated
from vrgcn.graph.kept import NODES, Column
from vrgcn.graph.kinds import ONE, Kinds
from vrgcn.graph.names import Names
from vrgcn.graph.validation import SPLITS
from vrgcn.tasks import DEFAULT, TASKS


def run_import(
    spec: ImportSpec, on_rows: Watch, on_plan: Plan, opened: Opener | None = None
) -> ImportSummary:
    """Run an import; see `import_tables`.

    opened: opens the tables of the spec; replaced where they are neither files nor in databases
    """
    respect_limit()
    with TableOpener(spec.out.parent) as opener:
        # Report every error that the first lines show before the long reading begins.
        source = open_source(spec, on_plan, opened or opener, on_rows)
        return _import(source, on_rows)


def _import(source: OpenedTables, on_rows: Watch) -> ImportSummary:
    with new_folder(source.spec.out) as folder:
        found = Collected()
        kinds = read_kinds(source, folder, on_rows, found)
        if source.times is not None:
            forget_unknown_targets(source.times, kinds)
        relations, recipes, degrees = read_relations(source, kinds, folder, on_rows, found)
        sight = None
        if source.times is not None:
            sight = look_back(source, kinds, relations, folder, degrees)
            relations = [*relations, *sight.relations]
        kinds = [_with_features(source, kind, relations, sight) for kind in kinds]
        classes, task = _write_labels(source, kinds, folder)
        kept = [place for relation in relations for place in relation.kept]
        kept += _write_kept_nodes(source, kinds, folder, len(kept))
        own = {
            kind.source.name: kind.source.recipe or _recipe(source, kind, classes, task)
            for kind in kinds
        }
        write_recipes(own | recipes, folder)
        notes = remarks(source)
        notes += [note for kind in kinds for note in kind.nodes.notes]
        notes += [note for relation in relations for note in relation.pairs.notes]
        alike = [look_alikes(kind.nodes.ids, source.spec.tidy_ids) for kind in kinds]
        notes += [note for note in alike if note is not None]
        dated = None if sight is None else sight.dated
        _write_description(source, kinds, relations, classes, task, folder, kept, dated)
        return summarise(source, kinds, relations, degrees, notes, sight)


def _with_features(
    source: OpenedTables, kind: ReadKind, relations: Sequence[ReadRelation], sight: Sight | None
) -> ReadKind:
    """Write the features that are not in the kind's folder yet."""
    spec, recipe, nodes = kind.source.spec, kind.source.recipe, kind.nodes
    features = nodes.features
    if features is None and spec.features_file is not None:
        fills = parse_fills(spec.fill)
        features = copy_features(
            spec.features_file,
            len(nodes.ids) - nodes.added,
            kind.folder,
            fills[0][1].value if fills else None,
            nodes.added,
            kind.source.marked,
            recipe.mean if recipe is not None else None,
        )
    elif features is None and not source.named:
        features = structural_features(relations[0].adjacency, kind.folder)
    width = 0 if features is None else features.width
    if recipe is not None and width != len(recipe.mean):
        raise InputError(f"there are {width} features, and {recipe.origin} has {len(recipe.mean)}")
    own = features
    more = [
        means
        for relation in relations
        for end, means in zip((0, 2), relation.means or (), strict=False)
        if relation.triple[end] == kind.source.name
    ]
    if sight is not None and kind.source.name == sight.dated.rows and sight.features.names:
        more.append(sight.features)
    if more:
        columns = np.concatenate([means.values for means in more], axis=1)
        names = [name for means in more for name in means.names]
        features = append_columns(kind.folder, features, names, columns)
    return replace(kind, own=own, features=features)


def _recipe(
    source: OpenedTables, kind: ReadKind, classes: list[str] | None, task: str
) -> ImportRecipe:
    own = kind.source
    mean = kind.own.mean if kind.own is not None else np.empty(0, np.float32)
    labelled = own.name == source.labelled
    return ImportRecipe.of(
        *(own.spec, own.columns, None, own.encoders, own.marked, mean),
        *((classes, task) if labelled else (None, DEFAULT)),
    )


def _write_labels(
    source: OpenedTables, kinds: Sequence[ReadKind], folder: Path
) -> tuple[list[str] | None, str]:
    """Write labels and splits over the numbering of all nodes; return the names of the classes and
    the task: without labels those of the graph of --like."""
    total = sum(len(kind.nodes.ids) for kind in kinds)
    one = next((kind for kind in kinds if kind.source.name == source.labelled), kinds[0])
    nodes, recipe = one.nodes, one.source.recipe
    if source.labelled is None:
        recipe = next((k.source.recipe for k in kinds if _has_classes(k.source)), None)
        nodes = replace(nodes, labels=None, split=None)
    if nodes.labels is not None:
        nodes.labels.within(one.start, total).write(folder)
    for code, name in enumerate(SPLITS):
        members = nodes.split == code if nodes.split is not None else np.empty(0, bool)
        write_array(folder, name, np.flatnonzero(members).astype(np.int64) + one.start)
    if nodes.labels is not None:
        asked = source.spec.task
        own = asked if asked != "auto" and asked not in TASKS else None  # of another package
        return nodes.labels.classes, own or nodes.labels.task
    return (None, DEFAULT) if recipe is None else (recipe.classes, recipe.task)


def _write_kept_nodes(
    source: OpenedTables, kinds: Sequence[ReadKind], folder: Path, first: int
) -> list[KeptPlace]:
    """Write the columns that are kept for each node, as files with numbers from `first` on."""
    places: list[KeptPlace] = []
    problems = Collected()
    for kind in kinds:
        own, table = kind.source, kind.source.table
        columns = {}
        if table is not None and own.keep:
            columns = read_kept_nodes(table, own.keep, len(kind.nodes.ids))
        if source.times is not None and own.name in source.times.values:
            values = np.full(len(kind.nodes.ids), np.nan)
            values[: len(source.times.values[own.name])] = source.times.values[own.name]
            date = Column("date", torch.from_numpy(values))
            columns[source.times.columns[own.name]] = date
        for reader in own.keep:
            problems.add(reader.problems)
        places += write_columns(own.name or NODES, columns, folder, first + len(places))
    problems.raise_if_any()
    return places


def _has_classes(kind: KindSource) -> bool:
    return kind.recipe is not None and bool(kind.recipe.label)


def _write_description(
    source: OpenedTables,
    kinds: Sequence[ReadKind],
    relations: Sequence[ReadRelation],
    classes: list[str] | None,
    task: str,
    folder: Path,
    kept: Sequence[KeptPlace],
    dated: Dated | None,
) -> None:
    """Write the last files of the graph: features of all nodes, ids, and what the folder holds."""
    target = source.labelled
    if target is None:
        target = next((k.source.name for k in kinds if _has_classes(k.source)), None)
    features = {k.source.name: k.features for k in kinds if k.features is not None}
    widths = {name: each.width for name, each in features.items()}
    numbering = Kinds({k.source.name: len(k.nodes.ids) for k in kinds}, target, widths)
    ids = {kind.source.name: kind.nodes.ids.natural() for kind in kinds}
    if source.named:
        columns = [
            f"{name}.{each.label(place)}"
            for name, each in features.items()
            for place in range(each.width)
        ]
        names = Names(classes=classes, features=columns, kinds=numbering, by_kind=ids)
    else:
        names = Names(ids[ONE], classes, features[ONE].names)
    blocks = join_features(
        {k.source.name: (k.folder, k.features) for k in kinds}, numbering, folder
    )
    places = [
        RelationPlace(
            *(*each.triple, each.adjacency.entries, each.pairs.weighted),
            undirected=not each.adjacency.directed,
            one_way=each.one_way,
        )
        for each in relations
    ]
    write_meta(
        *(folder, numbering, names, places, blocks),
        num_classes=len(classes or []),
        task=task,
        kept=kept,
        dated=dated,
    )
