"""Audits of Gram mechanisms: the worst neighbours for both adjacencies, and statistics that tell them apart.

A full-length row along one column and one spread evenly over all of them see different faults (a diagonal or
an off-diagonal variance that is too small); under replace-one two orthogonal full rows are farthest apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.audit import AuditResult, Claim, Scores, audit
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms.base import Drawn, Facts, Mechanism
from dpgram.privacy.adjacency import AddRemove
from dpgram.privacy.entropy import Entropy, SystemEntropy

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
        """
        from_b = np.stack([_floats(one) for one in drawn]) - self.b / ROW_NORM_SQUARED
        step = (self.a - self.b) / ROW_NORM_SQUARED
        products = from_b * step
        whole, diagonal = products.sum(axis=(1, 2)), np.einsum("nii->n", products)
        values_a, values_b = np.linalg.eigvalsh(from_b - step), np.linalg.eigvalsh(from_b)
        nuclear = np.abs(values_b).sum(axis=1) - np.abs(values_a).sum(axis=1)
        outer = (values_a[:, 0], values_a[:, -1], values_b[:, 0], values_b[:, -1])
        cells = from_b[:, np.tri(len(step), dtype=np.bool_)]
        return np.column_stack([whole, diagonal, whole - diagonal, nuclear, *outer, cells])


def worst_neighbours(facts: Facts, common: Cells | None = None) -> tuple[Neighbours, ...]:
    """Pairs that differ by full-length rows: along one column, and spread over all of them.

    `common` is the Gram matrix of the rows both data sets share; none is the worst for noise that adapts.
    """
    width = facts.width
    rest = np.zeros((width, width), dtype=np.int64) if common is None else common
    axis = _row(width, 1)
    if width == 1:
        return (Neighbours(name="one column", a=rest + _square(axis), b=rest),)
    if isinstance(facts.adjacency, AddRemove):
        spread = _row(width, width)
        return (
            Neighbours(name="one column", a=rest + _square(axis), b=rest),
            Neighbours(name="all columns", a=rest + _square(spread), b=rest),
        )
    # An even number of columns, so that the row and the one with alternating signs are orthogonal.
    spread = _row(width, width - width % 2)
    return (
        Neighbours(name="one column", a=rest + _square(axis), b=rest + _square(np.roll(axis, 1))),
        Neighbours(name="all columns", a=rest + _square(spread), b=rest + _square(_alternating(spread))),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GramRun:
    """One draw of a mechanism on a fixed Gram matrix; can be sent to another process."""

    mechanism: Mechanism
    gram: Cells

    def __call__(self, entropy: Entropy) -> Drawn:
        """A fresh draw."""
        return self.mechanism.draw(self.gram, entropy)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismAudit:
    """The audits of all pairs of neighbours, valid together with the asked confidence."""

    results: tuple[tuple[str, AuditResult], ...]

    @property
    def epsilon_lower(self) -> float:
        """The largest ε that any pair shows."""
        return max(result.epsilon_lower for _, result in self.results)

    @property
    def mu_lower(self) -> float:
        """The largest μ that any pair shows."""
        return max(result.mu_lower for _, result in self.results)

    def passes(self, claim: Claim) -> bool:
        """Whether no pair contradicts the claim."""
        return all(result.passes(claim) for _, result in self.results)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {result}" for name, result in self.results)


def audit_mechanism(
    mechanism: Mechanism,
    facts: Facts,
    *,
    runs: int,
    delta: float = 0.0,
    confidence: float = 0.999,
    workers: int = 1,
    entropy: Entropy | None = None,
    common: Cells | None = None,
) -> MechanismAudit:
    """Audit one mechanism on every pair of worst neighbours, `runs` draws on each side of each pair."""
    pairs = worst_neighbours(facts, common)
    sources = (SystemEntropy() if entropy is None else entropy).split(len(pairs))
    shared = 1.0 - (1.0 - confidence) / len(pairs)
    results = [
        audit(
            GramRun(mechanism=mechanism, gram=pair.a),
            GramRun(mechanism=mechanism, gram=pair.b),
            runs=runs,
            delta=delta,
            statistic=pair.measure,
            names=pair.statistics,
            confidence=shared,
            workers=workers,
            entropy=source,
        )
        for pair, source in zip(pairs, sources, strict=True)
    ]
    return MechanismAudit(results=tuple(zip([pair.name for pair in pairs], results, strict=True)))


def _floats(drawn: Drawn) -> Scores:
    """The noisy matrix in units of a full row's square."""
    if drawn.kind != "gram":
        raise MechanismError(
            "only a noisy Gram matrix can be measured here",
            got=drawn.kind,
            limit="kind 'gram'",
            remedy="Give dpgram.audit.audit a statistic of your own.",
        )
    return drawn.cells.astype(np.float64) * (math.ldexp(1.0, drawn.exponent) / ROW_NORM_SQUARED)


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
