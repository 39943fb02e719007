"""Settings found by search, on validation alone: `tune`."""
