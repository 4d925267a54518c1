"""What breaks privacy and no bound on ε shows: noise used twice, facts beside the cells, unpaid draws.

Each check runs a publisher of anybody's and returns what it found, a sentence for each breach; nothing found
is an empty tuple. They look at public results and at the ledger's file only, so they fit whatever publishes.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import Entropy, Integers, SystemEntropy
from dpgram.errors import DpgramWarning
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release

Breaches: TypeAlias = tuple[str, ...]
Matrix: TypeAlias = npt.NDArray[Any]

RELATIVE: Final = 1e-8
"""Two independent values are nearer than this, in units of their size, with probability below 10⁻⁸."""


def reused_noise(releases: Sequence[Matrix], exact: Sequence[Matrix] | None = None) -> Breaches:
    """Noise that appears twice: |n_i/s_i − n_j/s_j| ≤ 10⁻⁸ for values at different places or releases.

    `releases` are published matrices, of the same or of different tables; `exact` are those without noise
    (none: all are of the same table, and differences to the first stand for the noise). s is the size of a
    release's noise, so that one standard draw scaled twice is found as well. Whoever holds two such releases
    subtracts the noise. A value that does not change at all has none.
    """
    if exact is None:
        return _same_values(releases)
    values, places = [], []
    for number, (matrix, without) in enumerate(zip(releases, exact, strict=True), start=1):
        rows, columns = np.tril_indices(len(matrix))
        noise = (np.asarray(matrix, dtype=object) - np.asarray(without, dtype=object))[rows, columns]
        numbers = noise.astype(np.float64)
        size = float(np.sqrt(np.mean(numbers**2)))
        values.append(numbers / size if size else numbers)
        places += [f"cell {i},{j} of release {number}" for i, j in zip(rows, columns, strict=True)]
    found = np.concatenate(values)
    order = np.argsort(found)
    near = np.flatnonzero(np.diff(found[order]) <= RELATIVE * np.maximum(1.0, np.abs(found[order][1:])))
    return tuple(f"{places[order[k]]} and {places[order[k + 1]]} have the same noise" for k in near)


def _same_values(releases: Sequence[Matrix]) -> Breaches:
    breaches = []
    for first in range(len(releases)):
        for second in range(first + 1, len(releases)):
            same = np.equal(releases[first], releases[second])
            rows, columns = np.nonzero(np.tril(same))
            breaches += [
                f"cell {i},{j} is the same in releases {first + 1} and {second + 1}"
                for i, j in zip(rows, columns, strict=True)
            ]
    return tuple(breaches)


def leaked_facts(
    publisher: Callable[[Any], Release | Mapping[str, Release] | Sequence[Release]], tables: Iterable[Any]
) -> Breaches:
    """Whatever, beside the cells, differs between releases of neighbouring tables.

    `publisher` maps a table to its release, `tables` are neighbours (under replace-one: of equally many
    rows). Everything but the cells must be equal to the letter, and so must success: an error for one table
    and not for another tells them apart. So does a cell without noise, hence one table is published twice.
    """
    data = list(tables)
    outcomes = [_everything_said(publisher, table) for table in (*data, data[0])]
    breaches = []
    for number, outcome in enumerate(outcomes[1:-1], start=2):
        for path in sorted(outcomes[0].keys() | outcome.keys()):
            if _is_noisy(path):
                continue
            one, other = outcomes[0].get(path), outcome.get(path)
            if one != other:
                breaches.append(f"{path} is {one} for table 1 and {other} for table {number}")
    for path, cell in outcomes[0].items():
        if _is_noisy(path) and outcomes[-1].get(path) == cell:
            breaches.append(f"{path} is {cell} in both releases of table 1: it has no noise")
    return tuple(breaches)


def _everything_said(publisher: Callable[[Any], Any], table: Any) -> dict[str, str]:
    """All a release says, by place; an error is something said as well."""
    try:
        found = publisher(table)
    except Exception as problem:  # noqa: BLE001  (whatever it is, that it was raised tells something)
        return {"error": f"{type(problem).__name__}: {problem}"}
    several = found.values() if isinstance(found, Mapping) else [found] if _is_release(found) else found
    told: dict[str, str] = {}
    for number, release in enumerate(several):
        form = release.to_json() if isinstance(release, Release) else release
        _flatten(json.loads(form) if isinstance(form, str | bytes) else form, f"release {number}", told)
    return told


def _is_release(found: object) -> bool:
    return isinstance(found, Release | str | bytes)


def _is_noisy(path: str) -> bool:
    """The published cells; and the digest, which covers them."""
    return ".matrix.cells." in path or path.endswith(".digest")


def _flatten(value: object, path: str, told: dict[str, str]) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _flatten(inner, f"{path}.{name}", told)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            _flatten(inner, f"{path}.{place}", told)
    else:
        told[path] = json.dumps(value, ensure_ascii=False)


def unpaid_draws(
    publisher: Callable[[Ledger, Entropy], object],
    *,
    adjacency: str = "add-remove",
    unit: str | None = None,
) -> Breaches:
    """Randomness drawn before the charge is on disk; and a charge that a failing draw takes back.

    `publisher` publishes something once with the ledger and the entropy it is given. At every draw the
    ledger's file is read: a draw without an entry means that whoever interrupts there has noise, or a
    release, that nobody paid for.
    """
    breaches = []
    with tempfile.TemporaryDirectory() as folder:
        ledger = _ledger(Path(folder) / "watched", adjacency, unit)
        witness = WatchedEntropy(ledger)
        publisher(ledger, witness)
        if witness.unpaid:
            breaches.append(f"{witness.unpaid} of {witness.draws} draws came before the charge was on disk")
        if not witness.draws:
            breaches.append("nothing was drawn from the entropy that was given")
        if len(ledger.history()) != 1:
            breaches.append(f"one release was charged {len(ledger.history())} times")
        ledger = _ledger(Path(folder) / "failing", adjacency, unit)
        with contextlib.suppress(BrokenSource):
            publisher(ledger, WatchedEntropy(ledger, fails=True))
        if len(ledger.history()) != 1:
            breaches.append("a draw that failed did not stay charged")
    return tuple(breaches)


class BrokenSource(Exception):
    """What a failing witness raises at the first draw."""


@final
class WatchedEntropy(Entropy):
    """The operating system's entropy, which looks into the ledger's file at every draw."""

    label: ClassVar[Literal["system", "seeded"]] = "system"

    def __init__(self, ledger: Ledger, *, fails: bool = False) -> None:
        self._inner, self._ledger, self._fails = SystemEntropy(), ledger, fails
        self.draws = 0
        self.unpaid = 0
        self._paid = False

    def _look(self) -> None:
        self.draws += 1
        # A ledger only grows: once there is an entry there will be one at every later draw.
        self._paid = self._paid or bool(Ledger.open(self._ledger.path).history())
        self.unpaid += not self._paid
        if self._fails:
            raise BrokenSource("the source of entropy failed, as asked")

    def discrete_gaussian(self, scale: float, count: int) -> Integers:
        self._look()
        return self._inner.discrete_gaussian(scale, count)

    def discrete_laplace(self, scale: float, count: int) -> Integers:
        self._look()
        return self._inner.discrete_laplace(scale, count)

    def generator(self) -> np.random.Generator:
        self._look()
        return self._inner.generator()

    def split(self, count: int) -> list[Entropy]:
        """Itself: what is drawn from the parts is seen too."""
        return [self] * count

    def random_bytes(self, count: int) -> bytes:
        self._look()
        return self._inner.random_bytes(count)

    def rehearse(self) -> None:
        """Thrown away, so it needs no charge."""
        self._inner.rehearse()


def _ledger(path: Path, adjacency: str, unit: str | None) -> Ledger:
    """One that pays for whatever is audited."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)  # nobody's budget
        return Ledger.create(path, name="audit", epsilon=100.0, delta=1e-3, adjacency=adjacency, unit=unit)
