"""The engine: from a model on a graph to estimates of its activations and gradients."""
