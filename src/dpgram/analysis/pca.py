"""Principal components of the noisy covariance C̃ = BᵀG̃B/n̂, with how far the noise may have turned each.

B are the centred columns in encoded units (where the noise is uniform). A component with unit vector q_i is
the function f_i = B q_i of the row. To first order the noise turns it towards component j by
f_iᵀN f_j / (n(λ_i − λ_j)), so its expected squared sine is

    Σ_j o²(|f_i|²|f_j|² + (f_i·f_j)²) / (n²(λ_i − λ_j)²),   o² = Var N_ij.

A component is called stable when the gap to its nearest neighbour exceeds 2E‖N‖/n, because by Weyl's
inequality noise alone can make equal eigenvalues differ by that much; it is then turned by about 15° at most.
Otherwise neighbours may have been mixed or swapped, and only the plane they span means something. All this
describes the very table behind the release. The levels of a categorical column add up to one in every row, so
one combination of them never varies; such directions are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.asked import asked_columns
from dpgram.analysis.design import places_of
from dpgram.analysis.estimand import difference_cautions, moved_cautions
from dpgram.analysis.moments import Moments
from dpgram.analysis.normal_equations import COUNT_TO_NOISE, complement_of, too_noisy
from dpgram.document.labels import Labels
from dpgram.document.original_units import original_columns
from dpgram.document.terminal import in_lines, with_notes
from dpgram.errors import AnalysisError, shown, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpgram.analysis._frames import Frame
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ADDS_UP: Final = 1e-9
"""Squared length, beside the longest, of a sum of columns that is zero but for rounding."""
UNSTABLE: Final = (
    "Components that are not stable lie so close to a neighbour that the noise may have mixed them: their "
    "loadings mean little one by one."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Components:
    """The k leading components, in encoded units (each number scaled to its public range)."""

    names: tuple[str, ...]
    """The encoded columns."""
    labels: tuple[str, ...]
    """What each is called in figures: its label where the schema has one."""
    variances: Vector
    """Eigenvalues of the noisy covariance, largest first; noise can make small ones negative."""
    total: float
    """The noisy total variance."""
    loadings: Matrix
    """One column for each component, of length one; the largest entry of each is positive."""
    gaps: Vector
    """Distance of every variance of the spectrum to its nearest neighbour."""
    noise_norm: float
    """E‖N‖/n: what the noise alone reaches."""
    sines: Vector
    """Expected sine of the angle by which the noise turned each component; 1 is a right angle."""
    standardised: bool
    spectrum: Vector
    """All eigenvalues, for a scree plot."""
    cautions: tuple[str, ...] = ()
    """How they differ from those of the rows that came in."""

    def __repr__(self) -> str:
        return f"<Components: {len(self.variances)} of {len(self.names)} columns>"

    @property
    def stable(self) -> npt.NDArray[np.bool_]:
        """Whether the component's gap stands clear of the noise."""
        return self.clear[: len(self.variances)]

    @property
    def clear(self) -> npt.NDArray[np.bool_]:
        """The same for the whole spectrum."""
        return np.asarray(self.gaps > 2.0 * self.noise_norm)

    @property
    def explained(self) -> Vector:
        """Share of the total variance, between 0 and 1."""
        shares = (
            np.maximum(self.variances, 0.0) / self.total
            if self.total > 0.0
            else np.zeros_like(self.variances)
        )
        return np.minimum(shares, 1.0)

    def to_frame(self) -> Frame:
        """A frame with a row for each component: of Polars where that is installed, else of pandas.

        >>> release.pca(2).to_frame().columns[:4]
        ['component', 'variance', 'explained', 'stable']
        """
        from dpgram.analysis._frames import frame_of

        return frame_of(
            {
                "component": np.arange(1, len(self.variances) + 1),
                "variance": self.variances,
                "explained": self.explained,
                "stable": self.stable,
                "turned_by": np.degrees(np.arcsin(np.minimum(self.sines, 1.0))),
                **{name: self.loadings[i] for i, name in enumerate(self.names)},
            }
        )

    def summary(self) -> str:
        """Variances, shares and stability as text.

        >>> print(release.pca(2).summary())
        Principal components of 4 columns scaled to their public ranges, from a private release
        <BLANKLINE>
        component   variance  explained  stable   turned by noise
                1     0.3177      56.9%     yes   about 0°
                2     0.2257      40.4%     yes   about 0°
        """
        units = "standardised columns" if self.standardised else "columns scaled to their public ranges"
        lines = [f"Principal components of {len(self.names)} {units}, from a private release", ""]
        lines.append("component   variance  explained  stable   turned by noise")
        for i, variance in enumerate(self.variances):
            angle = np.degrees(np.arcsin(min(self.sines[i], 1.0)))
            word = "yes" if self.stable[i] else "NO"
            lines.append(
                f"{i + 1:>9}  {variance:>9.4g}  {self.explained[i]:>9.1%}  {word:>6}   about {angle:.0f}°"
            )
        notes = [] if self.stable.all() else [UNSTABLE]
        notes += [f"Caution: {caution}." for caution in self.cautions]
        return with_notes(lines, notes) if notes else in_lines(lines)

    def __str__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path | None = None, *, dark: bool = False) -> Figure:
        """Scree plot and biplot side by side; written to `path` when given.

        >>> figure = release.pca().plot("components.png")
        """
        from dpgram.analysis.plots import component_plot

        return component_plot(self, path=path, dark=dark)


