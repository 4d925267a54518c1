"""Contrasts, marginal effects and predictions cover: the small form of benchmarks/contrast_coverage.py."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.contrast_coverage import SCHEMA, covered, encoded

from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.noise import SymmetricGaussian


@pytest.mark.parametrize(("stated", "least", "most"), [(20.0, 0.92, 0.98), (2.0, 0.0, 0.9)])
def test_they_cover_as_often_as_they_say(stated: float, least: float, most: float) -> None:
    """100 tables, 600 intervals; a noise stated ten times too small must show."""
    hits: list[bool] = []
    for run in range(100):
        rng = np.random.default_rng(run)
        rows = encoded(5_000, "normal", rng)
        gram = SymmetricGaussian(sigma=20.0).redraw(rows.T @ rows, rng)
        noise = EncodedNoise.of(SymmetricGaussian(sigma=stated))
        moments = Moments(gram=gram, schema=SCHEMA, noise=noise, radius=SCHEMA.max_norm_squared**0.5)
        found = covered(moments, "normal", rng)
        hits += [bool(hit) for name in ("contrast", "marginal effect", "expectation") for hit in found[name]]
    assert len(hits) == 600
    assert least <= np.mean(hits) <= most
