"""The analyst's side imports nothing of the curator's, and no heavy optional library."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

FORBIDDEN = (
    "dpgram.publishing",
    "dpgram.rows.encoder",
    "dpgram.sums.exact_gram",
    "dpgram.sources",
    "dpgram.engines",
    "dpgram.mechanisms",
    "dpgram.privacy.ledger",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "sklearn",
    "dask",
    "pyspark",
    "opendp",
    "flint",
)

WORK = """
import numpy as np
from dpgram.analysis import EncodedNoise, Moments, compare, partial_correlation, pca, pool, regress
from dpgram.noise import SymmetricGaussian
from dpgram.schema import Schema, numeric
schema = Schema(numeric("x", -1, 1), numeric("w", -1, 1), numeric("y", -1, 1))
rows = np.column_stack([np.ones(500), np.random.default_rng(0).uniform(-1, 1, (500, 3))])
moments = Moments(
    gram=rows.T @ rows, schema=schema, noise=EncodedNoise.of(SymmetricGaussian(sigma=1.0)), radius=2.0
)
fit = regress(moments, "y")
fit.summary(), fit.conf_int(), fit.predict({"x": [0.1], "w": [0.2]}), fit.bootstrap(20), fit.error_bound()
pca(moments), partial_correlation(moments, "x", "y"), pool([moments], "y"), compare(moments, moments, "y")
"""


@pytest.mark.parametrize("code", ["import dpgram.analysis", WORK], ids=["import", "work"])
def test_analysis_stays_on_its_side(code: str) -> None:
    report = "\nimport sys\nprint('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "dpgram.analysis" in loaded
    assert not [name for name in FORBIDDEN if name in loaded]


def test_regress_takes_one_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Milliseconds on a hundred columns. What takes the time is counted: a clock measures others too."""
    import numpy as np

    from dpgram.analysis import EncodedNoise, Moments, regress
    from dpgram.noise import SymmetricGaussian
    from dpgram.schema import Schema, numeric

    taken: list[str] = []
    for name in ("cholesky", "eig", "eigh", "eigvalsh", "inv", "lstsq", "pinv", "qr", "solve", "svd"):
        plain = getattr(np.linalg, name)

        def counted(*given: Any, name: str = name, plain: Any = plain, **named: Any) -> Any:
            taken.append(name)
            return plain(*given, **named)

        monkeypatch.setattr(np.linalg, name, counted)
    rng = np.random.default_rng(0)
    schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(99)))
    rows = np.column_stack([np.ones(3000), rng.uniform(-1, 1, (3000, 99))])
    law = SymmetricGaussian(sigma=50.0)
    moments = Moments(
        gram=law.redraw(rows.T @ rows, rng), schema=schema, noise=EncodedNoise.of(law), radius=10.0
    )
    regress(moments, "x0")
    assert sorted(taken) == ["eigh", "lstsq", "qr"]