def pca(
    release: Document | Moments,
    k: int | None = None,
    on: Sequence[str] | None = None,
    *,
    standardise: bool = False,
) -> Components:
    """The `k` leading principal components of the columns `on` (all but products and powers by default).

    `standardise=True` gives every column variance one first (components of the correlation matrix); a column
    whose variance does not stand clear of the noise is then refused.

    >>> from dpgram.analysis import pca
    >>> pca(release, 2, ["age", "charges"]).stable
    array([ True,  True])
    """
    moments = Moments.of(release)
    positions = _positions(moments, on)
    functions, rows = centred_columns(moments, positions)
    gram, off = moments.consistent_gram, moments.noise.offdiagonal_sd
    scales = np.ones(len(positions))
    if standardise:
        scales = _deviations(moments, positions, functions, functions.T @ gram @ functions / rows, rows)
        functions = functions / scales
    if any(_has_levels(moments, i) for i in positions):
        free = _independent_directions(functions)
    else:
        free = _free_directions(moments, positions, scales)
    if k is not None and not 1 <= (whole(k) or 0) <= free.shape[1]:
        raise AnalysisError(
            f"the number of components is {'not a whole number' if whole(k) is None else 'out of range'}",
            got=shown(k),
            limit=f"1 to {free.shape[1]}, all that can vary",
        )
    covariance = free.T @ (functions.T @ gram @ functions) @ free / rows
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2.0)
    values, vectors = values[::-1], free @ vectors[:, ::-1]
    vectors = vectors * np.where(
        vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))] < 0, -1.0, 1.0
    )
    turned = functions @ vectors
    inner = turned.T @ turned
    sizes = np.diagonal(inner)
    distance = np.abs(values[:, None] - values[None, :])
    np.fill_diagonal(distance, np.inf)
    with np.errstate(divide="ignore"):
        squares = np.sum(off**2 * (np.outer(sizes, sizes) + inner**2) / (rows * distance) ** 2, axis=1)
    count = len(values) if k is None else k
    gaps = distance.min(axis=1) if len(values) > 1 else np.full(1, np.inf)
    words = Labels(moments.schema)
    return Components(
        names=tuple(moments.schema.names[i] for i in positions),
        labels=tuple(words[moments.schema.names[i]] for i in positions),
        variances=values[:count],
        total=float(values.sum()),
        loadings=vectors[:, :count],
        gaps=gaps,
        noise_norm=moments.noise.expected_norm(len(values)) * float(sizes.max()) / rows,
        sines=np.sqrt(np.nan_to_num(squares, posinf=1.0))[:count],
        standardised=standardise,
        spectrum=values,
        cautions=component_cautions(moments, [moments.schema.encoded[i].source for i in positions]),
    )


