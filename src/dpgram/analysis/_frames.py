"""Tables of results as a frame of whichever library the analyst has: dpgram itself needs none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt

from dpgram.errors import MissingExtra

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    Frame: TypeAlias = pl.DataFrame | pd.DataFrame


def frame_of(
    columns: Mapping[str, Sequence[object] | npt.NDArray[Any]],
    *,
    numbers: Collection[str] = (),
    texts: Collection[str] = (),
) -> Frame:
    """A Polars frame, or where there is no Polars one of pandas; None is missing in `numbers` and `texts`."""
    if find_spec("polars") is not None:
        import polars as pl

        types = dict.fromkeys(numbers, pl.Float64()) | dict.fromkeys(texts, pl.String())
        return pl.DataFrame(columns, schema_overrides=types)
    if find_spec("pandas") is not None:
        import pandas as pd

        return pd.DataFrame(columns).astype(dict.fromkeys(numbers, "float64"))
    raise MissingExtra("polars", "frame")
