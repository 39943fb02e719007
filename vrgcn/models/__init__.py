"""Models with `forward(x, propagate)`, and what they are made of."""
