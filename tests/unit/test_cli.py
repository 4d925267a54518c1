"""The command line: every command, JSON everywhere, one line and exit code 2 for what a user can mend."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import typer

import dpgram
from dpgram import cli
from dpgram.cli._numbers import point_mistake
from dpgram.core.noise import SeededEntropy
from dpgram.demo import insurance
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publish_with

PROJECT = Path(__file__).resolve().parents[2]
REFERENCE = PROJECT / "docs" / "reference" / "cli.md"


class Result:
    """What a command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: object) -> Result:
        code = cli.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, its schema, a ledger and a paid release."""
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("made")
    table = insurance.table(3_000)
    pq.write_table(table, folder / "people.parquet")
    insurance.schema().to_file(folder / "people.toml")
    ledger = Ledger.create(folder / "people.ledger", name="people", epsilon=3.0, delta=1e-5)
    release = dpgram.publish(
        table, insurance.schema(), epsilon=1.0, delta=1e-6, ledger=ledger, adaptive=False
    )
    release.save(folder / "people.json")
    return folder


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with a comma and a sign of equality in names, and a level that no row has."""
    draw = np.random.default_rng(3)
    rows = 4_000
    table = {
        "age, years": draw.uniform(18, 90, rows),
        "city": draw.choice(["Basel", "Bern"], rows, p=[0.3, 0.7]),
        "a=b": draw.choice(["c", "c=d"], rows, p=[0.6, 0.4]),
        "charges": draw.uniform(0, 10, rows),
        **{f"x{i}": draw.uniform(-1, 1, rows) for i in range(5)},
    }
    schema = dpgram.Schema(
        dpgram.numeric("age, years", 18, 90),
        dpgram.categorical("city", ["Nowhere", "Basel", "Bern"]),
        dpgram.categorical("a=b", ["c", "c=d"]),
        dpgram.numeric("charges", 0, 10),
        *(dpgram.numeric(f"x{i}", -1, 1) for i in range(5)),
    )
    seeded = {"entropy": SeededEntropy(1), "adaptive": False}
    (release,) = publish_with(table, schema, epsilon=5.0, delta=1e-6, **seeded)
    return release.save(tmp_path_factory.mktemp("odd") / "odd.json")


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with an instrument, one that is none, a treatment before and after, and a group."""
    draw = np.random.default_rng(4)
    rows = 6_000
    z, u = draw.uniform(-1, 1, rows), draw.normal(0, 0.2, rows)
    treated, after = draw.random(rows) < 0.4, draw.random(rows) < 0.5
    x = np.clip(0.5 * z + 0.3 * treated + u, -2, 2)
    table = {
        "z": z,
        "nothing": draw.uniform(-1, 1, rows),
        "x": x,
        "city": draw.choice(["Basel", "Bern"], rows, p=[0.3, 0.7]),
        "treated": treated,
        "after": after,
        "y": np.clip(x + 0.5 * u + 0.4 * treated * after, -2, 2),
    }
    schema = dpgram.Schema(
        *(dpgram.numeric(name, -1, 1) for name in ("z", "nothing")),
        dpgram.numeric("x", -2, 2),
        dpgram.categorical("city", ["Basel", "Bern"]),
        dpgram.boolean("treated"),
        dpgram.boolean("after"),
        dpgram.numeric("y", -2, 2),
        dpgram.product("treated", "after"),
    )
    seeded = {"entropy": SeededEntropy(2), "adaptive": False}
    (release,) = publish_with(table, schema, epsilon=2.0, delta=1e-6, **seeded)
    return release.save(tmp_path_factory.mktemp("panel") / "panel.json")


def commands() -> dict[str, Any]:
    """Every command of the command line, with the options it takes."""

    def walk(command: Any, path: str) -> dict[str, Any]:
        inner = getattr(command, "commands", None)
        if inner is None:
            return {path: command}
        found: dict[str, Any] = {}
        for name, child in inner.items():
            found |= walk(child, f"{path} {name}")
        return found

    return walk(typer.main.get_command(cli.app), "dpgram")


COMMANDS = commands()


class TestDocumentation:
    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_and_option_is_documented(self, name: str) -> None:
        text = REFERENCE.read_text(encoding="utf-8")
        assert f"## `{name}`" in text, f"{name} is missing in docs/reference/cli.md"
        section = text.split(f"## `{name}`\n", 1)[1].split("\n## ", 1)[0]
        for parameter in COMMANDS[name].params:
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    assert f"`{option}`" in section, f"{option} of {name} is not documented"

    def test_nothing_else_is_documented(self) -> None:
        named = re.findall(r"^## `(dpgram [a-z ]+)`$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
        assert sorted(named) == sorted(COMMANDS)

    @pytest.mark.parametrize("name", COMMANDS)
    def test_help_has_an_example_and_json(self, name: str, run: Any) -> None:
        result = run(*name.split()[1:], "--help")
        assert result.code == 0
        assert re.search(rf"Examples?:\s+{name} ?", result.out), result.out
        assert "--json" in result.out

    @pytest.mark.parametrize("name", COMMANDS)
    def test_help_is_folded_by_the_terminal_alone(self, name: str, run: Any) -> None:
        """Prose has no line ends of the source; examples have theirs, and fit into 80 columns."""
        shown = [line.rstrip() for line in run(*name.split()[1:], "--help").out.splitlines()]
        paragraphs = str(COMMANDS[name].help).split("\n\n")
        prose = [text for text in paragraphs if not text.startswith("\b")]
        assert not [text for text in prose if "\n" in text]
        examples = [line for text in paragraphs if text not in prose for line in text.split("\n")[1:]]
        assert examples
        assert [line for line in examples if f" {line}".rstrip() not in shown] == []

    def test_the_asked_commands_are_there(self) -> None:
        assert set(COMMANDS) >= {
            f"dpgram {name}"
            for name in (
                "schema", "check", "publish", "show", "regress", "correlation", "pca", "demo",
                "describe", "iv", "within", "did", "discriminant",
                "ledger create", "ledger show", "ledger left", "ledger verify",
            )
        }  # fmt: skip

    def test_bare_command_helps(self, run: Any) -> None:
        assert "publish" in run().out
        assert run("--version").out.strip() == dpgram.__version__

    def test_shell_completion_is_offered(self) -> None:
        environment = os.environ | {
            "_DPGRAM_COMPLETE": "complete_bash",
            "COMP_WORDS": "dpgram le",
            "COMP_CWORD": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", "from dpgram.cli import main; main()"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == ["ledger"]


def publishing(made: Path, *payer: object) -> tuple[object, ...]:
    """The command that publishes the table in `made` at (1, 10⁻⁶), without a ledger or with `payer`."""
    told = payer or ("--no-ledger",)
    return (
        "publish",
        made / "people.parquet",
        "-s",
        made / "people.toml",
        "--epsilon",
        1,
        "--delta",
        1e-6,
        *told,
    )


class TestCurator:
    def test_schema_to_the_screen_and_to_a_file(self, run: Any, made: Path, tmp_path: Path) -> None:
        shown = run("schema", made / "people.parquet")
        assert 'name = "blood_pressure"' in shown.out
        path = tmp_path / "starter.toml"
        assert run("schema", made / "people.parquet", "-o", path).code == 0
        assert path.read_text() == shown.out
        assert run("schema", made / "people.parquet", "--json").json["columns"]["age"] == "int64"
        again = run("schema", made / "people.parquet", "-o", path)
        assert again.code == 2
        assert "--overwrite" in again.err

    def test_check_spends_and_writes_nothing(self, run: Any, made: Path) -> None:
        before = {path.name: path.read_bytes() for path in made.iterdir()}
        result = run("check", made / "people.parquet", "--schema", made / "people.toml")
        assert result.code == 0
        assert "rows read" in result.out
        assert "For the curator only" in result.out
        counts = run("check", made / "people.parquet", "-s", made / "people.toml", "--json").json
        assert counts["curator_only"]["counts"]["rows_read"] == 3000
        assert counts["encoded_columns"] == 15
        assert {path.name: path.read_bytes() for path in made.iterdir()} == before

    def test_check_takes_several_files_as_publish_does(self, run: Any, made: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.parquet"
        other.write_bytes((made / "people.parquet").read_bytes())
        both = run("check", made / "people.parquet", other, "-s", made / "people.toml", "--json").json
        assert both["curator_only"]["counts"]["rows_read"] == 6_000
        twice = run("check", other, other, "-s", made / "people.toml")
        assert twice.code == 2
        assert "the same rows would be counted twice" in twice.err

    def test_the_help_of_radius_does_not_deny_the_learnt_one(self, run: Any) -> None:
        for name in ("check", "publish", "gram", "plan", "series create"):
            shown = re.sub(r"[^\w.;]+", " ", run(*name.split(), "--help").out)
            assert "by default nothing is clipped" not in shown
            assert "adaptive release learns one" in shown

    def test_publish_charges_and_writes(self, run: Any, made: Path, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=1e-6)
        output = tmp_path / "a.dpgram.json"
        call = publishing(made, "--ledger", ledger.path)
        result = run(*call, "-o", output, "--note", "march")
        assert result.code == 0, result.err
        assert f"wrote {output}" in result.out
        assert " left" in result.out
        release = dpgram.load(output)
        assert release.receipt is not None
        assert ledger.history()[0].note == "march"
        exists = run(*call, "--ledger", ledger.path, "-o", output)
        assert exists.code == 2
        assert "exists already" in exists.err
        over = run(*call, "--ledger", ledger.path, "-o", tmp_path / "b.json")
        assert over.code == 2
        assert "Nothing was spent" in over.err
        assert len(ledger.history()) == len(release.receipts) == 1

    @pytest.mark.parametrize(
        ("where", "options", "charged"),
        [
            ("dpgram.engines.local.add_up", (), ""),
            ("dpgram.publishing.publisher.adapt", (), ""),
            ("dpgram.publishing.measurements.gram.lower_triangle", (), "entry 1 of the ledger was"),
            ("dpgram.publishing._adaptive.standardising", (), "entry 1 of the ledger was"),
            (
                "dpgram.publishing.measurements.gram.published_matrix",
                ("--no-adaptive",),
                "entry 1 of the ledger was",
            ),
        ],
    )
    def test_an_interrupt_after_a_charge_is_told_with_its_entries(
        self,
        run: Any,
        made: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        where: str,
        options: tuple[str, ...],
        charged: str,
    ) -> None:
        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2.0, delta=1e-6)
        monkeypatch.setattr(where, interrupt)
        result = run(*publishing(made, "--ledger", ledger.path), *options, "-o", tmp_path / "a.json")
        assert result.code == 130
        assert len(ledger.history()) == bool(charged)
        assert ("charged before the interrupt" in result.err) == bool(charged)
        assert ("dpgram: interrupted. Nothing was spent" in result.err) == (not charged)
        assert charged in result.err
        assert not (tmp_path / "a.json").exists()

    @pytest.mark.filterwarnings("ignore:a publication with these options was interrupted")
    @pytest.mark.parametrize("form", [(), ("--json",)])
    def test_the_same_command_takes_up_what_was_interrupted(
        self, run: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
    ) -> None:
        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2.0, delta=1e-6)
        call = (*publishing(made, "--ledger", ledger.path), "-o", tmp_path / "a.json", *form)
        with monkeypatch.context() as patch:
            patch.setattr("dpgram.cli.curate._keep", interrupt)
            assert run(*call).code == 130
        assert not (tmp_path / "a.json").exists()
        assert run(*call).code == 0
        release = dpgram.load(tmp_path / "a.json")
        assert [entry.receipt_id for entry in ledger.history()] == [
            each.receipt_id for each in release.receipts
        ]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.ledger"]

    @pytest.mark.parametrize("stop", [KeyboardInterrupt, dpgram.errors.LedgerError("the disk is gone")])
    def test_stopped_when_the_release_is_whole(
        self, run: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException
    ) -> None:
        """It was charged: nobody says that nothing was spent, nor that the same command goes on."""

        def stopped(*_: object) -> None:
            raise stop

        ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2.0, delta=1e-6)
        monkeypatch.setattr(Ledger, "left_after", stopped)
        result = run(*publishing(made, "--ledger", ledger.path), "-o", tmp_path / "a.json")
        assert result.code in (2, 130)
        assert "Nothing was spent" not in result.err
        assert "continues" not in result.err
        assert result.code == 2 or f"The release is whole: {tmp_path / 'a.json'}" in result.err
        assert dpgram.load(tmp_path / "a.json").receipt is not None

    def test_a_ledger_that_is_gone_after_its_charge_does_not_say_that_nothing_was_spent(
        self, run: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2.0, delta=1e-6)

        def gone(*_: object, **__: object) -> None:
            ledger.path.write_text("something else")
            raise dpgram.errors.ReleaseError("no file")

        monkeypatch.setattr("dpgram.cli.curate._keep", gone)
        result = run(*publishing(made, "--ledger", ledger.path), "-o", tmp_path / "a.json")
        assert result.code == 2
        assert "no file" in result.err
        assert "Nothing was spent" not in result.err

    def test_a_folder_that_may_not_be_written_is_named(
        self, run: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        really = os.open

        def closed(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            if ".unfinished-" in str(path) and flags & os.O_CREAT:
                raise PermissionError(13, "Permission denied", str(path))
            return really(path, flags, *rest, **more)

        ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=2.0, delta=1e-6)
        monkeypatch.setattr(os, "open", closed)
        result = run(*publishing(made, "--ledger", ledger.path), "-o", tmp_path / "a.json")
        assert result.code == 2
        assert f"got {ledger.path}.unfinished-" in result.err
        assert "Permission denied. Check the permissions of this file and its folder" in result.err
        assert "Nothing was spent" in result.err
        assert ledger.entries == 0

    def test_flags_make_the_mechanism(self, run: Any, made: Path, tmp_path: Path) -> None:
        output = tmp_path / "r.json"
        options = ("--mechanism", "sketch", "--degrees", 500, "--psd", "-o", output, "--json")
        assert run(*publishing(made), *options).json["mechanism"] == "sketch"
        assert dpgram.load(output).mechanism.parameters["rows"] == 500

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--mechanism", "gaussian", "--ridge", 2), "taken by inverse-noise"),
            (("--degrees", 60), "taken by wishart, sketch"),
            (("--mechanism", "sketch", "--degrees", 60, "--rank", 2), "no parameter rank"),
            (("--mechanism", "sketch", "--degrees", 0), "whole number"),
            (("--mechanism", "laplace", "--psd"), "need not be positive semidefinite"),
        ],
    )
    def test_flags_of_another_mechanism_are_refused(
        self, options: tuple[object, ...], words: str, run: Any, made: Path, tmp_path: Path
    ) -> None:
        result = run(*publishing(made), *options, "-o", tmp_path / "r.json")
        assert result.code != 0
        assert words in result.err
        assert not (tmp_path / "r.json").exists()

    def test_publish_without_a_ledger(self, run: Any, made: Path, tmp_path: Path) -> None:
        call = ("publish", made / "people.parquet", "-s", made / "people.toml", "--epsilon", 1)
        call += ("--delta", 0, "--no-ledger")
        result = run(*call, "-o", tmp_path / "pure.json")
        assert result.code == 0
        assert dpgram.load(tmp_path / "pure.json").guarantee.delta == 0
        told = run(*call, "-o", tmp_path / "two.json", "--json").json
        assert told["mechanism"] == "matrix-laplace"
        assert told["curator_only"]["counts"]["rows_read"] == 3000

    def test_an_unwritable_place_is_found_before_anything_is_spent(
        self, run: Any, made: Path, tmp_path: Path
    ) -> None:
        ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=1e-6)
        call = (
            "publish",
            made / "people.parquet",
            "-s",
            made / "people.toml",
            "--epsilon",
            1,
            "-l",
            ledger.path,
        )
        for place in (tmp_path / "nowhere" / "x.json", tmp_path):
            result = run(*call, "--delta", 1e-6, "-o", place)
            assert result.code == 2
            assert "output" in result.err
        assert ledger.history() == ()

    @pytest.mark.parametrize("form", [(), ("--json",)])
    def test_a_paid_release_is_kept_even_if_its_place_fails(
        self, run: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
    ) -> None:
        """A scheduler sees it by the exit code."""
        from dpgram.errors import ReleaseError
        from dpgram.release import Release

        honest = Release.save

        def full(self: Release, path: Any, **options: Any) -> Path:
            if Path(path).parent == tmp_path:
                raise ReleaseError("no space left")
            return honest(self, path, **options)

        monkeypatch.setattr(Release, "save", full)
        call = ("publish", made / "people.parquet", "-s", made / "people.toml", "--epsilon", 1)
        call += ("--delta", 0, "--no-ledger")
        result = run(*call, "-o", tmp_path / "x.json", *form)
        assert result.code == 4
        saved = Path(result.err.partition("no space left; it was saved as ")[2].strip())
        assert dpgram.load(saved).guarantee.epsilon == 1
        saved.unlink()
        saved.parent.rmdir()


class TestAnalyst:
    def test_show(self, run: Any, made: Path) -> None:
        text = run("show", made / "people.json").out
        assert "noisy mean" in text
        assert "blood_pressure" in text
        told = run("show", made / "people.json", "--json").json
        assert told["guarantee"]["epsilon"] == 1.0
        assert set(told["mean"]) == set(told["columns"]) - {"(constant)"}

    @pytest.mark.parametrize("bound", [400, 40_000])
    def test_a_rough_mean_is_shown_with_the_closer_one(self, run: Any, tmp_path: Path, bound: int) -> None:
        dice, path = np.random.default_rng(3), tmp_path / "wages.json"
        table = {"wage": dice.normal(200.0, 40.0, 6_000).clip(0, 400), "age": dice.uniform(18, 90, 6_000)}
        schema = dpgram.Schema(dpgram.numeric("wage", 0, bound), dpgram.numeric("age", 18, 90))
        options = {"epsilon": 2.0, "delta": 1e-6, "entropy": SeededEntropy(1), "progress": False}
        publish_with(table, schema, **options)[0].save(path)
        text = " ".join(run("show", path).out.split())
        told = run("show", path, "--json").json
        assert ("Caution: the mean of wage comes from a histogram between far bounds" in text) == (
            bound > 400
        )
        assert list(told["closer_mean"]) == ["wage"] * (bound > 400)
        for value in told["closer_mean"].values():
            assert abs(value - table["wage"].mean()) < 5.0 < abs(told["mean"]["wage"] - table["wage"].mean())

    def test_a_release_is_shown_whatever_its_noise_hides(self, run: Any, tmp_path: Path) -> None:
        """Of two rows: their number may be above nothing by one measurement and below it by another."""
        table, schema, found = (tmp_path / f"t.{kind}" for kind in ("csv", "toml", "json"))
        table.write_text("who,part,age,bmi\n1,a,30,22\n1,b,31,23\n2,a,54,27\n3,b,41,30\n")
        columns = [f'kind = "numeric"\nname = "{name}"\nlow = 10\nhigh = 90' for name in ("age", "bmi")]
        columns += ['kind = "categorical"\nname = "part"\nlevels = ["a", "b"]']
        schema.write_text("\n".join(f"[[columns]]\n{column}" for column in columns))
        call = ("publish", table, "-s", schema, "--epsilon", 1, "--delta", 0, "--no-ledger")
        seen = set()
        for _ in range(60):  # of which one in three is such a case
            run(*call, "--unit", "who", "--by", "part", "-o", found, "--overwrite")
            for part in ("a", "b"):
                text = run("show", tmp_path / f"t.{part}.json").out
                told = run("show", tmp_path / f"t.{part}.json", "--json").json
                assert ("noisy mean" in text) == bool(told["mean"])
                assert ("It tells no means: the noise is larger" in text) != bool(told["mean"])
                seen.add((told["count"] > 0, bool(told["mean"])))
            if {(True, False), (True, True)} <= seen:
                return
        raise AssertionError(seen)

    def test_regress(self, run: Any, made: Path) -> None:
        text = run("regress", made / "people.json", "charges", "--on", "age, smoker").out
        assert "smoker=yes" in text
        assert "params" not in text  # Python's word
        told = run("regress", made / "people.json", "charges", "--on", "age,smoker", "--json").json
        assert [row["name"] for row in told["coefficients"]] == ["(intercept)", "age", "smoker=yes"]
        library = dpgram.load(made / "people.json").regress("charges", on=["age", "smoker"])
        assert told["coefficients"][1]["fitted"] == pytest.approx(library.fitted_params["age"])
        for kind in ("population", "table"):
            asked = ("regress", made / "people.json", "charges", "--on", "age", "--kind", kind)
            told, found = run(*asked, "--json").json, library.inference(kind)
            assert told["intervals"] == {
                "kind": kind,
                "estimand": found.meaning,
                "assumptions": list(found.assumptions),
                "robust": found.robust,
                "refusal": None,
            }
            assert found.meaning in " ".join(run(*asked).out.split())

    def test_the_json_of_a_regression_has_every_caution(self, run: Any, made: Path) -> None:
        loaded = dpgram.load(made / "people.json")
        clipped = msgspec.structs.replace(loaded, radius=0.5 * loaded.radius)
        clipped.save(made / "clipped.json")
        for kind in ("population", "table"):
            told = run(
                "regress", made / "clipped.json", "charges", "--on", "age", "--kind", kind, "--json"
            ).json
            assert "scaled down" in told["intervals"]["estimand"]
            assert any("clipped, reweighted rows" in caution for caution in told["cautions"])
        ridge = run(
            "regress",
            made / "people.json",
            "bmi",
            "--method",
            "ridge",
            "--alpha",
            5,
            "--no-intercept",
            "--json",
        )
        assert "(intercept)" not in [row["name"] for row in ridge.json["coefficients"]]

    @pytest.mark.parametrize("how", ["whole", "quoted", "twice"])
    def test_a_column_with_a_comma_in_its_name_can_be_named(self, how: str, run: Any, odd: Path) -> None:
        asked = {
            "whole": ("--on", "age, years"),
            "quoted": ("--on", '"age, years",city'),
            "twice": ("--on", "age, years", "--on", "city"),
        }[how]
        told = run("regress", odd, "charges", *asked, "--json").json
        names = [row["name"] for row in told["coefficients"]]
        assert names[:2] == ["(intercept)", "age, years"]
        assert len(names) == (2 if how == "whole" else 4)
        assert run("pca", odd, *asked, "--json").json["columns"][0] == "age, years"
        columns = tuple("--columns" if word == "--on" else word for word in asked)
        told = run("correlation", odd, *columns, "--columns", "charges", "--json").json
        assert (told["columns"][0], told["columns"][-1]) == ("age, years", "charges")

    def test_the_reference_level_is_the_most_frequent_or_the_one_asked_for(self, run: Any, odd: Path) -> None:
        for asked, reference in ((), "Bern"), (("--reference", "city=Basel"), "Basel"):
            told = run("regress", odd, "charges", "--on", "city", *asked, "--json").json
            assert told["references"] == {"city": reference}
            assert f"city={reference}" not in [row["name"] for row in told["coefficients"]]
        # The sign may be in a level, or in the name of a column.
        told = run("regress", odd, "charges", "--on", "a=b", "--reference", "a=b=c=d", "--json").json
        assert told["references"] == {"a=b": "c=d"}
        for wrong in ("Basel", "town=Basel", "city=Genf"):
            result = run("regress", odd, "charges", "--on", "city", "--reference", wrong)
            assert (result.code, result.out) == (2, "")
            words = {
                "Basel": "COLUMN=LEVEL",
                "town=Basel": "no column 'town'",
                "city=Genf": "no level 'Genf'",
            }
            assert words[wrong] in result.err

    def test_the_json_of_a_refused_fit_says_why(self, run: Any, tmp_path: Path) -> None:
        few = dpgram.publish(
            insurance.table(300), insurance.schema(), epsilon=0.1, delta=1e-6, adaptive=False, progress=False
        )
        few.save(tmp_path / "few.json")
        told = run("regress", tmp_path / "few.json", "charges", "--json").json
        assert "the privacy noise is too large" in told["intervals"]["refusal"]
        for row in told["coefficients"]:
            assert row["reason"] == told["intervals"]["refusal"]
            assert row["estimate"] is row["std_error"] is row["low"] is row["p_value"] is None
            assert isinstance(row["fitted"], float)
        for quantity in ("rsquared", "residual_variance"):
            assert told[quantity]["estimate"] is None
            assert told[quantity]["reason"]

    def test_the_json_of_one_coefficient_without_an_interval_says_why(self, run: Any, odd: Path) -> None:
        told = run("regress", odd, "charges", "--json").json
        by_name = {row["name"]: row for row in told["coefficients"]}
        assert told["intervals"]["refusal"] is None
        assert "tells too little" in by_name["city=Nowhere"]["reason"]
        assert by_name["city=Nowhere"]["std_error"] is by_name["city=Nowhere"]["p_value"] is None
        assert by_name["city=Basel"]["reason"] is None

    def test_correlation(self, run: Any, made: Path) -> None:
        told = run("correlation", made / "people.json", "--columns", "age,smoker,charges", "--json").json
        assert told["columns"] == ["age", "smoker=no", "smoker=yes", "charges"]
        assert told["correlation"][0][0] == 1.0
        found = dpgram.load(made / "people.json").correlation(["age", "smoker", "charges"])
        low, high = found.conf_int()
        for name, wanted in (("correlation", found.estimate), ("low", low), ("high", high)):
            for i, j in np.ndindex(4, 4):
                value = None if np.isnan(wanted[i, j]) else pytest.approx(wanted[i, j])
                assert told[name][i][j] == value
        assert told["hidden"] == list(found.hidden) != []
        shown = run("correlation", made / "people.json").out
        assert "blood_pressure" in shown
        assert "95% intervals (population)" in shown
        assert "  · the interval includes zero; – hidden by the privacy noise\n" in shown

    def test_describe(self, run: Any, odd: Path) -> None:
        told = run("describe", odd, "--on", "age, years", "--on", "city", "--level", 0.9, "--json").json
        found = dpgram.load(odd).describe(["age, years", "city"], level=0.9)
        assert [column["name"] for column in told["columns"]] == [column.name for column in found.columns]
        assert told["rows"]["low"] == pytest.approx(found.rows.low)
        assert told["columns"][0]["mean"]["high"] == pytest.approx(found["age, years"].mean.high)
        assert told["columns"][0]["count"] is None
        assert told["columns"][3]["count"]["estimate"] == pytest.approx(found["city=Bern"].count.estimate)
        assert "90% intervals" in run("describe", odd, "--level", 0.9).out

    def test_iv(self, run: Any, panel: Path) -> None:
        asked = ("iv", panel, "y", "--endogenous", "x", "--instruments", "z", "--controls", "city")
        found = dpgram.load(panel).iv("y", "x", "z", ["city"])
        told = run(*asked, "--json").json
        assert told["intervals"]["refusal"] is None
        assert told["coefficients"] == [
            {key: value if isinstance(value, str) else pytest.approx(value) for key, value in row.items()}
            for row in found.as_rows()
        ]
        assert told["first_stage"][0]["f_statistic"] == pytest.approx(found.first_stage[0].f_statistic)
        assert told["anderson_rubin"]["pieces"] == [
            pytest.approx(piece) for piece in found.anderson_rubin().pieces
        ]
        assert "Anderson–Rubin set for x" in run(*asked).out
        liml = run(*asked, "--method", "liml", "--reference", "city=Basel", "--json").json
        assert liml["method"] == "liml"
        assert "city=Bern" in [row["name"] for row in liml["coefficients"]]

    def test_iv_without_a_first_stage_says_why(self, run: Any, panel: Path) -> None:
        asked = ("iv", panel, "y", "--endogenous", "x", "--instruments", "nothing")
        told = run(*asked, "--json").json
        assert told["coefficients"] is None
        assert "hides the first stage" in told["intervals"]["refusal"]
        assert told["anderson_rubin"]["pieces"]
        assert "No errors or intervals" in run(*asked).out

    def test_within_and_did(self, run: Any, panel: Path) -> None:
        loaded = dpgram.load(panel)
        for asked, found in (
            (("within", "--on", "x", "--group", "city"), loaded.within("y", ["x"], "city")),
            (
                ("did", "--treated", "treated", "--after", "after", "--controls", "x,city"),
                loaded.did("y", "treated", "after", ["x", "city"]),
            ),
        ):
            command, *options = asked
            told = run(command, panel, "y", *options, "--json").json
            (row,) = told["coefficients"]
            (name,) = found.names
            assert (row["name"], row["low"]) == (name, pytest.approx(found.conf_int()[name][0]))
            assert told["estimand"] == found.estimand
            assert told["assumption"] == found.assumption
            assert found.title in run(command, panel, "y", *options).out

    def test_discriminant(self, run: Any, panel: Path) -> None:
        for link in ("logit", "probit"):
            found = dpgram.load(panel).discriminant("treated", ["x", "city"], link=link)
            asked = ("discriminant", panel, "treated", "--on", "x,city", "--link", link)
            told = run(*asked, "--json").json
            assert [row["estimate"] for row in told["coefficients"]] == pytest.approx(list(found.estimate))
            assert told["assumption"] == found.assumption
            assert f"{link.capitalize()} of treated by discriminant analysis" in run(*asked).out

    def test_pca(self, run: Any, made: Path) -> None:
        told = run("pca", made / "people.json", "--components", 2, "--on", "age,bmi,smoker", "--json").json
        assert told["columns"] == ["age", "bmi", "smoker=no", "smoker=yes"]
        assert [len(c["loadings"]) for c in told["components"]] == [4, 4]
        library = dpgram.load(made / "people.json").pca(2, ["age", "bmi", "smoker"])
        assert told["components"][0]["variance"] == pytest.approx(library.variances[0])
        text = run("pca", made / "people.json", "--components", 1).out
        assert "explained" in text
        assert "blood_pressure" in text


class TestLedger:
    def test_life_of_a_ledger(self, run: Any, tmp_path: Path, made: Path) -> None:
        path = tmp_path / "b.ledger"
        created = run("ledger", "create", path, "--name", "b", "--epsilon", 2, "--delta", 1e-6)
        assert created.code == 0, created.err
        assert run("ledger", "create", path, "--name", "b", "--epsilon", 9, "--delta", 1e-6).code == 2
        assert "no charges yet" in run("ledger", "show", path).out
        assert run("ledger", "left", path, "--json").json["largest_epsilon"] == 2.0
        assert "ε = 2" in run("ledger", "left", path).out
        pure = run(
            "ledger", "create", tmp_path / "p", "--name", "p", "--epsilon", 1, "--delta", 0, "--json"
        ).json
        assert pure["currency"] == "epsilon"

    @pytest.mark.parametrize(
        ("epsilon", "delta", "words"),
        [
            (1000, 1e-6, ["epsilon = 1000 lets one row", "values above 10 protect little"]),
            (1, 0.9, ["delta = 0.9 is a chance of failing outright", "rarely wanted"]),
            (10, 1e-4, []),
        ],
    )
    def test_a_budget_that_protects_little_is_told(
        self, run: Any, tmp_path: Path, epsilon: float, delta: float, words: list[str]
    ) -> None:
        terms = ("--name", "b", "--epsilon", epsilon, "--delta", delta, "--json")
        created = run("ledger", "create", tmp_path / "b.ledger", *terms)
        assert created.json["epsilon"] == epsilon
        assert ("warning" in created.err) == bool(words)
        assert all(each in created.err for each in words)

    def test_a_ledger_for_persons(self, run: Any, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("id,x\n1,0.5\n1,0.2\n2,0.1\n")
        (tmp_path / "t.toml").write_text('[[columns]]\nkind = "numeric"\nname = "x"\nlow = 0\nhigh = 1\n')
        path = tmp_path / "p.ledger"
        terms = ("--name", "p", "--epsilon", 2, "--delta", 0, "--unit", "id", "--json")
        assert run("ledger", "create", path, *terms).json["unit"] == "id"
        publish = ("publish", tmp_path / "t.csv", "-s", tmp_path / "t.toml", "--epsilon", 1, "--ledger", path)
        publish += ("--delta", 0)
        rows = run(*publish, "-o", tmp_path / "rows.json")
        assert rows.code == 2
        assert "Publish with --unit id, or create a ledger without a unit. Nothing was spent" in rows.err
        assert run(*publish, "--unit", "id", "-o", tmp_path / "persons.json").code == 0
        assert len(run("ledger", "show", path, "--json").json["history"]) == 1

    def test_history_and_verification(self, run: Any, made: Path) -> None:
        shown = run("ledger", "show", made / "people.ledger", "--json").json
        assert len(shown["history"]) == 1
        plain, exact = (run("ledger", "show", made / "people.ledger", *more).out for more in ((), ("-v",)))
        assert "of the budget" in plain
        assert "Gaussian" in exact
        assert ("μ²" in plain, "μ²" in exact) == (False, True)
        verified = run("ledger", "verify", made / "people.ledger", made / "people.json", "--json").json
        assert verified == {"releases": 1, "entries": 1, "unclaimed": []}
        assert "intact" in run("ledger", "verify", made / "people.ledger", made / "people.json").out

    def test_charges_are_counted_not_releases(self, run: Any, made: Path, tmp_path: Path) -> None:
        """What closes a charge is an entry too, and no charge."""
        path, output = tmp_path / "two.ledger", tmp_path / "two.json"
        Ledger.create(path, name="two", epsilon=3.0, delta=1e-5)
        release = dpgram.publish(
            made / "people.parquet", insurance.schema(), epsilon=1.0, delta=1e-6, ledger=path
        )
        release.save(output)
        assert "1 of its 1 charges" in run("ledger", "verify", path, output).out
        dpgram.publish(insurance.table(500), insurance.schema(), epsilon=0.5, delta=1e-6, ledger=path)
        found = run("ledger", "verify", path, output).out
        assert "1 of its 2 charges" in found
        assert "not shown here: entry 3" in found

    def test_a_release_of_another_ledger_is_exposed(self, run: Any, made: Path, tmp_path: Path) -> None:
        Ledger.create(tmp_path / "c.ledger", name="c", epsilon=1.0, delta=1e-6)
        result = run("ledger", "verify", tmp_path / "c.ledger", made / "people.json")
        assert result.code == 2
        assert "another ledger" in result.err


class TestErrors:
    """One line on the error stream, exit code 2, no traceback, nothing on the output stream."""

    @pytest.mark.parametrize(
        "arguments",
        [
            "nonsense",
            "publish",
            "publish {made}/people.parquet",
            "publish {made}/people.parquet -s {made}/people.toml --epsilon much -o x.json",
            "publish {made}/people.parquet -s {made}/people.toml --epsilon -1 -o x.json",
            "publish {made}/people.parquet -s {made}/people.toml --epsilon 1 --delta 2 -o x.json",
            "publish {made}/people.parquet -s {made}/people.toml --epsilon 1 -o x.json --mechanism magic",
            "publish {made}/people.parquet -s {made}/people.toml --epsilon 1 -o x.json --adjacency swap",
            "publish {made}/people.parquet -s {made}/people.toml --epsilon 1 -o x.json -l none.ledger",
            "publish {made}/people.parquet -s {made}/people.toml --epsilon 1 -o x.json --radius 0",
            "publish {made}/people.parquet -s {made}/people.toml --epsilon 1 -o x.json --threads 0",
            "publish {made}/people.parquet -s {made}/people.json --epsilon 1 -o x.json",
            "publish {made}/nothing.parquet -s {made}/people.toml --epsilon 1 -o x.json",
            "publish {made}/people.toml -s {made}/people.toml --epsilon 1 -o x.json",
            "publish {made}/people.parquet -s nothing.toml --epsilon 1 -o x.json",
            "check {made}/people.parquet -s {made}/people.parquet",
            "check {made}/people.json -s {made}/people.toml",
            "check {made}/people.parquet -s {made}/people.toml --model logistic:nope",
            "check {made}/people.parquet -s {made}/people.toml --model logistic:charges",
            "check {made}/people.parquet -s {made}/people.toml --model poisson:smoker",
            "check {made}/people.parquet -s {made}/people.toml --model linear:charges~agee",
            "check {made}/people.parquet -s {made}/people.toml --mechanism gausian",
            "check {made}/people.parquet -s {made}/people.toml --rows=-5",
            "check {made}/people.parquet -s {made}/people.toml --delta 2",
            "check {made}/people.parquet -s {made}/people.toml -l none.ledger",
            "schema nothing.csv",
            "show {made}/people.toml",
            "show nothing.json",
            "show {made}",
            "show {made}/people.json --jso",
            "regress {made}/people.json",
            "regress {made}/people.json nothing",
            "regress {made}/people.json charges --on charges",
            "regress {made}/people.json charges --on age --method magic",
            "regress {made}/people.json charges --on age --alpha 3",
            "regress {made}/people.json charges --on age --level 2",
            "correlation {made}/people.json --columns nothing",
            "describe {made}/people.json --on nothing",
            "describe {made}/people.json --level 95",
            "iv {made}/people.json charges",
            "iv {made}/people.json charges --endogenous bmi",
            "iv {made}/people.json charges --endogenous bmi --instruments bmi",
            "iv {made}/people.json charges --endogenous charges --instruments age",
            "iv {made}/people.json charges --endogenous bmi,age --instruments children",
            "iv {made}/people.json charges --endogenous bmi --instruments age --method gmm",
            "iv {made}/people.json charges --endogenous bmi --instruments age --level 95",
            "within {made}/people.json charges --on age",
            "within {made}/people.json charges --on age --group bmi",
            "did {made}/people.json charges --treated smoker=yes --after age",
            "did {made}/people.json charges --treated age",
            "discriminant {made}/people.json charges",
            "discriminant {made}/people.json smoker",
            "discriminant {made}/people.json smoker=yes --link cloglog",
            "pca {made}/people.json --components 99",
            "pca {made}/people.json --on nothing",
            "ledger create {made}/people.ledger --name x --epsilon 1 --delta 0",
            "ledger create x.ledger --name x --epsilon 0 --delta 0",
            "ledger create x.ledger --epsilon 1 --delta 0",
            "ledger show {made}/people.toml",
            "ledger left nothing.ledger",
            "ledger verify {made}/people.ledger {made}/people.toml",
            "demo --people 3",
            "demo --output {made}/people.toml",
        ],
    )
    def test_user_errors(
        self, arguments: str, run: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        result = run(*arguments.format(made=made).split())
        assert result.code == 2
        assert result.out == ""
        assert result.err.startswith("dpgram: ")
        assert result.err.count("\n") == 1
        assert "Traceback" not in result.err
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ("plan -s a --rows 9 --epsilon 1,5", "--epsilon must be a number; got '1,5'. Write 1.5."),
            ("plan -s a --rows 9 --epsilon 1 --delta 0,1", "--delta must be a number; got '0,1'. Write 0.1."),
            ("regress a b --level ,95", "--level must be a number; got ',95'. Write 0.95."),
            ("regress a b --level 1,5e-3", "Write 1.5e-3."),
            ("plan -s a --epsilon 1 --rows 6,000", "must be a whole number; got '6,000'. Write 6000 or 6."),
            ("plan -s a --epsilon 1 --rows 12.000", "'12.000'. Write 12000 or 12. See: dpgram plan --help"),
            ("plan -s a --epsilon 1 --rows=6.500", "got '6.500'. Write 6500."),
            ("plan -s a --epsilon 1 --rows 5.0", "got '5.0'. Write 5."),
            ("plan -s a --epsilon 1 --rows 12.000,00", "must be a whole number; got '12.000,00'. See:"),
            ("publish a -s a --epsilon 1 -o b --rows 12.000", "--help. Nothing was spent"),
            ("publish a -s a --epsilon 1 -o b --unit-rows 2.0", "--unit-rows must be a whole number"),
            (
                "series create a -s a --epsilon 1 --periods 1.000",
                "Write 1000 or 1. See: dpgram series create",
            ),
            ("series plan --periods 60 --participations 1.", "--participations must be a whole number"),
            ("ledger plan --releases 1.000", "--releases must be a whole number"),
            ("demo --people 2.000", "--people must be a whole number; got '2.000'. Write 2000 or 2."),
            ("audit --runs 1.000", "--runs must be a whole number"),
            ("plan -s a --epsilon 1 --rows 1.234.567", "Write 1234567."),
            ("plan -s a --epsilon 1 --rows 1e4", "got '1e4'. Write 10000."),
            ("plan -s a --epsilon 1 --rows 6.5", "--rows must be a whole number; got '6.5'. See:"),
            ("plan -s a --rows 9 --epsilon much", "--epsilon must be a number; got 'much'. See:"),
            ("plan -s a --rows 9 --epsilon 1,000,000", "Write 1000000."),
        ],
    )
    def test_numbers_that_are_written_otherwise(self, arguments: str, words: str, run: Any) -> None:
        result = run(*arguments.split())
        assert result.code == 2
        assert words in result.err

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["regres", "x.json"], "Did you mean 'regress', 'series'? See: dpgram --help"),
            (["ledger", "plot", "{l}", "-o", "b.txt"], "limit: .png, .svg, .pdf. Name it b.png"),
            (["report", "{r}", "-o", "report.pdf"], "limit: .html, .htm. Name it report.html"),
            (["explore", "{r}", "-o", "page"], "limit: .html, .htm. Name it page.html"),
            (["check", "{d}", "-s", "{s}", "--missing", "mean"], "'--missing': 'mean' is not one of"),
            (["check", "{d}", "-s", "{s}", "--unit-rows", 3], "got --unit-rows 3. Give --unit id"),
            (["check", "{d}", "-s", "{s}", "--by", "age"], "got 'age', a numeric column. Declare kind = "),
            (["did", "{r}", "age", "--treated", "smoker", "--after", "bmi"], 'kind = "product", left = "'),
            (["within", "{r}", "bmi", "--on", "age", "--group", "bmi"], 'name = "bmi", levels = […]'),
            (["regress", "{r}", "bmi ~ log(age)"], 'declare it: kind = "numeric", name = "log_age", low'),
        ],
    )
    def test_nothing_is_said_in_pythons_words(
        self, arguments: list[object], words: str, run: Any, made: Path
    ) -> None:
        endings = {"{d}": "parquet", "{s}": "toml", "{r}": "json", "{l}": "ledger"}
        places = {place: made / f"people.{ending}" for place, ending in endings.items()}
        result = run(*(places.get(each, each) if isinstance(each, str) else each for each in arguments))
        assert result.code == 2
        assert words in result.err
        assert not re.search(r"Value error|\?\.|\bNone\b|\bdg\.|\w\(['\"]", result.err)

    @pytest.mark.parametrize("command", ["show", "correlation", "regress", "pca", "describe"])
    def test_a_file_cannot_steer_the_terminal(self, command: str, run: Any, tmp_path: Path) -> None:
        """Column names may hold anything; escape sequences in them are spelled out, never sent."""
        name = "a\x1b]0;owned\x07\x9b2J"
        schema = dpgram.Schema(dpgram.numeric(name, 0, 1), dpgram.numeric("b", 0, 1))
        rows = {name: [0.1, 0.9] * 500, "b": [0.3, 0.4] * 500}
        dpgram.publish(rows, schema, epsilon=5.0, delta=0.0, adaptive=False).save(tmp_path / "x.json")
        extra = ["b"] if command == "regress" else []
        for arguments in ([], ["--json"]):
            result = run(command, tmp_path / "x.json", *extra, *arguments)
            assert result.code == 0
            assert all(c.isprintable() or c == "\n" for c in result.out)
        failed = run("regress", tmp_path / "x.json", name + "?")
        assert failed.code == 2
        assert all(c.isprintable() or c == "\n" for c in failed.err)

    def test_warnings_are_one_line_too(self, run: Any, made: Path, tmp_path: Path) -> None:
        call = ("publish", made / "people.parquet", "-s", made / "people.toml", "--epsilon", 11)
        call += ("--delta", 0, "--no-ledger")
        result = run(*call, "-o", tmp_path / "x.json", "--json")
        assert result.code == 0
        assert "dpgram: warning: epsilon = 11" in result.err

    def test_interrupt_ends_quietly_with_130(self, tmp_path: Path) -> None:
        """Ctrl-C while a command works: no traceback, the shell's usual code."""
        program = (
            "import signal, time, dpgram.demo.insurance\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # background jobs inherit "ignored"
            "def slow(*_):\n    print('working', flush=True)\n    time.sleep(3600)\n"
            "dpgram.demo.insurance.table = slow\n"
            "from dpgram.cli import main\nmain(['demo', '--output', 'here'])\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        assert process.returncode == 130
        assert "Traceback" not in err
        assert "interrupted" in err

    def test_a_reader_that_goes_away_is_no_error(self, made: Path) -> None:
        command = f"{sys.executable} -m dpgram show {made / 'people.json'} --json | head -c 1"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr

    def test_help_loads_neither_rows_nor_numbers(self) -> None:
        """Help and completion must be quick: they need none of the packages that compute."""
        program = (
            "import sys; from dpgram.cli import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        loaded = set(done.stderr.split())
        assert not loaded & {
            "numpy",
            "scipy",
            "pyarrow",
            "polars",
            "opendp",
            "sqlite3",
            "matplotlib",
        }


def test_a_declared_logit_is_shown(tmp_path: Path, capsys: Any) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=4_000)
    data = {"x": x, "t": draw.random(4_000) < 1.0 / (1.0 + np.exp(-x))}
    columns = dpgram.Schema(dpgram.numeric("x", -6, 6), dpgram.boolean("t"))
    path = tmp_path / "t.dpgram.json"
    dpgram.publish(data, columns, epsilon=8, delta=1e-6, models=[dpgram.logistic("t")]).save(path)
    call = ["regress", str(path), "t", "--family", "logistic"]
    assert cli.run(call) == 0
    assert "Logit of t" in capsys.readouterr().out
    assert cli.run([*call, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["coefficients"]["x"]["low"] < 1.0 < told["coefficients"]["x"]["high"] + 0.3
    assert cli.run([*call[:-1], "probit"]) != 0


PAID = "-s people.toml --epsilon 1 --delta 1e-6"


class TestOutputsThatAreInputs:
    """What a command reads, a ledger, and what belongs beside one are replaced by nothing."""

    @pytest.fixture
    def folder(self, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        for path in made.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / "parts").mkdir()
        (tmp_path / "parts" / "1.parquet").write_bytes((made / "people.parquet").read_bytes())
        dpgram.release.SigningKey.create(tmp_path / "key.pem")
        monkeypatch.chdir(tmp_path)
        return tmp_path

    @pytest.mark.parametrize("link", ["", "symbolic", "hard"])
    @pytest.mark.parametrize(
        ("call", "output"),
        [
            (f"publish people.parquet {PAID} --ledger people.ledger --sign key.pem -o", output)
            for output in ("people.ledger", "people.parquet", "people.toml", "key.pem")
        ]
        + [
            (f"publish {data} {PAID} --no-ledger -o", "parts/1.parquet")
            for data in ("parts", "parts/*.parquet")
        ]
        + [
            ("schema people.parquet -o", "people.parquet"),
            ("explore people.json -o", "people.json"),
            ("report people.json --ledger people.ledger -o", "people.json"),
            ("report people.json --ledger people.ledger -o", "people.ledger"),
            ("evaluation people.json --ledger people.ledger -o", "people.ledger"),
            ("registry people.json -o", "people.json"),
            ("export people.json -o", "people.json"),
            ("sign people.json --key key.pem -o", "key.pem"),
            ("ledger plot people.ledger -o", "people.ledger"),
        ],
    )
    def test_is_refused(self, run: Any, folder: Path, call: str, output: str, link: str) -> None:
        there = folder / output
        target = there
        if link:
            target = folder / f"link{there.suffix}"
            (target.symlink_to if link == "symbolic" else target.hardlink_to)(there)
        before = there.read_bytes()
        result = run(*call.split(), target, "--overwrite")
        assert result.code == 2
        assert f"the output {target} would replace what this command reads" in result.err
        assert there.read_bytes() == before
        assert len(Ledger.open(folder / "people.ledger").history()) == 1

    @pytest.mark.parametrize(
        "name", ["other.ledger", "people.ledger-journal", "people.ledger.unfinished-0123456789abcdef"]
    )
    @pytest.mark.parametrize(
        "call",
        [
            f"publish people.parquet {PAID} --ledger people.ledger -o {{}}",
            "schema people.parquet -o {}",
            "explore people.json -o {}",
        ],
    )
    def test_a_ledger_and_its_files_are_refused_everywhere(
        self, run: Any, folder: Path, call: str, name: str
    ) -> None:
        Ledger.create(folder / "other.ledger", name="other", epsilon=1.0, delta=1e-6)
        result = run(*call.format(name).split(), "--overwrite")
        assert result.code == 2
        assert "ledger" in result.err
        assert "Choose another name" in result.err
        assert Ledger.open(folder / "other.ledger").entries == 0
        assert len(Ledger.open(folder / "people.ledger").history()) == 1

    def test_other_files_are_replaced_where_that_is_asked_for(self, run: Any, folder: Path) -> None:
        (folder / "page.html").write_text("old")
        assert run("explore", "people.json", "-o", "page.html").code == 2
        assert (folder / "page.html").read_text() == "old"
        assert run("explore", "people.json", "-o", "page.html", "--overwrite").code == 0
        assert run("sign", "people.json", "--key", "key.pem").code == 0  # in place, as its help says


def test_every_whole_number_refuses_a_point(run: Any) -> None:
    """Whatever takes a whole number, by what its help says."""
    asked = 0
    for name in COMMANDS:
        shown = run(*name.split()[1:], "--help").out
        for flag in re.findall(r"(--[\w-]+) +<int", shown):
            told = point_mistake(typer.main.get_command(cli.app), [*name.split()[1:], flag, "1.000"])
            assert told is not None
            assert told.startswith(f"{flag} must be a whole number; got '1.000'")
            asked += 1
    assert asked >= 20
