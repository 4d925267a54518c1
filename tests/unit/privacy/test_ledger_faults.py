"""The ledger under faults: kill -9, full and read-only disks, locks, damaged, truncated and swapped files."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpgram.errors import LedgerError
from dpgram.privacy.accountant import Event, GaussianEvent, PureEvent
from dpgram.privacy.ledger import Entry, Ledger
from dpgram.privacy.ledger import _file as ledger_file
from dpgram.privacy.ledger import _sqlite as ledger_sqlite
from dpgram.privacy.receipt import Receipt

SMALL = GaussianEvent(1e-3)


def pay(ledger: Ledger, event: Event = SMALL) -> Receipt:
    return ledger.charge(event, adjacency="add-remove", unit=None)


def fresh(path: Path, name: str = "insurance") -> Ledger:
    return Ledger.create(path, name=name, epsilon=3.0, delta=1e-5)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = fresh(tmp_path / "insurance.ledger")
    for _ in range(3):
        pay(made)
    return made


# The child of each round charges as fast as it can and tells about each receipt in one write to a pipe, until
# it is killed: in every other round at some moment, else when it says that it is in the middle of a charge. A
# fork costs little, so the whole play runs in one process of its own.
KILLER = """
import os, random, signal, sys, time
import msgspec
from dpgram.privacy.ledger import _file as ledger_file
from dpgram.privacy.accountant import GaussianEvent
from dpgram.privacy.ledger import Ledger
from dpgram.privacy.receipt import Receipt

append = ledger_file.Writing.append

def stuck(book, record):
    append(book, record)
    os.write(inside[1], b"x")
    signal.pause()

path, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
delays = random.Random(seed)
told, interrupted, unacknowledged = [], 0, 0
for number in range(rounds):
    read, write = os.pipe()
    inside = os.pipe()
    charges = delays.randrange(4) if number % 2 else -1
    child = os.fork()
    if child == 0:
        os.close(read)
        ledger = Ledger.open(path)
        while True:
            if charges == 0:
                ledger_file.Writing.append = stuck
            charges -= 1
            receipt = ledger.charge(GaussianEvent(1e-3), adjacency="add-remove", unit=None)
            os.write(write, msgspec.json.encode(receipt) + b"\\n")
    os.close(write)
    os.close(inside[1])
    if charges < 0:
        time.sleep(delays.uniform(0.0, 0.1))
    else:
        os.read(inside[0], 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(inside[0])
    with os.fdopen(read, "rb") as pipe:
        lines = pipe.read().splitlines()
    interrupted += os.path.exists(path + "-journal")
    before = len(told) + unacknowledged
    told += [msgspec.json.decode(line, type=Receipt) for line in lines]
    ledger = Ledger.open(path)
    entries = len(ledger.history())
    extra = entries - before - len(lines)
    assert extra in (0, 1), (entries, before, len(lines))
    unacknowledged += extra
    found = ledger.verify(told)
    assert len(found.unclaimed) == unacknowledged
    next_one = ledger.charge(GaussianEvent(1e-3), adjacency="add-remove", unit=None)
    assert next_one.entry == entries + 1
    assert not os.path.exists(path + "-journal")
    told.append(next_one)
print(len(told), interrupted, unacknowledged)
"""


def kill_rounds(path: Path, rounds: int, seed: int) -> tuple[int, int, int]:
    fresh(path)
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(path), str(rounds), str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told, interrupted, unacknowledged = map(int, done.stdout.split())
    return told, interrupted, unacknowledged


def test_kill_nine_during_charges(tmp_path: Path) -> None:
    """Every charge is wholly there or wholly absent, and the file opens."""
    told, interrupted, _ = kill_rounds(tmp_path / "a.ledger", 20, seed=1)
    assert told >= 20
    assert interrupted >= 10  # every other kill came in the middle of a transaction


@pytest.mark.full
def test_two_hundred_kills_during_charges(tmp_path: Path) -> None:
    told, interrupted, unacknowledged = kill_rounds(tmp_path / "a.ledger", 200, seed=2)
    assert told >= 200
    assert interrupted >= 100
    assert unacknowledged <= 200


def cut_the_power(ledger: Ledger, copy: Path) -> None:
    """Copy the files in the middle of a transaction that has already reached the ledger's own pages."""
    terms, _, tip = ledger_file.read(ledger.path, timeout=1.0)
    before = ledger.path.read_bytes()
    with ledger_file.writing(ledger.path, terms, tip, timeout=1.0) as book:
        book.connection.execute("PRAGMA cache_size = 1")
        record = ledger_file.Record(
            entry=4, receipt_id="0" * 32, time="", event=SMALL, amount="1", delta="0", note=""
        )
        book.append(record)
        for number in range(5, 200):
            book.connection.execute("INSERT INTO entries VALUES (?, ?, '')", (number, "x" * 3000))
        assert ledger.path.read_bytes()[: len(before)] != before
        shutil.copy(ledger.path, copy)
        shutil.copy(f"{ledger.path}-journal", f"{copy}-journal")
        raise InterruptedError


def test_a_crash_half_way_leaves_nothing(ledger: Ledger, tmp_path: Path) -> None:
    """Only the journal can undo what was already written: the copy opens without the charge."""
    history = ledger.history()
    with pytest.raises(InterruptedError):
        cut_the_power(ledger, tmp_path / "crashed")
    assert Ledger.open(tmp_path / "crashed").history() == history
    assert ledger.history() == history


@contextmanager
def tiny_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("mounting a small disk needs rights this machine does not give")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path) -> None:
    def write_for_ever() -> None:
        while True:
            os.write(descriptor, b"0" * 512)

    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        with pytest.raises(OSError, match="No space left"):
            write_for_ever()
    finally:
        os.close(descriptor)


