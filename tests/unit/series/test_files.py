"""The two files of a series when they are old, edited, lost or in the way: no second noise or charge."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from msgspec.structs import replace
from tests.unit.series.streams import ENGINE, SCHEMA, names, people, seeded

import dpgram as dg
from dpgram.canonical_json import canonical_bytes
from dpgram.core.units import PolicyCounts
from dpgram.errors import DpgramError, OptionsError, ReleaseError
from dpgram.files import line_of as written_line
from dpgram.privacy import SeededEntropy
from dpgram.publishing import _journal
from dpgram.publishing.measurements.gram import FirstGram
from dpgram.publishing.measurements.stream import StreamedGram
from dpgram.series import Series, _curate, _secret
from dpgram.series._check import Check
from dpgram.series._records import KeptFile, file_record, period_record, seal_record
from dpgram.series._secret import open_secret
from dpgram.series.stream import START, Head, Period, Stream, line_ends, line_of, numbers_of, secret_path

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")

FACTS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "periods": 8}


def with_ledger(folder: Path) -> dict[str, Any]:
    """What a series is asked for, with a ledger that pays."""
    return {**FACTS, "ledger": dg.Ledger.create(folder / "l.ledger", name="l", epsilon=8, delta=1e-4)}


def edited(stream: Stream, change: Callable[[Any], Any]) -> bytes:
    """The file with every line changed by somebody who computes all digests again."""
    before, lines = START, []
    for each in (stream.head, *stream.periods):
        line, before = line_of(change(each), before)
        lines.append(line)
    return b"".join(lines)


def change_cell(each: Any, label: str) -> Any:
    """The period of this name with one more in its first cell; anything else as it is."""
    if getattr(each, "label", "") != label:
        return each
    return replace(each, cells=(str(int(each.cells[0]) + 1), *each.cells[1:]))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Every line of a stream that is drawn from now on."""
    every: list[tuple[str, ...]] = []
    honest = StreamedGram.draw

    def noted(self: StreamedGram, exact: Any, entropy: Any) -> tuple[str, ...]:
        every.append(honest(self, exact, entropy))
        return every[-1]

    monkeypatch.setattr(StreamedGram, "draw", noted)
    return every


def published(series: Series, table: Any, period: str, **options: Any) -> Stream:
    """One more period, with noise of the kind that the series has."""
    noise = SeededEntropy(77) if Stream.read(series.path).head.entropy == "seeded" else None
    return _curate.publish(
        series.path, table, period, engine=ENGINE, progress=False, entropy=noise, **options
    )


def stopped(*_: Any) -> None:
    raise KeyboardInterrupt


def interrupted(series: Series, table: Any, period: str, patch: pytest.MonkeyPatch) -> None:
    """A period that is drawn, and stopped before its line is out."""
    with patch.context() as here:
        here.setattr(_curate, "_append", stopped)
        with pytest.raises(KeyboardInterrupt):
            published(series, table, period)


