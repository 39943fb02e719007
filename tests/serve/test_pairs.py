"""A served model of pairs: recommendations follow purchases."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import vrgcn
from tests.messages import refused
from vrgcn.graph.graph import Graph
from vrgcn.serve.answers import ProblemError
from vrgcn.serve.service import opened_service


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that predicts the links of a ring of twelve nodes with chords."""
    folder = tmp_path_factory.mktemp("links")
    around = torch.arange(12)
    edges = torch.cat([torch.stack([around, (around + step) % 12]) for step in (1, 2, 3)], 1)
    both = torch.cat([edges, edges.flip(0)], 1)
    features = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    vrgcn.save_graph(Graph(both, features), folder / "graph")
    vrgcn.train(folder / "graph", out=folder / "run", predict="edges", epochs=2, hidden=8)
    return folder / "run"


def test_what_was_recommended_and_bought_is_not_recommended_again(
    links: Path, tmp_path: Path
) -> None:
    with opened_service(links, tmp_path / "state") as service:
        answer = service.recommend("3", None, 20)
        assert answer["id"] == 3
        first = answer["recommended"]
        bought = first[0]["id"]
        service.change([{"change": "add_edges", "rows": [{"source": 3, "target": bought}]}])
        after = [each["id"] for each in service.recommend("3", None, 20)["recommended"]]
        assert bought not in after
        assert len(after) == len(first) - 1
        live = vrgcn.load_run(links).live()
        live.add_edges((3, bought))
        assert after == [each["id"] for each in live.recommend(3, 20)]
        shown = service.read("3", None, 5)
        assert shown is not None
        assert "probabilities" not in shown
        with refused(ProblemError):
            service.explain("3", None)
