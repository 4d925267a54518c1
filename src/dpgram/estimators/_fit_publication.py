"""One fit carried out as one publication: who pays for it, and by what it is known if it is interrupted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

import numpy as np

from dpgram.core.noise import Entropy, SystemEntropy
from dpgram.engines.local import LocalEngine
from dpgram.errors import MechanismError
from dpgram.privacy.adjacency import Adjacency
from dpgram.publishing.publication import Account, Program, publication, warn_of_delta
from dpgram.publishing.request import open_ledger
from dpgram.schema import Schema

if TYPE_CHECKING:
    from dpgram.privacy.events import Event
    from dpgram.privacy.receipt import Receipt

T = TypeVar("T")

_NOT_ASKED = frozenset({"ledger", "entropy"})
"""Parameters that say who pays and where noise comes from: no part of what is asked for."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFit(Generic[T]):
    """What a fit gave, and the receipt of its charge; None where no ledger paid."""

    result: T
    receipt: Receipt | None


def published_fit(
    program: Program[T],
    *,
    model: Any,
    data: object,
    adjacency: Adjacency,
    price: Event,
    entropy: Entropy,
    facts: Mapping[str, object],
    delta: float,
) -> PublishedFit[T]:
    """Carry a fit out as every publication is. `facts` are public, and not among the model's parameters."""
    account = account_of(model, adjacency, facts)
    with publication(
        _with_receipt(program),
        data=data,
        engine=LocalEngine(),
        entropy=entropy,
        adjacency=adjacency,
        price=price,
        account=account,
        progress=False,
        public=lambda rows: warn_of_delta(delta, rows),
    ) as found:
        return found


def account_of(model: Any, adjacency: Adjacency, facts: Mapping[str, object]) -> Account | None:
    """The ledger of an estimator, and what it is told of this fit; None without one."""
    book = open_ledger(model.ledger)
    if book is None:
        return None
    name = type(model).__name__
    asked = {key: value for key, value in model.get_params(deep=False).items() if key not in _NOT_ASKED}
    request = {"estimator": name, "parameters": _plain(asked), "facts": _plain(dict(facts))}
    return Account(ledger=book, adjacency=adjacency, unit=None, note=name, request=request)


def checked_entropy(entropy: object) -> Entropy:
    """The operating system's where none is given."""
    if entropy is None:
        return SystemEntropy()
    if not isinstance(entropy, Entropy):
        raise MechanismError(
            "entropy must be an Entropy",
            got=f"a {type(entropy).__name__}",
            remedy="Leave it out; or, for experiments only, give SeededEntropy(seed)",
        )
    return entropy


def _with_receipt(program: Program[T]) -> Program[PublishedFit[T]]:
    answer = yield next(program)
    while True:
        try:
            stage = program.send(answer)
        except StopIteration as end:
            return PublishedFit(result=end.value, receipt=answer.receipt)
        answer = yield stage


def _plain(value: object) -> object:
    """A public parameter as JSON can write it."""
    if isinstance(value, Schema):
        return value.to_dict()
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, bool | int | float | str) or value is None else repr(value)
