"""What is drawn, and at which price: both follow from the sum and the noise alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpgram.core import SQUARE
from dpgram.core.accounting import Price
from dpgram.core.encode import Line, RowMap
from dpgram.core.noise import Entropy, Noise, SeededEntropy, threshold
from dpgram.core.run import Measure, OwnLaw, carry_out
from dpgram.core.sums import LOST, NODES, Counts, EachGroup, Gram, Histograms, Lengths, Levels, Nodes
from dpgram.errors import DpgramError

SIGMA = 2.0**31
MAP = RowMap((Line(kind="one"), Line(kind="number")), (0,), 1.0)
GAUSSIAN = Noise("gaussian", SIGMA)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int64)


def test_the_price_follows_from_what_is_drawn() -> None:
    columns = Histograms((Nodes(0), Nodes(1, levels=3)))
    assert Measure(columns, GAUSSIAN).price("replace-one").mu_squared == 2 * 2 * Fraction(1, 4)
    assert Measure(Gram(MAP, (0,)), GAUSSIAN).price("add-remove").mu_squared == Fraction(1, 4)


def test_noise_is_drawn_for_the_cells_that_a_histogram_has() -> None:
    """The lines of an array are as long as the longest: no noise is spent on what no column has."""
    measure = Measure(Histograms((Nodes(0), Nodes(1, levels=3))), GAUSSIAN)
    ((numbers, levels),) = measure.draw([zeros(2, NODES + LOST)], SeededEntropy(1))
    assert (len(numbers), len(levels)) == (NODES + LOST, 3 + 2)
    assert all(cell != 0 for cell in (*numbers, *levels))


def test_every_group_has_noise_of_its_own() -> None:
    measure = Measure(Gram(MAP, (0,), groups=2), GAUSSIAN)
    (one,), (other,) = measure.draw([zeros(2, 2), zeros(2, 2)], SeededEntropy(1))
    assert one.shape == other.shape == (2, 2)
    assert (one == one.T).all()
    assert not (one == other).any()


def test_each_group_by_itself() -> None:
    lengths = Lengths(MAP, (0,), (0.5, 1.0))
    measure = Measure(EachGroup((lengths, None, lengths)), GAUSSIAN)
    drawn = measure.draw([zeros(1, 3), zeros(1, 3)], SeededEntropy(1))
    assert [[len(line) for line in one] for one in drawn] == [[3], [3]]


def test_sums_of_other_groups_are_refused() -> None:
    with pytest.raises(DpgramError, match="other groups"):
        Measure(Gram(MAP, (0,), groups=2), GAUSSIAN).draw([zeros(2, 2)], SeededEntropy(1))


def test_texts_are_shown_above_a_threshold_alone() -> None:
    noise = Noise("laplace", float(SQUARE), delta=1e-6)
    measure, least = Measure(Levels((0, 1), 200), noise), threshold(noise, 2)
    exact = (Counter({"many": 100 * SQUARE, "one": SQUARE}), Counter({"few": 2 * SQUARE}))
    ((first, second),) = measure.draw([exact], SeededEntropy(1))
    assert set(first) == {"many"}
    assert first["many"] >= least
    assert second == {}


def test_a_text_that_one_unit_brings_is_shown_as_rarely_as_its_delta_says() -> None:
    """Of 20,000 texts at δ = 0.02 for two columns 200 are expected in each, within five deviations."""
    noise = Noise("gaussian", float(SQUARE), delta=0.02)
    exact = (Counter({f"{k}": SQUARE for k in range(20_000)}), Counter())
    ((shown, _),) = Measure(Levels((0, 1), 200), noise).draw([exact], SeededEntropy(2))
    assert abs(len(shown) - 200) < 5 * 200**0.5


def test_the_threshold_is_never_below_that_of_the_law() -> None:
    """Against mpmath at 60 digits, over scales and probabilities down to 1e-200."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for delta in (0.9, 0.3, 1e-3, 1e-9, 1e-200):
            reach = threshold(Noise("gaussian", SIGMA, delta), 3) - SQUARE
            tail = mpmath.erfc((reach - 1) / mpmath.mpf(SIGMA) / mpmath.sqrt(2)) / 2
            assert tail <= mpmath.mpf(delta) / 3
            # Almost twice as likely, half a deviation nearer: the threshold is no larger than it must be.
            nearer = mpmath.erfc((reach - 1 - 0.001 * SIGMA) / mpmath.mpf(SIGMA) / mpmath.sqrt(2)) / 2
            assert nearer > mpmath.mpf(delta) / 3
            flat = threshold(Noise("laplace", SIGMA, delta), 3) - SQUARE
            assert mpmath.exp(-flat / mpmath.mpf(SIGMA)) <= mpmath.mpf(delta) / 3


