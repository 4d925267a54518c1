"""One plain matrix of dpgram beside a paper's methods: `adaptive=False`, and the regression of a release."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpgram.analysis import denoise
from dpgram.analysis.design import INTERCEPT
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.regress import regress
from dpgram.core.noise import simulation
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import PublicFacts, as_mechanism
from dpgram.mechanisms.choice import choose
from dpgram.noise import EigenvectorSampling, Law, SampledLaw
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.guarantee import Guarantee
from dpgram.schema import Schema, numeric

Array: TypeAlias = npt.NDArray[np.float64]


@lru_cache(maxsize=512)
def law_of(
    guarantee: Guarantee, adjacency: Adjacency, width: int, mechanism: str = "auto", rows: int | None = None
) -> Law:
    """The law of a release of rows |x| ≤ 1, in lattice units; `rows` is public under replace-one."""
    facts = PublicFacts(width=width, adjacency=adjacency, rows=rows)
    chosen = choose(as_mechanism(mechanism), guarantee, facts, None).mechanism
    spectrum = np.full(width, (rows or 1.0) * ROW_NORM_SQUARED / width)
    return chosen.expected(spectrum)


def drawn(gram: Array, law: Law, generator: np.random.Generator) -> Array:
    """One noisy matrix, in units of the longest row."""
    noisy: Array = law.redraw(gram * ROW_NORM_SQUARED, generator) / ROW_NORM_SQUARED
    return noisy


@lru_cache(maxsize=64)
def _schema(width: int, *, constant: bool) -> Schema:
    names = [f"x{i}" for i in range(width - int(constant))]
    return Schema(*(numeric(name, low=-1.0, high=1.0) for name in names), constant=constant)


def fitted(
    noisy: Array,
    law: Law,
    target: int,
    features: Sequence[int],
    *,
    bound: float = 1.0,
    constant: bool = False,
) -> Array:
    """Coefficients of the default regression on the columns `features`, the constant's (column 0) first.

    `noisy` is in units of bound²: the longest row has length `bound` in the units of the coefficients.
    """
    moments = _moments(noisy, law, bound=bound, constant=constant)
    shift = int(constant)
    names = [f"x{i - shift}" for i in features]
    fit = regress(moments, f"x{target - shift}", names, intercept=constant)
    found = fit.fitted_params
    return np.array([found[name] for name in ([INTERCEPT] if constant else []) + names])


def second_moments(noisy: Array, law: Law, rows: int) -> Array:
    """What a release answers when asked for XᵀX, in units of the longest row; `rows` is public."""
    if isinstance(law, EigenvectorSampling):
        held = law.denoised(noisy * ROW_NORM_SQUARED) / ROW_NORM_SQUARED
        return denoise.denoised(held, denoise.NO_NOISE, rows)
    return denoise.second_moments(_moments(noisy, law, rows=rows))


def _moments(
    noisy: Array, law: Law, *, bound: float = 1.0, constant: bool = False, rows: int | None = None
) -> Moments:
    unit = bound**2 / ROW_NORM_SQUARED
    seen = law.stand_in(noisy * ROW_NORM_SQUARED, simulation(0)) if isinstance(law, SampledLaw) else law
    return Moments(
        gram=noisy * bound**2,
        schema=_schema(len(noisy), constant=constant),
        noise=EncodedNoise.of(seen, unit),
        radius=bound,
        public_rows=rows,
    )
