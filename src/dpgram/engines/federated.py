"""Partial sums of several sites: G = Σ_s G_s, merged where the release is made. **Not private**: see below.

A partial file holds exact sums of one site's rows, so it is as sensitive as they are: it is written for its
owner's eyes only (mode 0600) and can be locked with a passphrase (scrypt, AES-256-GCM). It carries an id of
its own and everything that decides how rows were counted; partials that were counted differently, or twice,
are refused. The threat model is in docs/explanation/federated.md.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Self, final

from dpgram.canonical_json import canonical_bytes, parse_strictly
from dpgram.core.noise import SystemEntropy
from dpgram.engines.base import Engine
from dpgram.engines.find import find_engine
from dpgram.engines.passes import Pass, Sums
from dpgram.engines.threads import Progress
from dpgram.errors import DpgramError, MissingExtra, shown, warn_caller
from dpgram.files import read_whole, write_new
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import EVERY_ROW, Rows, row_rules
from dpgram.schema import Schema
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.grams import GramStatistic
from dpgram.sums.possible import cells_agree, clearly_indefinite, counts_agree, semidefinite

_MAGIC: Final = b"dpgram partial gram, NOT PRIVATE, version "
VERSION: Final = 1
_LENGTH: Final = struct.Struct("<Q")
_DIGEST_BYTES: Final = 32
_KEY_BYTES, _SALT_BYTES, _NONCE_BYTES = 32, 16, 12
_SCRYPT: Final = {"n": 1 << 15, "r": 8, "p": 1}
_LARGEST_FILE: Final = 1 << 30
"""Bytes: the exact sums of a few dozen of the widest tables."""
_MOST_WORK: Final = 1 << 20
"""n·r·p that a file may ask for, four times what we write: 128 MiB and a second at most."""
_LONGEST_HEAD: Final = 1 << 24
"""Bytes. The head holds the schema twice and little else; the sums come after it."""


def row_terms(work: Pass) -> dict[str, Any]:
    """Everything that decides how rows are counted: two sums may be added where this is equal."""
    rules, encoders = work.rules, _encoders(work)
    whole = Encoder(rules.schema, clip=encoders[0].clip, missing=rules.missing, strict=rules.strict)
    rule, by, weight = rules.unit_rule, rules.by, rules.weight
    return {
        "schema": rules.schema.as_counted().to_dict(),
        "blocks": [{"schema": one.schema.as_counted().to_dict(), "radius": one.radius} for one in encoders],
        "radius": whole.radius,
        "missing": rules.missing,
        "strict": rules.strict,
        "unit": rules.unit,
        "unit_rule": None if rule is None else {"counts": rule.counts, "rows_at_most": rule.rows_at_most},
        "by": None if by is None else by.as_counted().to_dict(),
        "weight": None if weight is None else {"column": weight.column, "at_most": weight.at_most},
    }


def _encoders(work: Pass) -> list[Encoder]:
    found = [each.encoder for each in work.statistics if isinstance(each, GramStatistic)]
    if len(found) < len(work.statistics):
        raise DpgramError(
            "partial sums of sites hold Gram matrices and nothing else",
            remedy="Give public bounds, levels and radius: sites read their rows once",
        )
    return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """The exact sums of one site. As sensitive as its rows."""

    id: str
    """128 random bits in hexadecimal, drawn when the sums were made."""
    site: str
    terms: Mapping[str, Any]
    sums: tuple[ExactGram, ...] = field(repr=False)

    def __post_init__(self) -> None:
        _refuse_site(self.site)

    @classmethod
    def new(cls, work: Pass, sums: tuple[ExactGram, ...], *, site: str = "") -> Self:
        """The sums that a pass over a site's rows gave, with a fresh id."""
        return cls(id=SystemEntropy().random_bytes(16).hex(), site=site, terms=row_terms(work), sums=sums)

    def save(self, path: str | Path, *, passphrase: str | None = None) -> Path:
        """Write it for the owner's eyes only; locked where there is a passphrase. Replaces nothing."""
        target, secret = _path(path), _secret(passphrase)
        payload = b"".join(_LENGTH.pack(len(raw)) + raw for raw in (gram.to_bytes() for gram in self.sums))
        lock = None if secret is None else _new_lock()
        head = canonical_bytes(
            {
                "id": self.id,
                "site": self.site,
                "library": version("dpgram"),
                "terms": dict(self.terms),
                "lock": lock,
            }
        )
        if lock is not None and secret is not None:
            payload = _cipher(secret, lock).encrypt(bytes.fromhex(lock["nonce"]), payload, head)
        body = _MAGIC + f"{VERSION}\n".encode() + _LENGTH.pack(len(head)) + head + payload
        try:
            write_new(target, body + hashlib.sha256(body).digest())
        except FileExistsError:
            raise DpgramError(
                f"the file {str(target)!r} exists already", remedy="Choose another name"
            ) from None
        except OSError as problem:
            raise DpgramError(
                f"the partial cannot be written to {str(target)!r}",
                got=problem.strerror or type(problem).__name__,
                remedy="Choose a folder that exists, has room and may be written",
            ) from problem
        return target

    @classmethod
    def load(cls, path: str | Path, *, passphrase: str | None = None) -> Self:
        """Read it back; refuses what is cut, altered, of another version or locked by another passphrase."""
        target, secret = _path(path), _secret(passphrase)
        try:
            raw = read_whole(target, _LARGEST_FILE)
        except FileNotFoundError:
            raise DpgramError(f"there is no partial {str(target)!r}", remedy="Check the path") from None
        except OSError as problem:
            raise DpgramError(
                f"the partial {str(target)!r} cannot be read", got=problem.strerror or type(problem).__name__
            ) from problem
        try:
            return cls._read(raw, target, secret)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError, struct.error) as problem:
            # Nothing of the problem's own words: they could quote sums.
            raise DpgramError(
                f"the partial {str(target)!r} does not follow the format", remedy="Copy or make it again"
            ) from problem

    @classmethod
    def _read(cls, raw: bytes, target: Path, secret: bytes | None) -> Self:
        head_bytes, payload = _parts(raw, target)
        head = _head(head_bytes, target)
        if head["lock"] is not None:
            payload = _decrypted(payload, head_bytes, head["lock"], secret, target)
        elif target.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            warn_caller(f"other users can read {str(target)!r}, which holds exact sums: run chmod 600 on it")
        return cls(id=head["id"], site=head["site"], terms=head["terms"], sums=_sums(payload, target))


