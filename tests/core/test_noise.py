"""Entropy sources: interfaces, labels, refusals, independence of calls, and the ball sampler's refinement."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.core import balls as laplace_sampler
from dpgram.core.noise import (
    LARGEST_SCALE,
    Entropy,
    Noise,
    SeededEntropy,
    SystemEntropy,
    _unbounded,
    on_matrix,
    simulation,
)
from dpgram.errors import MechanismError

SOURCES: dict[str, Callable[[], Entropy]] = {"system": SystemEntropy, "seeded": lambda: SeededEntropy(11)}


pytestmark = pytest.mark.system_entropy


@pytest.fixture(params=SOURCES)
def entropy(request: pytest.FixtureRequest) -> Entropy:
    return SOURCES[request.param]()


fixed = SeededEntropy(12)
"""For who runs these tests without fixtures."""


def test_labels() -> None:
    assert SystemEntropy().label == "system"
    assert SeededEntropy(1).label == "seeded"


@pytest.mark.parametrize("law", ["discrete_gaussian", "discrete_laplace"])
@pytest.mark.parametrize("scale", [0.3, 5.0, 2.0**33, LARGEST_SCALE])
def test_draws_are_python_integers(entropy: Entropy, law: str, scale: float) -> None:
    drawn = getattr(entropy, law)(scale, 50)
    assert drawn.shape == (50,)
    assert drawn.dtype == object
    assert all(type(value) is int for value in drawn)
    assert len(getattr(entropy, law)(scale, 0)) == 0


@pytest.mark.parametrize("law", ["discrete_gaussian", "discrete_laplace"])
@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 2.0 * LARGEST_SCALE])
def test_a_scale_out_of_range_is_refused(entropy: Entropy, law: str, scale: float) -> None:
    with pytest.raises(MechanismError, match="scale of the noise is out of range"):
        getattr(entropy, law)(scale, 3)


@pytest.mark.parametrize(
    ("width", "theta"), [(0, 1.0), (3, 0.0), (3, -1.0), (3, float("inf")), (3, float("nan"))]
)
def test_matrix_laplace_refuses_bad_parameters(entropy: Entropy, width: int, theta: float) -> None:
    with pytest.raises(MechanismError, match="matrix Laplace"):
        entropy.matrix_laplace(width, theta)


@pytest.mark.parametrize("width", [1, 2, 7])
def test_matrix_laplace_is_a_symmetric_matrix_of_python_integers(entropy: Entropy, width: int) -> None:
    drawn = entropy.matrix_laplace(width, 2.0**-30)
    assert drawn.shape == (width, width)
    assert all(type(value) is int for value in drawn.ravel())
    assert (drawn == drawn.T).all()


def test_no_two_calls_share_randomness(entropy: Entropy) -> None:
    assert not (entropy.matrix_laplace(3, 2.0**-40) == entropy.matrix_laplace(3, 2.0**-40)).any()
    first, second = entropy.discrete_gaussian(1e15, 40), entropy.discrete_gaussian(1e15, 40)
    assert not (first == second).any()
    assert len(set(entropy.discrete_laplace(1e15, 40)) | set(entropy.discrete_laplace(1e15, 40))) == 80
    assert not (entropy.generator().random(20) == entropy.generator().random(20)).any()


def test_two_system_sources_differ() -> None:
    assert SystemEntropy().generator().random() != SystemEntropy().generator().random()
    assert SystemEntropy().random_bytes(16) != SystemEntropy().random_bytes(16)


def test_a_seed_repeats_everything() -> None:
    def play(seed: int) -> list[object]:
        entropy = SeededEntropy(seed)
        return [
            *entropy.discrete_gaussian(9.0, 5),
            *entropy.discrete_laplace(1e9, 5),
            *entropy.matrix_laplace(2, 1e-9).ravel(),
            *entropy.generator().random(3).tolist(),
            *entropy.generator().random(3).tolist(),
        ]

    assert play(5) == play(5)
    assert play(5) != play(6)
    assert simulation(3).random() == simulation(3).random()


def test_parts_for_work_in_parallel_differ_and_follow_from_the_seed(entropy: Entropy) -> None:
    first, second = entropy.split(2)
    assert type(first) is type(second) is type(entropy)
    assert first.random_bytes(16) != second.random_bytes(16)
    parts = [SeededEntropy(np.random.SeedSequence(3)).split(2)[1].random_bytes(8) for _ in range(2)]
    assert parts[0] == parts[1] == SeededEntropy(3).split(2)[1].random_bytes(8)


def test_a_rehearsal_loses_no_draw_of_a_seed() -> None:
    assert repr(SeededEntropy(4)) == "SeededEntropy(...)"
    rehearsed = SeededEntropy(4)
    rehearsed.rehearse()
    assert rehearsed.random_bytes(8) == SeededEntropy(4).random_bytes(8)


def test_a_rehearsal_asks_every_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that cannot draw shows before the charge."""
    asked = []
    for name in ("discrete_gaussian", "discrete_laplace", "matrix_laplace"):
        monkeypatch.setattr(SystemEntropy, name, lambda self, *given, name=name: asked.append(name))
    SystemEntropy().rehearse()
    assert asked == ["discrete_gaussian", "discrete_laplace", "matrix_laplace"]


