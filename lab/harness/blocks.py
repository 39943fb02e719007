"""Parts of a page that a program writes, between two comments that name them.

<!-- league -->
what the records say
<!-- end of league -->
"""

from __future__ import annotations

from vrgcn.files.mistakes import InputError


def read_block(page: str, name: str) -> str | None:
    """Return the contents of a block; None if the page has none of this name."""
    begin, end = _marks(name)
    _, found, rest = page.partition(begin + "\n")
    contents, ended, _ = rest.partition("\n" + end)
    return contents if found and ended else None


def write_block(page: str, name: str, contents: str, before: str) -> str:
    """Return the page with new contents of a block. A page without it gets one.

    before: the line, such as a heading, that a new block is put before
    """
    begin, end = _marks(name)
    block = f"{begin}\n{contents}\n{end}"
    old = read_block(page, name)
    if old is not None:
        return page.replace(f"{begin}\n{old}\n{end}", block)
    first, line, rest = page.partition(f"\n{before}\n")
    if not line:
        raise InputError(f"the page has no line {before!r} to put the block {name} before")
    return f"{first}\n{block}\n{line}{rest}"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- end of {name} -->"
