"""Names that users give reach a terminal and a picture as they are read, and do nothing there."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrgcn.files.wording import encodable, picture_text, printable, shortened


@pytest.mark.parametrize("name", ["", "plain", "größe 漢字 🙂", "[bold]", "a$b$", "\\x1b"])
def test_what_can_be_seen_stays_as_it_is(name: str) -> None:
    assert printable(name) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x1b[2Jclean", r"\x1b[2Jclean"),
        ("two\nlines", r"two\nlines"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\x00\x9b", r"\x00\x9b"),
        ("\udc80", r"\udc80"),  # a byte of a file's name that is not UTF-8
    ],
)
def test_what_cannot_be_seen_is_written_out(name: str, shown: str) -> None:
    assert printable(name) == shown
    printable(name).encode()


def test_paths_are_written_out_too() -> None:
    assert printable(Path("runs") / "\x1b[2J") == r"runs/\x1b[2J"


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", r"\xe9\u2248\udcff"), ("latin-1", r"é\u2248\udcff")]
)
def test_letters_that_an_encoding_does_not_have_are_written_out(encoding: str, shown: str) -> None:
    assert encodable("é≈\udcff", encoding) == shown


def test_line_ends_are_kept_where_asked_for() -> None:
    assert printable("a\n\x07b", keep="\n") == "a\n\\x07b"


@pytest.mark.parametrize("name", ["$10-$20", "$x^$", "a\\$b", "$", "$$", "\x1b$"])
def test_dollars_are_dollars_in_pictures(name: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    text = figure.text(0, 0, picture_text(name))
    shown, mathematics = text._preprocess_math(text.get_text())
    assert (shown, mathematics) == (printable(name), False)
    figure.canvas.draw()


def test_long_names_are_shortened_in_pictures_and_where_asked_for() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "ab…"
    assert len(picture_text("x" * 10**6)) == 200
