"""What must agree inside a release: the mechanism, its noise law, its guarantee, and the form of the receipt.

A digest shows that a file was not damaged; these checks show that it was not written by a confused program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.privacy.events import GaussianEvent, PureEvent

if TYPE_CHECKING:
    from dpgram.privacy.receipt import Receipt
    from dpgram.release import Release

_HEX: Final = frozenset("0123456789abcdef")
_ROUNDING: Final = 1e-9


def one_story(release: Release) -> bool:
    """Whether a known mechanism with exactly its own parameters and law gives at least what is promised."""
    story = STORIES.get(release.mechanism.name)
    return story is not None and story(release)


def well_formed(receipt: Receipt) -> bool:
    """Whether the receipt could have come from a ledger."""
    hexadecimal = [(receipt.ledger_id, 32), (receipt.receipt_id, 32), (receipt.head, 64)]
    sized = len(receipt.ledger_name) <= 1000 and 1 <= receipt.entry <= 2**53
    return sized and all(len(text) == size and set(text) <= _HEX for text, size in hexadecimal)


def paid_for(release: Release) -> bool:
    """Whether the event on the receipt is as large as what the release says of itself."""
    told = release.guarantee
    match None if release.receipt is None else release.receipt.event:
        case GaussianEvent(mu=mu):
            return told.mu is not None and mu >= told.mu * (1 - _ROUNDING)
        case PureEvent(epsilon=epsilon):
            return told.mu is None and epsilon >= told.epsilon * (1 - _ROUNDING)
        case _:
            return True


def _gaussian(release: Release) -> bool:
    """μ ≥ Δ/σ with Δ = 2^30 or √2·2^30 (proofs/gaussian.md)."""
    law, told = release.noise, release.guarantee
    if not isinstance(law, SymmetricGaussian) or release.mechanism.parameters != {"sigma": law.sigma}:
        return False
    if not law.sigma > 0 or told.mu is None or told.delta == 0 or not _plain_gram(release):
        return False
    return told.mu >= math.sqrt(_steps(release)) * ROW_NORM_SQUARED / law.sigma * (1 - _ROUNDING)


def _matrix_laplace(release: Release) -> bool:
    """ε ≥ θ·2^30 or θ·2^31, and δ = 0 (proofs/matrix-laplace.md)."""
    law, told = release.noise, release.guarantee
    if not isinstance(law, MatrixLaplace) or release.mechanism.parameters != {"theta": law.theta}:
        return False
    if not law.theta > 0 or law.width != release.schema.width or told.delta != 0 or not _plain_gram(release):
        return False
    return told.epsilon >= _steps(release) * ROW_NORM_SQUARED * law.theta * (1 - _ROUNDING)


def _plain_gram(release: Release) -> bool:
    return release.published.kind == "gram" and release.published.exponent == 0


def _steps(release: Release) -> int:
    return 1 if release.adjacency == "add-remove" else 2


STORIES: Final[Mapping[str, Callable[[Release], bool]]] = {
    "gaussian": _gaussian,
    "matrix-laplace": _matrix_laplace,
}
"""Every mechanism a release may name, and what must hold for it."""
