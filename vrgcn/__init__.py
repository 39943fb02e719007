"""Graph convolutional networks trained with control variates on historical activations."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vrgcn.engine import MODEL_ADAPTERS

if TYPE_CHECKING:
    from vrgcn.data import load_dataset
    from vrgcn.data.store import load_graph, save_graph
    from vrgcn.engine.batch import Batch
    from vrgcn.engine.estimators import ESTIMATORS, Estimator
    from vrgcn.engine.minibatches import MiniBatches
    from vrgcn.engine.propagate import Propagate
    from vrgcn.graph.blocks import Blocks
    from vrgcn.graph.graph import Graph
    from vrgcn.graph.propagation import Propagation
    from vrgcn.graph.scaling import scale_graph
    from vrgcn.inference.embed import embeddings
    from vrgcn.inference.predictions import Predictions, predictions
    from vrgcn.inference.saved import SavedModel, load_model, save_model
    from vrgcn.live.live import Live
    from vrgcn.models.config import ModelConfig
    from vrgcn.models.dense import Dropout, InputLinear
    from vrgcn.models.models import GCN, MLP, GraphSAGE, Residual
    from vrgcn.pages.evaluate import evaluate
    from vrgcn.pages.evaluation import Evaluation
    from vrgcn.pages.explanation import explain
    from vrgcn.pages.runs.report import report
    from vrgcn.pairs.model import PairModel
    from vrgcn.runs.audit import Audit, audit
    from vrgcn.runs.fit import fit
    from vrgcn.runs.predict import Predicted, predict
    from vrgcn.runs.recommend import Recommended, recommend
    from vrgcn.runs.run import Run, load_run
    from vrgcn.runs.train import train
    from vrgcn.scikit.classifier import VRGCNClassifier as VRGCNClassifier
    from vrgcn.scikit.recommender import VRGCNRecommender as VRGCNRecommender
    from vrgcn.scikit.regressor import VRGCNRegressor as VRGCNRegressor
    from vrgcn.targets.label_split import random_split
    from vrgcn.targets.pair_split import split_pairs
    from vrgcn.targets.triple_split import split_triples
    from vrgcn.training.config import TrainConfig
    from vrgcn.training.listener import StopTraining
    from vrgcn.training.result import TrainResult
    from vrgcn.training.state import Epoch
    from vrgcn.training.tensorboard import TensorBoardLog
    from vrgcn.tuning.finishing import TuneResult
    from vrgcn.tuning.searching import tune

__version__ = "0.1.0"

MODEL_ADAPTERS["torch_geometric.nn.conv.message_passing"] = "vrgcn.pyg.forward"

# The module of each public name. They are imported when first used: `vrgcn --help` needs no torch.
_HOME = {
    "SavedModel": "inference.saved",
    "load_model": "inference.saved",
    "save_model": "inference.saved",
    "TrainConfig": "training.config",
    "load_dataset": "data",
    "random_split": "targets.label_split",
    "load_graph": "data.store",
    "save_graph": "data.store",
    "Dropout": "models.dense",
    "ModelConfig": "models.config",
    "ESTIMATORS": "engine.estimators",
    "Estimator": "engine.estimators",
    "Blocks": "graph.blocks",
    "Graph": "graph.graph",
    "Predicted": "runs.predict",
    "predict": "runs.predict",
    "embeddings": "inference.embed",
    "Live": "live.live",
    "Predictions": "inference.predictions",
    "predictions": "inference.predictions",
    "Batch": "engine.batch",
    "MiniBatches": "engine.minibatches",
    "GCN": "models.models",
    "MLP": "models.models",
    "GraphSAGE": "models.models",
    "Residual": "models.models",
    "InputLinear": "models.dense",
    "PairModel": "pairs.model",
    "split_pairs": "targets.pair_split",
    "split_triples": "targets.triple_split",
    "Propagate": "engine.propagate",
    "Propagation": "graph.propagation",
    "scale_graph": "graph.scaling",
    "Epoch": "training.state",
    "StopTraining": "training.listener",
    "TensorBoardLog": "training.tensorboard",
    "TrainResult": "training.result",
    "Audit": "runs.audit",
    "audit": "runs.audit",
    "Evaluation": "pages.evaluation",
    "evaluate": "pages.evaluate",
    "explain": "pages.explanation",
    "report": "pages.runs.report",
    "Recommended": "runs.recommend",
    "recommend": "runs.recommend",
    "fit": "runs.fit",
    "Run": "runs.run",
    "load_run": "runs.run",
    "train": "runs.train",
    "TuneResult": "tuning.finishing",
    "tune": "tuning.searching",
    "VRGCNClassifier": "scikit.classifier",
    "VRGCNRecommender": "scikit.recommender",
    "VRGCNRegressor": "scikit.regressor",
}

# Without what needs an extra: `from vrgcn import *` must not.
__all__ = [
    "ESTIMATORS",
    "GCN",
    "MLP",
    "Audit",
    "Batch",
    "Blocks",
    "Dropout",
    "Epoch",
    "Estimator",
    "Evaluation",
    "Graph",
    "GraphSAGE",
    "InputLinear",
    "Live",
    "MiniBatches",
    "ModelConfig",
    "PairModel",
    "Predicted",
    "Predictions",
    "Propagate",
    "Propagation",
    "Recommended",
    "Residual",
    "Run",
    "SavedModel",
    "StopTraining",
    "TensorBoardLog",
    "TrainConfig",
    "TrainResult",
    "TuneResult",
    "__version__",
    "audit",
    "embeddings",
    "evaluate",
    "explain",
    "fit",
    "load_dataset",
    "load_graph",
    "load_model",
    "load_run",
    "predict",
    "predictions",
    "random_split",
    "recommend",
    "report",
    "save_graph",
    "save_model",
    "scale_graph",
    "split_pairs",
    "split_triples",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vrgcn' has no attribute {name!r}")
    return getattr(importlib.import_module(f"vrgcn.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME})
