"""`python -m vrgcn`, which `torchrun -m vrgcn` starts."""

from vrgcn.cli import main

main()
