"""The records of a curator's file: what was written is read again, and neither torn nor damaged ones are."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpgram.files import line_of
from dpgram.rows.participation import NOBODY, keyed_hashes
from dpgram.series._check import Check
from dpgram.series._records import (
    NO_SUMS,
    KeptFile,
    KeptPeriod,
    Seal,
    combined,
    combined_cells,
    file_record,
    lower_sums,
    period_record,
    records,
    seal_record,
    sealed,
)

HEAD = b"{}\n"


def period(number: int, count: int) -> KeptPeriod:
    draw = np.random.default_rng(number)
    return KeptPeriod(
        number=number,
        label=f"m{number}",
        sums=draw.integers(-(2**62), 2**62, 6),
        people=np.sort(keyed_hashes([f"{number} {each}" for each in range(count)], b"k" * 32)),
    )


def written(*every: KeptPeriod | KeptFile) -> bytes:
    raw = HEAD
    for each in every:
        record = file_record if isinstance(each, KeptFile) else period_record
        raw += record(each, len(raw))  # type: ignore[arg-type]
    return raw


def told(raw: bytes) -> list[object]:
    """Everything that is found, in values that can be compared; "torn" for what was being written."""
    found: list[object] = []
    for read in records(raw, len(HEAD)):
        one = read.found
        if isinstance(one, KeptPeriod):
            found.append((one.number, one.label, one.cells, one.people.tobytes()))
        elif isinstance(one, KeptFile):
            found.append(told_file(one))
        else:
            found.append("torn" if read.torn else None)
    return found


def told_file(file: KeptFile) -> tuple[object, ...]:
    return file.number, bytes(file.line), None if file.numbers is None else tuple(file.numbers.tolist())


EVERY = (
    period(1, 40),
    KeptFile(number=1, line=b"{one}\n", numbers=np.array([3, -(2**53), 0, 2**53])),
    KeptFile(number=2, line=b"{two}\n"),
    period(2, 0),
    period(3, 7),
)
WHOLE = written(*EVERY)


def test_they_are_read_as_they_were_written() -> None:
    one, *files, two, three = told(WHOLE)
    assert files == [(1, b"{one}\n", (3, -(2**53), 0, 2**53)), (2, b"{two}\n", None)]
    for found, kept in zip((one, two, three), (EVERY[0], EVERY[3], EVERY[4]), strict=True):
        assert isinstance(kept, KeptPeriod)
        assert found == (kept.number, kept.label, kept.cells, kept.people.tobytes())
    empty = KeptPeriod(number=4, label="m4", sums=NO_SUMS, people=NOBODY)
    assert told(written(empty)) == [(4, "m4", (), b"")]


def test_people_begin_where_words_do() -> None:
    """Unaligned words take twice as long to look at."""
    for read in records(WHOLE, len(HEAD)):
        if isinstance(read.found, KeptPeriod) and len(read.found.people):
            first = WHOLE.index(read.found.people.tobytes())
            assert first % 16 == 0


def test_a_torn_last_record_is_no_damage() -> None:
    for count, bytes_behind in ((4, EVERY[4].people), (1, EVERY[1].numbers)):
        whole, before = written(*EVERY[: count + 1]), told(written(*EVERY[:count]))
        for end in range(len(written(*EVERY[:count])) + 1, len(whole)):
            assert told(whole[:end]) == [*before, "torn"]
        # A file may have got its size before its bytes.
        zeros = b"\0" * len(bytes_behind.tobytes())
        assert told(whole[: -len(zeros) - 1] + zeros + b"\0") == [*before, "torn"]


def test_one_changed_byte_is_found() -> None:
    whole = told(WHOLE)
    end = len(WHOLE) - len(period_record(period(3, 7), len(written(*EVERY[:4]))))
    for place in range(len(HEAD), end):
        damaged = bytearray(WHOLE)
        damaged[place] ^= 1 << place % 8
        found = told(bytes(damaged))
        assert None in found
        assert "torn" not in found[: found.index(None)]
        assert all(each in whole for each in found if each not in (None, "torn"))


def test_behind_damage_whatever_is_whole_is_read() -> None:
    for damaged in (
        WHOLE.replace(b'"m1"', b'"m9"'),
        WHOLE.replace(EVERY[0].people.tobytes()[:16], b"x" * 16),
    ):
        found = [each for each in told(damaged) if each not in (None, "torn")]
        assert found == told(WHOLE)[1:]


@pytest.mark.parametrize("periods", [1, 2, 480])
def test_sums_are_combined_in_whole_numbers(periods: int) -> None:
    """At the largest cells and factors, where 64 bits would not do."""
    draw = np.random.default_rng(periods)
    c = sorted(draw.integers(1, 2**16, periods).tolist(), reverse=True)
    c[0] = 2**16
    ends = np.array([2**63 - 1, -(2**63), 2**62, -1, 0, 2**32 - 1])
    every = [
        KeptPeriod(number=t + 1, label=str(t), sums=np.roll(ends, t % 6) if t else ends, people=NOBODY)
        for t in range(periods)
    ]
    found = combined_cells(every[:-1], every[-1].sums, c)
    by_hand = [
        sum(c[periods - s] * cell for s, cell in enumerate(column, start=1))
        for column in zip(*(each.cells for each in every), strict=True)
    ]
    assert list(found) == by_hand
    matrix = combined(every[:-1], every[-1].sums, c)
    assert matrix.tolist() == matrix.T.tolist()
    assert [matrix[i, j] for i in range(3) for j in range(i + 1)] == by_hand
    assert lower_sums(np.array([[1, 2], [3, 4]], dtype=object)).tolist() == [1, 3, 4]


LINES = (
    KeptFile(number=1, line=b'{"head"}\n{"first"}\n', numbers=np.array([7, -8])),
    KeptFile(number=2, line=b'{"second"}\n'),
)


def test_lines_are_kept_as_they_are() -> None:
    raw = written(EVERY[0], *LINES)
    files = [read.found for read in records(raw, len(HEAD)) if isinstance(read.found, KeptFile)]
    assert [(each.number, bytes(each.line)) for each in files] == [
        (1, b'{"head"}\n{"first"}\n'),
        (2, b'{"second"}\n'),
    ]
    assert files[0].numbers is not None
    assert files[0].numbers.tolist() == [7, -8]
    assert files[1].numbers is None
    for place in range(len(written(EVERY[0])), len(raw)):
        damaged = bytearray(raw)
        damaged[place] ^= 1 << place % 8
        assert None in told(bytes(damaged)) or "torn" in told(bytes(damaged))


def with_seal(raw: bytes) -> bytes:
    """These bytes and a seal of them."""
    check = Check()
    check.update(raw)
    return raw + seal_record(check)


class TestSeal:
    EVERY = (EVERY[0], LINES[0], period(2, 0), LINES[1], period(3, 900), EVERY[2])
    WHOLE = with_seal(written(*EVERY))

    def found(self, raw: bytes) -> list[object] | None:
        every = sealed(raw, len(HEAD), Check())
        if every is None:
            return None
        return [
            (each.number, each.label, each.cells, each.people.tobytes())
            if isinstance(each, KeptPeriod)
            else told_file(each)
            for each in every
        ]

    def test_what_is_before_it_is_found_as_without_it(self) -> None:
        assert self.found(self.WHOLE) == told(written(*self.EVERY))
        *_, last = records(self.WHOLE, len(HEAD))
        assert isinstance(last.found, Seal)
        again = with_seal(self.WHOLE + period_record(period(4, 3), len(self.WHOLE)))
        assert self.found(again) == told(written(*self.EVERY, period(4, 3)))

    @pytest.mark.parametrize(
        "change",
        [
            {"people": 0},
            {"people": 39},
            {"people": 41},
            {"people": -1},
            {"people": 10**30},
            {"sums": 5},
            {"sums": 10**12},
            {"sums": -6},
            {"period": 0},
            {"stages": -7},
            {"label": ""},
            {"more": 1},
            {"kind": "other"},
        ],
    )
    def test_a_line_of_other_numbers_is_not_believed(self, change: dict[str, object]) -> None:
        """By somebody who computes all digests again, and the check."""
        for place in (0, 1):
            before = written(*EVERY[:place])
            record = period_record(EVERY[0], len(before))  # type: ignore[arg-type]
            text, content = record.split(b"\n", 1)
            line = json.loads(text[:-65]) | change
            forged = before + line_of(json.dumps(line).encode()) + content
            forged += file_record(LINES[0], len(forged))
            assert self.found(with_seal(forged)) is None
            found = [read for read in records(with_seal(forged), len(HEAD)) if read.found is None]
            assert found
            assert not found[0].torn

    @pytest.mark.parametrize("text", [b"nope", b"{nope", b"[]", b"[" * 100_000, b"\xff", b'"\xff"', b""])
    def test_a_line_of_another_form_is_damage(self, text: bytes) -> None:
        forged = written(*EVERY) + line_of(text)
        assert self.found(with_seal(forged)) is None
        assert self.found(forged) is None
        assert told(forged) == [*told(written(*EVERY)), None]

    def test_the_check_goes_on_behind_it(self) -> None:
        raw, check, whole = self.WHOLE, Check(), Check()
        assert sealed(raw, len(HEAD), check) is not None
        check.update(b"more")
        whole.update(raw + b"more")
        assert check.hexdigest() == whole.hexdigest()

    def test_one_changed_byte_anywhere_is_found(self) -> None:
        raw = self.WHOLE
        for place in range(0, len(raw), 7):
            damaged = bytearray(raw)
            damaged[place] ^= 1 << place % 8
            assert self.found(bytes(damaged)) is None

    def test_a_torn_one_is_none(self) -> None:
        raw = self.WHOLE
        start = raw.rindex(b"\n", 0, -1) + 1
        for end in range(start + 1, len(raw)):
            assert self.found(raw[:end]) is None
            *before, last = records(raw[:end], len(HEAD))
            assert last.torn
            assert [each.end for each in before][-1] == start

    def test_one_that_is_not_the_last_is_none(self) -> None:
        raw = self.WHOLE
        assert self.found(raw + period_record(period(4, 3), len(raw))) is None
        assert self.found(b"") is None
        assert self.found(HEAD) is None


class TestCheck:
    def test_pieces_make_no_difference(self) -> None:
        raw = np.random.default_rng(1).bytes(30_000)
        found = set()
        for cuts in ([], [1], [4_072], [5_000, 5_001, 20_000], [8_144, 8_144]):
            check = Check()
            for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
                check.update(raw[start:end])
            found.add(check.hexdigest())
        assert len(found) == 1

    def test_blocks_that_change_places_are_found(self) -> None:
        raw = np.random.default_rng(2).bytes(64 * 4_096)
        check = Check()
        check.update(raw)
        for first, second in ((0, 1), (3, 17), (5, 63)):
            blocks = [raw[4_096 * k : 4_096 * (k + 1)] for k in range(64)]
            blocks[first], blocks[second] = blocks[second], blocks[first]
            other = Check()
            other.update(b"".join(blocks))
            assert other.hexdigest() != check.hexdigest()

    def test_a_copy_goes_on_by_itself(self) -> None:
        one = Check()
        one.update(b"a" * 5_000)
        before, other = one.hexdigest(), one.copy()
        other.update(b"b" * 5_000)
        assert one.hexdigest() == before != other.hexdigest()
