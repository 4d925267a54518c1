"""Sets to which nothing was tuned: listed before any of them was run (docs/explanation/accuracy.md)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def held_out_arrays() -> Iterator[tuple[str, Array, Array]]:
    """(name, features, target): from statsmodels and scikit-learn, so anybody has them."""
    import statsmodels.datasets as sets
    from sklearn.datasets import load_breast_cancer, load_digits

    for module, target in (
        (sets.randhie, "mdvis"),
        (sets.fair, "affairs"),
        (sets.anes96, "selfLR"),
        (sets.modechoice, "choice"),
    ):
        frame = module.load_pandas().data.drop(columns=["individual"], errors="ignore").astype(float)
        y = frame.pop(target).to_numpy()
        yield module.__name__.split(".")[2], frame.to_numpy(), np.asarray(y)
    cancer, digits = load_breast_cancer(), load_digits()
    yield "breast-cancer", cancer.data, cancer.target.astype(float)
    yield "digits", digits.data, (digits.target >= 5).astype(float)
