"""`--device cuda`, on a GPU that is pretended: the commands write what they write on the CPU."""

from __future__ import annotations

from pathlib import Path

from tests.engine.pretended_cuda import pretended_cuda

COMMANDS = (
    "train --graph small --out RUN --epochs 1 --batch-size 32 --estimator two-way --memory disk",
    "train --resume RUN --epochs 2",
    "evaluate RUN --device DEVICE",
    "predict RUN --out RUN.csv --device DEVICE --memory disk",
    "embed RUN --out RUN.npy --device DEVICE",
)


def run_all(vrgcn, device: str) -> None:
    train, *others = (line.replace("RUN", device).replace("DEVICE", device) for line in COMMANDS)
    for line in (f"{train} --device {device}", *others):
        code, _, errors = vrgcn(*line.split())
        assert code == 0, (line, errors)


def test_commands_on_a_gpu_write_the_files_of_the_cpu(vrgcn, graph_folder: Path) -> None:
    run_all(vrgcn, "cpu")
    with pretended_cuda() as cuda:
        run_all(vrgcn, "cuda")
    assert cuda.operations["aten::_fused_adam_", False]
    folder = graph_folder.parent
    for name in ("RUN/model.safetensors", "RUN/evaluation-test.json", "RUN.csv", "RUN.npy"):
        ours, theirs = (folder / name.replace("RUN", device) for device in ("cuda", "cpu"))
        assert ours.read_bytes() == theirs.read_bytes(), name
