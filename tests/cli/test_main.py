"""`vrgcn` itself: its commands, and how little it loads to list them."""

from __future__ import annotations

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
