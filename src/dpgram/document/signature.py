"""A signature inside a release, and how anybody checks it: Ed25519 over the canonical content.

What is signed is the line "dpgram-release signature 1" and the canonical JSON of every field but `digest` and
`signature`: the value of the release, not its bytes. So whatever changes any field breaks the signature, and
saving a release again, or formatting its file anew, does not. The first line keeps a signature of a release
from being passed off as one of anything else.

A signature names its own key, but a forger can name a key too: only a check against a public key that came
from the curator by another way proves who signed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, final

from msgspec import Meta, Struct

from dpgram.canonical_json import canonical_bytes
from dpgram.errors import MissingExtra, SignatureError

SCHEME: Final = "dpgram-ed25519-1"
_FIRST_LINE: Final = b"dpgram-release signature 1\n"
_KEY_DIGITS: Final = 64
_HEX: Final = frozenset("0123456789abcdef")

_ASK: Final = "Ask the curator for the original file, and for the public key by another route"


@final
class Signature(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who says to have signed, and the proof. `scheme` fixes the algorithm and what exactly is signed."""

    # The lengths, because "$" alone would let a line end pass after the last digit.
    scheme: Literal["dpgram-ed25519-1"]
    public_key: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
    value: Annotated[str, Meta(pattern="^[0-9a-f]{128}$", max_length=128)]


def signed_bytes(fields: Mapping[str, object]) -> bytes:
    """What is signed for a release with these fields (all but `digest` and `signature`)."""
    return _FIRST_LINE + canonical_bytes(dict(fields))


def parsed_public_key(text: str) -> str:
    """The 64 hexadecimal digits of an Ed25519 public key, in lower case."""
    key = text.strip().lower() if isinstance(text, str) else ""
    if len(key) != _KEY_DIGITS or not set(key) <= _HEX:
        # What was given is not repeated: it may be a private key, given by mistake.
        raise SignatureError(
            "this is not a public key",
            limit=f"{_KEY_DIGITS} hexadecimal digits",
            remedy="dpgram key show KEYFILE prints the public key of a private one",
        )
    return key


def check(signature: Signature | None, content: bytes, public_key: str) -> None:
    """SignatureError unless `signature` was made for `content` with the private key of `public_key`."""
    wanted = parsed_public_key(public_key)
    if signature is None:
        raise SignatureError(
            "the release is not signed, but a public key was given to check it with",
            remedy="Ask the curator for the signed file, or load it without a public key",
        )
    if signature.public_key != wanted:
        raise SignatureError(
            "the release is signed with another key",
            got=signature.public_key,
            limit=wanted,
            remedy=_ASK,
        )
    if not _valid(wanted, bytes.fromhex(signature.value), content):
        raise SignatureError(
            "the signature does not belong to this content: one of the two was altered", remedy=_ASK
        )


def _valid(public_key: str, value: bytes, content: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise MissingExtra("cryptography", "sign") from None
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(value, content)
    except (InvalidSignature, ValueError):
        return False
    return True