def partial_gram(
    data: object,
    schema: Schema,
    *,
    rows: Rows = EVERY_ROW,
    site: str = "",
    engine: str | Engine = "auto",
    threads: int | None = None,
    progress: Progress = None,
) -> Partial:
    """One site's exact sums, counted as `publish` with the same rows would. **Not private.**"""
    _refuse_site(site)
    chosen = find_engine(engine, data, threads=threads)
    rules = row_rules(schema, rows)
    encoder = Encoder(rules.schema, clip=rows.radius, missing=rows.missing, strict=rows.strict)
    work = Pass(rules=rules, statistics=(GramStatistic(encoder),))
    return Partial.new(work, _grams(chosen.add_up(data, work, progress=progress)), site=site)


def _grams(sums: Sums) -> tuple[ExactGram, ...]:
    return tuple(found for found in sums if isinstance(found, ExactGram))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Partials:
    """Partial files as the data of one release: `publish(Partials(files=[...]), schema, ...)`.

    `disjoint_units` declares that no unit has rows at two sites: the sites' sums bound a unit's rows at each
    site alone, so without it sums by unit cannot be added.
    """

    files: Sequence[str | Path]
    passphrase: str | None = field(default=None, repr=False)
    disjoint_units: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.files, Sequence) or isinstance(self.files, str | bytes):
            raise DpgramError(
                "the partials of several sites are given as a list of files",
                got=shown(self.files),
                limit="a list of paths",
                remedy="Give files=[...] with the file of each site",
            )
        for path in self.files:
            _path(path)

    def merged(self, work: Pass) -> Sums:
        """The sums of all sites, which must have counted as `work` would."""
        if not self.files:
            raise DpgramError("no partial was given", remedy="Name the file of each site")
        parts = [Partial.load(path, passphrase=self.passphrase) for path in self.files]
        self._refuse_repeated(parts)
        wanted = row_terms(work)
        for path, part in zip(self.files, parts, strict=True):
            _refuse_different(part, wanted, Path(path))
            _refuse_impossible(part, work, Path(path))
        if work.by_unit and len(parts) > 1 and not self.disjoint_units:
            raise DpgramError(
                "a person with rows at two sites would count twice, beyond what the guarantee covers",
                limit="sums by unit are merged only where no unit has rows at two sites",
                remedy="If that is certain, declare it: disjoint_units=True, --disjoint-units",
            )
        total = reduce(
            lambda left, right: tuple(a | b for a, b in zip(left, right, strict=True)),
            (part.sums for part in parts),
        )
        if not all(map(semidefinite, total)):
            raise _impossible("the sums of these partials together")
        return total

    def _refuse_repeated(self, parts: Sequence[Partial]) -> None:
        seen: dict[str, str | Path] = {}
        for path, part in zip(self.files, parts, strict=True):
            for mark in (part.id, *([f"site {part.site!r}"] if part.site else [])):
                if mark in seen:
                    raise DpgramError(
                        "the same rows would be counted twice",
                        got=f"{str(seen[mark])!r} and {str(path)!r}, both {mark}",
                        remedy="Give one partial of each site",
                    )
                seen[mark] = path


