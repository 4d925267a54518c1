"""The bytes of a text file as UTF-8: unpacked by what its name says, decoded by what the schema says."""

from __future__ import annotations

import codecs
import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, Final, cast, final

import pyarrow as pa

from dpgram.errors import SourceError
from dpgram.schema.reading import FileLayout

BLOCK: Final = 1 << 20
"""Bytes looked at together."""
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
PACKED: Final = (".gz", ".zst", ".zip")
UNPACKING_FAILURES: Final = (
    OSError,
    EOFError,
    zlib.error,
    zipfile.BadZipFile,
    pa.ArrowException,
    NotImplementedError,  # a way of packing that Python does not know
    RuntimeError,  # a password is asked for
)


def open_bytes(path: Path, layout: FileLayout) -> IO[bytes]:
    """The text of a file in UTF-8. Bytes that its encoding does not know are kept as they are."""
    file = _unpacked(path)
    if layout.encoding in (None, "utf-8"):
        return file
    return cast("IO[bytes]", io.BufferedReader(_Transcoded(file, str(layout.encoding)), BLOCK))


def read_as_it_is(path: Path, layout: FileLayout) -> bool:
    """Whether other readers can be given the path itself."""
    return path.suffix.lower() not in (".zst", ".zip") and layout.encoding in (None, "utf-8")


def _unpacked(path: Path) -> IO[bytes]:
    match path.suffix.lower():
        case ".gz":
            return cast("IO[bytes]", gzip.open(path))
        case ".zst":
            return cast("IO[bytes]", io.BufferedReader(_Arrow(path), BLOCK))
        case ".zip":
            return _member(path)
        case _:
            return path.open("rb")


def _member(path: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(path)
    names = [entry for entry in archive.infolist() if not entry.is_dir() and not _is_note(entry.filename)]
    if len(names) != 1:
        archive.close()
        raise SourceError(
            f"the archive {str(path)!r} must hold one file",
            got=f"{len(names)} files",
            remedy="Unpack it, and give the files that are meant.",
        )
    return archive.open(names[0])


def _is_note(name: str) -> bool:
    """Notes that systems put beside the files."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")


@final
class _Arrow(io.RawIOBase):
    """A file that Arrow unpacks, as Python's buffers want it."""

    def __init__(self, path: Path) -> None:
        self._file = pa.input_stream(str(path), compression="zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self._file.read(len(buffer))
        buffer[: len(read)] = read
        return len(read)

    def close(self) -> None:
        self._file.close()
        super().close()


@final
class _Transcoded(io.RawIOBase):
    """Text of another encoding as UTF-8; what cannot be decoded goes through as the bytes it is."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file, self._rest, self._ended = file, b"", False
        # UTF-16 may hold half a pair of surrogates; all others have bytes without a meaning.
        self._errors = "surrogatepass" if encoding == "utf-16" else "surrogateescape"
        self._decoder = codecs.getincrementaldecoder(encoding)(self._errors)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and not self._ended:
            block = self._file.read(BLOCK)
            self._ended = not block
            try:
                text = self._decoder.decode(block, final=self._ended)
            except UnicodeDecodeError:  # half a letter at the end of the file
                text = ""
            self._rest = text.encode("utf-8", self._errors)
        given, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(given)] = given
        return len(given)

    def close(self) -> None:
        self._file.close()
        super().close()
