"""Directions drawn exactly: verdicts and integers are functions of the bits, and every bound is one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb, arb_mat, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.core.balls import START_BITS, RandomBytes, Uniforms, decided
from dpgram.core.noise import SeededEntropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import Deflation, Eigenvectors, PublicFacts
from dpgram.mechanisms.deflation import MOST_ROWS
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.curves.spectral import ROWS_AT_MOST
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling import envelope as ball_envelope
from dpgram.privacy.sampling.bingham import candidates_at_once
from dpgram.privacy.sampling.directions import Deflated, Frame, deflation_matrix, frame_matrix
from dpgram.privacy.sampling.envelope import LARGEST_EXPONENT, SLACK_AT_MOST, Candidate, Envelope, MatrixBall
from dpgram.sums.exact_gram import MAX_ROWS

Cells = npt.NDArray[np.int64]


def some_gram(seed: int, width: int, rows: float = 1e4, fall: float = 1.0) -> Cells:
    """An integer matrix with eigenvalues ∝ i^−fall, the largest `rows` rows."""
    generator = np.random.default_rng(seed)
    basis = np.linalg.qr(generator.standard_normal((width, width)))[0]
    spectrum = rows * np.arange(1.0, width + 1.0) ** -fall * ROW_NORM_SQUARED
    lower = np.tril(np.rint((basis * spectrum) @ basis.T)).astype(np.int64)
    return lower + np.tril(lower, -1).T


def near(gram: Cells) -> MatrixBall:
    return MatrixBall(mid=arb_mat(gram.tolist()), error=arb(0))


def envelope_of(gram: Cells, inverse_temperature: float) -> Envelope:
    with ctx.workprec(START_BITS):
        found = Envelope.around(near(gram), inverse_temperature / ROW_NORM_SQUARED)
    assert found is not None
    return found


@contextmanager
def streams(seed: int, envelopes: list[Envelope], *, replayed: bool) -> Iterator[dict[str, int]]:
    """Bits that depend on the seed, the number of a round, and the first bits of a variable only.

    Envelopes are noted down, or taken from the list in order: they are made from as many bits as are known,
    and any of them is right. Yields the number of rounds, and the most bits that were read of any number.
    """
    told = {"rounds": 0, "bits": 64}
    left = iter(tuple(envelopes))
    around = Envelope.around

    def first_words(count: int) -> bytes:
        told["rounds"] += 1
        return hashlib.shake_256(f"{seed}:{told['rounds']}".encode()).digest(count)

    class Keyed:
        @staticmethod
        def known(numerators: list[int], bits: int, _: RandomBytes) -> Uniforms:
            place = 0

            def more(count: int) -> bytes:
                nonlocal place
                size = count // len(numerators)
                first, place = place, place + size
                told["bits"] = max(told["bits"], 64 + 8 * place)
                return b"".join(
                    hashlib.shake_256(f"{seed}:{word}".encode()).digest(place)[first:] for word in numerators
                )

            return Uniforms.known(numerators, bits, more)

    def noted(rest: MatrixBall, inverse_temperature: float) -> Envelope | None:
        if replayed:
            return next(left)
        found = around(rest, inverse_temperature)
        if found is not None:
            envelopes.append(found)
        return found

    def forced(self: Envelope, _: RandomBytes) -> npt.NDArray[np.uint64]:
        return candidates(self, first_words)

    candidates = Envelope.candidates
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ball_envelope, "Uniforms", Keyed)
        patch.setattr(Envelope, "around", noted)
        patch.setattr(Envelope, "candidates", forced)
        yield told


GRAM = some_gram(1, 4, 2.0**28)
COLD = np.array([1e-7, 3e-9, 0.0, 0.0])


def some_frame(start: int) -> object:
    values = [2**58 + 1, 2**55, -(2**54) - 7, 11]
    return frame_matrix(GRAM, COLD, values, bytes, start_bits=start)


def some_deflation(start: int) -> object:
    return deflation_matrix(GRAM, 1e-7, 3, lambda: 10**12 + 1, bytes, start_bits=start)


DRAWS: dict[str, Callable[[int], object]] = {"frame": some_frame, "deflation": some_deflation}


@pytest.mark.parametrize("name", DRAWS)
@given(seed=st.integers(0, 2**32), start=st.sampled_from([8, 16, 48, 96]))
@settings(deadline=None, max_examples=15, derandomize=True)
def test_refining_few_bits_gives_the_matrix_that_many_bits_give(name: str, seed: int, start: int) -> None:
    """Given the envelopes, all follows from the streams: where one starts to read cannot matter."""
    envelopes: list[Envelope] = []
    with streams(seed, envelopes, replayed=False) as fine_told:
        fine = DRAWS[name](1024)
    with streams(seed, envelopes, replayed=True) as coarse_told:
        coarse = DRAWS[name](start)
    assert np.array_equal(coarse, fine)
    assert coarse_told["rounds"] == fine_told["rounds"]
    assert coarse_told["bits"] < fine_told["bits"]


@pytest.mark.parametrize("name", DRAWS)
def test_refinement_is_really_entered_and_the_default_needs_none(name: str) -> None:
    envelopes: list[Envelope] = []
    with streams(1, envelopes, replayed=False) as told:
        DRAWS[name](START_BITS)
    assert told["bits"] == 256
    with streams(1, envelopes, replayed=True) as told:
        DRAWS[name](16)
    assert told["bits"] > 64
    few: list[Envelope] = []
    with streams(1, few, replayed=False):
        DRAWS[name](8)  # so few that no envelope can be made at first
    assert len(few) == len(envelopes)


def test_more_bits_move_nothing_out_of_its_ball() -> None:
    frame = Frame(GRAM, SeededEntropy(3).random_bytes, 64)
    for inverse_temperature in COLD[:3].tolist():
        frame.next(inverse_temperature)
        frame.reduce()
    before, balls = frame.rest, [direction.ball for direction in frame.drawn]
    frame.extend()
    with ctx.workprec(1000):
        assert all(old.contains(new.ball) for old, new in zip(balls, frame.drawn, strict=True))
        moved = before.mid - frame.rest.mid
        assert sum(abs(x) for x in moved.entries()) <= before.error + frame.rest.error
        assert frame.rest.error < before.error * 2**-40


@given(
    st.integers(0, 10**6),
    st.integers(1, 7),
    st.floats(-6.0, 12.0),
    st.floats(0.0, 8.0),
)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_the_slack_is_a_bound_and_a_small_one(seed: int, width: int, logarithm: float, fall: float) -> None:
    """|I − Wᵀ(mI − cR)W|_F ≤ x with 2,000 bits, up to c·λ_max = 10¹²."""
    gram = some_gram(seed, width, 1e4, fall)
    made = envelope_of(gram, 10.0 ** (logarithm - 4.0))
    assert made.slack * width < SLACK_AT_MOST
    with ctx.workprec(2000):
        identity = arb_mat(np.eye(width, dtype=int).tolist())
        form = identity * arb(made.level) - arb_mat(gram.tolist()) * arb(made.inverse_temperature)
        off = identity - made.root.transpose() * form * made.root
        norm = sum((x * x for x in off.entries()), arb(0)).sqrt()
        assert norm < made.slack
    rounded = np.array([float(x) for x in made.root.entries()]).reshape(width, width)
    assert np.array_equal(rounded, made.floats)


def test_a_matrix_that_floats_take_for_singular_has_an_envelope_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the floats' factor, and with one that is wrong, the steps find the root from afar."""
    gram = some_gram(5, 6, 2.0**27, 9.0)
    inverse_temperature = LARGEST_EXPONENT * 2.0**-27
    usual = envelope_of(gram, inverse_temperature)
    for start in (np.zeros((6, 6)), np.full((6, 6), 3.0)):
        monkeypatch.setattr(ball_envelope, "_float_root", lambda *_, s=start: s)
        found = envelope_of(gram, inverse_temperature)
        assert found.slack * 6 < SLACK_AT_MOST
        assert found.level == usual.level
    monkeypatch.undo()
    zero = ball_envelope._float_root(1.0, np.eye(3))  # I − I
    assert not zero.any()


