"""Runs on the Hugging Face Hub, or on a server that stands in for it (HF_ENDPOINT).

A model there is the run's folder without checkpoints. Nothing in it is code, and nothing is
unpickled. The graph stays where it is unless it is asked for: it is the user's data.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrgcn.files.mistakes import InputError
from vrgcn.runs.folder import CARD, CHECKPOINTS, GRAPH

if TYPE_CHECKING:
    from vrgcn.runs.run import Run

SCHEME = "hf://"
_FRONT = "---\nlibrary_name: vrgcn\ntags:\n- graph-neural-network\n---\n"
_KEPT_HERE = [f"{CHECKPOINTS}/*", "tensorboard/*", ".*"]


def push_run(run: Run, name: str, *, private: bool, graph: bool, **given: Any) -> str:
    """See `Run.push_to_hub`."""
    api = _library().HfApi()
    name = name.removeprefix(SCHEME)
    api.create_repo(name, private=private, exist_ok=True)
    left = [*_KEPT_HERE, *([] if graph else [f"{GRAPH}/*"]), CARD]
    done = api.upload_folder(
        repo_id=name, folder_path=str(run.folder), ignore_patterns=left, **given
    )
    card = run.folder / CARD
    if card.is_file():
        text = _FRONT + card.read_text(encoding="utf-8")
        api.upload_file(repo_id=name, path_or_fileobj=text.encode(), path_in_repo=CARD)
    return str(done)


def fetch_run(address: str) -> Path:
    """Return the local copy of a run, which is downloaded where it is not there yet.

    address: hf://OWNER/NAME, or hf://OWNER/NAME@REVISION
    """
    name, _, revision = address.removeprefix(SCHEME).partition("@")
    if name.count("/") != 1 or not all(name.split("/")):
        raise InputError(f"{address}: name a run as hf://OWNER/NAME, or hf://OWNER/NAME@REVISION")
    return Path(_library().snapshot_download(repo_id=name, revision=revision or None))


def _library() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise ImportError(
            "models on a hub need huggingface_hub: pip install 'vrgcn[hub]'"
        ) from None
    return huggingface_hub
