"""The command line: any arguments end in exit code 0, or in 2 with one clear line, and no budget is lost.

Arguments are words separated by line ends. They are run inside a folder with a small table, its schema, a
ledger, a release and a key, put right before every run. A slash becomes an underscore, so that nothing
outside the folder is touched; the three long commands are left to their own tests.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import typer

import dpgram
from assurance.fuzz_targets.limits import limited
from dpgram import cli
from dpgram.engines.local import LocalEngine
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release
from dpgram.release.signing import SigningKey
from dpgram.schema import Schema, boolean, categorical, numeric

LOADING: Final = 20.0
"""Seconds of computing: the first command of its kind in a process also loads what it needs."""
LEFT_OUT: Final = ("demo", "reproduce", "audit")
TELLING: Final = ("paid for", "was spent", "stays spent")
PUBLISH: Final = ("publish", "a.parquet", "--schema", "a.toml", "--epsilon", "0.5", "-o", "new.json")

COMMANDS: Final[tuple[tuple[str, ...], ...]] = (
    ("schema", "a.csv"),
    ("check", "a.parquet", "-s", "a.toml", "--radius", "1.5", "--missing", "midpoint", "--json"),
    (
        "plan",
        "--schema",
        "a.toml",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--rows",
        "1000",
        "--quick",
        "--mechanism",
        "gaussian",
    ),
    ("gram", "a.parquet", "-s", "a.toml", "--partial", "site.gram"),
    (*PUBLISH, "--delta", "1e-6", "--ledger", "a.ledger", "--note", "x", "--json"),
    (*PUBLISH, "--delta", "0", "--no-ledger", "--mechanism", "matrix-laplace", "--rows", "30", "--strict"),
    (*PUBLISH, "--by", "sex", "--delta", "1e-6", "-l", "a.ledger", "--threads", "1"),
    (*PUBLISH, "--blocks", "age;smoker", "--delta", "1e-6", "-l", "a.ledger"),
    (*PUBLISH, "--radius-share", "0.03", "--delta", "1e-6", "--ledger", "a.ledger"),
    (
        *PUBLISH,
        "--delta",
        "0",
        "--no-ledger",
        "--unit-rows",
        "3",
        "--unit",
        "id",
        "--weight",
        "age",
        "--adjacency",
        "replace-one",
    ),
    (*PUBLISH, "--no-ledger", "--mechanism", "wishart", "--degrees", "40", "--delta", "1e-6", "--psd"),
    (*PUBLISH, "--delta", "0", "--no-ledger", "--mechanism", "eigenvectors", "--rank", "2"),
    ("show", "a.json", "--json"),
    ("regress", "a.json", "age", "--on", "smoker,sex", "--method", "ridge", "--alpha", "0.1"),
    ("correlation", "a.json", "--json"),
    ("pca", "a.json", "--components", "2"),
    ("explore", "a.json", "-o", "a.html"),
    ("report", "a.json", "-o", "a.html", "--ledger", "a.ledger"),
    ("key", "new", "b.key"),
    ("key", "show", "a.key"),
    ("sign", "a.json", "--key", "a.key"),
    ("verify", "a.json", "--public-key", "a.pub"),
    (*PUBLISH, "--delta", "1e-6", "-l", "a.ledger", "--sign", "a.key"),
    ("ledger", "create", "b.ledger", "--name", "b", "--epsilon", "1", "--delta", "1e-6"),
    ("ledger", "show", "a.ledger", "--json"),
    ("ledger", "left", "a.ledger"),
    ("ledger", "verify", "a.ledger", "a.json"),
)
VALUES: Final = (
    "", "0", "-1", "1", "2", "1e-6", "1e308", "-inf", "inf", "nan", "1e-320", "999999999999999999999", "0x1",
    "a.json", "a.toml", "a.csv", "a.ledger", "a.parquet", "missing", ".", "age", "sex", "smoker", "age,age",
    ",", ";", "=", "--", "-", "--help", "--json", "auto", "gaussian", "add-remove", "replace-one", "é\u202e",
    "\udcff", "*", "[", "a.*", "private", "local", "true", "\x1b[2J",
)  # fmt: skip


def seeds() -> list[bytes]:
    """Every command once."""
    return ["\n".join(words).encode() for words in COMMANDS]


def mutate(data: bytes, dice: random.Random) -> bytes:
    """Words are replaced, inserted with an option before them, deleted, or added at the end."""
    words = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(words) + 1)
        match dice.randrange(4):
            case 0:
                words[at : at + 1] = [dice.choice(VALUES)]
            case 1:
                words[at:at] = [dice.choice(options()), dice.choice(VALUES)]
            case 2:
                words[at : at + 1] = []
            case _:
                words.append(dice.choice((*options(), *VALUES)))
    return "\n".join(words).encode("utf-8", "surrogateescape")


@cache
def options() -> tuple[str, ...]:
    """Every option of every command."""

    def walk(command: Any) -> Iterator[str]:
        for parameter in command.params:
            yield from (word for word in parameter.opts if word.startswith("-"))
        for inner in getattr(command, "commands", {}).values():
            yield from walk(inner)

    return tuple(sorted(set(walk(typer.main.get_command(cli.app)))))


def examine(data: bytes) -> None:
    """The lines of the input are the arguments."""
    words = data.decode("utf-8", "surrogateescape").split("\n")
    _files()
    with limited("a command", LOADING):
        obeyed(words)


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str


def obeyed(words: list[str]) -> Answer | None:
    """Run one command line; AssertionError where it does not end as promised. None: left out."""
    words = [word.replace("/", "_").replace("\0", "0")[:300] for word in words[:40]]
    if any(word in LEFT_OUT or "-completion" in word for word in words):
        return None
    with _workshop() as ledger_before:
        answer = _run(words)
        told = f"{words!r}: {answer.err[-400:]!r}"
        assert answer.code in (0, 2), f"exit code {answer.code}: {told}"
        assert "Traceback" not in answer.err, told
        if answer.code == 2:
            lines = [line for line in answer.err.splitlines() if not line.startswith("dpgram: warning:")]
            assert len(lines) == 1, f"not one line: {told}"
            assert lines[0].startswith("dpgram: "), told
            assert len(lines[0]) > len("dpgram: x"), f"an error without words: {told}"
        _judge_budget(answer, ledger_before, told)
    return answer


def _judge_budget(answer: Answer, before: bytes, told: str) -> None:
    path = Path("a.ledger")
    if path.read_bytes() == before:
        return
    ledger = Ledger.open(path)
    entries = ledger.history()
    assert len(entries) <= 2, f"charged for more than one publication: {told}"
    found = [_loaded(place) for place in Path().glob("*") if place.is_file() and place.name != "a.json"]
    own = {entry.number for entry in entries[1:]}
    paid = [one for one in found if one is not None and own & {each.entry for each in one.receipts}]
    claimed = {each.entry for one in paid for each in one.receipts}
    lost = own - claimed
    assert not lost or any(word in answer.err for word in TELLING), f"budget lost: {told}"
    ledger.verify(paid)


def _loaded(path: Path) -> Release | None:
    try:
        return dpgram.load(path)
    except dpgram.errors.DpgramError:
        return None


def _run(words: list[str]) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run(words)
    return Answer(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _workshop() -> Iterator[bytes]:
    """Inside a folder that holds what the commands name, and nothing else; gives the ledger's bytes."""
    files = _files()
    home = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="dpgram-fuzz-") as name:
        os.chdir(name)
        try:
            for file, content in files.items():
                Path(file).write_bytes(content)
                Path(file).chmod(0o600)  # a key that others may read is refused
            yield files["a.ledger"]
        finally:
            os.chdir(home)


