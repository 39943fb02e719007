"""Places that results go to are refused by name, before any work."""

import pytest

from tests.messages import refused
from vrgcn.files.writing import check_out, check_out_folder


def test_a_place_that_can_be_written_is_made(tmp_path):
    check_out(tmp_path / "new" / "page.html", [".html"])
    assert (tmp_path / "new").is_dir()
    assert not (tmp_path / "new" / "page.html").exists()


@pytest.mark.parametrize("out", ["a/page.html", "a/b/c/page.html"])
def test_a_file_where_a_folder_should_be_is_named(tmp_path, out):
    (tmp_path / "a").touch()
    with refused(NotADirectoryError):
        check_out(tmp_path / out, [".html"])


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with refused(PermissionError):
        check_out_folder(tmp_path / "x")


def test_a_folder_that_cannot_be_written_into_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    with refused(PermissionError):
        check_out_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "suffixes"),
    [
        ("page.txt", [".html"]),
        ("page.txt", [".html", ".htm"]),
        ("folder.html", [".html"]),
    ],
)
def test_what_is_no_such_file_is_named(tmp_path, name, suffixes):
    (tmp_path / "folder.html").mkdir()
    with refused():
        check_out(tmp_path / name, suffixes)
