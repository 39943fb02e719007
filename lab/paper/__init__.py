"""The paper's tables and figures, one module each, which `vrgcn reproduce` runs.

A new one is a module with an `EXPERIMENT` and a line in `reproduce.EXPERIMENTS`.
"""
