"""`vrgcn completion`: prints a script that completes commands, flags and choices in a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from shlex import quote
from typing import ClassVar, Literal, NamedTuple

from vrgcn.cli.command import Options
from vrgcn.cli.flags import Flag, Positional, flags_of
from vrgcn.cli.help import layers

Shell = Literal["bash", "zsh", "fish"]


@dataclass(frozen=True)
class CompletionOptions(Options):
    """Flags of `vrgcn completion`."""

    shell: Positional[Shell]
    """The shell: source <(vrgcn completion bash) in ~/.bashrc, source <(vrgcn completion zsh) in
    ~/.zshrc, vrgcn completion fish > ~/.config/fish/completions/vrgcn.fish."""

    only_prints: ClassVar[bool] = True


class Word(NamedTuple):
    """A flag as it is typed, the first sentence of its help, and the values it may have."""

    text: str
    help: str
    choices: tuple[str, ...]


class Entry(NamedTuple):
    """A command with its flags; choices: values of its first positional argument."""

    name: str
    help: str
    words: tuple[Word, ...]
    choices: tuple[str, ...]


def run(options: CompletionOptions) -> None:
    """Print the script."""
    from vrgcn.cli import COMMANDS

    entries = [_entry(name, each.options, each.summary) for name, each in COMMANDS.items()]
    print(_SCRIPTS[options.shell](entries), end="")


def _entry(name: str, options: type, summary: str) -> Entry:
    shown = Word("--help", "Show the help", layers(options))
    return Entry(name, summary, (*_words(flags_of(options)), shown), _first(options))


def _words(flags: Iterable[Flag]) -> tuple[Word, ...]:
    words: list[Word] = []
    for flag in flags:
        if not flag.positional:
            sentence = flag.text.split(". ")[0].rstrip(".")
            words.append(Word(flag.flag, sentence, flag.choices))
            if flag.kind is bool and flag.default is True:
                words.append(Word(f"--no-{flag.flag[2:]}", f"Not: {sentence}", ()))
    return tuple(words)


def _first(options: type) -> tuple[str, ...]:
    positional = [flag for flag in flags_of(options) if flag.positional]
    return positional[0].choices if positional else ()


def _bash(entries: list[Entry]) -> str:
    names = " ".join(entry.name for entry in entries)
    cases = "\n".join(
        f"        {entry.name}) words={quote(' '.join(w.text for w in entry.words))}"
        f" values={quote(' '.join(entry.choices))} ;;"
        for entry in entries
    )
    choices = "\n".join(
        f"        {entry.name}:{word.text}) "
        f'COMPREPLY=($(compgen -W {quote(" ".join(word.choices))} -- "$word")); return ;;'
        for entry in entries
        for word in entry.words
        if word.choices
    )
    return f"""_vrgcn() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="${{COMP_WORDS[1]}}" words="" values=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{names} --help --version" -- "$word")); return
    fi
    case "$command:$before" in
{choices}
    esac
    case "$command" in
{cases}
    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
        *) COMPREPLY=($(compgen -W "$values" -- "$word") $(compgen -f -- "$word")) ;;
    esac
}}
complete -o filenames -F _vrgcn vrgcn
"""


def _zsh(entries: list[Entry]) -> str:
    commands = "\n".join(f"        {quote(_colon(e.name, e.help))}" for e in entries)
    cases = "\n".join(
        f"        {entry.name}) flags=({_quoted(_colon(w.text, w.help) for w in entry.words)})"
        f" values=({_quoted(entry.choices)}) ;;"
        for entry in entries
    )
    choices = "\n".join(
        f"        {entry.name}:{word.text}) compadd -- {_quoted(word.choices)}; return ;;"
        for entry in entries
        for word in entry.words
        if word.choices
    )
    return f"""#compdef vrgcn
_vrgcn() {{
    local -a commands flags values
    commands=(
{commands}
    )
    if (( CURRENT == 2 )); then _describe command commands; return; fi
    case "$words[2]:$words[CURRENT-1]" in
{choices}
    esac
    case "$words[2]" in
{cases}
    esac
    if [[ "$words[CURRENT]" == -* ]]; then
        _describe flag flags
    else
        (( $#values )) && compadd -- $values
        _files
    fi
}}
if [ "$funcstack[1]" = _vrgcn ]; then _vrgcn "$@"; else compdef _vrgcn vrgcn; fi
"""


def _quoted(words: Iterable[str]) -> str:
    return " ".join(map(quote, words))


def _colon(name: str, text: str) -> str:
    """A name and its description, as _describe takes them."""
    return f"{name}:{text.replace(':', chr(92) + ':')}"


def _fish(entries: list[Entry]) -> str:
    lines = []
    for entry in entries:
        text = _fished(entry.help)
        lines.append(f"complete -c vrgcn -n __fish_use_subcommand -f -a {entry.name} -d {text}")
        inside = f"complete -c vrgcn -n '__fish_seen_subcommand_from {entry.name}'"
        for word in entry.words:
            choices = f" -x -a {_fished(' '.join(word.choices))}" if word.choices else ""
            lines.append(f"{inside} -l {word.text[2:]} -d {_fished(word.help)}{choices}")
        if entry.choices:
            lines.append(f"{inside} -f -a {_fished(' '.join(entry.choices))}")
    return "\n".join(lines) + "\n"


def _fished(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS: dict[Shell, Callable[[list[Entry]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
