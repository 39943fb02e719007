"""The help of every command: complete, in 80 columns, and without Python's words."""

from __future__ import annotations

import re

import pytest

from vrgcn.cli import COMMANDS
from vrgcn.cli.flags import flags_of


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns_and_needs_no_python(vrgcn, command: str) -> None:
    code, out, _ = vrgcn(*command.split(), "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert not re.search(r"None|Literal|Path\b|[A-Z][a-z]+(Options|Config|Spec)|<class", out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_every_flag_with_what_it_does(vrgcn, command: str) -> None:
    _, out, _ = vrgcn(command, "--help")
    words = " ".join(out.split())
    for flag in flags_of(COMMANDS[command].options):
        assert flag.text, flag.name
        assert re.search(rf"(?m)^  {re.escape(flag.flag)}\b", out), flag.name
        assert " ".join(flag.text.replace("None:", "Not given:").split()) in words


def test_help_says_defaults_choices_and_what_is_needed(vrgcn) -> None:
    _, out, _ = vrgcn("train", "--help")
    assert "usage: vrgcn train [GRAPH_OR_DATASET] [OPTIONS]" in out
    assert "--model {auto,gcn,graphsage,residual,mlp,lightgcn}" in out
    assert "Learning rate. (default: 0.01)" in out
    assert "--layer-norm, --no-layer-norm" in out
    assert re.search(r"(?m)^  --bias$", out)
    _, out, _ = vrgcn("predict", "--help")
    assert "usage: vrgcn predict RUN [OPTIONS]" in out
    assert "(needed)" in out
    _, out, _ = vrgcn("diagnose", "--help")
    assert "Passes over the visited nodes. (default: 3)" in out  # its own, not that of train


def test_a_command_that_was_mistyped_is_suggested(vrgcn) -> None:
    code, _, err = vrgcn("trian")
    assert code == 2
    assert err == "vrgcn: error: there is no command 'trian'; did you mean vrgcn train?\n"
