"""Audits of Gram mechanisms: the worst neighbours for both adjacencies, and statistics that tell them apart.

A full-length row along one column and one spread evenly over all of them see different faults (a diagonal or
an off-diagonal variance that is too small); under replace-one two orthogonal full rows are farthest apart. A
person of several rows may also spread the same trace over several directions.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, cast, final

import numpy as np
import numpy.typing as npt

from dpgram.audit import Experiment, JointAudit, Scores, Tell, audit_all
from dpgram.core.noise import Entropy
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms.base import CalibratedMechanism, Drawn, PublicFacts
from dpgram.noise import NoisyInverse
from dpgram.privacy.adjacency import AddRemove
from dpgram.publishing.publication import drawn

Cells = npt.NDArray[np.int64]

_MATRIX_STATISTICS: Final = (
    "projection",
    "diagonal projection",
    "off-diagonal projection",
    "nuclear norm of M − b less that of M − a",
    "least eigenvalue of M − a",
    "largest eigenvalue of M − a",
    "least eigenvalue of M − b",
    "largest eigenvalue of M − b",
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Two exact Gram matrices that one row (or unit) makes different."""

    name: str
    a: Cells
    b: Cells

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of what `measure` returns."""
        cells = [f"cell {i},{j}" for i in range(len(self.a)) for j in range(i + 1)]
        return (*_MATRIX_STATISTICS, *cells)

    def measure(self, drawn: Sequence[Drawn]) -> Scores:
        """Statistics of each noisy matrix M, in units of a full row's square.

        The inner product of M − b with a − b, whole and by parts, is the likelihood ratio of symmetric
        Gaussian noise and shows a wrong shape; the difference of nuclear norms is nearly that of matrix
        Laplace noise; one-sided noise gives itself away in the sign of an outer eigenvalue. Then the cells.
        Where an inverse was published, a and b are the inverses without noise, in units of their distance.
        """
        a, b, unit = self._without_noise(drawn[0])
        from_b = np.stack([_floats(one) for one in drawn]) / unit - b / unit
        step = (a - b) / unit
        products = from_b * step
        whole, diagonal = products.sum(axis=(1, 2)), np.einsum("nii->n", products)
        values_a, values_b = np.linalg.eigvalsh(from_b - step), np.linalg.eigvalsh(from_b)
        nuclear = np.abs(values_b).sum(axis=1) - np.abs(values_a).sum(axis=1)
        outer = (values_a[:, 0], values_a[:, -1], values_b[:, 0], values_b[:, -1])
        cells = from_b[:, np.tri(len(step), dtype=np.bool_)]
        return np.column_stack([whole, diagonal, whole - diagonal, nuclear, *outer, cells])

    def _without_noise(self, drawn: Drawn) -> tuple[Scores, Scores, float]:
        """What would be published of a and of b without noise, and the unit to measure in."""
        if drawn.kind == "gram":
            return self.a.astype(np.float64), self.b.astype(np.float64), float(ROW_NORM_SQUARED)
        if not isinstance(drawn.noise, NoisyInverse):
            raise MechanismError(
                "only a noisy Gram matrix, or the inverse of one with a public ridge, can be measured here",
                got=f"kind {drawn.kind!r} with {type(drawn.noise).__name__}",
                remedy="Give dpgram.audit.audit a statistic of your own.",
            )
        ridge = drawn.noise.ridge * np.eye(len(self.a))
        a: Scores = np.asarray(np.linalg.inv(self.a + ridge), dtype=np.float64)
        b: Scores = np.asarray(np.linalg.inv(self.b + ridge), dtype=np.float64)
        return a, b, float(np.linalg.norm(a - b)) or 1.0 / drawn.noise.ridge


def worst_neighbours(facts: PublicFacts, common: Cells | None = None) -> tuple[Neighbours, ...]:
    """Pairs that differ by full-length rows: along one column, and spread over all of them.

    `common` is the Gram matrix of the rows both data sets share; none is the worst for noise that adapts.
    Where `facts` allow a unit several rows, one pair more: a unit whose rows point in different directions.
    """
    width = facts.width
    rest = np.zeros((width, width), dtype=np.int64) if common is None else common
    axis = _row(width, 1)
    if width == 1:
        return (Neighbours(name="one column", a=rest + _square(axis), b=rest),)
    persons = _several_rows(facts, rest) if facts.unit_rows > 1 else ()
    if isinstance(facts.adjacency, AddRemove):
        spread = _row(width, width)
        return (
            Neighbours(name="one column", a=rest + _square(axis), b=rest),
            Neighbours(name="all columns", a=rest + _square(spread), b=rest),
            *persons,
        )
    # An even number of columns, so that the row and the one with alternating signs are orthogonal.
    spread = _row(width, width - width % 2)
    return (
        Neighbours(name="one column", a=rest + _square(axis), b=rest + _square(np.roll(axis, 1))),
        Neighbours(name="all columns", a=rest + _square(spread), b=rest + _square(_alternating(spread))),
        *persons,
    )


def _several_rows(facts: PublicFacts, rest: Cells) -> tuple[Neighbours, ...]:
    """A unit with equally long rows along as many columns as it may; replaced by one along the others."""
    width, adds = facts.width, isinstance(facts.adjacency, AddRemove)
    rank = min(facts.unit_rows, width if adds else width // 2)
    one = np.zeros(width, dtype=np.int64)
    one[:rank] = ROW_NORM_SQUARED // rank
    other = np.zeros_like(one) if adds else one[::-1]
    return (Neighbours(name="several rows", a=rest + np.diag(one), b=rest + np.diag(other)),)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GramRun:
    """One draw of a mechanism on a fixed Gram matrix; can be sent to another process."""

    mechanism: CalibratedMechanism
    gram: Cells

    def __call__(self, entropy: Entropy) -> Drawn:
        return cast("Drawn", drawn(self.mechanism, self.gram, entropy))


def audit_mechanism(
    mechanism: CalibratedMechanism,
    facts: PublicFacts,
    *,
    runs: int,
    delta: float = 0.0,
    confidence: float = 0.999,
    workers: int = 1,
    entropy: Entropy | None = None,
    common: Cells | None = None,
    scores: str | os.PathLike[str] | None = None,
    tell: Tell | None = None,
) -> JointAudit:
    """Audit one mechanism on every pair of worst neighbours, `runs` draws on each side of each pair.

    The mechanism may be anybody's: only its `draw` is run. `scores` names a file that keeps what was drawn,
    which a second call continues; `tell` hears of progress.
    """
    pairs = worst_neighbours(facts, common)
    return audit_all(
        [experiment(mechanism, pair) for pair in pairs],
        runs=runs,
        delta=delta,
        confidence=confidence,
        workers=workers,
        entropy=entropy,
        scores=scores,
        what=f"{_named(mechanism)} of dpgram {version('dpgram')} on neighbours {digest(pairs)}",
        tell=tell,
    )


def experiment(mechanism: CalibratedMechanism, pair: Neighbours) -> Experiment[Drawn]:
    """Draws of a mechanism on both matrices of a pair, with all that `Neighbours.measure` can tell."""
    return Experiment(
        name=pair.name,
        run_a=GramRun(mechanism=mechanism, gram=pair.a),
        run_b=GramRun(mechanism=mechanism, gram=pair.b),
        statistic=pair.measure,
        names=pair.statistics,
    )


def _named(mechanism: CalibratedMechanism) -> str:
    """Its class and parameters; a place in memory says nothing and would differ the next time."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(mechanism))


def digest(pairs: Sequence[Neighbours]) -> str:
    """A short name of these neighbours, so that a file of scores cannot be continued with others."""
    content = hashlib.sha256()
    for pair in pairs:
        content.update(repr((pair.name, pair.a.tolist(), pair.b.tolist())).encode())
    return content.hexdigest()[:16]


def _floats(drawn: Drawn) -> Scores:
    """The published matrix, in lattice units."""
    return np.ldexp(drawn.cells.astype(np.float64), drawn.exponent)


def _row(width: int, columns: int) -> Cells:
    """As long a row as there can be, spread evenly over the first `columns` columns."""
    row: Cells = np.zeros(width, dtype=np.int64)
    row[:columns] = math.isqrt(ROW_NORM_SQUARED // columns)
    return row


def _alternating(row: Cells) -> Cells:
    signed = row.copy()
    signed[1::2] *= -1
    return signed


def _square(row: Cells) -> Cells:
    square: Cells = np.outer(row, row)
    return square
