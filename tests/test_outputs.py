"""Files that cannot be written are refused before the work."""

from __future__ import annotations

import pytest

from vrgcn.outputs import check_out


def test_the_folder_of_a_file_is_made(tmp_path):
    check_out(tmp_path / "new" / "page.html", (".html",))
    assert list(tmp_path.iterdir()) == [tmp_path / "new"]


@pytest.mark.parametrize(
    ("name", "suffixes", "words"),
    [
        ("page.txt", (".html",), "page.txt must end in .html"),
        ("page", (".png", ".svg"), "page must end in one of .png, .svg"),
        ("folder.png", (".png",), "folder.png is a folder; name a file"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, name, suffixes, words):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises((ValueError, OSError), match=words):
        check_out(tmp_path / name, suffixes)