def _refuse_different(part: Partial, wanted: Mapping[str, Any], path: Path) -> None:
    differing = [
        name
        for name, value in wanted.items()
        if canonical_bytes(part.terms.get(name)) != canonical_bytes(value)
    ]
    if differing or set(part.terms) != set(wanted):
        raise DpgramError(
            f"the partial {str(path)!r} was made with another schema or other options",
            got=f"another {', '.join(differing) or 'set of terms'}",
            limit="the same schema, radius, policies and unit at every site and at the centre",
            remedy="Make it again with the schema and options of this release",
        )


def _refuse_impossible(part: Partial, work: Pass, path: Path) -> None:
    """Sums of another shape than those of `work`, or such as no rows have: whoever can write can forge."""
    widths, wanted = tuple(one.width for one in part.sums), tuple(one.width for one in _grams(work.zero()))
    if widths != wanted:
        raise DpgramError(
            f"the sums of the partial {str(path)!r} do not fit its own schema",
            got=_sizes(widths),
            limit=_sizes(wanted),
            remedy="Make it again",
        )
    read = [
        (sum(one.counts.rows_read for one in sums), sum(one.counts.units_read for one in sums))
        for sums in work.by_statistic(part.sums)
    ]
    agree = len({rows for rows, _ in read}) == 1 and all(units <= rows for rows, units in read)
    if not agree or any(map(clearly_indefinite, part.sums)):
        raise _impossible(f"the sums of the partial {str(path)!r}")


def _sizes(widths: tuple[int, ...]) -> str:
    told = ", ".join(map(str, widths[:10])) + (", …" if len(widths) > 10 else "")
    return f"{len(widths)} sums of width {told}" if len(widths) > 1 else f"a sum of width {told}"


def _impossible(which: str) -> DpgramError:
    """Nothing of the sums themselves."""
    return DpgramError(
        f"{which} are not those of any rows",
        limit="counts that agree with each other, and cells that rows of at most the radius can add up to",
        remedy="Ask each site to make its partial again",
    )


def _path(path: object) -> Path:
    named = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if isinstance(named, str) and "\0" not in named:
        return Path(named)
    raise DpgramError(
        "a partial is a file", got=shown(path), limit="its path as text", remedy="Name the file of each site"
    )


def _refuse_site(site: object) -> None:
    if not isinstance(site, str) or _encoded(site) is None:
        raise DpgramError(
            "the name of a site is text",
            got=shown(site),
            limit="text that can be written in UTF-8",
            remedy="Give another site=",
        )


def _secret(passphrase: object) -> bytes | None:
    """As bytes. An error says nothing of it."""
    if passphrase is None:
        return None
    encoded = _encoded(passphrase) if isinstance(passphrase, str) else None
    if encoded is None:
        raise DpgramError(
            "a passphrase is text",
            limit="text that can be written in UTF-8",
            remedy="Give another passphrase, or that of the file",
        )
    return encoded