@pytest.mark.parametrize(("exponent", "in_balls"), [(1e-3, False), (1e6, False), (1e12, True)])
def test_floats_bound_the_slack_where_they_can(
    exponent: float, in_balls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []
    residual = ball_envelope._residual

    def noted(root: arb_mat, inverse: arb_mat) -> tuple[arb_mat, float]:
        used.append(root.nrows())
        return residual(root, inverse)

    monkeypatch.setattr(ball_envelope, "_residual", noted)
    envelope_of(some_gram(5, 6), exponent / 1e4)
    assert bool(used) is in_balls


@given(st.integers(0, 10**6), st.integers(1, 30), st.floats(-3.0, 9.0), st.floats(0.0, 1e-3))
@settings(deadline=None, max_examples=40, derandomize=True)
def test_the_distance_in_floats_is_a_bound(seed: int, width: int, logarithm: float, wrong: float) -> None:
    """|I − WᵀSW|_F with 2,000 bits, also for a W that is not quite the root."""
    gram = some_gram(seed, width)
    inverse_temperature = 10.0 ** (logarithm - 4.0) / ROW_NORM_SQUARED
    exponent = inverse_temperature * gram.astype(np.float64)
    level = float(np.linalg.eigvalsh(exponent)[-1]) + 0.5
    root = ball_envelope._float_root(level, exponent) * (1.0 + wrong)
    with ctx.workprec(2000):
        identity = arb_mat(np.eye(width, dtype=int).tolist())
        form = identity * arb(level) - arb_mat(gram.tolist()) * arb(inverse_temperature)
        exact = arb_mat(root.tolist())
        off = identity - exact.transpose() * form * exact
        norm = sum((x * x for x in off.entries()), arb(0)).sqrt()
        assert norm < ball_envelope._float_distance(root, level, exponent)


def test_what_is_not_known_well_enough_has_no_envelope() -> None:
    gram = some_gram(2, 3)
    vague = MatrixBall(mid=arb_mat(gram.tolist()), error=arb(2.0**30))
    with ctx.workprec(START_BITS):
        assert Envelope.around(vague, 1.0 / ROW_NORM_SQUARED) is None
        assert Envelope.around(vague, 1e-6 / ROW_NORM_SQUARED) is not None


@given(st.integers(0, 10**6), st.integers(1, 8), st.floats(-6.0, 9.0), st.floats(0.0, 3.0))
@settings(deadline=None, max_examples=40, derandomize=True)
def test_floats_reject_only_what_balls_reject_and_nearly_all_of_it(
    seed: int, width: int, logarithm: float, fall: float
) -> None:
    gram = some_gram(seed, width, 1e4, fall)
    made = envelope_of(gram, 10.0 ** (logarithm - 4.0))
    random_bytes = SeededEntropy(seed).random_bytes
    words = made.candidates(random_bytes)
    rejected = made.surely_rejected(words)
    late = 0
    for place in range(len(words)):
        candidate = Candidate(words[place], random_bytes)
        candidate.extend()
        candidate.extend()
        verdict = decided(candidate, lambda c=candidate: made.accepts(c, near(gram), made.root))
        assert not (rejected[place] and verdict)
        late += not rejected[place] and not verdict
    # What the bound x hides costs at most 2^−7, and a round has at most 100 candidates here.
    assert late <= 3


def test_a_verdict_waits_until_the_rest_is_known() -> None:
    gram, random_bytes = some_gram(6, 4), SeededEntropy(6).random_bytes
    made = envelope_of(gram, 1e-3)
    vague = MatrixBall(mid=near(gram).mid, error=arb(100.0 / made.inverse_temperature))
    verdicts = set()
    for words in made.candidates(random_bytes):
        candidate = Candidate(words, random_bytes)
        with ctx.workprec(START_BITS):
            verdicts.add(made.accepts(candidate, near(gram), made.root))
            assert made.accepts(candidate, vague, made.root) is None
    assert verdicts == {True, False}


def test_floats_never_judge_numbers_at_the_edge() -> None:
    """Where the bits not read matter: U near 0 or 1, also of the coin."""
    made = envelope_of(some_gram(3, 3), 1e-2)
    words = np.tile(made.candidates(SeededEntropy(1).random_bytes)[:1], (7, 1))
    words[:, -1] = np.uint64(2**64 - 2**37)  # a coin that hardly any candidate gets past
    assert made.surely_rejected(words).all()
    for row, (place, word) in enumerate(
        [(0, 0), (0, 2**36 - 1), (2, 2**64 - 1), (2, 2**64 - 2**36), (4, 2**64 - 1), (4, 5)]
    ):
        words[row, place] = word
    assert made.surely_rejected(words).tolist() == [False] * 6 + [True]


@pytest.mark.parametrize("width", [2, 3, 9])
@pytest.mark.parametrize("cold", [0.0, 1e-3, 1.0, 1e5])
def test_no_acceptance_is_above_one_and_one_is_attained(width: int, cold: float) -> None:
    """c·uᵀRu − m + (k/2)(1 + ln(2(1−x)q/k)) ≤ 0, and 0 where 2uᵀSu = k (if the spectrum reaches that)."""
    gram = some_gram(width, width)
    made = envelope_of(gram, cold)
    generator = np.random.default_rng(1)
    normals = generator.standard_normal((20_000, width))
    points = normals @ made.floats.T
    directions = points / np.linalg.norm(points, axis=1)[:, None]
    forms = np.einsum("ij,jk,ik->i", directions, gram.astype(float), directions) * made.inverse_temperature
    ratio = 2.0 * (1.0 - made.slack) * (normals**2).sum(axis=1) / (points**2).sum(axis=1) / width
    heights = forms - made.level + 0.5 * width * (1.0 + np.log(ratio))
    assert -1e-3 < heights.max() <= 1e-6


def test_the_first_bits_read_do_not_depend_on_the_matrix() -> None:
    """One round of a public number of candidates, and then as many bits of one of them."""
    for width in (2, 7):
        read = []
        for fall, cold in ((0.0, 0.0), (1.0, 1e-3), (4.0, 10.0)):
            entropy, counts = SeededEntropy(width), []

            def counted(count: int, entropy: SeededEntropy = entropy, counts: list[int] = counts) -> bytes:
                counts.append(count)
                return entropy.random_bytes(count)

            Frame(some_gram(1, width, 1e4, fall), counted).next(cold)
            read.append([count for count in counts if count])
        numbers = width + width % 2
        assert read[0][0] == 8 * candidates_at_once(width) * (numbers + 1)
        assert read[0][1:] == [8 * numbers, 8, 16 * numbers, 16]
        assert read[0] == read[1] == read[2]


@given(st.integers(0, 10**6), st.integers(1, 6))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_a_frame_is_orthonormal(seed: int, width: int) -> None:
    """Equal values give a multiple of the identity; any values are the eigenvalues, but for rounding."""
    gram, random_bytes = some_gram(seed, width), SeededEntropy(seed).random_bytes
    cold = np.full(width, 1e-3)
    equal = frame_matrix(gram, cold, [10**17 + 1] * width, random_bytes)
    assert (equal == (10**17 + 1) * np.eye(width, dtype=object)).all()
    values = sorted(
        (int(v) for v in np.random.default_rng(seed).integers(-(2**40), 2**40, width)), reverse=True
    )
    found = frame_matrix(gram, cold, values, random_bytes)
    assert abs(int(np.trace(found)) - sum(values)) <= width / 2
    np.testing.assert_allclose(np.linalg.eigvalsh(found.astype(float))[::-1], values, atol=width)


def test_sharp_laws_find_the_eigenvectors() -> None:
    gram, random_bytes = some_gram(7, 5, 2.0**27, 1.0), SeededEntropy(1).random_bytes
    rising, vectors = np.linalg.eigh(gram.astype(float))
    frame = frame_matrix(gram, np.full(5, 8192.0), [2**60, 0, 0, 0, 0], random_bytes)
    assert np.trace(frame.astype(float)) == pytest.approx(2.0**60)
    top = vectors[:, -1] @ frame.astype(float) @ vectors[:, -1] * 2.0**-60
    assert 1.0 - top < 1e-9
    found = deflation_matrix(gram, 128.0, 5, lambda: 0, random_bytes)
    np.testing.assert_allclose(np.linalg.eigvalsh(found.astype(float)), rising, rtol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3, 20])
