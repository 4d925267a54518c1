"""Commands of other packages: loaded when called and not before; a broken one is one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
import typer

from dpgram import cli
from dpgram.cli.plugins import GROUP


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Pretends that packages with these entry points are installed, and no others."""

    def install(**commands: str) -> None:
        entries = [metadata.EntryPoint(name, value, GROUP) for name, value in commands.items()]

        def entry_points(*, group: str) -> metadata.EntryPoints:
            assert group == GROUP
            return metadata.EntryPoints(entries)

        monkeypatch.setattr(metadata, "entry_points", entry_points)

    return install


def greet(name: str = "you", loud: bool = False) -> None:
    """Say hello."""
    typer.echo(f"hello {name.upper() if loud else name}")


group_of_commands = typer.Typer()
group_of_commands.command("greet")(greet)
group_of_commands.command("other")(greet)
no_command = 3


def test_a_function_is_a_command(installed: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    installed(greet=f"{__name__}:greet")
    assert cli.run(["greet", "--name", "Ada", "--loud"]) == 0
    assert capsys.readouterr().out == "hello ADA\n"
    assert cli.run(["greet", "-h"]) == 0
    assert "Say hello." in capsys.readouterr().out
    assert cli.run(["greet", "--nome", "Ada"]) == 2
    assert "--nome" in capsys.readouterr().err


def test_an_app_is_a_group_of_commands(
    installed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed(more=f"{__name__}:group_of_commands")
    assert cli.run(["more", "greet", "--name", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"


def test_help_names_them_and_loads_none(
    installed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed(greet="no_such_package.commands:greet", publish="no_such_package:publish")
    assert cli.run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "Commands of other packages" in shown
    assert "Added by no_such_package" in shown.split("greet", 1)[1]
    assert shown.count("│ publish ") == 1


def test_without_any_help_has_no_such_heading(
    installed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed()
    assert cli.run(["--help"]) == 0
    assert "other packages" not in capsys.readouterr().out


def test_none_takes_the_place_of_a_command_of_dpgram(
    installed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed(publish=f"{__name__}:greet")
    assert cli.run(["publish", "--help"]) == 0
    assert "Say hello." not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("no_such_package.commands:greet", "ModuleNotFoundError"),
        (f"{__name__}:absent", "AttributeError"),
        (f"{__name__}:no_command", "not of type int"),
    ],
)
def test_a_broken_one_is_one_line(
    value: str, told: str, installed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed(greet=value)
    assert cli.run(["greet"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert told in err
    assert "Reinstall or uninstall" in err
    assert cli.run(["show"]) == 2  # for its missing argument: the others still work
    assert "RELEASE" in capsys.readouterr().err


def test_two_of_one_name_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = [metadata.EntryPoint("greet", f"{package}:greet", GROUP) for package in ("one", "two")]
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: metadata.EntryPoints(twice))
    assert cli.run(["greet"]) == 2
    assert "got one, two" in capsys.readouterr().err


def test_reproduce_says_what_to_install(
    installed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed()
    assert cli.run(["reproduce", "sheffet", "--tiny"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "in a package of its own, dpgram-papers, which is not installed" in err
    assert err.endswith("pip install dpgram-papers\n")
    assert cli.run(["nonsense"]) == 2
    assert "No such command 'nonsense'" in capsys.readouterr().err


def test_an_installed_package_is_found(tmp_path: Path) -> None:
    """By the files that an installer leaves, in a process of its own."""
    (tmp_path / "shouting.py").write_text("def shout(word: str) -> None:\n    print(word.upper())\n")
    facts = tmp_path / "dpgram_shouting-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: dpgram-shouting\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{GROUP}]\nshout = shouting:shout\n")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    def dpgram(*arguments: str) -> str:
        program = [sys.executable, "-m", "dpgram", *arguments]
        return subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout

    assert dpgram("shout", "word") == "WORD\n"
    assert "shout Added by dpgram-shouting." in " ".join(dpgram("--help").split())
