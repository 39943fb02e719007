"""Files stay so small that one can be read at a time."""

from __future__ import annotations

from pathlib import Path

import vrgcn

MOST = 500  # lines


def test_no_file_of_the_package_is_longer_than_one_reads_at_a_time() -> None:
    package = Path(vrgcn.__file__).parent
    lengths = {
        str(path.relative_to(package)): len(path.read_text(encoding="utf-8").splitlines())
        for path in package.rglob("*.py")
    }
    assert not {file: lines for file, lines in lengths.items() if lines > MOST}