def component_cautions(moments: Moments, columns: Iterable[str]) -> tuple[str, ...]:
    """How they differ from those of the rows that came in; `columns` as they are declared."""
    found = difference_cautions(moments, "table", refused=True, of="components")
    return (*found, *moved_cautions(moments, columns, "components", refused=True))


def centred_columns(moments: Moments, positions: Sequence[int]) -> tuple[Matrix, float]:
    """The columns less their noisy means, as functions of the row, and the noisy number of rows."""
    constant = moments.constant_vector()
    axes = np.zeros((moments.schema.width, len(positions)))
    axes[list(positions), range(len(positions))] = 1.0
    rows = moments.rows
    if rows is None:
        raise AnalysisError(
            "this release has no constant column, so it has no means or covariances",
            remedy="Publish with constant=True",
        )
    axes = moments.project(axes)
    if constant is None:  # a public row count, but no means: second moments around the midpoints
        return axes, rows
    constant = moments.project(constant)
    if rows <= COUNT_TO_NOISE * moments.noise.diagonal_sd * float(constant @ constant):
        raise too_noisy()
    means = axes.T @ (moments.consistent_gram @ constant) / rows
    return np.asarray(axes - np.outer(constant, means)), rows


def _positions(moments: Moments, on: Sequence[str] | None) -> tuple[int, ...]:
    schema = moments.schema
    names = [column.name for column in schema.columns_read] if on is None else asked_columns(schema, on)
    columns = original_columns(schema) if schema.columns_derived else ()
    found = tuple(dict.fromkeys(i for name in names for i in places_of(schema, name, columns)))
    if not found:
        raise AnalysisError("no columns are left", remedy="Name at least one column in `on`")
    return found


def _has_levels(moments: Moments, position: int) -> bool:
    """Whether it is a product with a level: these add up to other columns."""
    schema = moments.schema
    declared = {column.name: column for column in schema.columns}
    source = schema.encoded[position].source
    return source in declared and any(declared[name].group_levels for name in declared[source].factors)


def _independent_directions(functions: Matrix) -> Matrix:
    """Orthonormal columns for all that can vary: functions that every table has as zero are left out."""
    values, vectors = np.linalg.eigh(functions.T @ functions)
    return np.asarray(vectors[:, values > ADDS_UP * values[-1]])


def _free_directions(moments: Moments, positions: Sequence[int], scales: Vector) -> Matrix:
    """Orthonormal columns for all that can vary: the levels of a whole group add up to one in every row."""
    schema, directions = moments.schema, np.eye(len(positions))
    still: list[int] = []
    for column in schema.columns if moments.complete_groups else ():
        members = schema.indices(column.name)
        if column.group_levels and set(members) <= set(positions):
            places = [positions.index(i) for i in members]
            within = complement_of(scales[places] / moments.weights[list(members)])
            directions[np.ix_(places, places)] = np.column_stack([np.zeros(len(places)), within])
            still.append(places[0])
    directions = np.delete(directions, still, axis=1)
    if directions.shape[1] == 0:
        raise AnalysisError("nothing in these columns can vary", remedy="Name more columns in `on`")
    return directions


def _deviations(
    moments: Moments, positions: Sequence[int], functions: Matrix, covariance: Matrix, rows: float
) -> Vector:
    variances = np.diagonal(covariance)
    noise = moments.noise.diagonal_sd * np.sum(functions**2, axis=0) / rows
    drowned = [
        moments.schema.names[i] for i, v, s in zip(positions, variances, noise, strict=True) if v <= 3.0 * s
    ]
    if drowned:
        raise AnalysisError(
            "the variance of a column does not stand clear of the noise, so it cannot be standardised",
            got=", ".join(drowned[:10]),
            remedy="Leave it out of `on`, or use standardise=False",
        )
    return np.sqrt(variances)
