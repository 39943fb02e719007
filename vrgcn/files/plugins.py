"""Plug-ins: parts of other packages that are found by name, through their entry points.

    [project.entry-points."vrgcn.models"]
    mine = "my_package.models:Mine"

Each table of names asks here for names that it does not have itself. Names are read from the
metadata of installed packages; a package is imported when its name is asked for, not before, so
that a broken one troubles nobody else. A plug-in cannot replace a part of vrgcn.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from vrgcn.files.mistakes import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Groups of entry points; they are no names of modules.
MODELS, SAMPLERS, TASKS, ENCODERS, TABLE_FILES, TABLE_SOURCES, STAGES = (
    f"vrgcn.{name}"
    for name in (
        *("models", "samplers", "tasks", "encoders", "table_files", "table_sources"),
        "stages",
    )
)


class Plugins(NamedTuple):
    """Marks a setting whose words may also be names of plug-ins. group: of their entry points"""

    group: str


@cache
def _found(group: str) -> dict[str, list[EntryPoint]]:
    """The entry points of a group by name, those of one name together."""
    from importlib.metadata import entry_points  # slow, and few commands ask

    groups: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        groups.setdefault(point.name, []).append(point)
    return dict(sorted(groups.items()))


def plugin_names(group: str) -> list[str]:
    """The names of a group's plug-ins; nothing is imported."""
    return list(_found(group))


def is_plugin(group: str, name: object) -> bool:
    """True if an installed package has a plug-in of this name; nothing is imported."""
    return isinstance(name, str) and name in _found(group)


def known_names(group: str, ours: Iterable[str]) -> str:
    """The names of vrgcn's own parts and of plug-ins, for errors."""
    own = list(ours)
    theirs = [name for name in plugin_names(group) if name not in own]
    return ", ".join([*own, *theirs])


def check_own(group: str, name: str) -> None:
    """Raise if a package has a plug-in of the same name as a part of vrgcn."""
    if is_plugin(group, name):
        raise InputError(
            f"{name!r} is a name of vrgcn's own, and {_packages(group, name)} has an entry point "
            f"{name!r} in the group {group}: a plug-in cannot replace it; rename the entry point, "
            "or uninstall the package"
        )


def load_plugin(group: str, name: str) -> Any:
    """Import and return the plug-in of a name, which `is_plugin` knows."""
    points = _found(group)[name]
    if len({(point.value, _package(point)) for point in points}) > 1:
        raise InputError(
            f"several packages have an entry point {name!r} in the group {group}: "
            f"{_packages(group, name)}; uninstall all but one"
        )
    try:
        return points[0].load()
    except Exception as error:  # whatever the package's own code raises
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"the plug-in {name!r} of {_package(points[0])} cannot be loaded "
            f"({points[0].value}): {type(error).__name__}: {reason}; reinstall the package, or ask "
            "its authors"
        ) from error


def plugin_package(group: str, name: str) -> str:
    """The package of a plug-in with its version, such as "tiny 1.0"."""
    return _packages(group, name)


def _packages(group: str, name: str) -> str:
    return ", ".join(dict.fromkeys(map(_package, _found(group)[name])))


def _package(point: EntryPoint) -> str:
    dist = point.dist
    return "an unknown package" if dist is None else f"the package {dist.name} {dist.version}"
