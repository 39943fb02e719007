"""Graph convolutional networks trained with control variates on historical activations."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vrgcn.checkpoint import SavedModel, load_model, save_model
    from vrgcn.config import TrainConfig
    from vrgcn.data import load_dataset
    from vrgcn.data.store import load_graph, save_graph
    from vrgcn.dropout import Dropout
    from vrgcn.estimators import ESTIMATORS, Estimator
    from vrgcn.graph import Graph
    from vrgcn.inference import predict
    from vrgcn.minibatches import Batch, MiniBatches
    from vrgcn.models import GCN, MLP, GraphSAGE
    from vrgcn.propagate import Propagate
    from vrgcn.propagation import Propagation
    from vrgcn.training import Epoch, TrainResult, fit

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used: `vrgcn --help` needs no torch.
_HOME = {
    "SavedModel": "checkpoint",
    "load_model": "checkpoint",
    "save_model": "checkpoint",
    "TrainConfig": "config",
    "load_dataset": "data",
    "load_graph": "data.store",
    "save_graph": "data.store",
    "Dropout": "dropout",
    "ESTIMATORS": "estimators",
    "Estimator": "estimators",
    "Graph": "graph",
    "predict": "inference",
    "Batch": "minibatches",
    "MiniBatches": "minibatches",
    "GCN": "models",
    "MLP": "models",
    "GraphSAGE": "models",
    "Propagate": "propagate",
    "Propagation": "propagation",
    "Epoch": "training",
    "TrainResult": "training",
    "fit": "training",
}

__all__ = [
    "ESTIMATORS",
    "GCN",
    "MLP",
    "Batch",
    "Dropout",
    "Epoch",
    "Estimator",
    "Graph",
    "GraphSAGE",
    "MiniBatches",
    "Propagate",
    "Propagation",
    "SavedModel",
    "TrainConfig",
    "TrainResult",
    "__version__",
    "fit",
    "load_dataset",
    "load_graph",
    "load_model",
    "predict",
    "save_graph",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vrgcn' has no attribute {name!r}")
    return getattr(importlib.import_module(f"vrgcn.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