class TestFullDisk:
    def test_a_small_disk(self, tmp_path: Path) -> None:
        folder = tmp_path / "disk"
        folder.mkdir()
        with tiny_disk(folder, 128):
            ledger = fresh(folder / "a.ledger")
            pay(ledger)
            ballast = folder / "ballast"
            fill(ballast)
            before = ledger.path.read_bytes()
            with pytest.raises(LedgerError, match=r"disk is full.*Nothing was spent"):
                pay(ledger)
            assert ledger.path.read_bytes() == before
            assert len(Ledger.open(ledger.path).history()) == 1
            with pytest.raises(LedgerError):
                fresh(folder / "b.ledger")
            assert not (folder / "b.ledger").exists()
            ballast.unlink()
            assert pay(ledger).entry == 2

    def test_no_more_pages(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        """SQLite's own notion of a full disk, which needs no rights to arrange."""
        connect = sqlite3.connect
        pages = ledger.path.stat().st_size // 4096

        def limited(*args: object, **options: object) -> sqlite3.Connection:
            connection = connect(*args, **options)
            connection.execute(f"PRAGMA max_page_count = {pages}")
            return connection

        monkeypatch.setattr(ledger_sqlite.sqlite3, "connect", limited)
        receipts: list[Receipt] = []

        def pay_for_ever() -> None:
            while True:
                receipts.append(pay(ledger))

        with pytest.raises(LedgerError, match=r"disk is full.*Nothing was spent"):
            pay_for_ever()
        monkeypatch.undo()
        assert len(ledger.history()) == 3 + len(receipts)
        assert pay(ledger).entry == 4 + len(receipts)

    def test_a_write_that_fails(self, ledger: Ledger) -> None:
        """A limit on file size makes writes fail half-way: an input/output error, and no charge."""
        script = (
            "import resource, signal, sys\n"
            "from dpgram.errors import LedgerError\n"
            "from dpgram.privacy.accountant import GaussianEvent\n"
            "from dpgram.privacy.ledger import Ledger\n"
            "ledger = Ledger.open(sys.argv[1])\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            "try:\n"
            "    ledger.charge(GaussianEvent(1e-3), adjacency='add-remove', unit=None)\n"
            "except LedgerError as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(ledger.path)], capture_output=True, text=True, check=False
        )
        assert "the disk failed while the ledger was in use" in done.stdout, done.stderr
        assert len(Ledger.open(ledger.path).history()) == 3
        assert pay(ledger).entry == 4


@contextmanager
def without_rights() -> Iterator[None]:
    """The superuser may write anywhere; for a while be nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


class TestReadOnly:
    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        """A folder anybody can reach: those of the superuser's tests are closed to others."""
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            place.chmod(0o755)
            yield place
            place.chmod(0o755)

    def test_can_be_read_but_not_charged(self, folder: Path) -> None:
        ledger = fresh(folder / "a.ledger")
        receipt = pay(ledger)
        ledger.path.chmod(0o444)
        folder.chmod(0o555)
        with without_rights():
            again = Ledger.open(folder / "a.ledger")
            assert len(again.history()) == 1
            assert again.left().largest is not None
            assert again.verify([receipt]).unclaimed == ()
            with pytest.raises(LedgerError, match=r"read-only.*Nothing was spent"):
                pay(again)
            with pytest.raises(LedgerError, match="cannot be created here"):
                fresh(folder / "b.ledger")
        assert len(ledger.history()) == 1

    def test_a_folder_without_room_for_the_journal(self, folder: Path) -> None:
        ledger = fresh(folder / "a.ledger")
        ledger.path.chmod(0o666)
        folder.chmod(0o555)
        with without_rights(), pytest.raises(LedgerError, match="Nothing was spent"):
            pay(Ledger.open(folder / "a.ledger"))
        assert ledger.history() == ()

    def test_a_file_that_may_not_be_read(self, folder: Path) -> None:
        fresh(folder / "a.ledger").path.chmod(0o000)
        with without_rights(), pytest.raises(LedgerError, match="cannot be opened"):
            Ledger.open(folder / "a.ledger")


class TestLocks:
    def test_locked_too_long(self, ledger: Ledger) -> None:
        other = sqlite3.connect(ledger.path, isolation_level=None)
        impatient = Ledger.open(ledger.path, timeout=0.05)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"locked for too long.*Nothing was spent"):
            pay(impatient)
        assert len(impatient.history()) == 3  # readers need not wait for a writer that has not finished
        other.execute("COMMIT")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="locked for too long"):
            Ledger.open(ledger.path, timeout=0.05)
        other.close()
        assert pay(impatient).entry == 4

    def test_a_reader_delays_only_the_commit(self, ledger: Ledger) -> None:
        reader = sqlite3.connect(ledger.path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM entries").fetchall()
        with pytest.raises(LedgerError, match=r"locked for too long.*Nothing was spent"):
            pay(Ledger.open(ledger.path, timeout=0.05))
        reader.close()
        assert len(ledger.history()) == 3
        assert pay(ledger).entry == 4


class TestWrongFiles:
    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerError, match=r"no ledger here.*Ledger\.create"):
            Ledger.open(tmp_path / "none")
        with pytest.raises(LedgerError, match="no ledger here"):
            Ledger.open(tmp_path / "no" / "folder")
        assert not list(tmp_path.iterdir())

    def test_exists_already(self, ledger: Ledger, tmp_path: Path) -> None:
        before = ledger.path.read_bytes()
        with pytest.raises(LedgerError, match=r"already a file.*Ledger\.open"):
            fresh(ledger.path)
        assert ledger.path.read_bytes() == before
        with pytest.raises(LedgerError, match="already a file"):
            fresh(tmp_path)
        with pytest.raises(LedgerError, match="cannot be created here"):
            fresh(tmp_path / "no" / "folder")

    @pytest.mark.parametrize(
        "content",
        [b"name,age\nx,1\n" * 500, b"\x89PNG\r\n\x1a\n" + b"\0" * 5000],
        ids=["csv", "png"],
    )
    def test_not_a_database(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(LedgerError, match="not a dpgram ledger"):
            Ledger.open(tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == content

    def test_another_database_and_a_folder(self, tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "other")
        connection.execute("CREATE TABLE entries (number)")
        connection.close()
        for path in (tmp_path / "other", tmp_path):
            with pytest.raises(LedgerError, match="not a dpgram ledger"):
                Ledger.open(path)

    @pytest.mark.parametrize("content", [b"", b"x"])
    def test_empty(self, tmp_path: Path, content: bytes) -> None:
        """What a crash during creation leaves."""
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(LedgerError, match="creation was cut short"):
            Ledger.open(tmp_path / "a")

    def test_newer_version(self, ledger: Ledger) -> None:
        connection = sqlite3.connect(ledger.path)
        connection.execute("PRAGMA user_version = 2")
        connection.close()
        for use in (lambda: Ledger.open(ledger.path), lambda: pay(ledger), ledger.history):
            with pytest.raises(LedgerError, match=r"newer dpgram; got version 2; limit: version 1"):
                use()

    def test_write_ahead_log_is_turned_off(self, ledger: Ledger) -> None:
        connection = sqlite3.connect(ledger.path)
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        connection.close()
        assert pay(Ledger.open(ledger.path)).entry == 4
        connection = sqlite3.connect(ledger.path)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        connection.close()

    def test_a_write_ahead_log_in_use_is_refused(self, ledger: Ledger) -> None:
        connection = sqlite3.connect(ledger.path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM tip").fetchall()
        with pytest.raises(LedgerError):
            pay(Ledger.open(ledger.path, timeout=0.05))
        connection.close()
        assert len(ledger.history()) == 3

    def test_journal_of_another(self, tmp_path: Path) -> None:
        (tmp_path / "a-journal").write_bytes(b"old")
        with pytest.raises(LedgerError, match="journal of another ledger"):
            fresh(tmp_path / "a")
        assert not (tmp_path / "a").exists()


def same_or_refused(path: Path, history: tuple[Entry, ...]) -> bool:
    """Whether a damaged file is refused; if it is not, it must still tell the whole truth."""
    try:
        found = Ledger.open(path)
        assert found.history() == history
    except LedgerError:
        return True
    return False


class TestDamage:
    def flips(self, ledger: Ledger, tmp_path: Path, every: int) -> tuple[int, int]:
        content, history = ledger.path.read_bytes(), ledger.history()
        damaged = tmp_path / "damaged"
        refused = tried = 0
        for place in range(0, len(content), every):
            changed = bytearray(content)
            changed[place] ^= 1 << (place % 8)
            damaged.write_bytes(changed)
            refused += same_or_refused(damaged, history)
            tried += 1
        return refused, tried

    def test_flipped_bits(self, ledger: Ledger, tmp_path: Path) -> None:
        refused, tried = self.flips(ledger, tmp_path, 41)
        assert tried > 300
        assert refused > 20  # the rest hit pages' free space

    @pytest.mark.full
    def test_flipped_bits_everywhere(self, ledger: Ledger, tmp_path: Path) -> None:
        refused, _ = self.flips(ledger, tmp_path, 3)
        assert refused > 300

    def test_every_byte_of_a_record_counts(self, ledger: Ledger, tmp_path: Path) -> None:
        """Wherever the text of a record or its head is changed, the chain breaks."""
        content = ledger.path.read_bytes()
        entry = ledger.history()[1]
        start = content.index(b'{"entry":2')
        end = content.index(entry.head.encode()) + 64
        damaged = tmp_path / "damaged"
        for place in range(start, end):
            changed = bytearray(content)
            changed[place] ^= 1
            damaged.write_bytes(changed)
            with pytest.raises(LedgerError):
                Ledger.open(damaged)

    def test_truncated(self, ledger: Ledger, tmp_path: Path) -> None:
        content = ledger.path.read_bytes()
        for length in [0, 1, 15, 16, 99, 100, 101, *range(512, len(content), 512), len(content) - 1]:
            (tmp_path / "cut").write_bytes(content[:length])
            with pytest.raises(LedgerError):
                Ledger.open(tmp_path / "cut")

    def test_pages_of_zeros(self, ledger: Ledger, tmp_path: Path) -> None:
        content, history = ledger.path.read_bytes(), ledger.history()
        for start in range(0, len(content), 4096):
            (tmp_path / "gap").write_bytes(content[:start] + b"\0" * 4096 + content[start + 4096 :])
            assert same_or_refused(tmp_path / "gap", history)

    def test_damage_under_an_open_ledger(self, ledger: Ledger) -> None:
        content = bytearray(ledger.path.read_bytes())
        content[0:16] = b"not a database!!"
        ledger.path.write_bytes(content)
        with pytest.raises(LedgerError, match="beginning is damaged"):
            pay(ledger)


class TestSwapped:
    def test_another_ledger_put_in_its_place(self, ledger: Ledger, tmp_path: Path) -> None:
        other = fresh(tmp_path / "other", name="insurance")
        shutil.copy(other.path, ledger.path)
        with pytest.raises(LedgerError, match="another ledger lies at this path"):
            pay(ledger)
        with pytest.raises(LedgerError, match="not the one that was opened"):
            ledger.history()
        assert Ledger.open(ledger.path).history() == ()

    def test_replaced_by_rename(self, ledger: Ledger, tmp_path: Path) -> None:
        fresh(tmp_path / "other").path.replace(ledger.path)
        with pytest.raises(LedgerError, match="another ledger lies at this path"):
            pay(ledger)

    def test_an_older_copy_under_an_open_ledger(self, ledger: Ledger, tmp_path: Path) -> None:
        shutil.copy(ledger.path, tmp_path / "old")
        pay(ledger)
        (tmp_path / "old").replace(ledger.path)
        with pytest.raises(LedgerError, match="no longer holds entries that were seen"):
            pay(ledger)

    def test_deleted(self, ledger: Ledger) -> None:
        ledger.path.unlink()
        with pytest.raises(LedgerError, match="no ledger here"):
            pay(ledger)
        assert not ledger.path.exists()

    def test_replaced_in_the_middle_of_a_charge(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The charge would go to a file without a name: no receipt is given."""
        shutil.copy(ledger.path, tmp_path / "copy")
        append = ledger_file.Writing.append

        def swapping(book: ledger_file.Writing, record: ledger_file.Record) -> ledger_file.Link:
            link = append(book, record)
            (tmp_path / "copy").replace(ledger.path)
            return link

        monkeypatch.setattr(ledger_file.Writing, "append", swapping)
        with pytest.raises(LedgerError, match=r"moved or replaced|was replaced while it was being charged"):
            pay(ledger)
        monkeypatch.undo()
        assert len(Ledger.open(ledger.path).history()) == 3

    def test_hard_links_are_refused_for_charging(self, ledger: Ledger, tmp_path: Path) -> None:
        os.link(ledger.path, tmp_path / "second name")
        with pytest.raises(LedgerError, match="hard link"):
            pay(ledger)
        assert len(ledger.history()) == 3

    def test_symbolic_links_are_followed(self, ledger: Ledger, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(ledger.path)
        assert pay(Ledger.open(tmp_path / "link")).entry == 4
        assert len(ledger.history()) == 4


def test_a_failure_inside_a_charge_spends_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(book: ledger_file.Writing, record: ledger_file.Record) -> ledger_file.Link:
        del record
        book.connection.execute("UPDATE tip SET entries = 99")
        raise MemoryError

    monkeypatch.setattr(ledger_file.Writing, "append", broken)
    with pytest.raises(MemoryError):
        pay(ledger)
    monkeypatch.undo()
    assert len(ledger.history()) == 3
    assert pay(ledger).entry == 4


def test_a_charge_survives_fork(ledger: Ledger) -> None:
    """Nothing is open between two charges, so a forked child and its parent can both go on."""
    script = (
        "import os, sys\n"
        "from dpgram.privacy.accountant import PureEvent\n"
        "from dpgram.privacy.ledger import Ledger\n"
        "ledger = Ledger.open(sys.argv[1])\n"
        "ledger.charge(PureEvent(1e-3), adjacency='add-remove', unit=None)\n"
        "child = os.fork()\n"
        "for _ in range(5):\n"
        "    ledger.charge(PureEvent(1e-3), adjacency='add-remove', unit=None)\n"
        "if child: sys.exit(os.waitpid(child, 0)[1])\n"
    )
    subprocess.run([sys.executable, "-c", script, str(ledger.path)], check=True)
    history = ledger.history()
    assert [entry.number for entry in history] == list(range(1, 15))
    assert [entry.event for entry in history[3:]] == [PureEvent(1e-3)] * 11
