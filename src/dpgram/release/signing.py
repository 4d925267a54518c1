"""The curator's key: made, kept in a file that only its owner may read, and used to sign releases.

The file is an Ed25519 private key in PEM (PKCS #8, not encrypted), so that other tools can read it too.
Nothing here ever shows its content: not an error, not `repr`, not a pickle.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final, NoReturn, Self, final

from dpgram.errors import MissingExtra, SignatureError
from dpgram.files import opened, write_new

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_LARGEST_FILE: Final = 10_000
_KEY_BYTES: Final = 32


@final
class SigningKey:
    """An Ed25519 private key. `public` may be shown to everybody; the rest never leaves this object."""

    __slots__ = ("_private", "public")

    def __init__(self, private: Any) -> None:
        self._private = private
        self.public: str = private.public_key().public_bytes_raw().hex()
        """The public key, 64 hexadecimal digits: what analysts need to check signatures."""

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Self:
        """A new key, written to a new file with permissions 0600. It never replaces a file."""
        private_key, serialization = _ed25519()
        from dpgram.core.noise import SystemEntropy

        private = private_key.from_private_bytes(SystemEntropy().random_bytes(_KEY_BYTES))
        content = private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        _write_new(Path(path), content)
        return cls(private)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The key in a file; refused when anybody but its owner may read or write the file."""
        private_key, serialization = _ed25519()
        source = Path(path)
        content = _read(source)
        try:
            private = serialization.load_pem_private_key(content, password=None)
        except (ValueError, TypeError):  # TypeError: it is locked by a password
            private = None
        if not isinstance(private, private_key):
            # Raised outside the handler: a chained error could quote the key.
            raise SignatureError(
                f"{source} does not hold a signing key",
                limit="an Ed25519 private key in PEM, without a password",
                remedy="dpgram key new KEYFILE makes one",
            )
        return cls(private)

    def sign(self, content: bytes) -> bytes:
        """The 64 bytes of the signature of `content`."""
        value: bytes = self._private.sign(content)
        return value

    def __repr__(self) -> str:
        return f"<SigningKey: public {self.public}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a signing key is not pickled: a pickle would hold the private key")


def _ed25519() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise MissingExtra("cryptography", "sign") from None
    return Ed25519PrivateKey, serialization


def _write_new(path: Path, content: bytes) -> None:
    try:
        write_new(path, content)
    except FileExistsError:
        raise SignatureError(
            f"{path} exists already, and a key is never replaced", remedy="Choose another name"
        ) from None
    except OSError as problem:
        raise _unusable(path, "written", problem) from None


def _read(path: Path) -> bytes:
    try:
        with opened(path) as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if os.name == "posix" and mode & _OTHERS:
                raise SignatureError(
                    f"other users can read the key file {path}",
                    got=f"permissions {stat.S_IMODE(mode):04o}",
                    limit="0600",
                    remedy=f"chmod 600 {path}; and if it was ever readable, make a new key",
                )
            return stream.read(_LARGEST_FILE)
    except OSError as problem:
        raise _unusable(path, "read", problem) from None


def _unusable(path: Path, done: str, problem: OSError) -> SignatureError:
    reason = problem.strerror or type(problem).__name__
    return SignatureError(
        f"the key file {path} cannot be {done}",
        got=reason,
        remedy="Check the path; `dpgram key new FILE` makes a new key",
    )
