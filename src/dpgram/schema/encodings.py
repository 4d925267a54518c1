"""The ways a column becomes numbers in [-1, 1]: all that the core, the analysis and the planner know of it.

A kind of column chooses one of these five. Kinds are open and encodings are closed: whatever adds rows up,
undoes the scaling or forecasts an error asks for the encoding, so a new kind needs nothing there. A new
encoding needs a kind of line of its own in dpgram.core.encode.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Mask = npt.NDArray[np.bool_]

CONSTANT: Final = "(constant)"
"""Name of the constant column."""

UNKNOWN_CODE: Final = -1.0
"""In place of the number of a level: a value that is none of the declared ones."""

LEAST_HALF_WIDTH: Final = 1e-9
"""Of a range of numbers, in parts of its larger end: what lies closer together 64-bit floats cannot tell."""

EncodedKind = Literal["constant", "numeric", "boolean", "level", "product", "legendre"]


def too_close(low: float, high: float) -> bool:
    """Whether these ends are too close together to scale what lies between them."""
    half_width = high / 2.0 - low / 2.0
    return half_width < LEAST_HALF_WIDTH * max(abs(low), abs(high)) or half_width < 1e-280


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedColumn:
    """One column of the Gram matrix: weight · z with |z| ≤ 1; for a number z = (x − centre) / half_width."""

    name: str
    source: str
    """The declared column it belongs to (`(constant)` for the constant)."""
    kind: EncodedKind
    centre: float = 0.0
    half_width: float = 1.0
    level: str | None = None
    degree: int | None = None
    """Of a Legendre polynomial."""
    weight: float = 1.0


class Encoding(ABC):
    """How a column becomes numbers z with |z| ≤ 1 in each of its encoded columns, and Σ z² ≤ 1 in a row."""

    __slots__ = ()

    @abstractmethod
    def encoded(self, name: str, weight: float) -> tuple[EncodedColumn, ...]:
        """The columns of the Gram matrix that it fills for a declared column of this name."""


class SourceEncoding(Encoding, ABC):
    """Starts from the line of numbers that was read for the column; NaN is missing."""

    __slots__ = ()

    def outside(self, line: Floats) -> Mask:
        """Which cells lie outside the bounds, and will be moved to them."""
        import numpy as np

        return np.zeros(line.shape, np.bool_)

    def unknown(self, line: Floats) -> Mask:
        """Which cells are none of the values that the column may have."""
        import numpy as np

        return np.zeros(line.shape, np.bool_)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NumberEncoding(SourceEncoding):
    """z = (x − centre) / half_width, x clamped to [low, high]."""

    low: float
    high: float
    centre: float
    half_width: float

    def encoded(self, name: str, weight: float) -> tuple[EncodedColumn, ...]:
        return (
            EncodedColumn(
                name=name,
                source=name,
                kind="numeric",
                centre=self.centre,
                half_width=self.half_width,
                weight=weight,
            ),
        )

    def outside(self, line: Floats) -> Mask:
        import numpy as np

        return np.logical_and(np.isfinite(line), np.logical_or(line < self.low, line > self.high))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanEncoding(SourceEncoding):
    """z = +1 for 1, −1 for 0; any other number is unknown."""

    def encoded(self, name: str, weight: float) -> tuple[EncodedColumn, ...]:
        return (
            EncodedColumn(name=name, source=name, kind="boolean", centre=0.5, half_width=0.5, weight=weight),
        )

    def unknown(self, line: Floats) -> Mask:
        import numpy as np

        return np.logical_and(np.isfinite(line), np.isin(line, (0.0, 1.0), invert=True))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsEncoding(SourceEncoding):
    """One-hot: the number of a level becomes 1 in that level's column and 0 in the others."""

    levels: tuple[str, ...]

    def encoded(self, name: str, weight: float) -> tuple[EncodedColumn, ...]:
        return tuple(
            EncodedColumn(name=own, source=name, kind="level", level=level, weight=weight)
            for own, level in zip(self.names(name), self.levels, strict=True)
        )

    def names(self, name: str) -> tuple[str, ...]:
        """`name=level` for each level."""
        return tuple(f"{name}={level}" for level in self.levels)

    def unknown(self, line: Floats) -> Mask:
        import numpy as np

        return np.equal(line, UNKNOWN_CODE)


