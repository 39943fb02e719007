"""Runs: settings, the job that they prepare, its folder, records, checkpoints and resuming."""
