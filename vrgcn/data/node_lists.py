"""Text files with a node id in each line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vrgcn.files.mistakes import InputError
from vrgcn.files.setting_names import setting

if TYPE_CHECKING:
    from torch import Tensor

    from vrgcn.graph.names import Names


def listed_nodes(
    path: Path, names: Names, count: int, kind: str | None = None, owner: str | None = None
) -> Tensor:
    """Return the nodes whose ids a text file lists, one per line.

    kind: of the nodes, in a graph of several kinds
    owner: what named the file, for errors; None: the setting `nodes`
    """
    import torch

    where = owner or setting("nodes")
    try:
        # utf-8-sig: files from other systems may begin with a byte order mark. split: an id may
        # contain \u2028.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise FileNotFoundError(f"{where}: there is no file {path}") from None
    except UnicodeDecodeError:
        raise InputError(f"{where}: {path} is not a text file in UTF-8") from None
    ids = [line for line in lines if line.strip()]
    if not ids:
        raise InputError(f"{where}: {path} names no nodes")
    return torch.from_numpy(names.places(ids, f"{where}: {path}", count, kind))
