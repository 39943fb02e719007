"""Contents of files as text: hashes of long contents, with enough context to read a difference.

Each kind of file has one function here, found by the ending of its name. A hash is that of the
file's bytes if nothing in it had to be masked, otherwise that of its masked text.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from lab.golden.masks import Masks

FIRST_ROWS = 5
_DATA = re.compile(r"data:[\w/+.-]+;base64,([\w+/=]+)")
_STYLE = re.compile(r"<(style|script)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def sha(data: bytes | str) -> str:
    """Return the first 16 hexadecimal digits of a SHA-256."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:16]


def array_line(values: Any) -> str:
    """Return type, shape, hash and first numbers of an array or tensor."""
    array = np.ascontiguousarray(as_array(values))
    first = ", ".join(repr(item) for item in array.reshape(-1)[:4].tolist())
    return f"{array.dtype} {list(array.shape)} {sha(array.tobytes())} [{first}, ...]"


def as_array(values: Any) -> np.ndarray:
    """Return an array for an array or a tensor; bfloat16, which NumPy lacks, as its bits."""
    if hasattr(values, "detach"):
        import torch

        tensor = values.detach().cpu()
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        if tensor.dtype == torch.bfloat16:
            tensor = tensor.view(torch.int16)
        return tensor.numpy()
    return np.asarray(values)


def flattened(value: Any, name: str = "") -> Iterator[str]:
    """Yield a line `name.key[0] = value` for each leaf of a JSON value."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flattened(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for place, item in enumerate(value):
            yield from flattened(item, f"{name}[{place}]")
    else:
        yield f"{name} = {json.dumps(value, ensure_ascii=False)}"


def describe(path: Path, masks: Masks) -> str:
    """Return the contents of one file as text; for a file that does not match its name, the
    reason."""
    try:
        return _describer(path)(path, masks)
    except Exception as error:
        return masks.text(f"not readable, {type(error).__name__}: {error}\n{_bytes(path, masks)}")


def describe_folder(folder: Path, masks: Masks) -> dict[str, str]:
    """Describe every file of a folder and its subfolders, by its masked path; `FILES` lists all of
    them, including empty folders."""
    paths = sorted(folder.rglob("*"))
    found = {}
    for path in paths:
        if path.is_file():
            found[masks.text(str(path.relative_to(folder)))] = describe(path, masks)
    empty = [path for path in paths if path.is_dir() and not any(path.iterdir())]
    names = [*found, *(f"{path.relative_to(folder)}/" for path in empty)]
    return {"FILES": "\n".join(sorted(names)), **found}


def _text(path: Path, masks: Masks) -> str:
    return masks.text(path.read_text(encoding="utf-8"))


def _rows(path: Path, masks: Masks) -> str:
    text = masks.text(path.read_text(encoding="utf-8"))
    lines = text.splitlines()
    return "\n".join([f"{sha(text)} {len(lines)} lines", *lines[: FIRST_ROWS + 1]])


def _json(path: Path, masks: Masks) -> str:
    raw = path.read_text(encoding="utf-8")
    value = json.loads(raw)
    masked = masks.json(value)
    head = [f"bytes {sha(raw)}"] if masked == value else []
    return "\n".join([*head, *flattened(masked)])


def _json_lines(path: Path, masks: Masks) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(json.dumps(masks.json(json.loads(line))) for line in lines)


def _npy(path: Path, masks: Masks) -> str:
    return f"bytes {sha(path.read_bytes())}\n{array_line(np.load(path, allow_pickle=False))}"


def _safetensors(path: Path, masks: Masks) -> str:
    from safetensors import safe_open

    lines = [f"bytes {sha(path.read_bytes())}"]
    with safe_open(path, framework="pt") as file:
        for key, text in sorted((file.metadata() or {}).items()):
            lines += flattened(masks.json(_parsed(text)), f"metadata {key}:")
        for name in sorted(file.keys()):
            lines.append(f"{name}: {array_line(file.get_tensor(name))}")
    return "\n".join(lines)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _arrow(path: Path, masks: Masks) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        table = pq.read_table(path)
    else:
        with pa.OSFile(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
    return f"bytes {sha(path.read_bytes())}\n{table_lines(table)}"


def table_lines(table: Any) -> str:
    """Return schema, hash and first rows of an Arrow table."""
    columns = [f"{field.name}: {field.type}" for field in table.schema]
    rows = table.to_pylist()
    first = [json.dumps(row, ensure_ascii=False, default=str) for row in rows[:FIRST_ROWS]]
    return "\n".join([*columns, f"{len(rows)} rows {sha(repr(rows))}", *first])


def _page(path: Path, masks: Masks) -> str:
    raw = path.read_text(encoding="utf-8")
    page = masks.text(raw)
    text = _DATA.sub(lambda found: f"data {sha(found[1])}", page)
    pictures = re.findall(r"data [0-9a-f]{16}", text)
    words = html.unescape(_TAG.sub("\n", _STYLE.sub("", text)))
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return "\n".join([f"page {sha(page)}", *pictures, *lines])


def _sums(path: Path, masks: Masks) -> str:
    """Return names and whether the sums are right: the sums themselves depend on seconds in a
    file."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        digest, name = line.split(maxsplit=1)
        there = hashlib.sha256((path.parent / name).read_bytes()).hexdigest()
        lines.append(f"{name} {'matches' if there == digest else 'DIFFERS'}")
    return "\n".join(lines)