@pytest.mark.parametrize("level", [0, 1, 512, 2**40 + 1])
def test_multiples_of_the_identity_leave_nothing_in_doubt(width: int, level: int) -> None:
    """Forms that are the same for all directions are whole numbers: no ball has to shrink for ever."""
    gram, random_bytes = level * np.eye(width, dtype=np.int64), SeededEntropy(1).random_bytes
    deflated = Deflated(gram, random_bytes)
    deflated.next(0.1)
    assert deflated.value_held() == level
    found = deflation_matrix(gram, 0.1, 1, lambda: 5, random_bytes)
    assert abs(int(np.trace(found)) - level - 5) <= width / 2
    assert (frame_matrix(gram, np.ones(width), [level] * width, random_bytes) == gram).all()


def test_what_is_held_is_what_is_subtracted() -> None:
    """Σ λ̂ of orthogonal-in-effect steps: after rank steps without noise little of the matrix is left."""
    gram, random_bytes = some_gram(4, 3), SeededEntropy(8).random_bytes
    deflated = Deflated(gram, random_bytes)
    for _ in range(2):
        deflated.next(10.0)
        before = float(np.trace(deflated.rest.floats()))
        deflated.values.append(deflated.value_held())
        deflated.reduce()
        assert float(np.trace(deflated.rest.floats())) == pytest.approx(before - deflated.values[-1], abs=1.0)
        column = deflated.drawn[-1].ball
        left = (column.transpose() * (deflated.rest.mid * column))[0, 0]
        assert abs(float(left)) <= 0.5 + 1e-9
    found = decided(deflated, deflated.cells)
    assert np.abs(found.astype(float) + deflated.rest.floats() - gram).max() <= 0.5 + 1e-6


def test_integers_wait_until_the_rest_is_known() -> None:
    deflated = Deflated(some_gram(4, 3), SeededEntropy(8).random_bytes)
    deflated.next(1.0)
    exact = deflated.rest
    with ctx.workprec(START_BITS):
        assert deflated._value_held() is not None
        assert deflated.cells() is not None
        deflated.rest = MatrixBall(mid=exact.mid, error=arb(1))
        assert deflated._value_held() is None
        assert deflated.cells() is None


def test_temperatures_stay_where_floats_find_candidates() -> None:
    facts = PublicFacts(width=3, adjacency=adjacency("add-remove"))
    gram = some_gram(1, 3)
    for epsilon in (1.0, 1e9):
        law = Eigenvectors().calibrated(Guarantee(epsilon), facts).draw(gram, SeededEntropy(1)).noise
        assert law.total * ROWS_AT_MOST <= LARGEST_EXPONENT
        other = Deflation().calibrated(Guarantee(epsilon), facts).draw(gram, SeededEntropy(1)).noise
        assert other.temperature * MAX_ROWS < LARGEST_EXPONENT
    assert MOST_ROWS > MAX_ROWS