@cache
def _files() -> dict[str, bytes]:
    people = 30
    table = pa.table(
        {
            "age": [18.0 + 2 * i for i in range(people)],
            "sex": ["female", "male"] * (people // 2),
            "id": [i // 2 for i in range(people)],
            "smoker": [i % 3 == 0 for i in range(people)],
        }
    )
    schema = Schema(numeric("age", 18, 90), categorical("sex", ["female", "male"]), boolean("smoker"))
    with tempfile.TemporaryDirectory(prefix="dpgram-fuzz-") as name:
        folder = Path(name)
        pq.write_table(table, folder / "a.parquet")
        pyarrow.csv.write_csv(table, folder / "a.csv")
        schema.to_file(folder / "a.toml")
        ledger = Ledger.create(folder / "a.ledger", name="a", epsilon=3.0, delta=1e-5)
        release = dpgram.publish(
            table,
            schema,
            epsilon=1.0,
            delta=1e-6,
            ledger=ledger,
            progress=False,
            engine=LocalEngine(threads=1),
            adaptive=False,
        )
        key = SigningKey.create(folder / "a.key")
        (folder / "a.pub").write_text(key.public, encoding="utf-8")
        release.sign(key).save(folder / "a.json")
        return {path.name: path.read_bytes() for path in folder.iterdir()}
