"""`make release-check`: builds the wheel and the sources, checks both, installs the wheel into an
empty environment and uses it from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NODES = "id,topic,size,split\n" + "".join(
    f"p{i},{'ab'[i % 2]},{i % 7},{('train', 'train', 'val', 'test')[i // 2 % 4]}\n"
    for i in range(40)
)
EDGES = "source,target\n" + "".join(f"p{i},p{(i + 2) % 40}\n" for i in range(40))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="vrgcn-release-") as name:
        folder = Path(name)
        dist = folder / "dist"
        _run([sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT)], folder)
        wheel, sources = next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))
        _run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sources)], folder)
        _run([str(Path(sys.executable).parent / "check-wheel-contents"), str(wheel)], folder)
        _run([sys.executable, "-m", "venv", "empty"], folder)
        python = folder / "empty" / "bin" / "python"
        _run([str(python), "-m", "pip", "install", "--quiet", f"{wheel}[plots]"], folder)
        _use(folder / "empty" / "bin" / "vrgcn", folder)
    print("release-check: the wheel installs and works")


def _use(vrgcn: Path, folder: Path) -> None:
    """Import, train, predict and evaluate, in a folder without the sources."""
    (folder / "nodes.csv").write_text(NODES)
    (folder / "edges.csv").write_text(EDGES)
    for line in (
        "--version",
        "import --nodes nodes.csv --edges edges.csv --label topic --out graph",
        "train graph --epochs 2 --out run",
        "predict run --out predictions.csv",
        "evaluate run",
    ):
        _run([str(vrgcn), *line.split()], folder)
    assert len((folder / "predictions.csv").read_text().splitlines()) == 41


def _run(command: list[str], folder: Path) -> None:
    print("+", *command[:6], flush=True)
    constraints = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | constraints
    subprocess.run(command, cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
