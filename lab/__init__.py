"""Research code beside the package: it produces the measured numbers and the verdicts on the
paper's claims."""
