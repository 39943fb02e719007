"""Settings of the site: `make docs` builds it from these pages, the docstrings and the examples."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

import site_pages  # noqa: E402

import vrgcn  # noqa: E402

project = "vrgcn"
author = "The vrgcn authors"
copyright = "2026, the vrgcn authors"
release = version = vrgcn.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# Pages link to files of the repository, which are no pages of the site.
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": False}

html_theme = "furo"
html_title = f"vrgcn {release}"
html_static_path: list[str] = []


def setup(app: Any) -> None:
    """Write the pages that are made of code, and let Sphinx read our docstrings."""
    site_pages.write(HERE / "_generated", HERE.parent / "examples")
    app.connect("autodoc-process-docstring", site_pages.as_rest)
