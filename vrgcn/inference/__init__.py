"""Exact prediction of any node, and trained models as files."""
