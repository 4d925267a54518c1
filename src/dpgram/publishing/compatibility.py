"""What does not go together, in one table: every refusal of a pair of options comes from here.

The table is written from the properties that mechanisms state of themselves, so that a new mechanism is in it
by being registered. The documentation shows it (docs/reference/options.md), and a test tries every pair: it
works, or it is refused here before a row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

from dpgram.errors import OptionsError
from dpgram.mechanisms import MECHANISMS, Auto, Gaussian, Mechanism

LEARNING: Final = ("learnt bounds", "learnt levels")
"""What is learnt privately before the matrix."""
MODELS: Final = "models"
"""Models that are declared beforehand."""
REPLACED_IN_GROUPS: Final = "groups under replace-one"
ADAPTIVE: Final = "adaptive=True"
"""Histograms and a first matrix before the last one."""


@final
@dataclass(frozen=True, slots=True)
class Clash:
    """Two options that do not go together, why, and what to do instead."""

    one: str
    other: str
    why: str
    remedy: str


def mechanism_option(asked: type[Mechanism] | Mechanism | Auto) -> str:
    """The option that a mechanism was asked for; its parameters decide nothing here."""
    if isinstance(asked, Auto) and asked.semidefinite:
        return SEMIDEFINITE
    return f"mechanism={asked.name!r}"


SEMIDEFINITE: Final = "mechanism=Auto(semidefinite=True)"


def _clashes() -> Iterator[Clash]:
    for learnt in LEARNING:
        yield Clash(
            "strict",
            learnt,
            "strict mode is a promise that the data keeps to public bounds and levels",
            "Leave strict out, or give public bounds and levels",
        )
        yield Clash(
            "partial sums",
            learnt,
            "each site reads its rows once, and what is learnt needs several passes",
            "Give public bounds and levels",
        )
        yield Clash(
            "a stream",
            learnt,
            "a stream can be read only once, and what is learnt needs several passes",
            "Give a table, a file or a data set",
        )
    yield Clash(
        "partial sums",
        ADAPTIVE,
        "each site reads its rows once, and an adaptive release reads them several times",
        "Publish with adaptive=False (--no-adaptive)",
    )
    yield Clash(
        "a stream",
        ADAPTIVE,
        "a stream can be read only once, and an adaptive release reads it several times",
        "Give a table, a file or a data set, or publish with adaptive=False (--no-adaptive)",
    )
    yield Clash(
        "partial sums",
        "blocks",
        "each site has added up one matrix of all columns",
        "Leave blocks out, or have the sites add up the columns of each block by themselves",
    )
    yield Clash(
        "learnt levels",
        "delta=0",
        "the mere presence of a level can reveal a row, so levels cannot be learnt with delta = 0",
        "Give a delta such as 1e-6, or list the levels",
    )
    yield Clash(
        "by", "blocks", "a table is split into groups of rows or into blocks of columns", "Leave one out"
    )
    yield from _of_models()
    yield from _of_semidefinite([kind for kind in MECHANISMS.values() if kind.semidefinite])
    for kind in MECHANISMS.values():
        yield from _of_mechanism(kind)


def _of_models() -> Iterator[Clash]:
    """Proof: proofs/models.md#models-composition."""
    yield Clash(
        MODELS,
        "learning in one matrix",
        "declared models are measured beside bounds and levels that are public, or learnt by an adaptive "
        "release",
        "Give public bounds and levels, or publish with adaptive=True and without a radius",
    )
    for form, why in (("partial sums", "each site reads its rows once"), ("a stream", "it is read once")):
        yield Clash(
            form,
            MODELS,
            f"{why}, and declared models are measured after the matrix",
            "Give a table, a file or a data set, or leave models out",
        )
    yield Clash(
        MODELS,
        "delta=0",
        "what declared models need is measured with Gaussian noise, which gives no pure guarantee",
        "Give a delta such as 1e-6, or leave models out",
    )
    others = [mechanism_option(kind) for kind in MECHANISMS.values() if kind is not Gaussian]
    for other in (SEMIDEFINITE, *others):
        yield Clash(
            MODELS,
            other,
            "what declared models need is measured with Gaussian noise, as the matrix",
            "Use mechanism='gaussian' or 'auto', or leave models out",
        )
    yield Clash(MODELS, "by", "declared models are fitted to the table as a whole", "Leave one out")
    yield Clash(
        MODELS, "blocks", "declared models need one matrix of all their columns", "Leave blocks or models out"
    )


