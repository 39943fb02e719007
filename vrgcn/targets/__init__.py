"""What a run predicts and how it is split: the settings, and the one function that splits."""