class DerivedEncoding(Encoding, ABC):
    """Starts from the encoded values z of other columns, its factors."""

    __slots__ = ()

    @property
    @abstractmethod
    def factors(self) -> tuple[str, ...]:
        """Names of the declared columns it is computed from."""

    @abstractmethod
    def original_unit(self, half_widths: Mapping[str, float]) -> float:
        """What z = 1 is in original units, from the half-widths of the declared columns."""

    @abstractmethod
    def original(self, centred: Sequence[Floats], half_widths: Sequence[float]) -> Floats:
        """Its values about the middle of the ranges, from x − centre and the half-width of each factor."""

    @property
    @abstractmethod
    def monomial(self) -> tuple[str, ...]:
        """The columns whose values, multiplied as they are, make the product or power it stands for."""

    @abstractmethod
    def expansion(self, ranges: Mapping[str, tuple[float, float]]) -> Mapping[DerivedEncoding | str, float]:
        """That product as a sum: of encoded values z of derived columns, of columns by name, of the constant.

        `ranges` has the centre and the half-width of each factor; the constant goes by the name `CONSTANT`.
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProductEncoding(DerivedEncoding):
    """z = z_left · z_right."""

    left: str
    right: str

    @property
    def factors(self) -> tuple[str, ...]:
        return (self.left, self.right)

    def encoded(self, name: str, weight: float) -> tuple[EncodedColumn, ...]:
        return (EncodedColumn(name=name, source=name, kind="product", weight=weight),)

    def original_unit(self, half_widths: Mapping[str, float]) -> float:
        return half_widths[self.left] * half_widths[self.right]

    def original(self, centred: Sequence[Floats], half_widths: Sequence[float]) -> Floats:
        del half_widths  # in original units it is the product of what the factors are
        left, right = centred
        return left * right

    @property
    def monomial(self) -> tuple[str, ...]:
        return (self.left, self.right)

    def expansion(self, ranges: Mapping[str, tuple[float, float]]) -> Mapping[DerivedEncoding | str, float]:
        """(c + hz)(c' + h'z')."""
        (c, h), (other_c, other_h) = ranges[self.left], ranges[self.right]
        found: dict[DerivedEncoding | str, float] = {self: h * other_h, CONSTANT: c * other_c}
        for name, value in ((self.left, h * other_c), (self.right, c * other_h)):
            found[name] = found.get(name, 0.0) + value
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LegendreEncoding(DerivedEncoding):
    """z = P_degree(z of the column)."""

    column: str
    degree: int

    @property
    def factors(self) -> tuple[str, ...]:
        return (self.column,)

    def encoded(self, name: str, weight: float) -> tuple[EncodedColumn, ...]:
        return (EncodedColumn(name=name, source=name, kind="legendre", degree=self.degree, weight=weight),)

    def original_unit(self, half_widths: Mapping[str, float]) -> float:
        del half_widths  # a polynomial of z has no unit
        return 1.0

    def original(self, centred: Sequence[Floats], half_widths: Sequence[float]) -> Floats:
        import numpy as np

        selector = np.zeros(self.degree + 1)
        selector[self.degree] = 1.0
        return np.asarray(np.polynomial.legendre.legval(centred[0] / half_widths[0], selector))

    @property
    def monomial(self) -> tuple[str, ...]:
        return (self.column,) * self.degree

    def expansion(self, ranges: Mapping[str, tuple[float, float]]) -> Mapping[DerivedEncoding | str, float]:
        """(c + hz)^degree in Legendre polynomials of z."""
        import numpy as np

        power = np.polynomial.Polynomial(ranges[self.column]) ** self.degree
        constant, linear, *rest = np.polynomial.legendre.poly2leg(power.coef).tolist()
        found: dict[DerivedEncoding | str, float] = {CONSTANT: constant, self.column: linear}
        for degree, part in enumerate(rest, 2):
            found[LegendreEncoding(column=self.column, degree=degree)] = part
        return found
