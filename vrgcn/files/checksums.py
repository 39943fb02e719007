"""Checksums of files: SHA-256, which processors of today compute at about the speed of a disk."""

from __future__ import annotations

import hashlib
import json
from io import BufferedReader
from pathlib import Path
from typing import Any


def file_checksum(file: Path) -> str:
    """SHA-256 of all bytes of a file, read in pieces."""
    with open(file, "rb") as opened:
        return stream_checksum(opened)


def stream_checksum(opened: BufferedReader) -> str:
    """The same, of a file that is open."""
    return hashlib.file_digest(opened, "sha256").hexdigest()


def value_checksum(value: Any) -> str:
    """SHA-256 of a value that JSON can write, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
