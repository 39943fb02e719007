"""The graph and its matrices: nothing here knows of models or training."""
