"""Settings of `vrgcn tune`. No torch here: the command line reads them before it loads anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vrgcn.files.settings import at_least, declared
from vrgcn.runs.run_settings import RunSettings
from vrgcn.tuning.space import SPACE, check_names


@dataclass(frozen=True)
class TuneSettings(RunSettings):
    """The settings that are tried first, the settings that are not searched, and how long the
    search is."""

    name: str | None = declared(None, of_command=True)
    """Name of the search. None: the name of the graph with -tuned."""
    resume: Path | None = declared(None, of_command=True)
    """Folder of a search to resume.

    The search was stopped or killed. It resumes with its own options. With more --trials or a
    longer --time-limit, a finished search can be resumed too."""

    """Group search: what is tried, and how often."""
    trials: int | None = declared(None, resume="always", lengthens=True)
    """Maximum number of settings to try.

    None: 40, or as many as --time-limit allows, which includes the time for baselines."""
    search: tuple[str, ...] = tuple(SPACE)
    """Settings to vary; the others keep their given values.

    Pairs have others, such as decoder, loss and negatives; all of these unless some are named."""
    baselines: bool = declared(True, resume="always")
    """Fit linear models, perceptrons, boosted trees and others before training networks, in 20% of
    the time; for pairs, score simple rules."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, trials=self.trials)
        check_names(self.search)

    def usual_name(self, estimator: str) -> str:
        """Return the default name of a search."""
        return f"{self.graph_name}-tuned"
