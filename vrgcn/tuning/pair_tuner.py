"""A search for models of predicted edges: simple rules, then networks. The best network is the
result.

Embeddings of different networks have no common axes, so nothing is averaged; scores of a decoder
have no common scale either. Simple rules stand on the leaderboard: they need no training, and say
what a network has to beat.
"""

from __future__ import annotations

from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import exact_sweeps
from vrgcn.inference.saved import SavedModel
from vrgcn.tuning.tuner import Tuner, TuneResult


class PairTuner(Tuner):
    """A search on a graph with pairs or triples. Trials score validation pairs only."""

    def finish(self) -> TuneResult:
        """Write the best network to the folder `best`, scored on the test pairs."""
        members, rules = self._members(), list(self.baselines.values())
        found = self._finishing().run_edges(members, self._chosen(members), rules)
        return self._result(found)

    def _test_score(self, saved: SavedModel) -> float | None:
        if not self.target.has("test"):
            return None
        self.target.prepare(saved.model)
        outputs = exact_sweeps(saved, self.graph).outputs(self.target.nodes("test"))
        return self.target.score_split(outputs, "test")

    def _untested(self) -> Graph:
        return self.graph
