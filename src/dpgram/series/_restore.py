"""The curator's file of a series was lost or damaged: it is made again from tables that were kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from dpgram.document.fields import MeasuredHistograms
from dpgram.engines.find import find_engine
from dpgram.errors import DpgramError, OptionsError, tell_caller
from dpgram.files import sync_folder
from dpgram.noise.factor import coefficients
from dpgram.publishing.measurements.stream import StreamedGram
from dpgram.publishing.series import exact_period, participants, period_drawn, reading_drawn
from dpgram.rows.participation import NOBODY, Hashes
from dpgram.series._curate import (
    edited,
    left_out_of,
    old_copy,
    opening_of,
    period_key,
    refuse_other_head,
    terms_of,
)
from dpgram.series._records import NO_SUMS, KeptPeriod, combined_cells, lower_sums
from dpgram.series._secret import (
    Remains,
    Secret,
    create_secret,
    locked,
    open_secret,
    remains,
)
from dpgram.series.stream import Stream, secret_path, stream_bytes

if TYPE_CHECKING:
    from dpgram.engines.base import Engine

FARTHEST: Final = 9.0
"""Deviations of its noise by which a cell of a kept table may differ from what was published of it."""


def restore(path: Path, tables: Mapping[str, object], *, engine: str | Engine = "auto") -> None:
    """Make the curator's file again from the tables of all periods that were published.

    They must hold the ids that they held then: whoever is missing could count once more. What can be read of
    the old file is kept, its key and everybody who has counted. Each table must give sums from which the
    published ones differ by noise alone, as far as that can be seen.

    Proof: proofs/series.md#series-once.
    """
    target = secret_path(path)
    made = target.with_name(target.name + ".restored")
    with contextlib.ExitStack() as stack:
        handle = None
        with contextlib.suppress(FileNotFoundError):
            handle = stack.enter_context(locked(target))
        raw = stream_bytes(path)
        stream = Stream.of(raw)
        public = raw[: stream.size]
        old = Remains() if handle is None else remains(handle, stream.head.series)
        if old.key is not None:
            refuse_other_head(stream, old.head_digest)
            last = old.files.get(len(stream.labels))
            if last is not None and not public.endswith(bytes(last.line)):
                raise edited(path)
        key = period_key(stream, len(stream.labels) + 1)
        drawn = period_drawn(path, key)
        if not stream.labels and not drawn and old.key is None and stream.head.receipt is not None:
            # Only the lost file says where: an interrupted creation would be found again by a second series.
            raise DpgramError(
                f"nothing of this series was published, and without {target.name} nobody can tell whether "
                "its charge still waits for another series",
                remedy="Put that file back, or create the series again under another name",
            )
        labels = _to_restore(path, stream, tables, old, drawn)
        lines = [each.cells for each in stream.periods]
        if lines and drawn:  # a later period has one stage, and in it its line comes first
            with reading_drawn(path, key):
                lines.append(_line_of(drawn[0], cells=len(lines[0])))
        with _made_anew(made, stream, old) as secret:
            for number, label in enumerate(labels, start=1):
                if stream.opening is None:
                    reading = reading_drawn(path, key)
                    _restore_begun(secret, stream, label, tables[label], old, drawn or {}, reading, engine)
                    continue
                total = _restore_period(secret, stream, number, label, tables[label], old, engine)
                if number <= len(lines):
                    _refuse_foreign(label, lines[number - 1], stream.opening.sigma, total)
            if stream.labels:
                secret.keep_file(len(stream.labels), public)
        made.replace(target)
        sync_folder(target)
    tell_caller(f"{target.name} was made again from {len(labels)} tables: keep it as secret as these")


def _line_of(drawn: Any, *, cells: int) -> tuple[str, ...]:
    """The line of a later period that was drawn and waits."""
    line: tuple[str, ...] = msgspec.convert(drawn.published[0], StreamedGram.result)
    if len(line) != cells:
        raise ValueError(f"{len(line)} cells, not {cells}")
    return line


def _to_restore(
    path: Path, stream: Stream, tables: Mapping[str, object], old: Remains, drawn: Mapping[int, Any] | None
) -> list[str]:
    """The periods whose tables are needed: all that were published, and one that was drawn and waits."""
    labels, number = list(stream.labels), len(stream.periods) + 1
    begun = old.kept.get(number)
    if drawn is not None:
        others = [label for label in tables if label not in labels]
        if begun is None and len(others) != 1:
            raise OptionsError(
                f"period {number} was begun and interrupted: its table is needed too, and no other",
                got=", ".join(others[:5]) or "none",
                remedy="Give it by the name of its period, and publish it afterwards",
            )
        labels += others if begun is None else [begun.label]
        if number == 1 and drawn and tables.get(labels[0], ...) is None:
            raise OptionsError(
                "something of the first period was drawn: whoever is in its table has counted",
                got=f"None for {labels[0]!r}",
                remedy="Give the table as it was then",
            )
    elif begun is not None:
        raise old_copy(path, begun.label)
    missing = [label for label in labels if label not in tables]
    if missing:
        raise OptionsError(
            "the tables of all periods that were drawn are needed",
            got=", ".join(missing[:5]),
            remedy="Give them by the names of their periods; None for a period without rows",
        )
    return labels


@contextlib.contextmanager
def _made_anew(made: Path, stream: Stream, old: Remains) -> Iterator[Secret]:
    """A new file beside the old one, which is gone if anything fails."""
    with contextlib.suppress(FileNotFoundError), locked(made):
        made.unlink()  # a restore that was killed has left it
    head = stream.head
    create_secret(made, head.series, head=stream.head_digest, charge=old.charge, key=old.key)
    try:
        with open_secret(made, head.series) as secret:
            yield secret
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def _restore_begun(
    secret: Secret,
    stream: Stream,
    label: str,
    data: Any,
    old: Remains,
    drawn: Mapping[int, Any],
    reading: contextlib.AbstractContextManager[None],
    engine: str | Engine,
) -> None:
    """A first period that waits: nobody knows yet what its sums are made of, but who must have counted."""
    left_out = left_out_of(secret, stream.head, 1)
    hashes = NOBODY
    if left_out is not None:
        chosen = find_engine(engine if data is not None else "local", data)
        people, exact = participants(data, terms_of(stream.head), left_out, chosen)
        hashes = people.hashes
        if exact is not None and drawn:
            with reading:
                seen = msgspec.convert(drawn[0].published[0], MeasuredHistograms)
                pairs = list(zip(seen.columns, exact.cells.tolist(), strict=True))
            for column, line in pairs:
                cells = [*column.counts, *column.lost]
                _refuse_foreign(label, cells, seen.scale, line[: len(cells)])
    secret.keep(
        KeptPeriod(number=1, label=label, sums=NO_SUMS, people=_with_old(hashes, old, 1), stages=len(drawn))
    )


def _restore_period(
    secret: Secret, stream: Stream, number: int, label: str, data: Any, old: Remains, engine: str | Engine
) -> tuple[int, ...]:
    """Its sums as they are in its line, without noise."""
    head, opening = stream.head, opening_of(stream)
    if opening is None:
        raise TypeError("the first period is not out")
    chosen = find_engine(engine if data is not None else "local", data)
    exact, people = exact_period(data, terms_of(head), opening, left_out_of(secret, head, number), chosen)
    now = lower_sums(exact.cells)
    hashes = NOBODY if people is None else people.hashes
    secret.keep(KeptPeriod(number=number, label=label, sums=now, people=_with_old(hashes, old, number)))
    return combined_cells(secret.past(number), now, coefficients(head.periods, head.bits))


def _with_old(hashes: Hashes, old: Remains, number: int) -> Hashes:
    """With everybody who is known to have counted."""
    found: Hashes = np.union1d(hashes, old.kept[number].people) if number in old.kept else hashes
    return found


def _refuse_foreign(label: str, cells: Sequence[str], sigma: float, total: Sequence[int]) -> None:
    """Noise of more than nine deviations never comes up: the table is another one, or was changed."""
    if any(abs(int(cell) - exact) > FARTHEST * sigma for cell, exact in zip(cells, total, strict=True)):
        raise DpgramError(
            f"the table given for {label!r} is not the one that was published",
            remedy="Give the table as it was then, without later corrections",
        )
