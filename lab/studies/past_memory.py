"""Training and exact prediction of a graph on disk under a hard limit of memory, by the commands.

    python -m lab.studies.past_memory FOLDER --nodes 20_000_000 --cases random/random ordered/blocks

In FOLDER it generates a graph (`vrgcn generate`), writes it again in another order (`vrgcn
reorder`) if a case asks for that, and for each case trains (`vrgcn train --memory disk`) and
predicts all nodes (`vrgcn predict --memory disk`). All of these run under a limit of --share of the
size of the graph's files with what is derived from them: a control group, which counts pages of
files too, where one can be made (as root; else RLIMIT_DATA, which does not, and the result says
so). Before each command the pages of all files in FOLDER are dropped. Beside it the same on a graph
of --fits nodes, in memory and from files that stay in memory, without a limit.

A case is ORDER/BATCHES: the graph as generated in a random order (`random`), reordered (`ordered`)
or generated one community after the other (`communities`), and --batches.

Results are in FOLDER/result.json after every command; what is there already is not done again.
Shares of the time: `disk` is the time asleep (see lab.harness.stopwatch), `others` that in
which another process had the processor, `plan`, `gather` and `compute` are time on the processor,
the system's work for pages included. On a busy machine nodes a second are those `without others`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import sys
import time
from contextlib import nullcontext
from mmap import PAGESIZE, mmap
from pathlib import Path
from typing import Any

import numpy as np

from lab.harness.memory_limit import forget, memory_limit, run_limited

TIMED = "lab.studies.timed_command"
PARTS = ("plan", "gather", "compute")
TRAIN = (
    "--estimator two-way --fanout 0 --history-dtype float16 --layers 2 --dropout 0.1 "
    "--learning-rate 0.005 --diagnostics 0 --threads 1"
)


class PastMemory:
    """The study. options: of the command line; result: the contents of FOLDER/result.json"""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder: Path = options.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "result.json"
        self.result: dict[str, Any] = {"commands": {}}
        if self.file.exists():
            self.result = json.loads(self.file.read_text(encoding="utf-8"))

    def run(self) -> None:
        for case in self.options.cases:
            order, batches = case.split("/")
            generated = "random" if order == "ordered" else order
            self._generate(generated, self.options.nodes)
            if "disk" not in self.result:
                forget(self.folder / generated)
                self.result["disk"] = disk_speed(self.folder / generated / "features_0.npy")
            if order == "ordered":
                path = self.folder / generated
                self._command("reorder", f"reorder {path} --out {self.folder / order}")
            self._train_and_predict(case, self.folder / order, batches)
        if self.options.fits:
            self._generate("fits", self.options.fits, limited=False)
            for memory in ("ram", "disk"):
                self._train_and_predict(
                    f"fits/{memory}", self.folder / "fits", "random", memory, limited=False
                )

    @property
    def limit(self) -> int:
        """The limit in bytes. Two tables as large as the features are derived: scaled features, and
        P X."""
        features = self.options.nodes * self.options.features * 2
        graph = self.options.nodes * self.options.degree * 8 + features
        for name in ("random", "communities"):
            if (self.folder / name / "meta.json").exists():
                graph = size_of(self.folder / name)
        return int(self.options.share * (graph + 2 * features))

    def _generate(self, name: str, nodes: int, *, limited: bool = True) -> None:
        self._command(
            f"generate {name}",
            f"generate --nodes {nodes} --degree {self.options.degree} --features "
            f"{self.options.features} --feature-dtype float16 --order "
            f"{'communities' if name == 'communities' else 'random'} --out {self.folder / name}",
            limited=limited,
        )
        self.result.setdefault("files", {})[name] = size_of(self.folder / name)

    def _train_and_predict(
        self, case: str, graph: Path, batches: str, memory: str = "disk", *, limited: bool = True
    ) -> None:
        options, run = self.options, self.folder / "runs" / case.replace("/", "-")
        most = "" if options.time_limit is None else f" --time-limit {options.time_limit}"
        self._command(
            f"train {case}",
            f"train {graph} --memory {memory} --batches {batches} {TRAIN} --batch-size "
            f"{options.batch_size} --hidden {options.hidden} --epochs {options.epochs}{most} "
            f"--out {run}",
            limited=limited,
        )
        derived = self.result.setdefault("derived", {})
        derived[graph.name] = size_of(graph / "derived")
        out = run / "predictions.npy"
        predicted = self._command(
            f"predict {case}", f"predict {run} --memory {memory} --threads 1 --out {out}",
            limited=limited,
        )  # fmt: skip
        told = self.result["commands"][f"train {case}"]
        told["result"] = json.loads((run / "result.json").read_text(encoding="utf-8"))
        if out.exists():
            predicted["test"] = accuracy(graph, out)
            out.unlink()
        self._keep()

    def _command(self, name: str, command: str, *, limited: bool = True) -> dict[str, Any]:
        """Run a command of vrgcn, unless it was run before; return its measurements."""
        if name in self.result["commands"]:
            return self.result["commands"][name]
        forget(self.folder)
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        print(f"$ vrgcn {command}", flush=True)
        with memory_limit(self.limit) if limited else nullcontext() as limit:
            ended = run_limited(
                [sys.executable, "-m", TIMED, str(report), *shlex.split(command)],
                limit,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            kind = None if limit is None else {"kind": limit.kind, "counts": limit.counts}
        told = {
            "command": f"vrgcn {command}",
            "limit": kind if kind is None else kind | {"bytes": self.limit},
            "code": ended.code,
            "memory": ended.most,
        }
        if report.exists():
            told |= json.loads(report.read_text(encoding="utf-8"))
        if ended.code:
            raise SystemExit(f"vrgcn {command} ended with {ended.code}: {json.dumps(told)}")
        self.result["commands"][name] = told
        self._keep()
        return told

    def _keep(self) -> None:
        self.file.write_text(json.dumps(self.result, indent=1) + "\n", encoding="utf-8")


def size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder, without subfolders."""
    return sum(file.stat().st_size for file in folder.glob("*") if file.is_file())


