"""A search for models of pairs, or of the edges of all relations: simple rules, then networks. The
best network is the result.

Embeddings of different networks have no common axes, so nothing is averaged; scores of a decoder
have no common scale either. Simple rules stand on the leaderboard: they need no training, and say
what a network has to beat.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from vrgcn.graph.graph import Graph
from vrgcn.inference.predict import exact_sweeps
from vrgcn.inference.saved import SavedModel
from vrgcn.pairs.ranking import score_pairs
from vrgcn.pairs.rules import simple_rules
from vrgcn.pairs.values import score_values, value_rules
from vrgcn.runs.building import build_network
from vrgcn.runs.job import Job, prepare
from vrgcn.training.clock import Clock
from vrgcn.training.embedding_objective import EmbeddingObjective
from vrgcn.training.objective import build_objective
from vrgcn.triples.ranking import score_triples
from vrgcn.triples.rules import simple_rules as triple_rules
from vrgcn.tuning.finishing import Finished, Finishing, Scores
from vrgcn.tuning.members import Member
from vrgcn.tuning.space import Settings
from vrgcn.tuning.standings import standings
from vrgcn.tuning.study import Tried
from vrgcn.tuning.tuner import Tuner, TuneResult


class PairTuner(Tuner):
    """A search on a graph with pairs or triples. Trials score validation pairs alone."""

    def fit_rules(self) -> None:
        """Score the simple rules on the validation pairs."""
        clock, before = Clock(), 0.0
        for title, val in self._rules():
            ended = Tried(-1, "complete", val, {}, 0, clock.used - before, None, title)
            before = clock.used
            self.baselines[title] = ended
            self._note(ended)

    def _rules(self) -> Iterator[tuple[str, float]]:
        """The names of simple rules and their validation scores."""
        assert isinstance(self.objective, EmbeddingObjective)
        pairs, triples, name = self.graph.pairs, self.graph.triples, self.objective.metric_name
        if triples is not None:
            for title, counted in triple_rules(triples).items():
                yield title, score_triples(counted, triples, "val")[name]
            return
        assert pairs is not None
        if pairs.target is not None:
            for title, values in value_rules(pairs).items():
                yield title, score_values(values, pairs, "val")[name]
            return
        for title, rule in simple_rules(pairs, self.search.given.model.embedding).items():
            yield title, score_pairs(rule, pairs, "val", (name,))[name]

    def finish(self) -> TuneResult:
        """Write the best network to the folder `best`, scored on the test pairs."""
        assert isinstance(self.objective, EmbeddingObjective)
        members = self._members()
        found = PairFinishing(
            self.objective,
            self.graph,
            self.untested,
            self.objective.metric,
            self.folder,
            self.options,
            self.search.given.train.epochs,
        ).run_pairs(members, self._chosen(members), list(self.baselines.values()))
        return self._result(found)

    def _untested(self) -> Graph:
        return self.graph

    def _job(self, settings: Settings) -> Job:
        objective = build_objective(self.graph, settings.train)
        assert isinstance(objective, EmbeddingObjective)
        objective.tested = False
        model = self._build(settings)
        return prepare(model, self.graph, settings.train, objective=objective)

    def _build(self, settings: Settings) -> nn.Module:
        return build_network(settings.model, self.graph, self.objective, settings.train.seed)


class PairFinishing(Finishing):
    """The end of a search for pairs. objective: of the search, which may score test pairs"""

    def __init__(self, objective: EmbeddingObjective, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.objective = objective

    def run_pairs(self, members: list[Member], best: Member, rules: list[Tried]) -> Finished:
        """Write the best and score it on the test pairs.

        members: the trials that have a model; rules: simple ones, for the leaderboard
        """
        assert best.tried.val is not None
        saved = best.load()
        every = [*(member.tried for member in members), *rules]
        rows = standings([(each, None, 0.0) for each in every], None, self.metric, self.planned)
        scores = Scores(self.metric, best.tried.val, None, None)
        return Finished(best, saved, self._write_best(best, saved, scores), None, None, rows)

    def _tested(self, saved: SavedModel, scores: Scores) -> Scores:
        if not self.objective.has_pairs("test"):
            return scores
        self.objective.prepare(saved.model)
        embeddings = exact_sweeps(saved, self.graph).outputs(None)
        test = self.objective.score_split(embeddings, "test")
        return Scores(scores.metric, scores.val, scores.error, test)
