"""Names of features, and of the columns of the user's tables that they were made of."""

from __future__ import annotations

import re

_PARTS = re.compile(r"(=|~|\[|\.(seconds|year\.\w+|week\.\w+|day\.\w+|missing)$).*")


def user_column(title: str) -> str:
    """The column of the user's table that a feature was made of."""
    return _PARTS.sub("", title) or title
