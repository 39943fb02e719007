"""Search for settings, using only the validation nodes: `tune`."""
