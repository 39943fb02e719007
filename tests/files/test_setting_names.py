"""A setting in a message is an argument for Python and a flag for the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrgcn.files.setting_names import COLUMN, SHARES, flags_in_messages, setting


@pytest.mark.parametrize(
    ("given", "argument", "flag"),
    [
        (("label_delimiter",), "label_delimiter=", "--label-delimiter"),
        (("label", COLUMN), "label=COLUMN", "--label COLUMN"),
        (("unknown_nodes", "skip"), 'unknown_nodes="skip"', "--unknown-nodes skip"),
        (("batch_size", 64), "batch_size=64", "--batch-size 64"),
        (("ratio", SHARES), "ratio=(0.6, 0.2, 0.2)", "--ratio 0.6 0.2 0.2"),
        (("fanout", [0]), "fanout=(0,)", "--fanout 0"),
        (("tidy_ids", ("case", "trim")), 'tidy_ids=("case", "trim")', "--tidy-ids case trim"),
        (("warm_start", True), "warm_start=True", "--warm-start"),
        (("preprocess", False), "preprocess=False", "--no-preprocess"),
        (("out", Path("runs/a")), 'out="runs/a"', "--out runs/a"),
        (("missing", "-1"), 'missing="-1"', "--missing=-1"),
        (("drop", 'a"b'), "drop='a\"b'", '--drop a"b'),
        (("delimiter", "\t"), r"delimiter='\t'", "--delimiter \t"),
    ],
)
def test_a_setting_is_spelled_for_its_reader(
    given: tuple[str, object], argument: str, flag: str
) -> None:
    assert setting(*given) == argument
    with flags_in_messages():
        assert setting(*given) == flag
    assert setting(*given) == argument


def test_either_reader_may_be_given_another_spelling() -> None:
    resume = ("resume", True)
    assert setting(*resume, typed="run", command="train") == "resume=True"
    assert setting("log", "tensorboard", python="TensorBoardLog") == "TensorBoardLog"
    with flags_in_messages():
        assert setting(*resume, typed="run", command="train") == "vrgcn train --resume run"
        assert setting("log", "tensorboard", python="TensorBoardLog") == "--log tensorboard"


def test_python_is_spoken_again_after_an_error() -> None:
    with pytest.raises(ValueError, match=r"^--out$"), flags_in_messages():
        raise ValueError(setting("out"))
    assert setting("out") == "out="
