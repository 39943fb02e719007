"""Experiments: each compares estimators on a graph and prints and draws what came out."""
