"""Messages of an import as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vrgcn.files.setting_names import flags_in_messages


@pytest.fixture
def told_as_flags() -> Iterator[None]:
    """Settings are named as flags, as inside `vrgcn import`."""
    with flags_in_messages():
        yield
