"""What does not go together, in one table: every refusal of a pair of options comes from here.

The table is written from the properties that mechanisms state of themselves, so that a new mechanism is in it
by being registered. The documentation shows it (docs/reference/options.md), and a test tries every pair: it
works, or it is refused here before a row is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, final

from dpgram.errors import OptionsError
from dpgram.mechanisms import MECHANISMS, Mechanism

LEARNING: Final = ("learnt bounds", "learnt levels", "a learnt radius")
"""What is learnt privately before the matrix."""
PARAMETERS: Final = ("ridge", "rank", "degrees")
"""Public parameters that some mechanisms have."""


@final
@dataclass(frozen=True, slots=True)
class Clash:
    """Two options that do not go together, why, and what to do instead."""

    one: str
    other: str
    why: str
    remedy: str


def mechanism(name: str) -> str:
    """The option that a mechanism was asked for by name."""
    return f"mechanism={name!r}"


def _clashes() -> Iterator[Clash]:
    for learnt in LEARNING:
        yield Clash(
            "strict",
            learnt,
            "strict mode is a promise that the data keeps to public bounds, levels and radius",
            "Leave strict out, or give public bounds, levels and radius",
        )
        yield Clash(
            "partial sums",
            learnt,
            "each site reads its rows once, and what is learnt needs several passes",
            "Give public bounds, levels and radius",
        )
        yield Clash(
            "a stream",
            learnt,
            "a stream can be read only once, and what is learnt needs several passes",
            "Give a table, a file or a data set",
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
        "that a level is there at all tells of a row, so levels cannot be learnt with delta = 0",
        "Give a delta such as 1e-6, or list the levels",
    )
    yield Clash(
        "a learnt radius",
        "ridge",
        "a ridge is meant in units of the row radius, which is not known beforehand",
        "Give a public radius, or none",
    )
    yield Clash(
        "by",
        "adjacency='replace-one'",
        "groups at the price of one need add/remove neighbours: a replaced row can leave one group and enter "
        "another, and so change two releases",
        "Publish with adjacency='add-remove'",
    )
    yield Clash(
        "by", "blocks", "a table is split into groups of rows or into blocks of columns", "Leave one out"
    )
    for parameter in ("psd", *PARAMETERS):
        yield Clash(
            "blocks",
            parameter,
            "blocks share a budget with gaussian or matrix-laplace noise only",
            "Leave one out",
        )
    for parameter in PARAMETERS:
        yield _foreign(mechanism("auto"), parameter)
    yield Clash(
        "psd",
        "delta=0",
        "no mechanism gives a positive semidefinite matrix with delta = 0",
        "Give a delta such as 1e-6, or leave psd out: analyses repair the matrix",
    )
    yield Clash(
        "psd",
        "learnt levels",
        "the noise of mechanisms that give a positive semidefinite matrix depends on the number of columns, "
        "which learnt levels decide",
        "List the levels, or leave psd out: analyses repair the matrix",
    )
    if not any(kind.psd and kind.several_rows for kind in MECHANISMS.values()):
        yield Clash(
            "psd",
            "several rows a unit",
            "the mechanisms that give a positive semidefinite matrix are proven for units of one row only",
            "Leave psd out (analyses repair the matrix), or use unit_rows=1",
        )
    for name, kind in MECHANISMS.items():
        yield from _of_mechanism(name, kind)


def _of_mechanism(name: str, kind: type[Mechanism]) -> Iterator[Clash]:
    """Proofs: proofs/units.md#units-mechanisms, proofs/sketch.md#sketch-several."""
    own = mechanism(name)
    for parameter in PARAMETERS:
        if parameter not in kind.options:
            yield _foreign(own, parameter)
    if not kind.pure:
        yield Clash(
            own,
            "delta=0",
            f"{name} cannot give a pure guarantee",
            "Use mechanism='matrix-laplace', or give a delta such as 1e-6",
        )
        if name != "gaussian":
            yield Clash(
                own,
                "learnt levels",
                f"the noise of {name} depends on the number of columns, which learnt levels decide",
                "List the levels, or use gaussian, matrix-laplace or another pure mechanism",
            )
    if not kind.psd:
        yield Clash(
            own,
            "psd",
            f"what {name} publishes need not be positive semidefinite",
            "Leave psd out (analyses correct for the noise), or use "
            + _names(other.psd for other in MECHANISMS.values()),
        )
    if not kind.several_rows:
        yield Clash(
            own,
            "several rows a unit",
            f"the guarantee of {name} is proven for units of one row only: several rows change the matrix by "
            "more than one direction, and could tell more",
            "Use gaussian or matrix-laplace, or unit_rows=1",
        )
    elif not kind.joint_groups:
        yield Clash(
            own,
            "units in several groups",
            f"{name} cannot serve several groups at the price of one where a unit has rows in several",
            f"Use {_names(other.joint_groups for other in MECHANISMS.values())}, or unit_rows=1",
        )
    if not kind.in_blocks:
        yield Clash(
            own,
            "blocks",
            "blocks share a budget with gaussian or matrix-laplace noise only",
            "Use one of these, or leave blocks out",
        )


def _foreign(own: str, parameter: str) -> Clash:
    takers = _names(parameter in kind.options for kind in MECHANISMS.values())
    return Clash(
        own, parameter, f"{parameter} belongs to {takers}", f"Use one of these, or leave {parameter} out"
    )


def _names(chosen: Iterable[bool]) -> str:
    return ", ".join(name for name, take in zip(MECHANISMS, chosen, strict=True) if take)


CLASHES: Final[tuple[Clash, ...]] = tuple(_clashes())
"""Every pair of options that is refused."""

_BY_PAIR: Final = {frozenset((clash.one, clash.other)): clash for clash in CLASHES}


def clash_of(one: str, other: str) -> Clash | None:
    """Why these two do not go together; None where they do."""
    return _BY_PAIR.get(frozenset((one, other)))


def refuse_clashes(options: Iterable[str]) -> None:
    """Raise for the first two of these options that do not go together."""
    given = sorted(options)
    for place, one in enumerate(given):
        for other in given[place + 1 :]:
            found = clash_of(one, other)
            if found is not None:
                raise OptionsError(
                    f"{found.one} does not go with {found.other}: {found.why}", remedy=found.remedy
                )
