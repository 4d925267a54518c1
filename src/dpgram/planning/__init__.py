"""Look before you spend: forecasts of every mechanism's accuracy from public facts alone."""

from __future__ import annotations

from dpgram.planning._advice import Advice
from dpgram.planning._assumption import Assumption
from dpgram.planning._plan import Plan
from dpgram.planning.forecast import Forecast
from dpgram.planning.planner import plan

__all__ = ["Advice", "Assumption", "Forecast", "Plan", "plan"]
