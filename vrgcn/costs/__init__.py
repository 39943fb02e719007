"""Costs of an epoch and memory of a run, and the choice of an estimator by them."""
