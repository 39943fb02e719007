"""The network of a model's settings, for what a graph is to predict: labels of nodes, or pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from vrgcn.baselines.logistic import Logistic, fit_logistic
from vrgcn.baselines.problem import Problem
from vrgcn.baselines.quick import is_quick
from vrgcn.costs.order import build_for
from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting
from vrgcn.files.settings import AUTO
from vrgcn.graph.forms import FORMS
from vrgcn.graph.graph import Graph
from vrgcn.models.config import ModelConfig
from vrgcn.models.models import MODELS, GraphModel
from vrgcn.targets.scored import scored_edges
from vrgcn.tasks import find_task
from vrgcn.tasks.metrics import LabelMetric
from vrgcn.training.target import Target

# Ridge regressions of graphs that are in memory, by what `linear_path` asked for and the score that
# chose them: the models of a search begin with one fit.
_FITTED: WeakKeyDictionary[Graph, dict[tuple[str, str], Logistic]] = WeakKeyDictionary()


def build_network(config: ModelConfig, graph: Graph, target: Target, seed: int) -> nn.Module:
    """Build a model with new weights, which depend on the seed; with a decoder for pairs."""
    edges = scored_edges(graph)
    if edges is None:
        path = _linear_path(config, graph, target)
        form: Any = "never" if path is None else path.arguments["form"]
        model = build_for(replace(config, linear_path=form), graph, target.outputs, seed)
        if path is not None and isinstance(model, GraphModel) and model.linear is not None:
            model.linear.set(path.weights[0], path.bias)
        return model
    from vrgcn.pairs.model import PairModel

    network = build_for(config, graph, config.embedding, seed)
    return PairModel.around(network, config.decoder, edges.predicted, seed)


def _linear_path(config: ModelConfig, graph: Graph, target: Target) -> Logistic | None:
    """The linear model of a node's own features that a network adds to its outputs; None: it adds
    none."""
    asked = config.linear_path
    if asked == "never" or config.settled().model not in MODELS or graph.kinds.named:
        return None
    if asked == AUTO and not _is_worth_it(graph, target):
        return None
    assert isinstance(target.metric, LabelMetric)
    fitted, key = _FITTED.setdefault(graph, {}), (asked, target.metric.title)
    if key not in fitted:
        if not len(graph.train) or not len(graph.val):
            raise InputError(
                f"{setting('linear_path', asked)} is fitted to training nodes and chosen by "
                "validation nodes: the graph needs both"
            )
        forms = None if asked == AUTO else [form for form in FORMS if form == asked]
        found = fit_logistic(Problem.of(graph, target.metric), 0, forms)
        assert isinstance(found, Logistic)  # of one table
        fitted[key] = found
    return fitted[key]


def _is_worth_it(graph: Graph, target: Target) -> bool:
    """Return True if numbers are predicted from features, and the fit takes some seconds at
    most."""
    numbers = graph.labels is not None and find_task(graph.task).name == "regression"
    known = graph.num_features > 0 and len(graph.train) > 0 and len(graph.val) > 0
    return numbers and known and is_quick(graph, 0, target.outputs)
