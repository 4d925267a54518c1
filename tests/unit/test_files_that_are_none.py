"""Names of no file, pipes, devices and files without an end: one message, at once, in little memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import dpgram as dg
from dpgram.engines.federated import Partial
from dpgram.errors import DpgramError
from dpgram.files import LARGEST_FILE, read_whole
from dpgram.job import Job
from dpgram.release.signing import SigningKey

READERS: dict[str, Callable[[Path], object]] = {
    "release": dg.load,
    "series": dg.Series.open,
    "ledger": dg.Ledger.open,
    "schema": dg.Schema.from_file,
    "job": Job.from_file,
    "key": SigningKey.open,
    "partial": Partial.load,
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
class TestReaders:
    @pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
    def test_a_name_that_no_file_can_have(
        self, tmp_path: Path, reader: Callable[[Path], object], name: str
    ) -> None:
        with pytest.raises(DpgramError):
            reader(tmp_path / name)

    @pytest.mark.skipif(os.name != "posix", reason="there are no pipes with a name")
    def test_a_pipe(self, tmp_path: Path, reader: Callable[[Path], object]) -> None:
        """Nobody writes into it: reading it would wait for ever."""
        os.mkfifo(tmp_path / "pipe", 0o600)
        with pytest.raises(DpgramError):
            reader(tmp_path / "pipe")

    @pytest.mark.skipif(os.name != "posix", reason="there are no such devices")
    def test_a_device_without_an_end(self, tmp_path: Path, reader: Callable[[Path], object]) -> None:
        del tmp_path
        with pytest.raises(DpgramError):
            reader(Path("/dev/zero"))


def test_a_series_of_one_endless_line(tmp_path: Path) -> None:
    """Sparse: hardly anything on the disk, and all of it was read."""
    path = tmp_path / "some.series"
    path.write_bytes(b'{"format":1}\n')
    os.truncate(path, 2 * LARGEST_FILE)
    with pytest.raises(DpgramError, match="one of its lines is too large"):
        dg.Series.open(path)


def test_an_endless_partial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.partial"
    path.write_bytes(b"x" * 101)
    monkeypatch.setattr("dpgram.engines.federated._LARGEST_FILE", 100)
    with pytest.raises(DpgramError, match="more than 100 bytes"):
        Partial.load(path)


def test_a_file_of_just_the_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert read_whole(tmp_path / "a", 10) == b"x" * 10
    with pytest.raises(OSError, match="more than"):
        read_whole(tmp_path / "a", 9)
