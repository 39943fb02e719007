"""The engine: from a model on a graph to estimates of its activations and gradients."""

# Adapters of models that do not take `propagate`: the module of each, by a module that is imported
# where such models are. The package fills it in: the engine knows no library.
MODEL_ADAPTERS: dict[str, str] = {}
