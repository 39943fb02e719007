"""From `vrgcn generate` to predictions, everything on disk, by the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vrgcn.cli import main


def test_generate_reorder_train_predict_and_evaluate_from_disk(tmp_path, capsys):
    old, new, run = tmp_path / "old", tmp_path / "new", tmp_path / "run"
    main(
        f"generate --nodes 2_000 --degree 8 --features 6 --classes 3 --community 50 "
        f"--feature-dtype float16 --out {old}".split()
    )
    assert "2,000 nodes and" in capsys.readouterr().out
    main(f"reorder {old} --block 50 --out {new}".split())
    said = capsys.readouterr().out
    assert "neighbours at most 50 places away" in said
    train = f"train {new} --estimator two-way --epochs 2 --hidden 8 --batches blocks --block 16"
    main(f"{train} --memory disk --out {run}".split())
    main(f"{train} --out {tmp_path / 'ram'}".split())
    for folder, memory in ((run, "disk"), (tmp_path / "ram", "ram")):
        main(f"predict {folder} --memory {memory} --out {folder / 'p.npy'}".split())
        main(f"evaluate {folder} --memory {memory}".split())
    assert (run / "p.npy").read_bytes() == (tmp_path / "ram" / "p.npy").read_bytes()
    ours, theirs = ((f / "evaluation-test.json").read_text() for f in (run, tmp_path / "ram"))
    assert ours == theirs
    assert np.load(run / "p.npy").shape == (2000, 3)
    assert len(list((new / "derived").glob("*.npy"))) == 2  # scaled features, and their averages
    assert not list(Path(tmp_path).rglob(".scratch-*"))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("generate --nodes 10 --degree 8 --out {new}", "half of the other nodes"),
        ("generate --nodes 10 --degree 2 --out {old}", "exists already"),
        ("reorder {old} --out {new}", "is no graph"),
        ("reorder {new} --out {new}2", "there is no folder"),
    ],
)
def test_what_cannot_be_is_told_without_a_traceback(command, said, tmp_path, capsys):
    old = tmp_path / "old"
    old.mkdir()
    with pytest.raises(SystemExit):
        main(command.format(old=old, new=tmp_path / "new").split())
    assert said in capsys.readouterr().err