def test_matrix_laplace_noise_is_added_to_what_is_exact() -> None:
    exact, theta = np.array([[5, 0], [-7, 9]], np.int64), 2.0**-30
    found = on_matrix(exact, Noise("matrix-laplace", theta), SeededEntropy(5))
    whole = np.array([[5, -7], [-7, 9]])
    assert (found - SeededEntropy(5).matrix_laplace(2, theta) == whole).all()


def test_importing_the_source_loads_no_sampler() -> None:
    code = (
        "import sys, numpy; import dpgram.core.noise, dpgram.noise; "
        "print(*[m for m in ('opendp', 'flint', 'scipy', 'pyarrow') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == ""


class Streams:
    """Random bytes such that uniform j's bits depend on j and their place only, however they are read."""

    def __init__(self, seed: int, uniforms: int) -> None:
        self.seed, self.uniforms, self.read = seed, uniforms, 0

    def __call__(self, count: int) -> bytes:
        size = count // self.uniforms
        first, self.read = self.read, self.read + size
        return b"".join(
            hashlib.shake_256(f"{self.seed}:{j}".encode()).digest(self.read)[first:]
            for j in range(self.uniforms)
        )


@given(
    seed=st.integers(0, 2**32),
    width=st.integers(1, 4),
    log_theta=st.integers(-40, 1),
    start=st.sampled_from([8, 16, 40, 96]),
)
@settings(deadline=None, max_examples=60)
def test_refining_few_bits_gives_the_matrix_that_many_bits_give(
    seed: int, width: int, log_theta: int, start: int
) -> None:
    """The integers are a function of the endless bit streams alone: where one starts cannot matter."""
    uniforms = 2 * width * (width + 1)
    theta = 2.0**log_theta
    coarse = laplace_sampler.matrix_laplace(width, theta, Streams(seed, uniforms), start_bits=start)
    fine = laplace_sampler.matrix_laplace(width, theta, Streams(seed, uniforms), start_bits=1024)
    assert (coarse == fine).all()


def test_refinement_is_really_entered_and_default_precision_needs_none() -> None:
    width = 3
    streams = Streams(1, 2 * width * (width + 1))
    laplace_sampler.matrix_laplace(width, 2.0**-30, streams, start_bits=8)
    assert streams.read > 1
    streams = Streams(1, 2 * width * (width + 1))
    laplace_sampler.matrix_laplace(width, 2.0**-30, streams)
    assert streams.read == laplace_sampler.START_BITS // 8


def test_extreme_uniforms_are_refined_not_guessed() -> None:
    """All-zero leading bits leave ln U without a bound: more bits must be read."""
    zeros = 0

    def mostly_zero(count: int) -> bytes:
        nonlocal zeros
        zeros += 1
        return bytes(count) if zeros == 1 else b"\xff" * count

    drawn = laplace_sampler.matrix_laplace(1, 1e-3, mostly_zero, start_bits=8)
    assert zeros >= 2
    assert type(drawn[0, 0]) is int


def test_the_matrix_agrees_with_floats_on_the_same_uniforms() -> None:
    width, theta = 4, 2.0**-20
    uniforms = 2 * width * (width + 1)
    raw = Streams(3, uniforms)(8 * uniforms)
    u = np.array([int.from_bytes(raw[8 * j : 8 * j + 8], "big") for j in range(uniforms)]) / 2.0**64
    length, angle = np.sqrt(-2.0 * np.log(u[::2])), 2.0 * np.pi * u[1::2]
    normals = np.column_stack([length * np.sin(angle), length * np.cos(angle)]).ravel()
    first, second = normals.reshape(2, width + 1, width)
    expected = (first.T @ first - second.T @ second) / (2.0 * theta)
    drawn = laplace_sampler.matrix_laplace(width, theta, Streams(3, uniforms))
    np.testing.assert_allclose(drawn.astype(float), expected, atol=0.51, rtol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_laplace_draw_at_the_end_of_its_range_goes_on(sign: int) -> None:
    later = iter([-3, -1, 10, 4])
    assert _unbounded(sign * 10, 10, lambda _: [next(later)]) == sign * (10 + 10 + 4)
    assert _unbounded(sign * 9, 10, lambda _: pytest.fail("nothing to continue")) == sign * 9