def accuracy(graph: Path, predictions: Path) -> float:
    """Return the accuracy on the test nodes."""
    test, labels = np.load(graph / "test.npy"), np.load(graph / "labels.npy", mmap_mode="r")
    scores = np.load(predictions, mmap_mode="r")
    pieces = np.array_split(test, max(1, len(test) // 100_000))
    return sum(int((scores[p].argmax(1) == labels[p]).sum()) for p in pieces) / len(test)


def disk_speed(file: Path, seconds: float = 2.0) -> dict[str, float]:
    """Measure reads past the system's cache, one at a time: pages at random places, and a long
    stretch.

    seconds: after which each of the two ends; at least one read is made
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_DIRECT)
    size, draw, speed = file.stat().st_size, random.Random(0), {}
    try:
        for name, length in (("random", PAGESIZE), ("sequential", 8 << 20)):
            buffer, place, count, took = mmap(-1, length), 0, 0, 0.0
            start = time.perf_counter()
            while not count or took < seconds:
                if name == "random" or place + length > size:
                    place = draw.randrange(max(1, (size - length) // PAGESIZE)) * PAGESIZE
                os.preadv(descriptor, [buffer], place)
                place, count = place + length, count + 1
                took = time.perf_counter() - start
            speed[f"{name}_megabytes_per_second"] = count * length / took / 1e6
            if name == "random":
                speed["milliseconds_of_a_random_page"] = 1e3 * took / count
    finally:
        os.close(descriptor)
    return speed


def running(phase: dict[str, dict[str, float]]) -> float:
    """Return the seconds of a phase, without those in which the process was stopped from
    outside."""
    return sum(part["wall"] - part["stopped"] for part in phase.values())


def shares(phase: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the shares of the time of a phase."""
    wall = running(phase)
    told = {name: phase[name]["cpu"] for name in PARTS if name in phase}
    told["disk"] = sum(part["waited"] for part in phase.values())
    told["others"] = sum(part["queued"] for part in phase.values())
    return {name: spent / wall for name, spent in told.items()}


def table(result: dict[str, Any], nodes: dict[str, int]) -> str:
    """Return one line for each training and prediction. nodes: of the graph of each case"""
    lines = [
        "what | nodes/s | without others | disk, gather, plan, compute, others | read | own memory "
        "| test"
    ]
    for name, told in result["commands"].items():
        kind, _, case = name.partition(" ")
        if kind not in ("train", "predict"):
            lines.append(f"{name} | {told['seconds']:.0f} s")
            continue
        phase = told["phases"][kind]
        wall = running(phase)
        count = told["nodes"] if kind == "train" else nodes[case.split("/")[0]]
        part = shares(phase)
        spent = ", ".join(
            f"{part.get(key, 0):.0%}" for key in ("disk", "gather", "plan", "compute", "others")
        )
        read = sum(part["read_bytes"] for part in phase.values())
        test = told["test"] if kind == "predict" else told["result"]["test"]
        alone = wall * (1 - part["others"])
        lines.append(
            f"{name} | {count / wall:,.0f} | {count / alone:,.0f} | {spent} | "
            f"{read / 1e9:.1f} GB | {told['memory']['own'] / 1e9:.2f} GB | {test:.4f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--degree", type=float, default=15.2)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--cases", nargs="+", default=["random/random", "ordered/blocks"])
    parser.add_argument("--share", type=float, default=0.33, help="of the files' size: the limit")
    parser.add_argument("--fits", type=int, default=1_000_000, help="nodes; 0 for none")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--time-limit", help="of each training, such as 40m")
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--hidden", type=int, default=32)
    options = parser.parse_args()
    measured = PastMemory(options)
    measured.run()
    large = dict.fromkeys(("random", "ordered", "communities"), options.nodes)
    print(table(measured.result, large | {"fits": options.fits}))


if __name__ == "__main__":
    main()
