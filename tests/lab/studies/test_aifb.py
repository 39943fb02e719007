"""The study of AIFB reads the official split and holds out validation nodes from training alone."""

import pytest
import torch

from lab.league.real_graphs import data_folder
from lab.studies.aifb import aifb

DATA = data_folder()


@pytest.mark.skipif(DATA is None, reason="the folder of real graphs (VRGCN_DATA) is not there")
def test_aifb_has_45_relations_and_its_official_split() -> None:
    assert DATA is not None
    whole, part = (aifb(DATA / "aifb", 0, count) for count in (0, 14))
    assert sum(relation.reverse_of is None for relation in whole.relations.values()) == 45
    assert (whole.num_nodes, whole.num_edges) == (8285, 29043)
    assert (len(whole.train), len(whole.test)) == (140, 36)
    assert torch.equal(torch.cat([part.train, part.val]).sort().values, whole.train)
    assert torch.equal(part.test, whole.test)
