r"""Estimators of P h and of its gradient: which there are, and what they are composed of.

Training needs P h on the way forward and Pᵀ g on the way back, g the gradient of the loss with
respect to what `propagate` answered. An estimator is a *sampler* (which neighbours are computed
anew, see samplers/) and a *way* in each direction. With P̂ the sampled entries of P, R the row
scale, h̄ the history, and a node's own edge exact in every case:

    way         forward                  backward
    none        –                        –
    sampled     R P̂ h                    R P̂ᵀ g
    history     P h̄                      Pᵀ ḡ
    corrected   P h̄ + R P̂ (h - h̄)        Pᵀ ḡ + R P̂ᵀ (g - ḡ)

    name         sampler      forward      backward
    exact        full         sampled      sampled    P h, Kipf
    ns           uniform      sampled      sampled    neighbour sampling (GraphSAGE)
    is           importance   sampled      sampled    importance sampling (FastGCN)
    cv           uniform      corrected    sampled    control variate
    cvd          uniform      corrected    sampled    control variate for dropout:
                                                      √R P̂ (h - μ) + R P̂ (μ - μ̄) + P μ̄
    history      none         history      none       neighbours from the history alone
    two-way      few          corrected    corrected  histories of activations and of gradients
    two-way-cv   uniform      corrected    corrected  the same with sampled neighbours: unbiased for
                                                      any ḡ; forward as cvd does it; both keep their
                                                      tables in a moving frame, see frame.py
    gradient-only             uniform with history forward and sampled backward: values from the
                              history alone, gradients from the sampled neighbours, with the dropout
                              residual of cvd

Forward and backward are separable because the correction R P̂ (h - h̄) has a value and a gradient.
Where gradients have a history the minibatch's own rows are written before they are averaged, in
both directions, so that a minibatch of all nodes is full-batch training: see way_back.py.

`cvd` needs the activations without dropout, μ. So it runs the model twice over the same plan: once
with dropout off, where each `propagate` answers with the `cv` estimate for μ and remembers both;
then with dropout on, where each adds √R P̂ (h - μ) to what the first pass answered. The gradient
flows through both passes: stopping it at μ would leave 1/√R of the neighbours' gradient.

The formulas are in formulas.py. No torch here: the command line reads the names.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

from vrgcn.engine.samplers import Sampler, check_sampler
from vrgcn.files.mistakes import InputError

Forward = Literal["sampled", "history", "corrected"]
Backward = Literal["none", "sampled", "history", "corrected"]
RESIDUAL, RAW = "residual", "raw"


@dataclass(frozen=True)
class Estimator:
    """How an average over neighbours is estimated.

    sampler: a name of samplers.SAMPLERS or of a
    plug-in, or your own sampler
    forward, backward: the ways of the table above
    dropout_residual: run without dropout first and add √R P̂ (h - μ), as cvd does
    raw: keep tables as they are written; if not, and gradients have a history, in a moving frame
    """

    sampler: str | Sampler
    forward: Forward = "sampled"
    backward: Backward = "sampled"
    dropout_residual: bool = False
    raw: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.sampler, str):
            check_sampler(self.sampler)
        for name, ways in (("forward", get_args(Forward)), ("backward", get_args(Backward))):
            if getattr(self, name) not in ways:
                raise InputError(f"{name} {getattr(self, name)!r} is none of {', '.join(ways)}")
        if self.dropout_residual and not self.history:
            raise InputError("an estimator with a dropout residual needs the history")
        if self.raw and not self.gradient_history:
            raise InputError("only an estimator with a history of gradients may be raw")

    @property
    def history(self) -> bool:
        """Whether it reads and writes tables of activations."""
        return self.forward != "sampled"

    @property
    def gradient_history(self) -> bool:
        """Whether it reads and writes tables of gradients."""
        return self.backward in ("history", "corrected")

    @property
    def moves(self) -> bool:
        """Whether its tables are kept in a moving frame."""
        return self.gradient_history and not self.raw

    @property
    def keeps(self) -> bool:
        """Whether it reads and writes any tables."""
        return self.history or self.gradient_history

    @property
    def corrects(self) -> bool:
        """True if sampled neighbours affect values or gradients."""
        return self.forward != "history" or self.backward in ("sampled", "corrected")


ESTIMATORS = {
    "exact": Estimator("full"),
    "ns": Estimator("uniform"),
    "is": Estimator("importance"),
    "cv": Estimator("uniform", "corrected"),
    "cvd": Estimator("uniform", "corrected", dropout_residual=True),
    "history": Estimator("none", "history", "none"),
    "two-way": Estimator("few", "corrected", "corrected"),
    "two-way-cv": Estimator("uniform", "corrected", "corrected", dropout_residual=True),
    "gradient-only": Estimator("uniform", "history", "sampled", dropout_residual=True),
}


def find_estimator(estimator: str | Estimator) -> Estimator:
    """An estimator by name or composition, or one's own as it is.

    A composition is written SAMPLER/FORWARD/BACKWARD, with /residual after it for cvd's two passes
    (`cvd` is uniform/corrected/sampled/residual), and /raw for tables without a moving frame.
    """
    if isinstance(estimator, Estimator):
        return estimator
    if estimator in ESTIMATORS:
        return ESTIMATORS[estimator]
    parts = estimator.split("/")
    extras = parts[3:]
    if len(parts) < 3 or extras != [word for word in (RESIDUAL, RAW) if word in extras]:
        close = get_close_matches(estimator, ESTIMATORS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise InputError(
            f"estimator {estimator!r} is none of {', '.join(ESTIMATORS)}, nor a composition "
            f"SAMPLER/FORWARD/BACKWARD such as uniform/history/sampled{hint}"
        )
    try:
        return Estimator(
            parts[0],
            parts[1],  # type: ignore[arg-type]
            parts[2],  # type: ignore[arg-type]
            dropout_residual=RESIDUAL in extras,
            raw=RAW in extras,
        )
    except InputError as error:
        raise InputError(f"estimator {estimator!r}: {error}") from None