_OF_TRIALS = {
    "studies": "SELECT study_name FROM studies",
    "directions": "SELECT direction FROM study_directions ORDER BY study_direction_id",
    "study": "SELECT key, value_json FROM study_user_attributes ORDER BY key",
    "trials": "SELECT number, state FROM trials ORDER BY number",
    "values": "SELECT number, objective, value, value_type FROM trial_values "
    "JOIN trials USING (trial_id) ORDER BY number, objective",
    "params": "SELECT number, param_name, param_value, distribution_json FROM trial_params "
    "JOIN trials USING (trial_id) ORDER BY number, param_name",
    "between": "SELECT number, step, intermediate_value FROM trial_intermediate_values "
    "JOIN trials USING (trial_id) ORDER BY number, step",
    "notes": "SELECT number, key, value_json FROM trial_user_attributes "
    "JOIN trials USING (trial_id) ORDER BY number, key",
    "system": "SELECT number, key, value_json FROM trial_system_attributes "
    "JOIN trials USING (trial_id) ORDER BY number, key",
}


def _study(path: Path, masks: Masks) -> str:
    lines = []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        for name, query in _OF_TRIALS.items():
            for row in connection.execute(query):
                cells = _masked_row(row, masks)
                lines.append(f"{name}: {json.dumps(cells, ensure_ascii=False)}")
    finally:
        connection.close()
    return "\n".join(lines)


def _masked_row(row: tuple[Any, ...], masks: Masks) -> list[Any]:
    """Return a row of Optuna's tables; the value of an attribute called seconds is masked by its
    name."""
    *first, last = row
    if not isinstance(last, str):
        return list(row)
    name = str(first[-1]) if first else ""
    return [*first, *masks.json({name: _parsed(last)}).values()]


def _events(path: Path, masks: Masks) -> str:
    reader = import_module("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(path))
    events.Reload()
    lines = []
    for tag in sorted(events.Tags()["scalars"]):
        for point in events.Scalars(tag):
            value = "<seconds>" if "seconds" in tag else repr(point.value)
            lines.append(f"{tag} {point.step} {value}")
    return "\n".join(lines)


def _bytes(path: Path, masks: Masks) -> str:
    return f"bytes {sha(path.read_bytes())}"


_BY_ENDING: dict[str, Callable[[Path, Masks], str]] = {
    ".toml": _text,
    ".txt": _text,
    ".csv": _rows,
    ".json": _json,
    ".jsonl": _json_lines,
    ".npy": _npy,
    ".safetensors": _safetensors,
    ".arrow": _arrow,
    ".parquet": _arrow,
    ".html": _page,
    ".sqlite": _study,
}


def _describer(path: Path) -> Callable[[Path, Masks], str]:
    if path.name == "SHA256SUMS":
        return _sums
    if path.name.startswith("events.out.tfevents"):
        return _events
    return _BY_ENDING.get(path.suffix, _bytes)
