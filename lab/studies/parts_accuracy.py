"""Accuracy of training in parts with `--halo delayed`, against one process on the whole graph.

    python -m lab.studies.parts_accuracy communities --parts 2 4 --seeds 10
    python -m lab.studies.parts_accuracy reddit-like --parts 2 --seeds 3 -- --epochs 5
    python -m lab.studies.parts_accuracy --show

Each run is the command that a user gives, `vrgcn train` or the same under torchrun, one thread a
process; flags after -- go to all of them. A run is a line of --out, and what is there is not run
again. The table has test accuracy, and the difference from one process with the same seeds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.harness.records import Record, append_record, read_lines

ESTIMATOR = ["--estimator", "two-way", "--fanout", "0"]
WHOLE = "one process"


def names(parts: list[int], halos: list[str]) -> list[tuple[str, int, str]]:
    """Return (name, parts, halo) of each way to train."""
    return [(WHOLE, 1, ""), *((f"{n} parts, {halo}", n, halo) for n in parts for halo in halos)]


def command(dataset: str, parts: int, halo: str, folder: Path) -> list[str]:
    """Return the command that starts training, up to the flags that all ways share."""
    if parts == 1:
        return [sys.executable, "-m", "vrgcn", "train", dataset]
    cut = folder / f"{dataset}-{parts}"
    if not cut.exists():
        flags = ["--parts", str(parts), "--out", str(cut)]
        checked([sys.executable, "-m", "vrgcn", "partition", dataset, *flags])
    launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(parts)]
    return [
        *(sys.executable, "-m", *launch, "-m", "vrgcn", "train"),
        *("--graph", str(cut), "--halo", halo),
    ]


def checked(line: list[str]) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(line, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}\n{done.stdout}{done.stderr}")


def show(records: list[Record]) -> None:
    for dataset in dict.fromkeys(record["dataset"] for record in records):
        mine = [record for record in records if record["dataset"] == dataset]
        whole = {record["seed"]: record["test"] for record in mine if record["way"] == WHOLE}
        print(f"\n{dataset}: {' '.join(mine[-1]['flags'])}")
        print("| | runs | test | against one process |\n|---|---|---|---|")
        for way in dict.fromkeys(record["way"] for record in mine):
            found = {r["seed"]: 100 * r["test"] for r in mine if r["way"] == way}
            paired = [found[seed] - 100 * whole[seed] for seed in found if seed in whole]
            spread = statistics.stdev(found.values()) if len(found) > 1 else 0.0
            against = "–"
            if way != WHOLE and len(paired) > 1:
                error = statistics.stdev(paired) / math.sqrt(len(paired))
                against = f"{statistics.mean(paired):+.2f} ± {error:.2f}"
            mean = statistics.mean(found.values())
            print(f"| {way} | {len(found)} | {mean:.2f} ± {spread:.2f} | {against} |")


def main() -> None:
    ours, shared = sys.argv[1:], []
    if "--" in ours:
        place = ours.index("--")
        ours, shared = ours[:place], ours[place + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", nargs="?", default="communities")
    parser.add_argument("--parts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--halos", nargs="+", default=["delayed"], choices=["delayed", "exact"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/parts-accuracy.jsonl"))
    parser.add_argument("--show", action="store_true", help="print the tables of what is there")
    given = parser.parse_args(ours)
    records = read_lines(given.out)
    flags = [*ESTIMATOR, *shared]
    done = {(r["dataset"], r["way"], r["seed"]) for r in records}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(given.seeds) if not given.show else ():
            for way, parts, halo in names(given.parts, given.halos):
                if (given.dataset, way, seed) in done:
                    continue
                run = folder / "run"
                start = command(given.dataset, parts, halo, folder)
                checked([*start, *flags, "--seed", str(seed), "--out", str(run), "--overwrite"])
                result = json.loads((run / "result.json").read_text(encoding="utf-8"))
                record = {"dataset": given.dataset, "way": way, "seed": seed, "flags": flags}
                records.append(record | {"val": result["val"], "test": result["test"]})
                append_record(given.out, records[-1])
                print(records[-1], flush=True)
    show(records)


if __name__ == "__main__":
    main()
