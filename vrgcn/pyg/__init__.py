"""PyTorch Geometric's models as they are: their layers average by `propagate`."""
