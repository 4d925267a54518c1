"""Files for other programs: what they read back is what we computed, and they say what is left out."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.cli import run
from dpgram.core.noise import SeededEntropy
from dpgram.errors import AnalysisError
from dpgram.exports import FORMATS, SummaryStatistics, summary_statistics
from dpgram.exports.xport import LONGEST_LABEL, ibm_float
from dpgram.release import Release

VECTORS = Path(__file__).resolve().parents[2] / "conformance" / "vectors"
KINDS = ("plain", "adaptive", "crossed", "pure", "weighted", "empty-level", "learnt", "drowned")


def release(kind: str = "adaptive") -> Release:
    return dg.load(VECTORS / f"{kind}.dpgram.json")


@pytest.mark.parametrize("kind", KINDS)
def test_every_export_is_positive_semidefinite(kind: str) -> None:
    found = summary_statistics(release(kind))
    for matrix in (found.covariance, found.sums):
        values = np.linalg.eigvalsh(matrix / np.sqrt(np.outer(np.diagonal(matrix), np.diagonal(matrix))))
        assert values[0] > -1e-9
    raw = release(kind).matrix("original")
    assert kind != "drowned" or np.linalg.eigvalsh(raw)[0] < 0.0  # so that this says something


def test_sums_give_back_means_and_covariances() -> None:
    found = summary_statistics(release())
    sums = found.sums
    assert sums[0, 0] == found.observations
    np.testing.assert_allclose(sums[0, 1:] / sums[0, 0], found.means)
    centred = sums[1:, 1:] / sums[0, 0] - np.outer(found.means, found.means)
    scale = np.sqrt(np.outer(np.diagonal(found.covariance), np.diagonal(found.covariance)))
    np.testing.assert_allclose(centred / scale, found.covariance / scale, atol=1e-8)


def test_levels_that_follow_from_others_are_left_out() -> None:
    found = summary_statistics(release("crossed"))
    assert found.references == {"smoker": "no", "region": "west"}
    assert "smoker=no" not in found.names
    assert not any("region=west" in name or "smoker=no" in name for name in found.names)
    assert np.linalg.matrix_rank(found.covariance / np.abs(found.covariance).max(), tol=1e-14) == len(
        found.names
    )
    other = summary_statistics(release("crossed"), ["smoker", "age"], reference={"smoker": "yes"})
    assert other.names == ("smoker=no", "age")
    assert "region=abroad" in summary_statistics(release("empty-level")).empty


@pytest.mark.parametrize(
    ("on", "reference", "words"),
    [
        ("age", {}, "must be a list"),
        (["(constant)"], {}, "constant column"),
        (["smoker=no"], {}, "no columns are left"),
        (None, {"age": "x"}, "not a categorical column"),
        (None, {"smoker": "maybe"}, "no level"),
    ],
)
def test_mistakes(on: list[str] | str | None, reference: dict[str, str], words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        summary_statistics(release(), on, reference=reference)


def test_without_a_constant_there_are_no_means() -> None:
    with pytest.raises(AnalysisError, match="no means"):
        summary_statistics(release("through-origin"))


def test_names_for_programs_are_short_plain_and_unlike() -> None:
    found = summary_statistics(release("crossed"))
    for longest in (8, 32):
        names = found.short_names(longest)
        assert len({name.lower() for name in names}) == len(names)
        assert all(name.isidentifier() and name.isascii() and len(name) <= longest for name in names)


@pytest.mark.parametrize("value", [1.0, -118.625, 0.1, 1e-70, 3e70, 2.0**-52, 12345678.9, np.pi])
def test_ibm_numbers_lose_nothing(value: float) -> None:
    raw = int.from_bytes(ibm_float(value), "big")
    sign, exponent, mantissa = raw >> 63, (raw >> 56) & 127, raw & ((1 << 56) - 1)
    assert (-1) ** sign * mantissa / 2.0**56 * 16.0 ** (exponent - 64) == value
    assert mantissa >> 52  # normalised


@pytest.mark.parametrize("kind", KINDS)
def test_sas_and_stata_files_read_back(kind: str, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    found = summary_statistics(release(kind))
    frame, meta = pyreadstat.read_xport(release(kind).to_xport(tmp_path / "m.xpt"))
    assert [*frame["_TYPE_"]] == ["SSCP"] * (len(found.names) + 1) + ["N"]
    assert [*frame["_NAME_"][:-1]] == [*frame.columns[2:]]
    np.testing.assert_array_equal(frame.iloc[:-1, 2:].to_numpy(), found.sums)
    assert (frame.iloc[-1, 2:] == found.observations).all()
    assert "privacy noise out" in meta.file_label
    assert [*meta.column_labels[3:]] == [label[:40] for label in found.labels]

    frame, meta = pyreadstat.read_dta(release(kind).to_stata(tmp_path / "m.dta"))
    assert [*frame["_type"]] == ["n", "mean"] + ["cov"] * len(found.names)
    np.testing.assert_array_equal(frame.iloc[1, 2:].to_numpy(dtype=float), found.means)
    np.testing.assert_array_equal(frame.iloc[2:, 2:].to_numpy(), found.covariance)
    assert tuple(meta.notes) == found.header("Stata")
    assert "privacy noise out" in meta.file_label


def test_the_transport_file_says_that_it_is_sscp(tmp_path: Path) -> None:
    raw = release().to_xport(tmp_path / "m.xpt").read_bytes()
    assert len(raw) % 80 == 0
    assert raw[7 * 80 - 8 : 7 * 80] == b"SSCP    "


def test_the_header_says_what_is_left_out(tmp_path: Path) -> None:
    found = summary_statistics(release())
    told = "leave the privacy noise out, so they are too small"
    for ending, write in FORMATS.items():
        content = write(found).decode("latin-1")
        assert told in content or (ending == ".xpt" and "leave privacy noise out" in content)


def numbers_in_r(script: str) -> list[float]:
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("R is not installed")
    done = subprocess.run([rscript, "-e", script], capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def same(found: SummaryStatistics, numbers: list[float]) -> None:
    count = len(found.names)
    assert numbers[0] == found.observations
    np.testing.assert_array_equal(numbers[1 : 1 + count], found.means)
    np.testing.assert_array_equal(np.reshape(numbers[1 + count :], (count, count)), found.covariance)


ODD_NAMES = ("=1+1", "+a", "-b", "@c", "'=1+1", "'plain", "d", "2 - 1")


def odd_release() -> Release:
    """Names that a spreadsheet would compute, and a reference level with one behind a comma."""
    draw = np.random.default_rng(0)
    levels = ["u,=2+2", "v"]
    table = {name: draw.uniform(0, 1, 4_000) for name in ODD_NAMES} | {"g": draw.choice(levels, 4_000)}
    columns = [dg.numeric(name, 0, 1) for name in ODD_NAMES]
    return dg.publish(
        table, dg.Schema(*columns, dg.categorical("g", levels)), epsilon=5, delta=1e-6, adaptive=False
    )


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
def test_no_cell_of_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    path = odd_release().to_csv(tmp_path / "m.csv", reference={"g": "u,=2+2"})
    text = path.read_text()
    for cells in csv.reader(text.splitlines()):
        for cell in cells:
            number = cell.removeprefix("-").replace(".", "").replace("e-", "").isdecimal()
            assert number or not re.match(r"\s*[=+\-@\t\r]", cell), cell
    assert "# An apostrophe before a name" in text
    rows = [row for row in csv.reader(text.splitlines()) if not row[0].startswith("#")]
    names, told = rows[0][2:], summary_statistics(odd_release(), reference={"g": "u,=2+2"}).names
    assert [row[1] for row in rows[3:]] == names
    assert len(set(names)) == len(names)
    assert tuple(name.removeprefix("'") for name in names) == told
    by_r = numbers_in_r(
        f"t <- read.csv('{path}', comment.char = '#', check.names = FALSE); n <- names(t)[-(1:2)];"
        f'stopifnot(identical(t$`_NAME_`[-(1:2)], n)); cat(sum(startsWith(n, "\'")))'
    )
    assert by_r == [6.0]


def test_other_csv_files_say_nothing_of_it(tmp_path: Path) -> None:
    assert "postrophe" not in release().to_csv(tmp_path / "m.csv").read_text()


def test_r_reads_the_csv_file_and_the_script_for_lavaan(tmp_path: Path) -> None:
    found = summary_statistics(release())
    table, script = release().to_csv(tmp_path / "m.csv"), release().to_lavaan(tmp_path / "m.R")
    show = "cat(sprintf('%.17g\\n', c(n, m, c))"
    by_csv = numbers_in_r(
        f"t <- read.csv('{table}', comment.char = '#', check.names = FALSE); n <- t[t$`_TYPE_` == 'N', 3];"
        "m <- unlist(t[t$`_TYPE_` == 'MEAN', -(1:2)]); c <- as.matrix(t[t$`_TYPE_` == 'COV', -(1:2)]);"
        f"stopifnot(identical(t$`_NAME_`[-(1:2)], names(t)[-(1:2)])); {show})"
    )
    same(found, by_csv)
    by_script = numbers_in_r(
        f"source('{script}'); n <- moments$nobs; m <- moments$mean; c <- moments$cov;"
        f"stopifnot(identical(names(m), colnames(c))); {show})"
    )
    same(found, by_script)


def test_the_command_goes_by_the_ending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(VECTORS / "adaptive.dpgram.json")
    for ending in (".csv", ".xpt", ".dta", ".R", ".json"):
        assert run(["export", source, "-o", str(tmp_path / f"m{ending}")]) == 0
        assert (tmp_path / f"m{ending}").stat().st_size > 500
    assert run(["export", source, "-o", str(tmp_path / "two.csv"), "--on", "age,charges"]) == 0
    assert len((tmp_path / "two.csv").read_text().splitlines()[-1].split(",")) == 4
    for more, words in (
        (["-o", str(tmp_path / "m.sav")], "ending"),
        (["-o", str(tmp_path / "m.csv")], "exists already"),
        (["-o", str(tmp_path / "n.json"), "--on", "age"], "whole release"),
        (["-o", str(tmp_path / "n.csv"), "--reference", "smoker=maybe"], "no level"),
    ):
        capsys.readouterr()
        assert run(["export", source, *more]) == 2
        assert words in capsys.readouterr().err


KINDS_OF_TABLE = ("default", "plain", "missing", "unit", "midpoint")


@pytest.fixture(scope="module")
def skewed() -> dict[str, Release]:
    """Wages with a long tail, so that far rows count less; in `missing` the well paid do not tell all."""
    draw = np.random.default_rng(5)
    rows = 12_000
    school = draw.integers(6, 20, rows).astype(float)
    wage = 20.0 * school + draw.lognormal(5.0, 0.8, rows)
    table = {"school": school, "wage": wage, "woman": draw.random(rows) < 0.5}
    gaps = table | {"school": np.where(wage > 550, np.nan, school)}
    schema = dg.Schema(dg.numeric("school", 0, 20), dg.numeric("wage", 0, 5_000), dg.boolean("woman"))
    asked = {
        "default": (table, {"adaptive": True}),
        "plain": (table, {"adaptive": False}),
        "missing": (gaps, {"adaptive": True}),
        "unit": (table | {"id": np.arange(rows) // 3}, {"adaptive": True, "unit": "id", "unit_rows": 3}),
        "midpoint": (gaps, {"adaptive": False, "missing": "midpoint"}),
    }
    return {
        kind: publish(data, schema, entropy=SeededEntropy(place), epsilon=10, delta=1e-6, **options)
        for place, (kind, (data, options)) in enumerate(asked.items())
    }


def moments_in(written: Path) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, means and covariances as a program finds them in the file."""
    if written.suffix == ".csv":
        rows = [row for row in csv.reader(written.read_text().splitlines()) if not row[0].startswith("#")]
        return rows[0][2:], np.array(rows[2][2:], float), np.array([row[2:] for row in rows[3:]], float)
    if written.suffix == ".R":
        show = "cat(sprintf('%.17g\\n', c(moments$mean, moments$cov)))"
        numbers = np.array(numbers_in_r(f"source('{written}'); {show}"))
        named = re.search(r"names <- c\((.*)\)", written.read_text())
        assert named is not None
        names = [name.strip('" ') for name in named[1].split(",")]
        return names, numbers[: len(names)], numbers[len(names) :].reshape(len(names), len(names))
    pyreadstat = pytest.importorskip("pyreadstat")
    if written.suffix == ".dta":
        frame, _ = pyreadstat.read_dta(written)
        return [*frame.columns[2:]], frame.iloc[1, 2:].to_numpy(float), frame.iloc[2:, 2:].to_numpy(float)
    frame, _ = pyreadstat.read_xport(written)
    sums = frame.iloc[:-1, 2:].to_numpy(float) / frame.iloc[-1, 2]
    return [*frame.columns[3:]], sums[0, 1:], sums[1:, 1:] - np.outer(sums[0, 1:], sums[0, 1:])


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("kind", KINDS_OF_TABLE)
def test_a_regression_from_a_file_is_that_of_the_release(
    skewed: dict[str, Release], kind: str, ending: str, tmp_path: Path
) -> None:
    source = skewed[kind]
    written = tmp_path / f"m{ending}"
    written.write_bytes(FORMATS[ending](summary_statistics(source)))
    names, means, covariance = moments_in(written)
    places = [name.lower() for name in names]
    x, y = [places.index("school"), places.index("woman")], places.index("wage")
    slopes = np.linalg.solve(covariance[np.ix_(x, x)], covariance[x, y])
    intercept = means[y] - slopes @ means[x]
    fit = source.regress("wage", on=["school", "woman"])
    errors = np.array([*fit.bse.values()])
    told = np.array([*fit.params.values()])
    assert [*fit.params] == ["(intercept)", "school", "woman"]
    assert (np.abs([intercept, *slopes] - told) < 0.05 * errors).all()


def test_files_say_of_which_rows_their_moments_are(skewed: dict[str, Release]) -> None:
    told = {kind: "\n".join(summary_statistics(own).header("x")) for kind, own in skewed.items()}
    for kind, words in told.items():
        left_out = "rows with a missing value are left out" in words
        assert left_out == (kind != "midpoint")
        assert ("bounded influence" in words) == ("in weight: long rows count less" in words)
    assert "bounded influence" in told["default"]
    assert "Caution" not in told["plain"]
    assert "of about 12,0" in told["missing"]
    assert "of about 12,0" not in told["default"]
    assert "all rows of one 'id' count at most as one" in told["unit"]


def test_sas_has_room_for_few_words_about_rows(skewed: dict[str, Release], tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    expected = {
        "default": "complete rows alone; far ones count less",
        "plain": "complete rows alone",
        "midpoint": "gaps as midpoints",
    }
    for kind, words in expected.items():
        assert len(words) <= LONGEST_LABEL
        _, meta = pyreadstat.read_xport(skewed[kind].to_xport(tmp_path / f"{kind}.xpt"))
        assert meta.column_labels[2] == words
