"""Studies behind single statements of the pages: each module is run with `python -m`."""
