"""The ledger that would pay for a planned release: what it refuses, and what it charges too much for."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, final

from dpgram.errors import DpgramError
from dpgram.mechanisms import Mechanism
from dpgram.planning.forecast import Forecast, Setting
from dpgram.privacy.accountant import price
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.ledger import Ledger

DEAR: Final = 2
"""How many times the price of another mechanism of the same guarantee is too much to recommend."""


@final
class Payer:
    """Prices of mechanisms in the ledger's own currency: a pure ε costs a ledger of μ² far more."""

    def __init__(self, ledger: Ledger, setting: Setting, unit: str | None) -> None:
        self._ledger, self._setting, self._unit = ledger, setting, unit
        self._prices: dict[str, Fraction] = {}

    def check(self, mechanism: Mechanism, guarantee: Guarantee) -> None:
        """Raise what the ledger would raise for this mechanism at this guarantee."""
        event = self._setting.calibrated(mechanism, guarantee).event(self._setting.facts(None))
        self._ledger.check(event, adjacency=self._setting.adjacency, unit=self._unit)
        self._prices[mechanism.name] = price(event, self._ledger.currency).amount

    def pays(self, mechanism: Mechanism, guarantee: Guarantee) -> bool:
        try:
            self.check(mechanism, guarantee)
        except DpgramError:
            return False
        return True

    def cheap(self, found: list[Forecast], left_out: dict[str, str]) -> list[Forecast]:
        """The forecasts without those that another working one makes dear; why is told in `left_out`."""
        working = [one.mechanism for one in found if one.works]
        if not working:
            return found
        least = min(working, key=lambda name: self._prices[name])
        kept = []
        for one in found:
            times = self._prices[one.mechanism] / self._prices[least]
            if times > DEAR:
                left_out[one.mechanism] = (
                    f"the ledger would charge {float(times):.2g} times as much for it as for {least}"
                )
            else:
                kept.append(one)
        return kept
