"""Research code beside the package: what the paper's claims and the measured numbers come from."""