class TestNoSecondNoise:
    @pytest.mark.parametrize("label", ["m2", "other"])
    def test_an_old_copy_of_the_public_file_draws_nothing(
        self, label: str, tmp_path: Path, drawn: list[Any]
    ) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        old = series.path.read_bytes()
        published(series, people(50, 50), "m2")
        series.path.write_bytes(old)
        with pytest.raises(DpgramError, match=r"'m2' was drawn before, .* an old copy"):
            published(series, people(50, 50), label)
        assert len(drawn) == 2
        assert series.path.read_bytes() == old

    def test_files_of_other_labels_do_not_go_together(self, tmp_path: Path, drawn: list[Any]) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        old = [path.read_bytes() for path in (series.path, secret_path(series.path))]
        published(series, people(50, 50), "m2")
        other = series.path.read_bytes()
        for path, raw in zip((series.path, secret_path(series.path)), old, strict=True):
            path.write_bytes(raw)
        published(series, people(50, 50), "another")
        series.path.write_bytes(other)
        with pytest.raises(DpgramError, match="period 2 of the series is not the one in"):
            published(series, people(100, 50), "m3")
        assert len(drawn) == 3

    def test_another_version_of_the_library_goes_on(
        self, tmp_path: Path, drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        interrupted(series, people(50, 50), "m2", monkeypatch)
        monkeypatch.setattr(_journal, "version", lambda _: "999.0")
        assert published(series, people(50, 50), "m2").periods[-1].cells == drawn[-1]
        assert len(drawn) == 2
        assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE"]

    @pytest.mark.parametrize("restored", [False, True])
    def test_nobody_draws_a_period_beside_one_that_is_running(
        self, restored: bool, tmp_path: Path, drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While it runs, its curator's file is replaced by a copy, or lost and restored."""
        series, honest = seeded(tmp_path / "a.series", [people(0, 50)]), _curate._append
        path = secret_path(series.path)
        old = path.read_bytes()

        def again() -> None:
            if restored:
                series.restore({"m1": people(0, 50), "m2": people(50, 50)}, engine=ENGINE)
            else:
                published(series, people(50, 50), "m2")

        def meanwhile(*arguments: Any) -> None:
            monkeypatch.setattr(_curate, "_append", honest)
            path.unlink()
            if not restored:
                path.touch(0o600)
                path.write_bytes(old)
            with pytest.raises(DpgramError, match="this period is being published"):
                again()
            honest(*arguments)

        monkeypatch.setattr(_curate, "_append", meanwhile)
        published(series, people(50, 50), "m2")
        assert len(drawn) == 2

    def test_nobody_draws_a_period_that_came_out_meanwhile(
        self, tmp_path: Path, drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Under a copy of the curator's file, between reading the public one and the first row."""
        series, honest = seeded(tmp_path / "a.series", [people(0, 50)]), _curate.drawn_period
        path = secret_path(series.path)

        def meanwhile(*arguments: Any, **options: Any) -> Any:
            monkeypatch.setattr(_curate, "drawn_period", honest)
            old = path.read_bytes()
            path.unlink()
            path.touch(0o600)
            path.write_bytes(old)
            published(series, people(50, 50), "m2")
            return honest(*arguments, **options)

        monkeypatch.setattr(_curate, "drawn_period", meanwhile)
        with pytest.raises(DpgramError, match="was given another period meanwhile"):
            published(series, people(50, 50), "m2")
        assert len(drawn) == 2
        assert Stream.read(series.path).labels == ("m1", "m2")

    def test_what_a_run_keeps_is_not_forgotten_beside_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series, honest = seeded(tmp_path / "a.series", [people(0, 50)]), _journal.Journal.finish

        def meanwhile(journal: _journal.Journal) -> None:
            assert published(series, None, "m2").labels == ("m1", "m2")
            assert journal.path.exists()
            honest(journal)

        monkeypatch.setattr(_journal.Journal, "finish", meanwhile)
        published(series, people(50, 50), "m2")
        assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE"]

    def test_an_old_curators_file_does_not_know_of_whom_was_drawn(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The copy from the creation, put back within the first period: going on would forget its table."""
        series = seeded(tmp_path / "a.series", [])
        path = secret_path(series.path)
        old = path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(StreamedGram, "draw", stopped)
            with pytest.raises(KeyboardInterrupt):
                published(series, people(0, 50), "m1")
        newest = path.read_bytes()
        path.write_bytes(old)
        with pytest.raises(DpgramError, match=r"does not know of whom: it is an old copy.*Series\.restore"):
            published(series, people(100, 50), "m1")
        path.write_bytes(newest)
        assert published(series, people(0, 50), "m1").labels == ("m1",)

    def test_an_old_curators_file_from_between_two_stages(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It knows who was in the table of the first stage; the second was drawn of another one."""
        series = seeded(tmp_path / "a.series", [])
        path = secret_path(series.path)
        for draws, how, first in ((FirstGram, "record", 0), (StreamedGram, "draw", 1_000)):
            with monkeypatch.context() as patch:
                patch.setattr(draws, how, stopped)
                with pytest.raises(KeyboardInterrupt):
                    published(series, people(first, 1_000), "m1")
            if first == 0:
                old = path.read_bytes()
        newest = path.read_bytes()
        path.write_bytes(old[: old.index(b"\n", old.index(b'"stages":1')) + 1 + 16_000 + 1])
        with pytest.raises(DpgramError, match=r"does not know of whom: it is an old copy.*Series\.restore"):
            published(series, people(0, 1_000), "m1")
        path.write_bytes(newest)
        assert published(series, people(0, 1_000), "m1").labels == ("m1",)
        with open_secret(path, Stream.read(series.path).head.series) as secret:
            assert len(secret.people(1)) == 2_000

    def test_names_with_the_letters_of_patterns(
        self, tmp_path: Path, drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series = seeded(tmp_path / "a[1].series", [people(0, 50)])
        interrupted(series, people(50, 50), "m2", monkeypatch)
        with pytest.raises(OptionsError, match="'m2' was begun and interrupted"):
            published(series, people(50, 50), "other")
        with monkeypatch.context() as patch:
            patch.setattr(_journal.Journal, "finish", lambda self: None)
            published(series, people(50, 50), "m2")
        published(series, None, "m2")
        assert len(drawn) == 2
        assert names(tmp_path) == ["a[1].series", "a[1].series.NOT-PRIVATE"]


class TestKnownLines:
    """What was checked before is known by the copy that the curator keeps."""

    @pytest.fixture
    def four(self, tmp_path: Path) -> Series:
        return seeded(tmp_path / "a.series", [people(100 * t, 100) for t in range(4)])

    def test_they_are_read_as_all_lines_are(self, four: Series) -> None:
        raw = four.path.read_bytes()
        whole = Stream.of(raw)
        known = Stream.known(raw, whole.labels, [None] * 4, ends=line_ends(raw), path=four.path)
        assert (known.head, known.digest, known.size) == (whole.head, whole.digest, whole.size)
        assert known.head_digest == whole.head_digest
        assert known.labels == whole.labels == ("m1", "m2", "m3", "m4")
        assert known.release(2, 3) == whole.release(2, 3)
        assert known.periods == whole.periods
        assert known.digest == whole.digest

    def test_their_numbers_are_those_that_were_kept(self, four: Series) -> None:
        """So that no line is read again to add it up; those of a restored file are."""
        whole, path = Stream.read(four.path), secret_path(four.path)
        wanted = [numbers_of(each).tolist() for each in whole.periods]
        with open_secret(path, whole.head.series) as secret:
            kept = secret.numbers(4)
        assert [each.tolist() for each in kept if each is not None] == wanted
        raw = four.path.read_bytes()
        known = Stream.known(raw, whole.labels, kept, ends=line_ends(raw), path=four.path)
        assert all(known.release(*ends) == whole.release(*ends) for ends in ((1, 4), (2, 3), (4, 4)))
        path.unlink()
        four.restore({f"m{t + 1}": people(100 * t, 100) for t in range(4)}, engine=ENGINE)
        with open_secret(path, whole.head.series) as secret:
            assert secret.numbers(4) == [None] * 4
        published(four, people(900, 100), "m5")
        assert Stream.read(four.path).release(1, 4) == whole.release(1, 4)

    def test_numbers_of_any_size_are_added_up(self, four: Series, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where one needs more than 64 bits, nothing is kept of them, and lines are read."""
        whole = Stream.read(four.path)
        monkeypatch.setattr("dpgram.series._numbers.LARGEST", 1)
        fifth = published(four, people(900, 100), "m5").release(1, 5)
        with open_secret(secret_path(four.path), whole.head.series) as secret:
            assert secret.numbers(5)[4] is None
        assert Stream.read(four.path).release(1, 4) == whole.release(1, 4)
        monkeypatch.undo()
        assert Stream.read(four.path).release(1, 5) == fifth

    def test_a_damaged_line_is_found(self, four: Series) -> None:
        raw = four.path.read_bytes()
        for place, label in ((3, b"m2"), (5, b"m4")):
            four.path.write_bytes(raw.replace(b'"label":"' + label, b'"label":"m9'))
            with pytest.raises(ReleaseError, match=f"line {place} of the series does not match its digest"):
                published(four, people(900, 100), "m5")

    @pytest.mark.parametrize("period", ["m2", "m4"])
    def test_an_edited_cell_is_refused_before_a_draw(
        self, period: str, four: Series, drawn: list[Any]
    ) -> None:
        """By somebody who computed all digests again: only the curator's file can tell."""

        four.path.write_bytes(edited(Stream.read(four.path), lambda each: change_cell(each, period)))
        with pytest.raises(DpgramError, match=r"is not the file that a\.series\.NOT-PRIVATE has seen"):
            published(four, people(900, 100), "m5")
        assert drawn == []

    def test_restoring_knows_the_same_file(self, four: Series) -> None:
        series, path = Stream.read(four.path).head.series, secret_path(four.path)
        raw = four.path.read_bytes()
        others = (raw[:-1], raw + b"\n", raw.replace(b'"m2"', b'"m9"'), b"x" + raw[1:], raw[:-2] + b"x\n")
        for restored in (False, True):
            with open_secret(path, series) as secret:
                assert secret.labels(4) == ["m1", "m2", "m3", "m4"]
                assert secret.has_seen(raw, 4)
                assert not any(secret.has_seen(other, 4) for other in others)
            if not restored:
                path.unlink()
                four.restore({f"m{t + 1}": people(100 * t, 100) for t in range(4)}, engine=ENGINE)

    def test_a_torn_line_is_not_seen(self, four: Series) -> None:
        with four.path.open("ab") as file:
            file.write(b'{"before": "ab')
        assert published(four, people(900, 100), "m5").labels[-1] == "m5"
        assert Stream.read(four.path).labels[-1] == "m5"

    def test_a_return_is_no_end_of_a_file(self, four: Series) -> None:
        raw = four.path.read_bytes()
        middle = raw.index(b'"label":"m2"')
        assert Stream.of(raw[:middle] + b"\r" + raw[middle:]).labels == ("m1", "m2", "m3", "m4")


class TestSeal:
    """Where the curator's file ends with a seal, its records are not held against their own digests."""

    @pytest.fixture
    def read(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """A number for every file whose records were held against their digests."""
        every: list[int] = []
        honest = _secret.records

        def noted(content: Any, start: int) -> Any:
            every.append(start)
            return honest(content, start)

        monkeypatch.setattr(_secret, "records", noted)
        return every

    @pytest.fixture
    def two(self, tmp_path: Path) -> Series:
        return seeded(tmp_path / "a.series", [people(0, 100), people(100, 100)])

    def test_it_is_used(self, two: Series, read: list[int]) -> None:
        assert published(two, people(150, 100), "m3").labels == ("m1", "m2", "m3")
        assert read == []

    def test_a_torn_one_is_cut_off(self, two: Series, read: list[int], tmp_path: Path) -> None:
        path = secret_path(two.path)
        whole, public = path.read_bytes(), two.path.read_bytes()
        start = whole.rindex(b"\n", 0, -1) + 1
        lines = []
        for end in (len(whole), len(whole) - 1, (start + len(whole)) // 2, start + 1, start):
            path.write_bytes(whole[:end])
            two.path.write_bytes(public)
            lines.append(published(two, people(150, 100), "m3").periods[-1])
        assert lines == lines[:1] * 5
        assert len(read) == 4
        assert path.read_bytes().startswith(whole[:start])

    @pytest.mark.parametrize("part", ["its text", "its digest", "what is before it"])
    def test_damage_is_refused(self, part: str, two: Series, drawn: list[Any]) -> None:
        path = secret_path(two.path)
        raw = bytearray(path.read_bytes())
        start = raw.rindex(b"\n", 0, -1) + 1
        place = {"its text": start + 20, "its digest": len(raw) - 5, "what is before it": start // 2}[part]
        raw[place] ^= 1
        path.write_bytes(bytes(raw))
        with pytest.raises(DpgramError, match=r"record \d+ of .* does not match its digest"):
            published(two, people(200, 100), "m3")
        assert path.read_bytes() == bytes(raw)
        assert drawn == []

    def test_one_that_tells_of_other_bytes_is_not_believed(self, two: Series, read: list[int]) -> None:
        """The last seal behind one record more: all are whole, and are read one by one."""
        path = secret_path(two.path)
        raw = path.read_bytes()
        start = raw.rindex(b"\n", 0, -1) + 1
        again = raw.index(b'{"kind":"period"')
        path.write_bytes(raw[:start] + raw[again : raw.index(b'{"kind":"line"')] + raw[start:])
        with open_secret(path, Stream.read(two.path).head.series) as secret:
            assert [each.label for each in secret.past(3)] == ["m1", "m2"]
        assert len(read) == 1

    def test_a_period_behind_it_is_read(
        self, two: Series, read: list[int], drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Killed after its sums were kept, and before anything was drawn."""
        with monkeypatch.context() as here:
            here.setattr(StreamedGram, "draw", stopped)
            with pytest.raises(KeyboardInterrupt):
                published(two, people(150, 100), "m3")
        assert read == []
        assert published(two, people(150, 100), "m3").labels[-1] == "m3"
        assert len(read) == 1
        published(two, people(300, 100), "m4")
        assert len(read) == 1

    def test_what_was_drawn_and_not_published(
        self, two: Series, read: list[int], drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """There is a line more than the public file has."""
        interrupted(two, people(150, 100), "m3", monkeypatch)
        assert published(two, people(150, 100), "m3").periods[-1].cells == drawn[0]
        assert len(drawn) == 1
        assert read == []

    def test_a_restored_file_has_one(self, two: Series, read: list[int]) -> None:
        secret_path(two.path).unlink()
        two.restore({"m1": people(0, 100), "m2": people(100, 100)}, engine=ENGINE)
        before = len(read)
        assert published(two, people(150, 100), "m3").labels[-1] == "m3"
        assert len(read) == before

    def test_lines_that_nothing_is_made_of_stay_in_the_file(self, two: Series) -> None:
        """They are read when they are asked for, if it still has them; releases need neither file."""
        published(two, people(150, 100), "m3")
        raw, wanted = two.path.read_bytes(), Stream.read(two.path)
        found, again, late = (published(two, None, "m3") for _ in range(3))
        assert found.periods == wanted.periods
        published(two, people(300, 100), "m4")
        assert late.periods == wanted.periods
        two.path.write_bytes(edited(wanted, lambda each: change_cell(each, "m2")))
        with pytest.raises(ReleaseError, match="is no longer the file that it was"):
            again.periods  # noqa: B018
        two.path.write_bytes(b"")
        secret_path(two.path).write_bytes(b"")
        assert again.release(1, 3) == wanted.release(1, 3)
        two.path.write_bytes(raw)
        assert again.periods == wanted.periods


def sealed_again(raw: bytes) -> bytes:
    """The file up to its last line, and a seal of that."""
    check = Check()
    check.update(raw[: raw.rindex(b"\n", 0, -1) + 1])
    return raw[: raw.rindex(b"\n", 0, -1) + 1] + seal_record(check)


def said_otherwise(raw: bytes, start: int, change: dict[str, Any]) -> bytes:
    """The file with another line of JSON in place of that which begins there, with its digest."""
    stop = raw.index(b"\n", start)
    line = {
        key: value for key, value in (json.loads(raw[start : stop - 65]) | change).items() if value != ...
    }
    return (
        raw[:start]
        + written_line(json.dumps(line, sort_keys=True, separators=(",", ":")).encode())
        + raw[stop + 1 :]
    )


class TestForged:
    """A curator's file whose digests are right and which is wrong: one message, and nothing is drawn."""

    TABLES: ClassVar[dict[str, Any]] = {"m1": people(0, 100), "m2": people(100, 100)}

    @pytest.fixture
    def two(self, tmp_path: Path) -> Series:
        return seeded(tmp_path / "a.series", list(self.TABLES.values()))

    def refused(self, series: Series, raw: bytes, drawn: list[Any], match: str) -> None:
        path = secret_path(series.path)
        path.write_bytes(raw)
        with pytest.raises(DpgramError, match=match):
            published(series, people(150, 100), "m3")
        assert path.read_bytes() == raw
        assert drawn == []
        series.restore(self.TABLES, engine=ENGINE)
        counted: list[PolicyCounts] = []
        published(series, people(150, 100), "m3", report=counted.append)
        assert counted[0].rows_left_out == 50

    @pytest.mark.parametrize(
        "change",
        [
            {"key": "zz" * 32},
            {"key": ...},
            {"key": ""},
            {"key": "00"},
            {"key": "00" * 33},
            {"key": 5},
            {"charge": 5},
            {"charge": "a\0b"},
            {"head": 5},
            {"series": "other"},
            {"more": ""},
        ],
    )
    def test_its_head(self, change: dict[str, Any], two: Series, drawn: list[Any]) -> None:
        drawn.clear()
        raw = secret_path(two.path).read_bytes()
        forged = sealed_again(said_otherwise(raw, 0, change))
        self.refused(two, forged, drawn, r"does not belong to this series.*Series\.restore")

    @pytest.mark.parametrize("text", [b"{nope", b"[" * 100_000, b"[]", b'{"charge":"","charge":""}', b"\xff"])
    def test_a_head_of_another_form(self, text: bytes, two: Series, drawn: list[Any]) -> None:
        drawn.clear()
        raw = secret_path(two.path).read_bytes()
        forged = sealed_again(written_line(text) + raw[raw.index(b"\n") + 1 :])
        self.refused(two, forged, drawn, r"does not belong to this series.*Series\.restore")
        other = two.path.with_name("b.series")
        secret_path(other).write_bytes(written_line(text))
        secret_path(other).chmod(0o600)
        with pytest.raises(DpgramError, match="may hold the exact sums"):
            Series.create(other, SCHEMA, **FACTS)

    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            ("period", {"people": 0}),
            ("period", {"people": 99}),
            ("period", {"people": -1}),
            ("period", {"people": 10**12}),
            ("period", {"people": 2**62}),
            ("period", {"sums": 3}),
            ("period", {"sums": 10**9}),
            ("period", {"stages": -7}),
            ("period", {"period": -1}),
            ("line", {"numbers": -1}),
            ("line", {"line": 0}),
            ("line", {"line": 10**9}),
            ("line", {"cells": "AAA="}),
        ],
    )
    def test_its_records(self, kind: str, change: dict[str, Any], two: Series, drawn: list[Any]) -> None:
        drawn.clear()
        raw = secret_path(two.path).read_bytes()
        start = raw.index(f'{{"kind":"{kind}"'.encode())
        forged = sealed_again(said_otherwise(raw, start, change))
        self.refused(two, forged, drawn, r"record \d of .* does not match .*Series\.restore")

    @pytest.mark.parametrize("text", [b"{nope", b"nope"])
    def test_a_record_of_another_form(self, text: bytes, two: Series, drawn: list[Any]) -> None:
        drawn.clear()
        raw = secret_path(two.path).read_bytes() + written_line(text)
        self.refused(two, raw, drawn, r"record \d+ of .* does not match .*Series\.restore")

    def test_whole_records_of_other_sizes(self, two: Series, drawn: list[Any]) -> None:
        """As if they were of a series with other columns."""
        drawn.clear()
        path = secret_path(two.path)
        raw = path.read_bytes()
        with open_secret(path, Stream.read(two.path).head.series) as secret:
            first = secret.past(3)[0]
            line, numbers = bytes(secret._files[2].line), secret.numbers(2)[1]
        assert numbers is not None
        short = period_record(
            replace(first, sums=first.sums[:-1].copy(), people=first.people.copy()), len(raw)
        )
        fewer = file_record(KeptFile(number=2, line=line, numbers=numbers[:-1]), len(raw))
        for record, number in ((short, 1), (fewer, 2)):
            path.write_bytes(raw + record)
            with pytest.raises(DpgramError, match=rf"lacks period {number}: .*Series\.restore"):
                published(two, people(150, 100), "m3")
        assert drawn == []

    def test_a_charge_that_is_a_folder(self, tmp_path: Path, drawn: list[Any]) -> None:
        series = seeded(tmp_path / "a.series", [])
        path = secret_path(series.path)
        path.write_bytes(said_otherwise(path.read_bytes(), 0, {"charge": str(tmp_path)}))
        with pytest.raises(DpgramError, match=r"cannot be removed.*Series\.restore"):
            published(series, people(0, 50), "m1")
        assert drawn == []


class TestTerms:
    """Every draw has the terms that were paid for, whatever the public file says by now."""

    def test_other_terms_are_refused_before_a_draw(self, tmp_path: Path, drawn: list[Any]) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)], epsilon=1.0, adaptive=False)
        cheap = seeded(tmp_path / "b.series", [], epsilon=40.0, adaptive=False)
        more = Stream.read(cheap.path).head.guarantee
        series.path.write_bytes(
            edited(
                Stream.read(series.path),
                lambda each: replace(each, guarantee=more) if isinstance(each, Head) else each,
            )
        )
        before = series.path.read_bytes()
        with pytest.raises(DpgramError, match="its terms were edited"):
            published(series, people(50, 50), "m2")
        assert len(drawn) == 1
        assert series.path.read_bytes() == before

    def test_less_noise_is_refused_before_a_draw(self, tmp_path: Path, drawn: list[Any]) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])

        def change(each: Any) -> Any:
            if not isinstance(each, Period) or each.opening is None:
                return each
            return replace(each, opening=replace(each.opening, sigma=0.99 * each.opening.sigma))

        series.path.write_bytes(edited(Stream.read(series.path), change))
        with pytest.raises(ReleaseError, match="contradict"):
            published(series, people(50, 50), "m2")
        assert len(drawn) == 1

    @pytest.mark.parametrize("restored", [False, True])
    def test_less_noise_with_fewer_measurements_is_refused(
        self, restored: bool, tmp_path: Path, drawn: list[Any]
    ) -> None:
        """The first line while it is the last one: no hash of later periods covers it yet."""
        tables = {"m1": people(0, 3_000)}
        series = seeded(tmp_path / "a.series", [tables["m1"]])
        if restored:
            secret_path(series.path).unlink()
            series.restore(tables, engine=ENGINE)

        def change(each: Any) -> Any:
            if not isinstance(each, Period) or each.opening is None:
                return each
            less, kept = 0.995 * each.opening.sigma, each.opening.measured[:1]
            return replace(each, opening=replace(each.opening, sigma=less, measured=kept))

        series.path.write_bytes(edited(Stream.read(series.path), change))
        with pytest.raises(DpgramError, match=r"is not the file that a\.series\.NOT-PRIVATE has seen"):
            published(series, people(3_000, 50), "m2")
        with pytest.raises(DpgramError, match=r"is not the file that a\.series\.NOT-PRIVATE has seen"):
            series.restore(tables, engine=ENGINE)
        assert len(drawn) == 1

    def test_they_are_those_of_the_file_that_was_checked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An edited head that is there only until the curator's file is locked decides nothing."""
        series = seeded(tmp_path / "a.series", [], adaptive=False)
        raw = series.path.read_bytes()
        more = edited(
            Stream.read(series.path),
            lambda each: replace(each, guarantee=replace(each.guarantee, mu=2.0 * each.guarantee.mu)),
        )
        series.path.write_bytes(more)
        honest = _curate.open_secret

        def put_back(path: Path, number: str) -> Any:
            series.path.write_bytes(raw)
            return honest(path, number)

        monkeypatch.setattr(_curate, "open_secret", put_back)
        opening = published(series, people(0, 50), "m1").opening
        monkeypatch.undo()
        assert (
            opening
            == Stream.read(seeded(tmp_path / "b.series", [people(0, 50)], adaptive=False).path).opening
        )

    def test_the_receipt_must_be_for_what_is_promised(self, tmp_path: Path) -> None:
        head = Stream.read(Series.create(tmp_path / "a.series", SCHEMA, **with_ledger(tmp_path)).path).head
        assert _curate.terms_of(head).price == head.receipt.event
        with pytest.raises(ReleaseError, match="receipt of this series is not for what it promises"):
            _curate.terms_of(replace(head, guarantee=replace(head.guarantee, mu=2.0 * head.guarantee.mu)))

    def test_the_price_is_not_calibrated_again(self, tmp_path: Path) -> None:
        head = Stream.read(seeded(tmp_path / "a.series", []).path).head
        less = replace(head.guarantee, mu=0.9 * head.guarantee.mu)
        assert _curate.terms_of(replace(head, guarantee=less)).mu == less.mu


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    path = tmp_path_factory.mktemp("forged") / "a.series"
    return Stream.read(seeded(path, [people(0, 1_000), people(1_000, 1_000)]).path)


class TestForgedCounts:
    @pytest.mark.parametrize(
        "change",
        [
            lambda each: replace(each, histograms=replace(each.histograms, scale=9 * each.histograms.scale)),
            lambda each: replace(
                each, histograms=replace(each.histograms, columns=each.histograms.columns[:1])
            ),
            lambda each: replace(
                each, histograms=replace(each.histograms, columns=each.histograms.columns[::-1])
            ),
            lambda each: replace(each, histograms=None),
            lambda each: replace(each, clip=replace(each.clip, scale=9 * each.clip.scale)),
            lambda each: replace(each, clip=None),
        ],
        ids=["scale", "a column less", "order", "no histograms", "scale of the clip", "no clip"],
    )
    def test_counts_of_another_kind_are_refused(self, change: Any, stream: Stream) -> None:
        assert Stream.of(edited(stream, lambda each: each)).labels == ("m1", "m2")
        with pytest.raises(ReleaseError, match="contradict each other"):
            Stream.of(
                edited(stream, lambda each: change(each) if getattr(each, "label", "") == "m2" else each)
            )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda raw: b"age,bmi\n31,27.5\n", "this is not a series; limit: a first line with"),
        (lambda raw: b"\xef\xbb\xbf" + raw, "byte-order mark"),
        (lambda raw: gzip.compress(raw, mtime=0) + b"\n", "the file is packed (gzip). Unpack it first"),
        (lambda raw: raw[:300] + b"\n", "this series seems to be cut short; got 300 bytes"),
        (lambda raw: raw.replace(b":", b"=", 1), "a mistake in line 1, at character"),
        (lambda raw: raw.replace(b"dpgram-series", b"dpgram\xe9series", 1), "is not UTF-8"),
        (
            lambda raw: raw.replace(b'\n{"', b"\n{", 1),
            "line 2 of the series is not clean JSON; got a mistake",
        ),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(
    change: Callable[[bytes], bytes], words: str, stream: Stream, tmp_path: Path
) -> None:
    path = tmp_path / "a.series"
    path.write_bytes(change(edited(stream, lambda each: each)))
    with pytest.raises(ReleaseError) as told:
        Series.open(path)
    assert words in str(told.value)
    assert not re.search("codec|utf-8-sig|Expecting|Unterminated|char [0-9]", str(told.value))


class TestForgedHead:
    """A first line that promises what the noise of the periods does not keep, under right digests."""

    @staticmethod
    def with_head(stream: Stream, **changes: Any) -> bytes:
        return edited(stream, lambda each: replace(each, **changes) if isinstance(each, Head) else each)

    @pytest.mark.parametrize(
        "changes", [{"epsilon": 0.01, "mu": 0.001}, {"epsilon": 0.01}, {"delta": 1e-9}, {"mu": None}], ids=str
    )
    def test_it_is_not_opened(self, changes: dict[str, Any], stream: Stream, tmp_path: Path) -> None:
        path = tmp_path / "a.series"
        path.write_bytes(self.with_head(stream, guarantee=stream.head.guarantee))
        assert Series.open(path).labels == ("m1", "m2")
        path.write_bytes(self.with_head(stream, guarantee=replace(stream.head.guarantee, **changes)))
        with pytest.raises(ReleaseError, match="contradict"):
            Series.open(path)

    def test_more_participations_for_the_same_noise(self, stream: Stream) -> None:
        with pytest.raises(ReleaseError, match="contradict"):
            Stream.of(self.with_head(stream, participations=3))

    @pytest.mark.parametrize(
        "schema",
        [
            dg.Schema(dg.numeric("x"), dg.numeric("y", -20, 40)),
            SCHEMA.with_blocks([["x"], ["y"]]),
        ],
        ids=["no bounds", "blocks"],
    )
    def test_columns_that_no_release_has(self, schema: dg.Schema, stream: Stream) -> None:
        with pytest.raises(ReleaseError, match="first line of this series contradicts itself"):
            Stream.of(self.with_head(stream, schema=schema.to_dict()))

    def test_a_unit_without_a_rule(self, stream: Stream) -> None:
        with pytest.raises(ReleaseError, match="first line of this series contradicts itself"):
            Stream.of(self.with_head(stream, unit_rule=None))


class TestCreation:
    """What is in the way is found before the charge."""

    def test_no_folder(self, tmp_path: Path) -> None:
        facts = with_ledger(tmp_path)
        with pytest.raises(OptionsError, match="there is no folder"):
            Series.create(tmp_path / "nowhere" / "a.series", SCHEMA, **facts)
        assert len(facts["ledger"].history()) == 0

    def test_a_folder_for_reading(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        facts = with_ledger(tmp_path)
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path or not mode & os.W_OK)
        with pytest.raises(OptionsError, match="no file can be made"):
            Series.create(tmp_path / "a.series", SCHEMA, **facts)
        assert len(facts["ledger"].history()) == 0

    def test_a_system_without_locks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        series, facts = seeded(tmp_path / "b.series", [people(0, 50)]), with_ledger(tmp_path)
        monkeypatch.setattr(_secret, "fcntl", None)
        with pytest.raises(DpgramError, match="needs locks"):
            Series.create(tmp_path / "a.series", SCHEMA, **facts)
        assert len(facts["ledger"].history()) == 0
        with pytest.raises(DpgramError, match="needs locks"):
            published(series, people(50, 50), "m2")
        assert series.total().count() is not None

    @pytest.mark.parametrize("damage", ["none", "head", "line 2", "line 2 torn", "not ours", "not a line"])
    def test_what_may_hold_sums_is_left_alone(self, damage: str, tmp_path: Path) -> None:
        series, facts = seeded(tmp_path / "a.series", [people(0, 50)], adaptive=False), with_ledger(tmp_path)
        path = secret_path(series.path)
        head, line = path.read_bytes().split(b"\n", 1)
        head += b"\n"
        raw = {
            "none": head + line,
            "head": head.replace(b"series", b"serios") + line,
            "line 2": head + line.replace(b'"m1"', b'"m2"'),
            "line 2 torn": head + line[:-9],
            "not ours": head.replace(b"dpgram", b"others"),
            "not a line": b"my notes",
        }[damage]
        path.write_bytes(raw)
        series.path.unlink()
        with pytest.raises(DpgramError, match="may hold the exact sums"):
            Series.create(series.path, SCHEMA, **facts)
        assert path.read_bytes() == raw
        assert len(facts["ledger"].history()) == 0

    @pytest.mark.parametrize("size", [0, 5, 60])
    def test_a_torn_head_is_replaced(self, size: int, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [])
        head = secret_path(series.path).read_bytes()
        series.path.unlink()
        secret_path(series.path).write_bytes(head[:size])
        assert Series.create(series.path, SCHEMA, **FACTS).labels == ()


class TestRestore:
    def left_out(self, series: Series, table: pa.Table, period: str) -> int:
        counted: list[PolicyCounts] = []
        published(series, table, period, report=counted.append)
        return counted[0].rows_left_out

    @pytest.mark.parametrize("damaged", [False, True])
    def test_whoever_has_counted_stays_counted(self, damaged: bool, tmp_path: Path) -> None:
        """From a corrected table without person 0, while the old file can still be read."""
        series = seeded(tmp_path / "a.series", [people(0, 50), people(50, 50)], periods=4, adaptive=False)
        path = secret_path(series.path)
        if damaged:
            path.write_bytes(path.read_bytes().replace(b'"m2"', b'"m3"'))
        series.restore({"m1": people(0, 50).slice(1), "m2": people(50, 50)}, engine=ENGINE)
        assert self.left_out(series, people(0, 120), "m3") == 100

    def test_not_while_a_period_is_published(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        before = secret_path(series.path).read_bytes()
        head = Stream.read(series.path).head
        with (
            open_secret(secret_path(series.path), head.series),
            pytest.raises(DpgramError, match="is being published"),
        ):
            series.restore({"m1": people(0, 50)}, engine=ENGINE)
        assert secret_path(series.path).read_bytes() == before

    def test_the_lock_is_on_the_file_that_is_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The file is replaced between opening and locking, as by a restore."""
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        path, honest = secret_path(series.path), _secret.fcntl.flock
        head = Stream.read(series.path).head

        def replaced(handle: int, how: int) -> None:
            monkeypatch.setattr(_secret.fcntl, "flock", honest)
            copy = tmp_path / "copy"
            copy.touch(0o600)
            copy.write_bytes(path.read_bytes())
            copy.replace(path)
            honest(handle, how)

        monkeypatch.setattr(_secret.fcntl, "flock", replaced)
        with (
            open_secret(path, head.series),
            pytest.raises(DpgramError, match="is being published"),
            open_secret(path, head.series),
        ):
            pass

    @pytest.mark.parametrize("killed", [False, True])
    def test_one_that_failed_can_be_repeated(self, killed: bool, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50), people(50, 50)])
        path = secret_path(series.path)
        before = path.read_bytes()
        if killed:
            left = path.with_name(path.name + ".restored")
            left.touch(0o600)
            left.write_bytes(before)
        else:
            with pytest.raises(DpgramError):
                series.restore({"m1": people(0, 50), "m2": people(0, 50).select(["id", "x"])}, engine=ENGINE)
            assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE"]
            assert path.read_bytes() == before
        path.unlink()
        series.restore({"m1": people(0, 50), "m2": people(50, 50)}, engine=ENGINE)
        assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE"]
        assert self.left_out(series, people(0, 120), "m3") == 100

    def test_before_the_first_period(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [])
        secret_path(series.path).unlink()
        series.restore({})
        published(series, people(0, 50), "m1")
        assert series.open(series.path).labels == ("m1",)

    @pytest.mark.parametrize("there", [True, False])
    def test_a_charge_that_waits_serves_no_second_series(
        self, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The creation was killed when both files were written: the curator's tells where the charge is."""
        facts, path = with_ledger(tmp_path), tmp_path / "a.series"
        with monkeypatch.context() as patch:
            patch.setattr(_journal.Journal, "finish", stopped)
            with pytest.raises(KeyboardInterrupt):
                Series.create(path, SCHEMA, **facts)
        series = Series.open(path)
        if there:
            series.restore({})
            published(series, people(0, 50), "m1")
            assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE", "l.ledger"]
        else:
            secret_path(path).unlink()
            with pytest.raises(DpgramError, match="whether its charge still waits"):
                series.restore({})
            assert not secret_path(path).exists()

    def test_a_period_that_was_drawn_needs_its_table_too(
        self, tmp_path: Path, drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        interrupted(series, people(50, 50), "m2", monkeypatch)
        secret_path(series.path).unlink()
        with pytest.raises(OptionsError, match="period 2 was begun and interrupted"):
            series.restore({"m1": people(0, 50)}, engine=ENGINE)
        series.restore({"m1": people(0, 50), "m2": people(50, 50)}, engine=ENGINE)
        assert published(series, None, "m2").periods[-1].cells == drawn[-1]
        assert len(drawn) == 2
        assert self.left_out(series, people(0, 120), "m3") == 100

    def test_within_the_first_period(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """After its histograms: who is in its table has counted, its sums are kept when its line is drawn."""
        series = seeded(tmp_path / "a.series", [], periods=4)
        with monkeypatch.context() as patch:
            patch.setattr(StreamedGram, "draw", stopped)
            with pytest.raises(KeyboardInterrupt):
                published(series, people(0, 50), "m1")
        secret_path(series.path).unlink()
        with pytest.raises(DpgramError, match=r"curator's file .* is missing"):
            published(series, people(0, 50), "m1")
        with pytest.raises(OptionsError, match="its table is needed too"):
            series.restore({}, engine=ENGINE)
        series.restore({"m1": people(0, 50)}, engine=ENGINE)
        published(series, people(40, 40), "m1")
        assert self.left_out(series, people(0, 120), "m2") == 80

    @pytest.mark.parametrize("published", [[], [["1"]], [["x"]], [None], [7]])
    def test_what_was_drawn_in_another_form_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: list[object]
    ) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        interrupted(series, people(50, 50), "m2", monkeypatch)
        (path,) = tmp_path.glob("*.unfinished-*")
        lines = [json.loads(line.rsplit(b" ", 1)[0]) for line in path.read_bytes().splitlines()]
        lines[1]["kept"]["published"] = published
        path.write_bytes(b"".join(written_line(canonical_bytes(line)) for line in lines))
        with pytest.raises(DpgramError, match=r"unfinished-\w+ does not hold .* no copy can take"):
            series.restore({"m1": people(0, 50), "m2": people(50, 50)}, engine=ENGINE)

    def test_an_interrupted_first_period_is_held_against_its_histograms(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series = seeded(tmp_path / "a.series", [])
        with monkeypatch.context() as patch:
            patch.setattr(StreamedGram, "draw", stopped)
            with pytest.raises(KeyboardInterrupt):
                published(series, people(0, 1_000), "m1")
        secret_path(series.path).unlink()
        with pytest.raises(DpgramError, match="given for 'm1' is not the one that was published"):
            series.restore({"m1": people(5_000, 300)}, engine=ENGINE)
        assert not secret_path(series.path).exists()
        series.restore({"m1": people(0, 1_000)}, engine=ENGINE)
        assert published(series, people(0, 1_000), "m1").labels == ("m1",)

    def test_a_first_period_that_was_drawn(
        self, tmp_path: Path, drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its line is what was drawn; its sums are restored when that is out."""
        series = seeded(tmp_path / "a.series", [], periods=4)
        interrupted(series, people(0, 50), "m1", monkeypatch)
        secret_path(series.path).unlink()
        series.restore({"m1": people(0, 50)}, engine=ENGINE)
        assert published(series, people(0, 50), "m1").periods[0].cells == drawn[0]
        with pytest.raises(DpgramError, match=r"lacks period 1.*Series\.restore"):
            published(series, people(0, 120), "m2")
        series.restore({"m1": people(0, 50)}, engine=ENGINE)
        assert self.left_out(series, people(0, 120), "m2") == 50
        assert len(drawn) == 2

    def test_an_interrupted_first_period_has_a_table(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series = seeded(tmp_path / "a.series", [])
        interrupted(series, people(0, 50), "m1", monkeypatch)
        secret_path(series.path).unlink()
        with pytest.raises(OptionsError, match="whoever is in its table has counted; got None for 'm1'"):
            series.restore({"m1": None}, engine=ENGINE)
        assert not secret_path(series.path).exists()

    @pytest.mark.parametrize("table", [None, people(500, 50)])
    def test_an_interrupted_period_is_held_against_its_line(
        self, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        interrupted(series, people(500, 500), "m2", monkeypatch)
        secret_path(series.path).unlink()
        with pytest.raises(DpgramError, match="given for 'm2' is not the one that was published"):
            series.restore({"m1": people(0, 50), "m2": table}, engine=ENGINE)
        series.restore({"m1": people(0, 50), "m2": people(500, 500)}, engine=ENGINE)
        assert published(series, None, "m2").labels == ("m1", "m2")

    def test_it_makes_no_old_copy_usable(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        old = series.path.read_bytes()
        published(series, people(50, 50), "m2")
        series.path.write_bytes(old)
        with pytest.raises(DpgramError, match="an old copy"):
            series.restore({"m1": people(0, 50)}, engine=ENGINE)
