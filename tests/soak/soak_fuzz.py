"""105,000 damaged files of all kinds that are read, or what there is time for; see tests/fuzz/.

The inputs are the same each time; --from N begins elsewhere, and --target NAME tries one kind.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import torch

from tests.fuzz.loop import Report, run
from tests.fuzz.targets import TARGETS

INPUTS = 105_000
PIECE = 500
SECONDS = 540.0  # of the soak's 20 minutes


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", type=int, default=1000, dest="start")
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--target", choices=TARGETS)
    asked = parser.parse_args()
    names = [asked.target] if asked.target else list(TARGETS)
    torch.set_num_threads(1)
    each = -(-asked.inputs // len(names))
    work = [
        (name, range(start, min(start + PIECE, asked.start + each)))
        for start in range(asked.start, asked.start + each, PIECE)
        for name in names
    ]
    totals = {name: Report() for name in names}
    begun = time.monotonic()
    with ProcessPoolExecutor(2) as pool:
        futures = [(name, pool.submit(run, name, seeds)) for name, seeds in work]
        for name, future in futures:
            if time.monotonic() - begun > asked.seconds and future.cancel():
                continue
            report = future.result()
            totals[name].tried += report.tried
            totals[name].found += report.found
            for fault in report.found:
                print(fault, flush=True)
    for name, report in totals.items():
        print(f"{name:<20} {report}")
    count = sum(sum(report.tried.values()) for report in totals.values())
    faults = sum(len(report.found) for report in totals.values())
    seconds = time.monotonic() - begun
    print(f"{count:,} of {asked.inputs:,} damaged inputs in {seconds:.0f} s, {faults} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
