"""Files made to hang or exhaust their reader: refused in words, within the limits of time and memory."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from assurance.fuzz_targets import limits, partials, releases
from assurance.fuzz_targets.limits import limited

from dpgram import cli
from dpgram.canonical_json import MOST_VALUES
from dpgram.core.noise import simulation
from dpgram.engines.federated import Partial
from dpgram.errors import AnalysisError, DpgramError, MechanismError, ReleaseError, SchemaError
from dpgram.files import LARGEST_FILE
from dpgram.privacy.count_noise import projected_counts
from dpgram.privacy.curves.spectral import shared_inverse_temperatures
from dpgram.privacy.sampling.bingham import draw_direction
from dpgram.release import Release
from dpgram.schema import LONGEST_FILE, Schema
from dpgram.sums.exact_gram import ExactGram

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "insurance-gaussian-v1.dpgram.json"


def forged(mechanism: str, **changes: object) -> bytes:
    """A small release of this mechanism with other values at "part.name" places, and a digest that fits."""
    number = list(releases.BY_MECHANISM).index(mechanism)
    golden = 2 * len(list(GOLDEN.parent.glob("*.dpgram.json")))  # which come first, each in two forms
    content = json.loads(releases.seeds()[golden + number][1:])
    assert content["mechanism"]["name"] == mechanism
    for path, value in changes.items():
        *parts, last = path.split("__")
        holder = content
        for part in parts:
            holder = holder[part]
        holder[int(last) if isinstance(holder, list) else last] = value
    return releases.sealed(json.dumps(content).encode())


def cells(mechanism: str, value: str) -> bytes:
    content = json.loads(forged(mechanism))
    content["matrix"]["cells"][2] = value
    return releases.sealed(json.dumps(content).encode())


def with_bounds(mechanism: str, bounds: tuple[float, float]) -> bytes:
    content = json.loads(forged(mechanism))
    content["schema"]["columns"][0] |= {"low": bounds[0], "high": bounds[1]}
    return releases.sealed(json.dumps(content).encode())


class TestReleases:
    @pytest.mark.parametrize("mechanism", ["eigenvectors", "eigenvectors-zcdp", "deflation"])
    def test_sixty_digits_are_no_cell(self, mechanism: str) -> None:
        """One such cell made the simulation of directions loop for ever."""
        with pytest.raises(ReleaseError, match="does not follow the format"):
            Release.from_json(cells(mechanism, "9" * 60))

    @pytest.mark.parametrize("mechanism", ["eigenvectors", "eigenvectors-zcdp", "deflation"])
    @pytest.mark.parametrize("digits", [25, 30, 40])
    def test_directions_of_a_matrix_beyond_floats_are_refused(self, mechanism: str, digits: int) -> None:
        release = Release.from_json(cells(mechanism, "9" * digits))
        for question in (release.mean, lambda: release.regress("age")):
            with limited("a question"), pytest.raises((MechanismError, AnalysisError)):
                question()
        with limited("to be shown"):
            assert "no count: " in str(release)

    @pytest.mark.parametrize("name", sorted(releases.QUESTIONS))
    @pytest.mark.parametrize("mechanism", releases.BY_MECHANISM)
    def test_every_question_is_answered_or_refused(self, mechanism: str, name: str) -> None:
        """Of an honest file, and of one with a cell as large as the format allows."""
        for raw in (forged(mechanism), cells(mechanism, "9" * 40), cells(mechanism, "-" + "9" * 27)):
            release = releases.accepted(raw)
            assert release is not None
            releases.asked(release, releases.QUESTIONS, [name])

    @pytest.mark.parametrize(
        ("mechanism", "field", "value"),
        [
            ("wishart", "noise__degrees", 10**400),
            ("sketch", "noise__rows", 2**60),
            ("gaussian", "noise__sigma", 1e300),
            ("gaussian", "noise__sigma", 5e-324),
            ("eigenvectors", "noise__total", 0.0),
            ("eigenvectors", "noise__value_scale", 1e200),
            ("deflation", "noise__temperature", 1e300),
            ("inverse-noise", "noise__ridge", 1e-300),
        ],
    )
    def test_laws_out_of_all_proportion_are_refused(self, mechanism: str, field: str, value: object) -> None:
        with pytest.raises(ReleaseError, match="noise: Expected"):
            Release.from_json(forged(mechanism, **{field: value}))

    def test_a_radius_out_of_all_proportion_is_refused_by_every_analysis(self) -> None:
        release = Release.from_json(forged("gaussian", radius=1e40))
        with pytest.raises(AnalysisError, match="too large or too small to compute with"):
            release.mean()

    @pytest.mark.parametrize("bounds", [(18.0, 1e308), (-1e308, 1e308), (0.0, 1e-100)])
    def test_bounds_at_the_end_of_the_floats(self, bounds: tuple[float, float]) -> None:
        """Their squares overflowed, and what was told of the other columns was NaN."""
        release = Release.from_json(with_bounds("laplace", bounds))
        for question in (release.mean, release.covariance, lambda: release.matrix("original")):
            with pytest.raises(AnalysisError, match="bounds of column 'age'"):
                question()
        assert release.matrix("encoded").shape == (5, 5)
        assert "no count: " in str(release)
        with pytest.raises(ReleaseError, match="contradicts the schema"):  # its histograms lie elsewhere
            Release.from_json(with_bounds("gaussian", bounds))

    def test_a_tiny_numerical_delta_is_shown(self) -> None:
        assert "numerical δ = 1e-300" in str(
            Release.from_json(forged("gaussian", guarantee__numerical_delta=5e-324))
        )

    @pytest.mark.parametrize("piece", [b"1,", b'"ab",', b"{},", b"[],", b'"9":1,'])
    def test_many_short_values_are_refused_before_they_are_made(self, piece: bytes) -> None:
        """128 MB of JSON took 3.4 GB: a short value takes thirty times what it is written with."""
        raw = b'{"a": [' + piece * (MOST_VALUES + 1) + b"1]}"
        assert len(raw) < LARGEST_FILE
        with limited("a bomb"), pytest.raises(ReleaseError, match="more than 2,097,152 values"):
            Release.from_json(raw)

    def test_a_message_is_never_endless(self) -> None:
        """A forged field name of megabytes was shown whole, character by character."""
        text = "\U000e0001" * 1_000_000
        told = str(DpgramError(text, got=text, limit=text, remedy=text))
        assert len(told) < 200_000
        content = json.loads(GOLDEN.read_bytes()) | {
            "schema": {"columns": [{"kind": text}], "constant": True}
        }
        with limited("a long text"), pytest.raises(ReleaseError) as refusal:
            Release.from_json(json.dumps(content, ensure_ascii=False).encode())
        assert len(str(refusal.value)) < 20_000

    def test_the_name_of_a_column_is_not_repeated_without_end(self) -> None:
        """A name of 10 MB before each of a thousand levels is 10 GB."""
        column = {"kind": "categorical", "name": "n" * 10_000_000, "levels": [str(i) for i in range(1000)]}
        with limited("a schema"), pytest.raises(SchemaError, match="too long"):
            Schema.from_dict({"columns": [column]})


class TestSchemas:
    def test_endless_files(self, tmp_path: Path) -> None:
        path = tmp_path / "a.toml"
        path.write_bytes(b"a = [" + b"[]," * LONGEST_FILE + b"]")
        with limited("a schema"), pytest.raises(SchemaError, match="more than"):
            Schema.from_file(path)

    def test_endless_columns(self) -> None:
        with limited("a schema"), pytest.raises(SchemaError, match="too many columns"):
            Schema.from_dict({"columns": [{"kind": "boolean", "name": "a"}] * 2_000_000})


@pytest.fixture
def plain() -> partials.Taken:
    return partials.Taken.of(partials.seeds()[0][1:])


def loaded(raw: bytes, folder: Path) -> Partial:
    path = folder / "a.partial"
    path.touch(mode=0o600)
    path.write_bytes(raw)
    with limited("a partial"):
        return Partial.load(path, passphrase=partials.PASSPHRASE)


class TestPartials:
    def test_seeds_load(self, plain: partials.Taken, tmp_path: Path) -> None:
        """The fuzzer has power: taken to pieces, joined and locked again, they are read to the end."""
        assert loaded(plain.joined(), tmp_path).site == "whole"
        assert loaded(partials.locked(plain, 2, 1, 1), tmp_path).sums == loaded(plain.joined(), tmp_path).sums

    @pytest.mark.parametrize("number", [0, 1, 2])
    def test_sizes_are_those_of_the_bytes(self, number: int, plain: partials.Taken, tmp_path: Path) -> None:
        """A file of 293 bytes asked for 9.3 GiB, a lock for 4 GiB, another for hours."""
        with pytest.raises(DpgramError, match=r"do not follow the format|is not of this version"):
            loaded(partials.forgeries(plain)[number], tmp_path)

    @pytest.mark.parametrize(
        "lock",
        [
            (1 << 20, 32, 1), (1 << 15, 8, 5), (3, 1, 1), (1, 1, 1), (0, 1, 1), (-2, 1, 1), (2, 1, -1),
            (1 << 17, 1, 1), (1 << 20, 1, 1), (1 << 16, 1, 1),
        ],
    )  # fmt: skip
    def test_locks_that_cannot_be_paid(
        self, lock: tuple[int, int, int], plain: partials.Taken, tmp_path: Path
    ) -> None:
        """Too dear, or such as scrypt refuses: n must be below 2^(16 r)."""
        begun = time.process_time()
        with pytest.raises(DpgramError, match="lock of the partial"):
            loaded(partials.locked(plain, *lock), tmp_path)
        assert time.process_time() - begun < limits.SECONDS

    @pytest.mark.parametrize(
        "change",
        [
            {"width": 35_000}, {"width": 2}, {"width": -1}, {"width": 4.0}, {"width": None}, {"width": True},
            {"rows": -1}, {"rows": 2**40}, {"rows": "3"}, {"rows": 0}, {"counts": []}, {"counts": {"x": 1}},
            {"counts": {"rows_read": -1}}, {"counts": {"rows_read": 2**70}}, {"x": 1},
        ],
        ids=str,
    )  # fmt: skip
    def test_heads_of_sums(self, change: dict[str, object], plain: partials.Taken, tmp_path: Path) -> None:
        ((head, triangle),) = plain.sums
        forged_sums = partials.Taken(plain.head, (({**head, **change}, triangle),))
        with pytest.raises(DpgramError, match="do not follow the format"):
            loaded(forged_sums.joined(), tmp_path)

    def test_cells_larger_than_their_rows_allow(self, plain: partials.Taken, tmp_path: Path) -> None:
        """Added to others they could pass the end of 64 bits and come out small."""
        ((head, triangle),) = plain.sums
        large = (2**62).to_bytes(8, "little") + triangle[8:]
        with pytest.raises(DpgramError, match="do not follow the format"):
            loaded(partials.Taken(plain.head, ((head, large),)).joined(), tmp_path)

    def test_heads_that_cannot_be_written_again(self, plain: partials.Taken, tmp_path: Path) -> None:
        """Half a surrogate pair loaded, and raised when terms were compared."""
        head = {**plain.head, "terms": {**plain.head["terms"], "missing": "\ud800"}}
        escaped = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
        before = len(partials.MAGIC) + 8 + int.from_bytes(plain.joined()[len(partials.MAGIC) :][:8], "little")
        body = partials.MAGIC + len(escaped).to_bytes(8, "little") + escaped + plain.joined()[before:-32]
        with pytest.raises(DpgramError, match="does not follow the format"):
            loaded(partials.with_digest(body), tmp_path)

    @pytest.mark.parametrize("size", [0, 3, 33, 40])
    def test_short_bytes_of_a_sum(self, size: int) -> None:
        with pytest.raises(DpgramError, match="these bytes"):
            ExactGram.from_bytes(partials.with_digest(partials.GRAM)[: len(partials.GRAM) + size])
        with pytest.raises(DpgramError, match="do not follow the format"):
            ExactGram.from_bytes(partials.with_digest(partials.GRAM + bytes(min(size, 3))))


class TestArithmetic:
    @pytest.mark.parametrize("size", [1e14, 1e20, 1e60, 1e200, np.inf, np.nan])
    def test_a_direction_is_drawn_or_refused(self, size: float) -> None:
        exponent = np.diag([1.0, 2.0, 3.0]) + size * np.ones((3, 3))
        with (
            limited("a direction"),
            pytest.raises(MechanismError, match="no direction can be drawn in floats"),
        ):
            draw_direction(exponent, simulation(0))

    def test_a_sampler_that_never_accepts_gives_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dpgram.privacy.sampling.bingham.candidates_at_once", lambda width: 0)
        monkeypatch.setattr("numpy.argmax", lambda accepted: pytest.fail("nothing was accepted"))
        with (
            limited("a direction"),
            pytest.raises(MechanismError, match="no direction can be drawn in floats"),
        ):
            draw_direction(np.diag([1.0, 2.0]), simulation(0))

    def test_counts_far_beyond_their_total(self) -> None:
        assert projected_counts(np.array([1e30, 0.0, -1e30]), 1.0).tolist() == [0.0, 0.0, 0.0]

    @pytest.mark.parametrize("total", [1e-30, 1e-12, 1.0, 1e12])
    def test_temperatures_use_the_whole_budget_at_every_size(self, total: float) -> None:
        found = shared_inverse_temperatures(
            np.array([3e-6, 2e-6, 1e-6]), total, 1.0, split="forecast", norm=2, width=5
        )
        assert np.linalg.norm(found) == pytest.approx(total, rel=1e-6)


def _endless() -> Iterator[None]:
    while True:
        yield


class TestLimits:
    """The limits have power: without them nothing above shows anything."""

    def test_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "SECONDS", 0.05)
        with pytest.raises(AssertionError, match="a loop takes longer"), limited("a loop"):
            deque(_endless(), maxlen=0)

    @pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the limit of memory is Linux's")
    def test_memory(self) -> None:
        with pytest.raises(MemoryError), limited("zeros"):
            np.zeros((35_000, 35_000))
        np.zeros((12_000, 12_000))  # lifted again


def test_the_command_line_tells_of_a_forged_file_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(cells("eigenvectors", "9" * 40))
    for words in (
        ["show"],
        ["pca"],
        ["correlation"],
        ["explore", "-o", os.devnull],
        ["report", "-o", os.devnull],
    ):
        assert cli.run([words[0], str(path), *words[1:]]) == 2
        assert capsys.readouterr().err.count("\n") == 1
