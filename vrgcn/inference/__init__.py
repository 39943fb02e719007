"""Exact prediction of any node, and trained models as files."""

# In the folder of a run: its model, or what says how several are averaged.
MODEL = "model.safetensors"
AVERAGE = "average.json"
