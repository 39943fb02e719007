"""The part of a report about probabilities: reliability plots, and coverage by class and degree."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from vrgcn.pages.figures import reliability_axes
from vrgcn.pages.page import Page
from vrgcn.pages.panels import Panel, show_panels
from vrgcn.pages.trust import Trust


def show_trust(page: Page, scored: Mapping[str, Trust | None]) -> None:
    """Show the reliability of each calibrated run, and the coverage of its sets or intervals."""
    trusted = {label: trust for label, trust in scored.items() if trust is not None}
    if not trusted:
        return
    for label, trust in trusted.items():
        page.text(f"{label}: {'; '.join(trust.lines('test'))}")
    show_panels(
        page,
        [
            Panel(
                f"{label}: reliability on the test nodes",
                partial(reliability_axes, held=trust.reliability, plain=trust.plain),
            )
            for label, trust in trusted.items()
            if trust.reliability is not None and trust.plain is not None
        ],
    )
    for label, trust in trusted.items():
        if trust.groups:
            rows = [g.row for g in trust.groups]
            caption = f"{label}: coverage of test nodes (promised: {trust.promised:.0%})"
            page.table(["nodes", "count", "coverage", "size"], rows, caption=caption)
