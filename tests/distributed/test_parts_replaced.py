"""Parts that are replaced by those of another partition while processes open them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import torch

from tests.distributed.problems import graph_of
from tests.distributed.processes import in_processes
from tests.files.replacing import replaced_at_every_moment
from tests.theory.problems import CLASSES, FEATURES
from vrgcn.distributed.group import Group
from vrgcn.distributed.partitioning import write_parts
from vrgcn.distributed.parts import load_part
from vrgcn.distributed.prediction import part_sweeps, whole_names
from vrgcn.files.folder import FolderReplacedError
from vrgcn.files.mistakes import InputError
from vrgcn.graph.graph import Graph
from vrgcn.graph.names import Names
from vrgcn.inference.saved import SavedModel
from vrgcn.models.models import GCN


def whole(kind: str) -> Graph:
    """Two graphs that nothing but their numbers and ids tell apart."""
    graph = graph_of(directed=False, trained=30)
    place = ("old", "new").index(kind)
    ids = pa.array([f"{kind}-{node}" for node in range(graph.num_nodes)])
    return Graph(
        graph.edge_index(),
        graph.features + place,
        graph.labels,
        train=graph.train,
        names=Names(ids, None, None),
    )


def make(home: Path) -> None:
    for kind in ("old", "new"):
        assignment = torch.arange(72) % 2
        write_parts(whole(kind), assignment, home / kind, parts=2, scaling="none")


def read(folder: Path) -> set[str]:
    """Return the partition of everything that one process reads."""
    try:
        part = load_part(folder, 1, verify=True)
        ids = whole_names(folder, part).nodes
    except FolderReplacedError as error:
        return {"refused"} if f"{folder} was re" in str(error) else {str(error)}
    assert ids is not None
    found = {ids[0].as_py().split("-")[0]}
    for kind in ("old", "new"):
        graph = whole(kind)
        mean = graph.features[graph.train].mean(0)
        if torch.equal(part.graph.features, graph.features[part.nodes]):
            found.add(kind)
        if torch.allclose(part.shared["scaling.mean"].double(), mean):
            found.add(kind)
    return found


@pytest.mark.parametrize("replace", ["renamed", "removed"])
def test_a_part_is_wholly_of_one_partition_or_refused(replace: str, tmp_path: Path) -> None:
    found = list(replaced_at_every_moment(tmp_path, make, replace, read))
    assert all(len(one) == 1 for one in found)
    assert {kind for one in found for kind in one} == {"old", "new", "refused"}


def sweeps(group: Group, folder: Path, kinds: list[str], weights: list[int]) -> str:
    """Return a process's message about parts and a model that it found at different moments."""
    torch.manual_seed(weights[group.rank])
    model = GCN(FEATURES, 4, CLASSES, layers=1).double()
    try:
        part = load_part(folder / kinds[group.rank], group.rank)
        part_sweeps(SavedModel(model, "gcn"), part, group)
    except ValueError as error:
        return str(error)
    return "good"


@pytest.mark.parametrize(
    ("kinds", "weights", "told"),
    [
        (["old", "old"], [3, 3], "good"),
        (["old", "new"], [3, 3], "rank 1 has other parts than rank 0"),
        (["new", "new"], [3, 4], "rank 1 has other weights than rank 0"),
    ],
)
def test_processes_that_predict_have_the_same_parts_and_weights(
    kinds: list[str], weights: list[int], told: str, tmp_path: Path
) -> None:
    make(tmp_path)
    for found in in_processes(2, sweeps, tmp_path, kinds, weights):
        assert told in found


def other_number(group: Group, folder: Path) -> str:
    torch.manual_seed(0)
    part = load_part(folder, group.rank)
    model = GCN(FEATURES, 4, CLASSES, layers=1).double()
    with pytest.raises(InputError, match="has 3 parts, and there are 2 processes") as told:
        part_sweeps(SavedModel(model, "gcn"), part, group)
    return str(told.value)


def test_parts_of_another_number_than_processes_are_refused_where_they_are_used(
    tmp_path: Path,
) -> None:
    write_parts(whole("old"), torch.arange(72) % 3, tmp_path / "three", parts=3, scaling="none")
    assert len(in_processes(2, other_number, tmp_path / "three")) == 2
