"""Exact prediction of any node, and trained models as files."""

MODEL = "model.safetensors"  # in the folder of a run
