"""Several processes, each with a part of the graph, that train and predict as one."""
