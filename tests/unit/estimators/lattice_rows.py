"""Rows inside public bounds, as the statistic of the norm-bounded estimators puts them on the lattice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dpgram.engines.local import add_up
from dpgram.engines.passes import Pass
from dpgram.rows.rules import RowRules
from dpgram.schema import Schema, numeric
from dpgram.sums.moments import MomentsStatistic


@dataclass(frozen=True)
class BoundedRows:
    """q, one row a line, and t; and the exact sums that an engine gets of the same table."""

    x: np.ndarray
    y: np.ndarray
    statistic: MomentsStatistic
    table: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, *, x_norm: float, y_bound: float) -> Self:
        names = tuple(f"x{place}" for place in range(x.shape[1]))
        statistic = MomentsStatistic(columns=names, target="y", x_norm=x_norm, y_bound=y_bound)
        table = np.column_stack([x, y])
        whole = table[np.isfinite(table).all(axis=1)]
        rows = statistic.lattice_rows(np.ascontiguousarray(whole[:, :-1].T), whole[:, -1].copy())
        return cls(rows[:-1].T, rows[-1], statistic, table)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        schema = Schema(*map(numeric, (*self.statistic.columns, self.statistic.target)), constant=False)
        work = Pass(rules=RowRules(schema=schema), statistics=(self.statistic,))
        (found,) = add_up(self.table, work, threads=1)
        return found.xx, found.xy
