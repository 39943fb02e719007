"""The golden set: what `vrgcn` does today, written down, so that a rebuilt one can be compared.

    python -m lab.golden record FOLDER [--code CHECKOUT] [--sections NAME ...]
    python -m lab.golden compare BEFORE AFTER [--sections NAME ...] [--lines N]

`record` runs everything with the `vrgcn` that is importable, or with that of another checkout:

    git worktree add ../old COMMIT
    python -m lab.golden record golden/before --code ../old
    python -m lab.golden record golden/after
    python -m lab.golden compare golden/before golden/after

FOLDER must be new. It gets a plain text file for each thing that was done, one folder a section:

    help      help texts of every command, and what is imported to show them
    names     public names, signatures, members, fields and defaults of the configs, extras
    mistakes  exit code and message of mistakes on the command line and from Python
    tables    the files of graphs that are imported from tables with every encoder
    runs      output and every file of runs: `train` with all kinds of settings, `--seeds`, `tune`,
              parts under torchrun; what the other commands make of these runs
    edges     runs that predict links, columns of links and all relations: scores, best partners
    bits      weights and predictions of every estimator, two seeds, in memory and from files,
              unbroken, resumed between epochs and resumed inside one
    old       graphs, models, runs and checkpoints that earlier versions wrote
    python    the public functions and classes from Python

`compare` lists every difference and exits with 1 if there is any, with 0 if there is none. Two
recordings of one commit do not differ: seconds, paths, versions and process ids are masked
(masks.py), and nothing else is. Of long files a hash is kept, with sizes and the first numbers
beside it (contents.py).

The tool uses the command line, the public names and the files of `vrgcn`, never its modules, so
that the same tool records any commit. Commands run as by `python -m vrgcn`, in forks of one process
that has everything imported (processes.py). One thread; about five minutes.

A new case is a line in a table of `sections/`.
"""
