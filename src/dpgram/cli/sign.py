"""`dpgram key`, `dpgram sign` and `dpgram verify`: releases that prove who made them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from dpgram.cli.console import JsonFlag, ReleaseFile, print_json, require_writable, say
from dpgram.errors import SignatureError

app = typer.Typer(
    name="key", help="Make and show the key that signs releases.", rich_markup_mode=None, no_args_is_help=True
)

KeyFile = Annotated[Path, typer.Argument(metavar="KEYFILE", help="The file of the private key.")]
PublicKey: TypeAlias = Annotated[
    str, typer.Option(help="The curator's public key: 64 hexadecimal digits, or a file that holds them.")
]
PublicKeyIfAny: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Check the signature with this public key: 64 hexadecimal digits, or a file."),
]
_LARGEST_FILE: Final = 1_000


@app.command("new")
def new(keyfile: KeyFile, as_json: JsonFlag = False) -> None:
    """Make a key for signing releases.

    Writes the private key into a new file that only you may read, and prints the public key, which analysts
    need. It never replaces a file.

    \b
    Example:
      dpgram key new curator.key
    """
    from dpgram.release.signing import SigningKey

    _tell_key(SigningKey.create(keyfile).public, as_json=as_json)
    if not as_json:
        say(f"wrote {keyfile}: whoever has this file can sign in your name", err=True)


@app.command("show")
def show_key(keyfile: KeyFile, as_json: JsonFlag = False) -> None:
    """Print the public key of a private one.

    \b
    Example:
      dpgram key show curator.key
    """
    from dpgram.release.signing import SigningKey

    _tell_key(SigningKey.open(keyfile).public, as_json=as_json)


def sign(
    release: ReleaseFile,
    key: Annotated[Path, typer.Option(help="The file of the private key.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; by default the same one.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Sign a release.

    The signature goes into the file and covers every field of it; one that is there already is replaced.
    Signing reads no row and costs no privacy.

    \b
    Example:
      dpgram sign insurance.dpgram.json --key curator.key
    """
    from dpgram.release import load
    from dpgram.release.signing import SigningKey

    place = release if output is None else output
    require_writable(place, overwrite=overwrite or output is None, inputs=[key])
    owner = SigningKey.open(key)
    signed = load(release).sign(owner)
    signed.save(place, overwrite=True)  # `require_writable` has asked whether it may be replaced
    if as_json:
        print_json({"output": str(place), "digest": signed.digest, "public_key": owner.public})
    else:
        say(f"wrote {place}, signed with the key {owner.public}")


def verify(release: ReleaseFile, public_key: PublicKey, as_json: JsonFlag = False) -> None:
    """Check who signed a release.

    Succeeds only if the whole content was signed with the private key of the public key you give. Get that
    key from the curator by another route than the file.

    \b
    Example:
      dpgram verify insurance.dpgram.json --public-key curator.pub
    """
    from dpgram.release import load

    key = given_public_key(public_key)
    loaded = load(release, public_key=key)
    if as_json:
        print_json({"verified": True, "public_key": key, "digest": loaded.digest})
    else:
        say(f"verified: {release} was signed with the key {key} and not altered since")


def given_public_key(text: str) -> str:
    """The key itself, or the first line of a file that holds it."""
    from dpgram.document.signature import parsed_public_key

    source = Path(text)
    try:
        if not source.is_file():
            return parsed_public_key(text)
        with source.open("rb") as stream:
            first, _, _ = stream.read(_LARGEST_FILE).partition(b"\n")
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the name
        raise SignatureError(
            "the file of the public key cannot be read", got=getattr(problem, "strerror", None)
        ) from None
    return parsed_public_key(first.decode("ascii", errors="replace"))


def _tell_key(public: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"public_key": public})
    else:
        say(public)