def _encoded(text: str) -> bytes | None:
    """None for halves of surrogate pairs; no error is left that would quote the text."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _parts(raw: bytes, path: Path) -> tuple[bytes, bytes]:
    if not raw.startswith(_MAGIC):
        raise DpgramError(f"the file {str(path)!r} is not a partial sum of dpgram")
    first, _, _ = raw[len(_MAGIC) : len(_MAGIC) + 20].partition(b"\n")
    if first != str(VERSION).encode():
        raise DpgramError(
            f"the partial {str(path)!r} is of another version",
            got=first[:10].decode("ascii", "replace"),
            limit=str(VERSION),
            remedy="Use the same version of dpgram at every site",
        )
    body, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise DpgramError(f"the partial {str(path)!r} is cut or altered", remedy="Copy or make it again")
    start = len(_MAGIC) + len(first) + 1
    (length,) = _LENGTH.unpack_from(body, start)
    start += _LENGTH.size
    if length > min(_LONGEST_HEAD, len(body) - start):
        raise DpgramError(f"the head of the partial {str(path)!r} is not of this version")
    return body[start : start + length], body[start + length :]


def _head(raw: bytes, path: Path) -> dict[str, Any]:
    head = parse_strictly(raw)
    kinds = {"id": str, "site": str, "library": str, "terms": dict, "lock": dict | None}
    if (
        not isinstance(head, dict)
        or set(head) != set(kinds)
        or not all(isinstance(head[name], kind) for name, kind in kinds.items())
        or canonical_bytes(head) != raw  # as we write it: its terms can be written again, to be compared
    ):
        raise DpgramError(f"the head of the partial {str(path)!r} is not of this version")
    return head


def _sums(payload: bytes, path: Path) -> tuple[ExactGram, ...]:
    found, place = [], 0
    while place < len(payload):
        (length,) = _LENGTH.unpack_from(payload, place)
        place += _LENGTH.size
        if length > len(payload) - place:
            raise DpgramError(f"the sums of the partial {str(path)!r} are cut")
        found.append(ExactGram.from_bytes(payload[place : place + length]))
        place += length
    if not found:
        raise DpgramError(f"the partial {str(path)!r} holds no sums")
    if not all(counts_agree(one) and cells_agree(one) for one in found):
        raise _impossible(f"the sums of the partial {str(path)!r}")
    return tuple(found)


def _new_lock() -> dict[str, Any]:
    entropy = SystemEntropy()
    return {
        "cipher": "aes-256-gcm",
        "nonce": entropy.random_bytes(_NONCE_BYTES).hex(),
        "key": "scrypt",
        "salt": entropy.random_bytes(_SALT_BYTES).hex(),
        **_SCRYPT,
    }


def _decrypted(
    payload: bytes, head: bytes, lock: Mapping[str, Any], secret: bytes | None, path: Path
) -> bytes:
    if secret is None:
        raise DpgramError(f"the partial {str(path)!r} is locked", remedy="Give its passphrase")
    if (lock["cipher"], lock["key"]) != ("aes-256-gcm", "scrypt") or not _affordable(lock):
        raise DpgramError(f"the lock of the partial {str(path)!r} is not of this version")
    cipher = _cipher(secret, lock)
    from cryptography.exceptions import InvalidTag

    try:
        decrypted: bytes = cipher.decrypt(bytes.fromhex(lock["nonce"]), payload, head)
        return decrypted
    except InvalidTag:
        pass
    raise DpgramError(f"the passphrase does not open the partial {str(path)!r}, or it was altered")


def _affordable(lock: Mapping[str, Any]) -> bool:
    """A file says how its key was made: by numbers that scrypt takes, without all memory or hours."""
    n, r, p = (lock[name] for name in _SCRYPT)
    if not all(type(number) is int and number >= 1 for number in (n, r, p)):
        return False
    # Scrypt itself (RFC 7914) asks for n below 2^(16 r).
    return bool(n * r * p <= _MOST_WORK and n > 1 and n & (n - 1) == 0 and n.bit_length() <= 16 * r)


def _cipher(secret: bytes, lock: Mapping[str, Any]) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
    except ImportError:
        raise MissingExtra("cryptography", "federated") from None
    salt = bytes.fromhex(lock["salt"])
    key = Scrypt(salt=salt, length=_KEY_BYTES, n=lock["n"], r=lock["r"], p=lock["p"]).derive(secret)
    return AESGCM(key)
