"""A search for models of predicted edges: simple rules, then networks. The best network is the
result.

Embeddings of different networks have no common axes, so nothing is averaged; scores of a decoder
have no common scale either. Simple rules stand on the leaderboard: they need no training, and say
what a network has to beat.
"""

from __future__ import annotations

from torch import nn

from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import exact_sweeps
from vrgcn.inference.saved import SavedModel
from vrgcn.runs.building import build_network
from vrgcn.runs.job import Job, prepare
from vrgcn.targets.finding import find_target
from vrgcn.training.clock import Clock
from vrgcn.tuning.space import Settings
from vrgcn.tuning.study import Tried
from vrgcn.tuning.tuner import Tuner, TuneResult


class PairTuner(Tuner):
    """A search on a graph with pairs or triples. Trials score validation pairs only."""

    def fit_rules(self) -> None:
        """Score the simple rules on the validation pairs."""
        clock, before = Clock(), 0.0
        width = self.search.given.model.embedding
        for title, scores in self.target.simple_scores(("val",), width):
            took = clock.used - before
            ended = Tried(-1, "complete", scores["val"], {}, 0, took, None, title)
            before = clock.used
            self.baselines[title] = ended
            self._note(ended)

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

    def _job(self, settings: Settings) -> Job:
        target = find_target(self.graph, settings.train)
        target.tested = False
        return prepare(self._build(settings), self.graph, settings.train, target)

    def _build(self, settings: Settings) -> nn.Module:
        return build_network(settings.model, self.graph, self.target, settings.train.seed)
