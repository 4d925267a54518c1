"""`Plan`: the forecasts of one table side by side, as a table, a figure, JSON and in words."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
from scipy.special import ndtri

from dpgram.errors import AnalysisError
from dpgram.mechanisms import MECHANISMS, Mechanism
from dpgram.planning._adaptive import ADAPTIVE, AdaptiveSetting
from dpgram.planning._advice import Advice
from dpgram.planning._text import WIDTH, Words, header, in_python, plan_text, table_rows
from dpgram.planning.forecast import WORTH_IT, Forecast, Setting
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.expected import ExpectedAdaptive
from dpgram.publishing.expected_models import ExpectedModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVE_POINTS: Final = 9


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Plan:
    """Forecasts for one table that nobody has looked at."""

    rows: int
    epsilon: float
    delta: float
    adjacency: str
    width: int
    target: str
    features: int
    assumption: str
    bounds_share: float
    adaptive: ExpectedAdaptive | None
    """What the adaptive release should give; nothing where one plain matrix was asked about."""
    bounds_unknown: tuple[str, ...]
    """Numeric columns without bounds: these will have to be learnt."""
    forecasts: tuple[Forecast, ...]
    """From the least standard error to the largest."""
    left_out: Mapping[str, str]
    """Mechanism → why it cannot serve."""
    advice: Advice | None
    semidefinite: bool
    """Whether only positive semidefinite matrices were asked for."""
    asked: Mapping[str, Mechanism] = field(repr=False)
    """Every mechanism that was asked about, by name."""
    setting: Setting = field(repr=False)
    adaptive_setting: AdaptiveSetting | None = field(repr=False, default=None)
    models: tuple[ExpectedModel, ...] = ()
    """What every declared model should give."""

    def __repr__(self) -> str:
        return f"<Plan: {len(self.forecasts)} forecasts for {self.target}, {self.rows:,} rows>"

    @property
    def recommended(self) -> Forecast | None:
        """The best that works; nothing when none does."""
        return next((found for found in self.forecasts if found.works), None)

    @property
    def works(self) -> bool:
        """Whether the adaptive release, or any mechanism with one plain matrix, would give intervals."""
        return self.recommended is not None or (self.adaptive is not None and self.adaptive.works)

    @property
    def adaptive_rows_needed(self) -> int | None:
        """How many rows an adaptive release takes to be worth a quarter of them."""
        if self.adaptive_setting is None:
            return None
        return self.adaptive_setting.rows_needed(Guarantee(self.epsilon, self.delta), WORTH_IT)

    @property
    def adaptive_is_best(self) -> bool:
        """Whether the adaptive release should do as well as the best plain matrix, or better."""
        plain = math.inf if self.recommended is None else self.recommended.se_ratio
        return self.adaptive is not None and self.adaptive.works and self.adaptive.se_ratio <= 1.02 * plain

    def forecast(self, mechanism: str) -> Forecast:
        """The forecast for one mechanism, by its name.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> forecast.forecast("gaussian").verdict
        'usable'
        """
        for found in self.forecasts:
            if found.mechanism == mechanism:
                return found
        raise AnalysisError(
            f"no forecast for {mechanism!r}", got=self.left_out.get(mechanism), limit=", ".join(MECHANISMS)
        )

    def table(self) -> str:
        """One line for each mechanism, aligned.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> print(forecast.table())
        mechanism       noise  SE ×  worst  rows    2ε  ½ col.  bounds  verdict
        matrix-laplace   2.45  1.14   1.23  1868  1.04    1.05    1.17     good
        gaussian         4.22  1.37   1.58  5566  1.12     1.2     1.4   usable
        """
        rows = table_rows(self)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        between = "  " if sum(widths) + 2 * len(widths) <= WIDTH else " "
        lines = [
            between.join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        return self.text()

    def text(self, words: Words = in_python) -> str:
        """Headline, table, how to read it and what to do; `words` writes the parameters that it names.

        >>> small = dg.Schema(dg.numeric("age", 18, 90), dg.boolean("smoker"))
        >>> forecast = dg.plan(small, epsilon=1, delta=1e-6, rows=dg.Rows(expected=2_000))
        >>> "one plain matrix (adaptive=False)" in forecast.text()
        True
        >>> "one plain matrix (--no-adaptive)" in forecast.text(lambda name, value: f"--no-{name}")
        True
        """
        return plan_text(self, words)

    def headline(self) -> str:
        """What was asked and what is assumed.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> print(forecast.headline())
        Regression of charges on 2 terms: about 20,000 rows, 5 encoded columns, ε = 1, δ = 1e-06, add-remove
        Assumed, not looked up: spread 0.333 of half the range, correlation 0.2, R² 0.5
        """
        return header(self)

    def to_json(self) -> dict[str, object]:
        """Plain values; an infinite ratio (no interval at all) is null.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> forecast.to_json()["recommended"]
        'matrix-laplace'
        """
        form: dict[str, object] = {
            "rows": self.rows,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "encoded_columns": self.width,
            "target": self.target,
            "assumption": self.assumption,
            "bounds_share": self.bounds_share,
            "adaptive": None if self.adaptive is None else asdict(self.adaptive),
            "adaptive_is_best": self.adaptive_is_best,
            "bounds_unknown": list(self.bounds_unknown),
            "works": self.works,
            "recommended": None if self.recommended is None else self.recommended.mechanism,
            "advice": None if self.advice is None else asdict(self.advice),
            "left_out": dict(self.left_out),
            "models": [asdict(found) for found in self.models],
            "forecasts": [{**asdict(found), "verdict": found.verdict} for found in self.forecasts],
        }
        return {key: _finite(value) for key, value in form.items()}

    def curves(self) -> Mapping[str, tuple[Sequence[float], Sequence[float]]]:
        """Mechanism → (ε, median ratio) from a tenth of ε to ten times it; leaves out what does not work.

        The adaptive release has a line of its own, "adaptive".

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> epsilons, ratios = forecast.curves()["gaussian"]
        >>> round(epsilons[-1]), round(ratios[-1], 2)
        (10, 1.01)
        """
        lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
        grid = self.epsilon * np.geomspace(0.1, 10.0, CURVE_POINTS)
        for name in (found.mechanism for found in self.forecasts):
            pairs = [(float(epsilon), self._ratio(name, float(epsilon))) for epsilon in grid]
            lines[name] = _finite_line(pairs)
        if self.adaptive_setting is not None:
            own = [(float(epsilon), self._adaptive_ratio(float(epsilon))) for epsilon in grid]
            lines[ADAPTIVE] = _finite_line(own)
        return lines

    def margins(self, epsilon: float | None = None) -> dict[str, float]:
        """How closely each coefficient should be known at that ε: half the width of its 95% interval.

        In units of the target for a unit of the column, on the assumed table and with the assumed spread of
        the target: a release that is adaptive where that was asked about, else with the best plain matrix.
        Infinite where no interval would be given. Without columns whose bounds are not known, which have no
        unit yet.

        >>> asked = ["gaussian"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> forecast.margins()["age"] > forecast.margins(epsilon=5)["age"]
        True
        """
        if self.target in self.bounds_unknown:
            return {}
        spent = self.epsilon if epsilon is None else epsilon
        if self.adaptive_setting is not None:
            ratio = self._adaptive_ratio(spent)
        else:
            ratio = min((self._ratio(name, spent) for name in self.asked), default=math.inf)
        regression = self.setting.regression
        errors = np.sqrt(regression.variance / max(self.rows - len(regression.spectrum), 1))
        return {
            name: float(ndtri(0.975)) * ratio * float(error)
            for name, error in zip(regression.names, errors, strict=True)
            if name not in self.bounds_unknown
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The ratio against ε, a line for each mechanism; written to `path` if one is given.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> figure = forecast.plot("plan.png")
        """
        from dpgram.planning._figure import accuracy_plot

        return accuracy_plot(self, path=None if path is None else Path(path))

    def _adaptive_ratio(self, epsilon: float) -> float:
        if self.adaptive_setting is None:
            return math.inf
        return self.adaptive_setting.forecast(Guarantee(epsilon, self.delta)).se_ratio

    def _ratio(self, name: str, epsilon: float) -> float:
        return self.setting.ratio(self.asked[name], Guarantee(epsilon, self.delta))


def _finite_line(pairs: Sequence[tuple[float, float]]) -> tuple[Sequence[float], Sequence[float]]:
    finite = [(epsilon, ratio) for epsilon, ratio in pairs if math.isfinite(ratio)]
    return [epsilon for epsilon, _ in finite], [ratio for _, ratio in finite]


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
