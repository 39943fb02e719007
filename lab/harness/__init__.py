"""What the paper, the bench and the studies share."""
