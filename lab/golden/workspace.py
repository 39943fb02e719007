"""A workspace: the folder in which commands run, and the folder of the recorded texts."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.golden.contents import describe, describe_folder
from lab.golden.masks import Masks
from lab.golden.processes import Outcome, command, forked, program


@dataclass(frozen=True)
class Workspace:
    """The folders of a section.

    folder: working folder of the commands; sections have one each
    record: folder of the recorded texts of this section
    code: the checkout whose `vrgcn` is recorded
    tool: the checkout that this tool is in
    masks: applied to everything that is recorded
    """

    folder: Path
    record: Path
    code: Path
    tool: Path
    masks: Masks

    def write(self, name: str, text: str) -> None:
        """Record a text that is masked already, under NAME.txt."""
        path = self.record / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")

    def run(self, *arguments: object, folder: Path | None = None) -> Outcome:
        """Run `vrgcn ARGUMENTS` without recording; raise if it fails, because others need it."""
        done = command(arguments, folder or self.folder)
        if done.code:
            raise RuntimeError(f"vrgcn {shlex.join(map(str, arguments))}: {done.err or done.code}")
        return done

    def command(self, name: str, *arguments: object, folder: Path | None = None) -> Outcome:
        """Run `vrgcn ARGUMENTS` and record its exit code and output."""
        done = command(arguments, folder or self.folder)
        self.write(name, self.told(done, ["vrgcn", *arguments]))
        return done

    def program(self, name: str, *arguments: object, folder: Path | None = None) -> Outcome:
        """Run `python ARGUMENTS` as a program of its own and record its exit code and output."""
        done = program(arguments, folder or self.folder)
        self.write(name, self.told(done, ["python", *arguments]))
        return done

    def function(self, name: str, function: Callable[[], object]) -> Outcome:
        """Call a function in a fork and record its output and its exception."""
        done = forked(function, self.folder)
        self.write(name, self.told(done, []))
        return done

    def files(self, name: str, folder: str | Path) -> None:
        """Record the contents of every file of a folder, a text each."""
        for path, text in describe_folder(self.folder / folder, self.masks).items():
            self.write(f"{name}/{path}", text)

    def file(self, name: str, file: str | Path) -> None:
        """Record the contents of one file."""
        path = self.folder / file
        self.write(name, describe(path, self.masks) if path.exists() else "there is no such file")

    def told(self, done: Outcome, arguments: Sequence[object]) -> str:
        """Return a command, its exit code and its output, masked."""
        line = shlex.join(map(str, arguments))
        lines = [f"$ {self.masks.text(line)}"] if line else []
        lines.append(f"exit {done.code}")
        for name, text in (("stdout", done.out), ("stderr", done.err)):
            if text:
                lines += [f"--- {name}", self.masks.output(text)]
        return "\n".join(lines)