def _of_semidefinite(kinds: list[type[Mechanism]]) -> Iterator[Clash]:
    """What `auto` may choose among decides what it goes with."""
    without = "leave semidefinite out: analyses repair the matrix"
    if not any(kind.pure for kind in kinds):
        yield Clash(
            SEMIDEFINITE,
            "delta=0",
            "no mechanism gives a positive semidefinite matrix with delta = 0",
            f"Give a delta such as 1e-6, or {without}",
        )
    if not any(kind.pure or kind.gaussian for kind in kinds):
        yield Clash(
            SEMIDEFINITE,
            "learnt levels",
            "the noise of mechanisms that give a positive semidefinite matrix depends on the number of "
            "columns, which learnt levels decide",
            f"List the levels, or {without}",
        )
    if all(kind.one_row_per_unit for kind in kinds):
        yield Clash(
            SEMIDEFINITE,
            "several rows per unit",
            "the mechanisms that give a positive semidefinite matrix are proven for units of one row only",
            f"Use unit_rows=1, or {without}",
        )
    if not any(kind.replaced_in_groups for kind in kinds):
        remedy = f"Use adjacency='add-remove', or {without}"
        yield Clash(SEMIDEFINITE, REPLACED_IN_GROUPS, _two_change(), remedy)
    if not any(kind.in_blocks for kind in kinds):
        yield Clash(SEMIDEFINITE, "blocks", _blocks_share(), f"Leave blocks out, or {without}")


def _of_mechanism(kind: type[Mechanism]) -> Iterator[Clash]:
    """Proofs: proofs/units.md#units-mechanisms, proofs/sketch.md#sketch-several."""
    own, name = mechanism_option(kind), kind.name
    if not kind.pure:
        yield Clash(
            own,
            "delta=0",
            f"{name} cannot give a pure guarantee",
            "Use mechanism='matrix-laplace', or give a delta such as 1e-6",
        )
        if not kind.gaussian:
            yield Clash(
                own,
                "learnt levels",
                f"the noise of {name} depends on the number of columns, which learnt levels decide",
                f"List the levels, or use {_names(lambda other: other.pure or other.gaussian)}",
            )
    if kind.one_row_per_unit:
        yield Clash(
            own,
            "several rows per unit",
            f"the guarantee of {name} is proven for units of one row only: several rows change the matrix by "
            "more than one direction, and could tell more",
            "Use gaussian or matrix-laplace, or unit_rows=1",
        )
    elif not kind.joint_groups:
        yield Clash(
            own,
            "units in several groups",
            f"{name} cannot serve several groups at the price of one where a unit has rows in several",
            f"Use {_names(lambda other: other.joint_groups)}, or unit_rows=1",
        )
    if not kind.replaced_in_groups:
        proven = _names(lambda other: other.replaced_in_groups)
        remedy = f"Use {proven}, or adjacency='add-remove'"
        yield Clash(own, REPLACED_IN_GROUPS, _two_change(), remedy)
    if not kind.in_blocks:
        yield Clash(own, "blocks", _blocks_share(), "Use one of these, or leave blocks out")


def _two_change() -> str:
    return (
        "a replaced row can leave one group and enter another, which changes two matrices; that this costs "
        f"no more than a change of one holds for {_names(lambda kind: kind.replaced_in_groups)} only"
    )


def _blocks_share() -> str:
    return f"blocks share a budget with noise of {_names(lambda kind: kind.in_blocks)} only"


def _names(wanted: Callable[[type[Mechanism]], bool]) -> str:
    """Those of all mechanisms that have a property: a, b or c."""
    found = [kind.name for kind in MECHANISMS.values() if wanted(kind)]
    return " or ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def clashes() -> tuple[Clash, ...]:
    """Every pair of options that is refused, with the mechanisms that are listed now."""
    return tuple(_table(tuple(MECHANISMS.values())).values())


@lru_cache(maxsize=4)
def _table(kinds: tuple[type[Mechanism], ...]) -> dict[frozenset[str], Clash]:
    del kinds  # what `_clashes` reads, so that a mechanism that is listed later is in the table too
    return {frozenset((clash.one, clash.other)): clash for clash in _clashes()}


def clash_of(one: str, other: str) -> Clash | None:
    """Why these two do not go together; None where they do."""
    return _table(tuple(MECHANISMS.values())).get(frozenset((one, other)))


def refuse_clashes(options: Iterable[str]) -> None:
    """Raise for the first two of these options that do not go together."""
    given = sorted(options)
    for place, one in enumerate(given):
        for other in given[place + 1 :]:
            found = clash_of(one, other)
            if found is not None:
                raise OptionsError(
                    f"{found.one} cannot be combined with {found.other}: {found.why}", remedy=found.remedy
                )