def test_no_text_is_drawn_as_a_number_nor_the_other_way() -> None:
    noise = Noise("gaussian", SIGMA, delta=1e-6)
    with pytest.raises(DpgramError, match="no counts of texts"):
        Measure(Levels((0,), 200), noise).draw([zeros(1, 3)], SeededEntropy(1))
    with pytest.raises(DpgramError, match="threshold alone"):
        Measure(Counts("rows", (0,)), GAUSSIAN).draw([(Counter({"a": 1}),)], SeededEntropy(1))


@dataclass
class Step:
    """A stage of two cells, or one that draws by a law of its own."""

    wanted: Sequence[Measure | OwnLaw]

    def record(self, drawn: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(drawn)


@dataclass
class Book:
    """An office that writes down what it was asked, in order."""

    steps: list[Step]
    before: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    spent: list[Price] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)

    def following(self, published: tuple[Any, ...] | None, spent: Price) -> Step | None:
        self.said.append("following")
        self.spent.append(spent)
        self.seen.append(published)
        return self.steps.pop(0) if self.steps else None

    def kept(self, number: int, stage: Step) -> tuple[Any, ...] | None:
        del stage
        return self.before.get(number)

    def read(self, number: int, stage: Step) -> Sequence[Any]:
        del number
        self.said.append("read")
        return [[zeros(1, 1)] if isinstance(one, Measure) else "exact" for one in stage.wanted]

    def pay(self) -> None:
        self.said.append("pay")

    def keep(self, number: int, stage: Step, published: tuple[Any, ...]) -> None:
        del stage, published
        self.said.append(f"keep {number}")


@dataclass
class Own:
    """A mechanism with a law of its own."""

    cost: Price = Price(own=("its own",))  # noqa: RUF009  (it is frozen)

    def draw(self, exact: Any, entropy: Entropy, /) -> Any:
        return exact, entropy.label


ROWS = Measure(Counts("rows", (0,)), Noise("laplace", 2.0**31))
HALF = Price(epsilon=Fraction(1, 2))


def carried_out(book: Book, promised: Price) -> Book:
    carry_out(book, promised=promised, relation="add-remove", entropy=SeededEntropy(1))
    return book


def test_the_order() -> None:
    book = carried_out(Book([Step([ROWS]), Step([ROWS])]), HALF + HALF)
    stage = ["read", "pay", "keep {}", "following"]
    assert book.said == ["following", *(each.format(k) for k in (0, 1) for each in stage)]
    assert book.spent == [Price(), HALF, HALF + HALF]


def test_the_program_sees_what_was_drawn_and_nothing_else() -> None:
    nothing, ((((cell,),),),) = carried_out(Book([Step([ROWS])]), HALF).seen
    assert nothing is None
    assert isinstance(cell, int)
    assert cell != 0


def test_what_was_not_promised_is_not_read() -> None:
    book = Book([Step([ROWS]), Step([ROWS])])
    with pytest.raises(DpgramError, match="more than was promised"):
        carried_out(book, HALF)
    assert book.said == ["following", "read", "pay", "keep 0", "following"]


def test_a_stage_that_was_kept_is_not_drawn_again() -> None:
    """It is paid for all the same, and its price counts."""
    book = carried_out(Book([Step([ROWS])], before={0: ("kept",)}), HALF)
    assert book.said == ["following", "pay", "following"]
    assert book.seen == [None, ("kept",)]
    with pytest.raises(DpgramError, match="more than was promised"):
        carried_out(Book([Step([ROWS])], before={0: ("kept",)}), Price())


def test_a_mechanism_with_a_law_of_its_own_draws_by_itself() -> None:
    book = carried_out(Book([Step([Own()])]), Price(own=("its own",)))
    assert book.seen[1] == (("exact", "seeded"),)
    with pytest.raises(DpgramError, match="more than was promised"):
        carried_out(Book([Step([Own(), Own()])]), Price(own=("its own",)))
