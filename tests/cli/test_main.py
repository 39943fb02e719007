"""`vrgcn` itself: its commands, and how little it loads to list them."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


def test_the_commands_are_listed_and_an_unknown_one_is_refused(vrgcn):
    code, out, _ = vrgcn("--help")
    assert code == 0
    assert "train" in out
    assert "demo" in out
    code, _, err = vrgcn("trian")
    assert code == 2
    assert "there is no command 'trian'" in err


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["reproduce", "--help"]])
def test_help_needs_no_torch(arguments):
    script = (
        "import sys\n"
        "from vrgcn.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "assert 'torch' not in sys.modules\n"
    )
    command = [sys.executable, "-c", script, *arguments]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "vrgcn" in shown


def test_what_the_system_refuses_of_a_place_that_out_names_is_said_with_the_flag(
    vrgcn, tmp_path, monkeypatch
):
    predict = importlib.import_module("vrgcn.cli.predict")
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_text('dataset = "communities"\n')
    (run / "model.safetensors").touch()

    def refuse(path):
        def function(options):
            raise PermissionError(13, "Permission denied", str(path))

        function.__annotations__ = {"options": predict.PredictOptions}
        monkeypatch.setattr(predict, "run", function)

    refuse("there/other.csv")
    assert vrgcn("predict", "run", "--out", "there/p.csv")[2] == (
        "vrgcn: error: [Errno 13] Permission denied: 'there/other.csv'\n"
    )
    for place in ("there/p.csv", "there/.p.csv.part", "there"):
        refuse(tmp_path / place)
        assert vrgcn("predict", "run", "--out", "there/p.csv")[2] == (
            f"vrgcn: error: --out: cannot write {tmp_path / place}: Permission denied\n"
        )
