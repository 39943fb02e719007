"""Scripts of `vrgcn completion`, run by the shells that are there."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from vrgcn.cli import COMMANDS
from vrgcn.cli.flags import flags_of


def _completed(script: str, *words: str) -> list[str]:
    """What bash offers for the last of some words."""
    line = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _vrgcn"
    ask = asked + "; printf '%s\\n' ${COMPREPLY[@]}"
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_bash_completes_commands_flags_and_choices(vrgcn) -> None:
    _, script, _ = vrgcn("completion", "bash")
    assert _completed(script, "vrgcn", "tra") == ["train"]
    assert _completed(script, "vrgcn", "train", "--layer-n") == ["--layer-norm"]
    assert _completed(script, "vrgcn", "train", "--no-layer-n") == ["--no-layer-norm"]
    assert _completed(script, "vrgcn", "train", "--model", "graph") == ["graphsage"]
    assert _completed(script, "vrgcn", "completion", "z") == ["zsh"]
    assert _completed(script, "vrgcn", "train", "--help", "m") == ["model", "machine"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_flag_is_in_every_script(vrgcn, shell: str) -> None:
    code, script, _ = vrgcn("completion", shell)
    assert code == 0
    for name, command in COMMANDS.items():
        assert name in script
        for flag in flags_of(command.options):
            typed = f"-l {flag.flag[2:]} " if shell == "fish" else flag.flag
            assert flag.positional or typed in script, (name, flag.name)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_reads_its_script_without_an_error(vrgcn, tmp_path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    _, script, _ = vrgcn("completion", shell)
    path = tmp_path / "script"
    path.write_text(script)
    done = subprocess.run([shell, "-n", str(path)], check=False, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
