"""Training: settings, objective, optimiser, epochs, the state of a run."""
