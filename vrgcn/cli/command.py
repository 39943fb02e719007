"""A command: a module of its own, which is imported when the command is used.

The module has a dataclass of options and a function `run(options)` that takes it. A field of the
dataclass is a flag, and the text under it the flag's help. torch and everything heavy is imported
in the body of `run`, so that help and mistakes are answered at once.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self, get_type_hints


class Options:
    """Base of every options class."""

    # True if the command writes no file and only prints.
    only_prints: ClassVar[bool] = False
    # True to show that PyTorch is loaded before the command runs: seconds in which nothing else is
    # shown.
    loads_torch: ClassVar[bool] = False

    def checked(self) -> Self:
        """Return the options to run with, for example with the graph that one word names resolved;
        raise on mistakes that can be reported before torch is loaded. The command checks again when
        it opens files."""
        return self


class Command(NamedTuple):
    """A row of the table of commands.

    module: its dotted name
    summary: one sentence, in the overview and at the top of the command's help
    """

    module: str
    summary: str

    @property
    def options(self) -> type[Options]:
        """The options class: the type of the argument of `run`."""
        kind: type[Options] = get_type_hints(self._run)["options"]
        return kind

    def run(self, options: Options) -> None:
        """Run the command."""
        if options.loads_torch:
            from vrgcn.training.progress import working

            with working("loading PyTorch"):
                import_module("torch")
        self._run(options)

    @property
    def _run(self) -> Callable[[Any], None]:
        function: Callable[[Any], None] = import_module(self.module).run
        return function
