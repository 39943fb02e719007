"""A pipe that closes, seen from inside."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from vrgcn.cli.output import Unbroken, unbroken_output


def test_what_is_written_after_the_reader_is_gone_goes_nowhere() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        output = Unbroken(stream)
        assert output.write("seen\n") == 5
        output.flush()
        assert os.read(reader, 100) == b"seen\n"
        os.close(reader)
        for _ in range(3):
            output.write("lost")  # so little that it stays in the buffer
            output.flush()
    # And closing, which writes what is left, raises nothing.


def test_the_streams_are_put_back_and_the_wrapper_is_like_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sys.stdout, sys.stderr
    with unbroken_output():
        print("hello")
        assert sys.stdout.encoding == before[0].encoding
        assert sys.stdout.isatty() == before[0].isatty()
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "hello\n"


def test_a_terminal_that_was_closed_is_like_a_pipe_and_other_errors_are_not() -> None:
    with open(os.devnull, "w") as stream:
        output = Unbroken(stream)
        for code in (errno.EIO, errno.EPIPE):
            output._silence(OSError(code, ""))
        with pytest.raises(OSError, match="No space"):
            output._silence(OSError(errno.ENOSPC, "No space left on device"))
