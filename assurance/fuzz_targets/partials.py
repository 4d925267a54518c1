"""Partial sums of sites: any bytes are refused with one of our own errors, or a release is made of them.

The first byte of an input says whether the digests are to be set right, so that what follows them is reached.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from assurance.fuzz_targets import scratch
from assurance.fuzz_targets.limits import limited
from assurance.fuzz_targets.values import VALUES, places
from dpgram.canonical_json import canonical_bytes
from dpgram.core.noise import SeededEntropy
from dpgram.engines.federated import Partial, Partials, partial_gram
from dpgram.errors import DpgramError, DpgramWarning
from dpgram.mechanisms import InverseWishart
from dpgram.publishing.publisher import publish_with
from dpgram.rows import Rows
from dpgram.schema import Schema, categorical, numeric

SEALED: Final = b"S"
PASSPHRASE: Final = "x"
SCHEMA: Final = Schema(numeric("age", 18, 90), categorical("sex", ["f", "m"]))
MAGIC: Final = b"dpgram partial gram, NOT PRIVATE, version 1\n"
GRAM: Final = b"dpgram exact gram, not private, 1\n"
SIZES: Final = (0, 1, 2, 3, 7, 35_000, 65_536, 2**31, 2**53, -1)


@dataclass(frozen=True, slots=True)
class Taken:
    """A partial taken to pieces: its head, and for each sum a head and the cells."""

    head: Any
    sums: tuple[tuple[Any, bytes], ...]

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """The pieces; whatever is not a whole partial that is not locked raises."""
        body = raw.removeprefix(MAGIC)[: -hashlib.sha256().digest_size]
        (length,) = struct.unpack_from("<Q", body)
        head, payload = json.loads(body[8 : 8 + length]), body[8 + length :]
        sums = []
        while payload:
            (length,) = struct.unpack_from("<Q", payload)
            one, payload = payload[8 : 8 + length].removeprefix(GRAM), payload[8 + length :]
            (length,) = struct.unpack_from("<I", one)
            sums.append((json.loads(one[4 : 4 + length]), one[4 + length : -32]))
        return cls(head, tuple(sums))

    def joined(self) -> bytes:
        """The file."""
        payload = b""
        for head, cells in self.sums:
            told = json.dumps(head).encode()
            one = with_digest(GRAM + struct.pack("<I", len(told)) + told + cells)
            payload += struct.pack("<Q", len(one)) + one
        head = json.dumps(self.head, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        raw = head.encode("utf-8", "surrogatepass")
        return with_digest(MAGIC + struct.pack("<Q", len(raw)) + raw + payload)


def with_digest(body: bytes) -> bytes:
    """The bytes and their SHA-256."""
    return body + hashlib.sha256(body).digest()


@cache
def seeds() -> list[bytes]:
    """Plain sums, sums by group, a locked file, and known forgeries."""
    table = pa.table({"age": [30.0, 40.0, 50.0], "sex": ["f", "m", "f"]})
    folder = scratch()
    files = []
    age = Schema(numeric("age", 18, 90))
    whole = partial_gram(table, SCHEMA, site="whole", progress=False)
    by_sex = partial_gram(
        table, age, site="by sex", progress=False, rows=Rows(by=categorical("sex", ["f", "m"]))
    )
    units = partial_gram(table, age, site="units", progress=False, rows=Rows(unit="sex"))
    for number, made in enumerate((whole, by_sex, units)):
        path = folder / f"seed-{number}.partial"
        path.unlink(missing_ok=True)
        files.append(made.save(path).read_bytes())
    plain = Taken.of(files[0])
    return [
        mark + raw for raw in (*files, locked(plain, 2, 1, 1), *forgeries(plain)) for mark in (b"R", SEALED)
    ]


def forgeries(plain: Taken) -> list[bytes]:
    """293 bytes that asked for 9.3 GiB, locks that asked for 4 GiB or for what scrypt has not, wrong sums."""
    ((head, cells),) = plain.sums
    wide = Taken(plain.head, (({**head, "width": 35_000}, b""),))
    locks = [locked(plain, n, r, p) for n, r, p in ((1 << 20, 32, 1), (1 << 20, 1, 1 << 20), (1 << 17, 1, 1))]
    sums = [((head, negated(cells)),), plain.sums * 2, (({**head, "width": 0}, b""),)]
    return [wide.joined(), *locks, *(Taken(plain.head, one).joined() for one in sums)]


def negated(cells: bytes) -> bytes:
    """Minus the sums."""
    return (-np.frombuffer(cells, "<i8")).astype("<i8").tobytes()


def locked(plain: Taken, n: int, r: int, p: int) -> bytes:
    """A locked file of these numbers; it opens where they are small."""
    lock = {"cipher": "aes-256-gcm", "key": "scrypt", "n": n, "r": r, "p": p}
    lock |= {"nonce": "00" * 12, "salt": "11" * 16}
    head = canonical_bytes({**plain.head, "lock": lock})
    payload = Taken(None, plain.sums).joined()[len(MAGIC) + 8 + len("null") : -32]
    if (n, r, p) == (2, 1, 1):
        key = Scrypt(salt=b"\x11" * 16, length=32, n=n, r=r, p=p).derive(PASSPHRASE.encode())
        payload = AESGCM(key).encrypt(bytes(12), payload, head)
    return with_digest(MAGIC + struct.pack("<Q", len(head)) + head + payload)


def mutate(data: bytes, dice: random.Random) -> bytes:
    """A value of one of the heads, a size or a cell replaced; bytes, where it cannot be taken to pieces."""
    try:
        taken = Taken.of(data[1:])
    except (ValueError, LookupError, struct.error, RecursionError):
        return _with_other_bytes(data, dice)
    head, sums = taken.head, [list(one) for one in taken.sums]
    match dice.randrange(6):
        case 0 | 1 if isinstance(head, dict):
            holder, key = dice.choice([(head, None), *places(head)])
            if key is None:
                head[dice.choice(("lock", "x", "id"))] = dice.choice(VALUES)
            else:
                holder[key] = dice.choice(VALUES)
        case 2 | 3 if sums and isinstance(sums[0][0], dict):
            one = dice.choice(sums)[0]
            if isinstance(one, dict):
                one[dice.choice(("width", "rows", "counts", "x"))] = dice.choice((*SIZES, *VALUES))
        case 4 if sums:
            one = dice.choice(sums)
            one[1] = _with_other_cells(one[1], dice)
        case 5 if sums:
            sums.append(list(dice.choice(sums)))
        case _:
            return _with_other_bytes(data, dice)
    return SEALED + Taken(head, tuple((one[0], one[1]) for one in sums)).joined()


def _with_other_cells(cells: bytes, dice: random.Random) -> bytes:
    if len(cells) % 8 or not cells or dice.random() < 0.3:
        return dice.choice((cells[:-8], cells + bytes(8), cells[:3], dice.randbytes(8) + cells[8:]))
    if dice.random() < 0.2:
        return negated(cells)
    changed = np.frombuffer(cells, "<i8").copy()
    place = dice.randrange(len(changed))
    changed[place] = dice.choice((0, -changed[place], changed[place] - 1, changed[place] // 2, 1 << 30))
    return changed.tobytes()


def _with_other_bytes(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data or b"S")
    for _ in range(dice.randint(1, 4)):
        changed[dice.randrange(len(changed))] = dice.choice((0, 1, 0x7F, 0xFF, dice.randrange(256)))
    return bytes(changed[: dice.choice((len(changed), len(changed), dice.randrange(len(changed) + 1)))])


def examine(data: bytes) -> None:
    """Read it as a file with a passphrase at hand, merge it and draw a release from it.

    The mechanism is the one that a matrix which no rows have kept busy for a minute.
    """
    raw = with_digest(data[1:-32]) if data[:1] == SEALED else data[1:]
    path = scratch() / "fuzzed.partial"
    path.touch(mode=0o600)
    path.write_bytes(raw)
    with warnings.catch_warnings(), limited("a partial"):
        warnings.simplefilter("ignore", DpgramWarning)
        try:
            loaded = Partial.load(path, passphrase=PASSPHRASE)
            repr(loaded)
            (loaded.sums[0] | loaded.sums[0]).to_bytes()
            publish_with(
                Partials(files=[path], passphrase=PASSPHRASE),
                SCHEMA,
                epsilon=1.0,
                delta=1e-6,
                adaptive=False,
                mechanism=InverseWishart(degrees=50),
                entropy=SeededEntropy(0),
            )
        except DpgramError as refusal:
            if "\n" in str(refusal):
                raise AssertionError("a refusal of several lines") from refusal
