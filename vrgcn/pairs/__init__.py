"""Pairs of nodes: splits without leaks, negatives, decoders, losses, minibatches, ranking."""
