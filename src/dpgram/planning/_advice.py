"""What `plan` advises: the least ε that reaches a wanted standard error, and with which mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, final

from dpgram.errors import AnalysisError
from dpgram.mechanisms import MECHANISMS
from dpgram.planning._adaptive import ADAPTIVE, AdaptiveSetting
from dpgram.planning._payer import Payer
from dpgram.planning.forecast import Setting
from dpgram.privacy.curves.search import least
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.compatibility import MODELS, clash_of, mechanism_option

LARGEST_EPSILON: Final = 100.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The least ε that reaches a wanted standard-error ratio, and with which mechanism."""

    se_ratio: float
    epsilon: float | None
    """Nothing where not even ε = 100 reaches it, or where the ledger would refuse whatever does."""
    mechanism: str | None
    refused: bool = False
    """Whether it could be reached, but not with what the ledger has left."""


def advised(
    setting: Setting,
    delta: float,
    wanted: float,
    adaptive: AdaptiveSetting | None,
    *,
    semidefinite: bool,
    models: bool,
    payer: Payer | None,
) -> Advice:
    """Of the quick ones, among which is the best of all, or nearly so for a semidefinite matrix."""
    if not wanted > 1.0:
        raise AnalysisError(
            "no private release is as accurate as least squares on the table",
            got=wanted,
            limit="target_se_ratio > 1",
            remedy="Give a larger one, such as 1.2",
        )
    if wanted == math.inf:
        raise AnalysisError(
            "any release reaches an infinite ratio of standard errors",
            remedy="Give target_se_ratio a number, such as 1.2, or leave it out",
        )

    def least_epsilon(ratio: Callable[[Guarantee], float]) -> float:
        """Above the largest where not even that reaches it."""
        return least(
            lambda epsilon: epsilon > LARGEST_EPSILON or ratio(Guarantee(epsilon, delta)) <= wanted,
            start=1.0,
            tolerance=1e-3,
        )

    best: tuple[float, str] | None = None
    refused = False
    for name, kind in MECHANISMS.items():
        if not kind.quick or kind.semidefinite != semidefinite or (delta == 0.0 and not kind.pure):
            continue
        if models and clash_of(MODELS, mechanism_option(kind)) is not None:
            continue
        asked = kind()
        epsilon = least_epsilon(partial(setting.ratio, asked))
        if epsilon > LARGEST_EPSILON:
            continue
        if payer is not None and not payer.pays(asked, Guarantee(epsilon, delta)):
            refused = True
        elif best is None or epsilon < best[0]:
            best = (epsilon, name)
    if adaptive is not None and not semidefinite:
        epsilon = least_epsilon(lambda guarantee: adaptive.forecast(guarantee).se_ratio)
        noise = MECHANISMS["gaussian" if delta else "matrix-laplace"]()
        if epsilon <= LARGEST_EPSILON and (best is None or epsilon < best[0]):
            if payer is None or payer.pays(noise, Guarantee(epsilon, delta)):
                best = (epsilon, ADAPTIVE)
            else:
                refused = True
    return Advice(
        se_ratio=wanted,
        epsilon=None if best is None else best[0],
        mechanism=None if best is None else best[1],
        refused=refused and best is None,
    )
