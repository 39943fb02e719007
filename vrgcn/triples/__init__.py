"""Triples: splits of all relations without leaks, queries and losses, minibatches, ranking."""
