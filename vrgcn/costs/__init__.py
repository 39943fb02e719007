"""Costs of an epoch and memory of a run, and the estimator that they speak for."""
