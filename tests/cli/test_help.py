"""The help of every command: complete, in layers, in 80 columns, and without Python's words."""

from __future__ import annotations

import re

import pytest

from vrgcn.cli import COMMANDS
from vrgcn.cli.flags import flags_of
from vrgcn.cli.help import ALL, command_help, layers

LARGE = [name for name, command in COMMANDS.items() if layers(command.options)]


def helps(command: str, layer: str = "") -> str:
    """The help of a command, without the rest of the command line."""
    return command_help(COMMANDS[command].options, command, "What it does.", layer)


def explained(text: str) -> list[str]:
    """The flags that a help explains, in its order."""
    # Many choices stand below the flag, less far to the right than its text.
    return re.findall(r"(?m)^  (--[a-z][a-z-]*)\b.*\n(?:    \S.*\n)*      \S", text)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns_and_needs_no_python(vrgcn, command: str) -> None:
    texts = [vrgcn(*command.split(), "--help")]
    if command:
        texts.append(vrgcn(command, "--help", ALL))
    for code, out, _ in texts:
        assert code == 0
        assert max(map(len, out.splitlines())) <= 80
        assert not re.search(r"None|Literal|Path\b|[A-Z][a-z]+(Options|Config|Spec)|<class", out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_all_lists_every_flag_with_what_it_does(command: str) -> None:
    out = helps(command, ALL)
    words = " ".join(out.split())
    for flag in flags_of(COMMANDS[command].options):
        assert flag.text, flag.name
        assert re.search(rf"(?m)^  {re.escape(flag.flag)}\b", out), flag.name
        assert " ".join(flag.text.replace("None:", "Not given:").split()) in words


def test_help_says_defaults_choices_and_what_is_needed() -> None:
    out = helps("train", ALL)
    assert "usage: vrgcn train [GRAPH_OR_DATASET] [OPTIONS]" in out
    assert "--model\n    auto, gcn, graphsage, residual, mlp, lightgcn, labels, linear, " in out
    assert "--order {after,before}" in out
    assert "--schedule and --warmup change it during the training.\n      (default: 0.01)" in out
    assert "--layer-norm, --no-layer-norm" in out
    assert re.search(r"(?m)^  --bias$", out)
    out = helps("predict")
    assert "usage: vrgcn predict RUN [OPTIONS]" in out
    assert "(needed)" in out
    out = helps("diagnose")
    assert "Passes over the training data (default: 3)" in out  # its own, not that of train


def test_the_commands_with_many_flags_have_layers() -> None:
    assert {"import", "train", "tune", "diagnose"} <= set(LARGE)
    for name, command in COMMANDS.items():
        assert (name in LARGE) == (len(flags_of(command.options)) > 25)
        assert name in LARGE or helps(name) == helps(name, ALL)


@pytest.mark.parametrize("command", LARGE)
def test_the_first_layer_is_short_and_names_every_flag_once(command: str) -> None:
    lines = helps(command).splitlines()
    assert len(lines) <= 62
    split = next(n for n, line in enumerate(lines) if line.startswith("Other options"))
    used = [line.split()[0] for line in lines[2:split] if line.startswith("  ")]
    others = re.findall(r"[A-Za-z_-]+", re.sub(r"(?m)^  \w+", "", "\n".join(lines[split + 1 :])))
    flags = flags_of(COMMANDS[command].options)
    assert sorted([*used, *(f"--{name}" for name in others)]) == sorted(f.flag for f in flags)
    assert 10 <= len(used) <= 25
    assert {flag.flag for flag in flags if flag.positional} <= set(used)


def test_the_help_of_train_fits_60_lines(vrgcn) -> None:
    _, out, _ = vrgcn("train", "--help")
    assert out.count("\n") <= 60


@pytest.mark.parametrize("command", LARGE)
def test_every_flag_is_in_exactly_one_group(command: str) -> None:
    everything, *groups = layers(COMMANDS[command].options)
    flags = [flag for flag in flags_of(COMMANDS[command].options) if not flag.positional]
    assert everything == ALL
    assert "" not in groups
    found = [flag for group in groups for flag in explained(helps(command, group))]
    assert sorted(found) == sorted(flag.flag for flag in flags)
    assert explained(helps(command, ALL)) == found  # in the same order


@pytest.mark.parametrize("command", LARGE)
def test_every_group_has_one_title(command: str) -> None:
    titles: dict[str, set[str]] = {}
    for flag in flags_of(COMMANDS[command].options):
        titles.setdefault(flag.group.name, set()).add(flag.group.title)
    for name, found in titles.items():
        assert len(found - {""}) == 1, name


def test_a_group_is_asked_for_by_its_name(vrgcn) -> None:
    code, out, _ = vrgcn("train", "--help", "model")
    assert code == 0
    assert out.startswith("usage: vrgcn train [GRAPH_OR_DATASET] [OPTIONS]\n\nModel: ")
    assert explained(out)[:3] == ["--model", "--hidden", "--layers"]
    assert vrgcn("train", "--help=model") == vrgcn("train", "-h", "model") == (0, out, "")
    assert vrgcn("train", "--epochs", "3", "--help") == vrgcn("train", "--help", "--epochs", "3")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train --help modle", "there is no such group of options; did you mean model? The groups"),
        (
            "train --help xyz",
            "no such group of options. The groups are all, graph, predict, model,",
        ),
        ("train --help batch-size", "--batch-size is in the group training: --help training\n"),
        ("info --help model", "the options of vrgcn info have no groups; leave 'model' out"),
    ],
)
def test_a_group_that_there_is_not_is_an_error(vrgcn, words: str, message: str) -> None:
    code, out, err = vrgcn(*words.split())
    assert (code, out) == (2, "")
    assert message in err


def test_a_command_that_was_mistyped_is_suggested(vrgcn) -> None:
    code, _, err = vrgcn("trian")
    assert code == 2
    assert err == "vrgcn: error: there is no command 'trian'; did you mean vrgcn train?\n"
