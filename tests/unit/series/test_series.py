"""A series from its creation to its windows: files, participations, repeats, mistakes."""

from __future__ import annotations

import json
import stat
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.series.streams import ENGINE, SCHEMA, names, people, seeded

import dpgram as dg
from dpgram.analysis import estimand
from dpgram.analysis.moments import Moments
from dpgram.canonical_json import canonical_bytes, sha256_hex
from dpgram.core.units import PolicyCounts
from dpgram.errors import (
    AnalysisError,
    BudgetExceeded,
    DpgramError,
    DpgramWarning,
    GuaranteeError,
    OptionsError,
    ReleaseError,
)
from dpgram.noise.factor import coefficients
from dpgram.privacy import SeededEntropy
from dpgram.publishing import publish_with
from dpgram.rows.participation import GONE_THROUGH, LeftOut, keyed_hashes
from dpgram.series import Series
from dpgram.series._secret import open_secret
from dpgram.series.stream import Stream, secret_path

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Series:
    path = tmp_path_factory.mktemp("months") / "months.series"
    return seeded(path, [people(1_000 * t, 1_000, seed=t) for t in range(6)])


def kept(series: Series) -> list[Any]:
    """What only the curator knows of every period."""
    stream = Stream.read(series.path)
    with open_secret(secret_path(series.path), stream.head.series) as secret:
        return secret.past(len(stream.periods) + 1)


class TestReleases:
    def test_a_window_is_its_exact_sum_and_noise_of_the_stated_law(self, months: Series) -> None:
        exact = kept(months)
        ratios = []
        for first in range(1, 7):
            for last in range(first, 7):
                release = months.window(first, last)
                total = [
                    sum(cells)
                    for cells in zip(*(each.cells for each in exact[first - 1 : last]), strict=True)
                ]
                noise = [int(cell) - x for cell, x in zip(release.published.cells, total, strict=True)]
                width = release.schema.width
                diagonal = [i * (i + 1) // 2 + i for i in range(width)]
                ratios += [noise[i] / release.noise.diagonal_sd for i in diagonal]
        assert 0.5 < np.sqrt(np.mean(np.square(ratios))) < 2.0
        assert np.abs(ratios).max() < 6.0

    def test_the_stream_is_the_factor_times_the_exact_sums(self, months: Series) -> None:
        stream, exact = Stream.read(months.path), kept(months)
        c, sigma = coefficients(12), stream.opening.sigma
        far = []
        for t, period in enumerate(stream.periods):
            sums = [sum(c[t - s] * exact[s].cells[i] for s in range(t + 1)) for i in range(len(period.cells))]
            far += [(int(cell) - total) / sigma for cell, total in zip(period.cells, sums, strict=True)]
        assert np.abs(far).max() < 5.0
        assert max(abs(int(cell)) for cell in stream.periods[-1].cells) > 2**50

    def test_releases_answer_like_any_other(self, months: Series, tmp_path: Path) -> None:
        total = months.total()
        assert total.regress("y", ["x"]).inference().estimate[1] == pytest.approx(2.0, abs=0.3)
        assert total.count() == pytest.approx(6_000, rel=0.05)
        assert months.period("m3").count() == pytest.approx(1_000, rel=0.2)
        assert months.window("m2", 4).describe() is not None
        saved = total.save(tmp_path / "total.dpgram.json")
        assert dg.load(saved) == total
        assert total.explore(tmp_path / "page.html").exists()
        assert "m1 to m6" in total.report(tmp_path / "report.html").read_text()
        assert "m1 to m6" in str(total)

    def test_a_remedy_is_one_that_a_series_has(self, months: Series) -> None:
        """Its coordinates are fixed: no later period can be published without them."""
        moments = replace(Moments.of(months.total()), clip=None)
        told = " ".join(estimand.difference_cautions(moments, "population"))
        assert "Least squares itself takes a new series that is not adaptive" in told
        assert "takes a release" not in told
        of_pairs = " ".join(estimand.difference_cautions(moments, "population", of="correlations"))
        assert "correlations are those of bounded influence" in of_pairs
        assert "regression" not in of_pairs

    def test_counts_are_those_of_the_periods_added_up(self, months: Series) -> None:
        one, two, both = months.period(1), months.period(2), months.window(1, 2)
        cells = [int(release.measured[0].columns[0].counts[3]) for release in (one, two, both)]
        assert cells[0] + cells[1] == cells[2]
        assert both.measured[0].scale == pytest.approx(one.measured[0].scale * 2**0.5)

    def test_analysts_need_the_public_file_alone(self, months: Series, tmp_path: Path) -> None:
        alone = tmp_path / "copy.series"
        alone.write_bytes(months.path.read_bytes())
        assert Series.open(alone).window(2, 5) == months.window(2, 5)
        with pytest.raises(DpgramError, match=r"curator's file .* is missing"):
            Series.open(alone).publish(people(0, 5), "m7")

    def test_a_change_from_a_window_that_is_too_noisy_says_so(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 3_000), people(3_000, 30), people(4_000, 3_000)])
        trend = series.trend("y", ["x"])
        assert np.isnan(trend.conf_int("x")[:, 0]).tolist() == [False, True, False]
        assert trend.change("x", "m1", "m3").cautions == ()
        for change in (trend.change("x", "m1", "m2"), trend.slope("x")):
            assert "too noisy for an interval of its own: m2" in str(change)
        lines = trend.summary().splitlines()
        assert "\\n" not in trend.summary()
        (told,) = trend.slope("x").cautions
        assert lines.count(f"Caution: {told}.") == len(trend.names)

    def test_a_window_without_intervals_says_nothing_again(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 3_000), people(3_000, 30), people(4_000, 3_000)])
        trend = series.trend("y", ["x"])
        assert any(one.refusal is not None for one in trend.inferences)
        beginnings = [caution[:50] for caution in trend.cautions]
        assert any("count 1/m each" in caution for caution in trend.cautions)
        assert len(set(beginnings)) == len(beginnings)

    def test_a_slope_is_refused_where_one_window_decides_alone(self, months: Series) -> None:
        """As in forged files. Errors that differ less are no reason."""
        trend = months.trend("y", ["x"])
        honest = trend.covariances["x"]
        for factor, known in ((1e5, True), (1e20, False), (np.inf, False)):
            larger = np.diag([1.0, *[factor] * (len(honest) - 1)])
            with np.errstate(invalid="ignore"):
                other = replace(trend, covariances={**trend.covariances, "x": larger @ honest @ larger})
            if known:
                assert 0.0 < other.slope("x").std_error < np.inf
            else:
                with pytest.raises(AnalysisError, match=r"x: no straight line, one window .* decides alone"):
                    other.slope("x")
            assert ("x: no straight line" in other.summary()) is not known
        both = np.ones_like(honest)
        with pytest.raises(AnalysisError, match="no straight line"):  # errors that are all the same
            replace(trend, covariances={"x": both}).slope("x")

    def test_a_slope_is_that_of_generalised_least_squares(self, months: Series) -> None:
        trend = months.trend("y", ["x"])
        by_hand = np.linalg.inv(trend.covariances["x"])
        design = np.column_stack([np.ones(len(trend.places)), trend.places])
        wanted = np.linalg.solve(design.T @ by_hand @ design, design.T @ by_hand @ trend.estimates("x"))[1]
        assert trend.slope("x").estimate == pytest.approx(wanted, rel=1e-9)

    def test_a_signed_window_verifies(self, months: Series, tmp_path: Path) -> None:
        from dpgram.release.signing import SigningKey

        key = SigningKey.create(tmp_path / "key")
        signed = months.total().sign(key)
        signed.verify(signed.signature.public_key)


class TestPromise:
    """A file that promises more than its noise gives is refused."""

    def forged(self, release: dg.Release, **changes: Any) -> bytes:
        content = json.loads(release.to_json())
        del content["digest"]
        for path, value in changes.items():
            place = content
            *way, last = path.split("__")
            for step in way:
                place = place[step]
            place[last] = value
        return canonical_bytes({**content, "digest": sha256_hex(content)})

    def test_it_loads_as_it_is(self, months: Series) -> None:
        assert dg.Release.from_json(self.forged(months.total())) == months.total()

    @pytest.mark.parametrize(
        "changes",
        [
            {"series": None},
            {"series__participations": 2},
            {"series__first": 3},
            {"series__periods": 200},
            {"series__bits": 6},
            {"guarantee__mu": 0.3},
            {"adjacency": "replace-one", "public_rows": 6_000},
            {"group": {"column": "g", "level": "a"}},
        ],
        ids=str,
    )
    def test_other_facts_are_refused(self, months: Series, changes: dict[str, Any]) -> None:
        release = months.total()
        sigma = release.noise.sigma * (0.99 if changes == {"series__bits": 6} else 1.0)
        changes = {**changes, "noise__sigma": sigma, "mechanism__parameters": {"sigma": sigma}}
        if changes.get("series", 0) is None:
            # As a release by itself the same noise would be a much better one: more privacy than promised.
            assert dg.Release.from_json(self.without_series(release)).series is None
            return
        with pytest.raises(ReleaseError, match="contradict"):
            dg.Release.from_json(self.forged(release, **changes))

    def without_series(self, release: dg.Release) -> bytes:
        content = json.loads(release.to_json())
        del content["digest"], content["series"]
        return canonical_bytes({**content, "digest": sha256_hex(content)})

    def test_a_declared_model_is_refused(self, months: Series) -> None:
        """Its price is that of one period, and a person may be in several."""
        release = months.total()
        table = people(0, 2_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (model,) = publish_with(
                table,
                SCHEMA,
                epsilon=4.0,
                delta=1e-5,
                models=[dg.linear("y", ["x"])],
                entropy=SeededEntropy(3),
            )
        steps = [each for each in json.loads(model.to_json())["measurements"] if each["kind"] == "step"]
        assert steps
        sigma = release.noise.sigma * 1e3  # so that the price of everything would be within the promise
        content = json.loads(release.to_json())
        raw = self.forged(
            release,
            measurements=[*content["measurements"], *steps],
            noise__sigma=sigma,
            mechanism__parameters={"sigma": sigma},
        )
        with pytest.raises(ReleaseError):
            dg.Release.from_json(raw)

    def test_less_noise_is_refused(self, months: Series) -> None:
        release = months.window(2, 4)
        sigma = release.noise.sigma * 0.9
        raw = self.forged(release, noise__sigma=sigma, mechanism__parameters={"sigma": sigma})
        with pytest.raises(ReleaseError, match="contradict"):
            dg.Release.from_json(raw)

    def test_the_stated_price_is_that_of_the_whole_stream(self, months: Series) -> None:
        """Of the matrix, the counts of all periods and what the first one measured: a tight bound."""
        from dpgram.document.measurements import measured_price
        from dpgram.lattice import ROW_NORM_SQUARED

        for release in (months.total(), months.period(2), months.window(2, 5)):
            part, mu = release.series, release.guarantee.mu
            own = (ROW_NORM_SQUARED * part.gain / release.noise.sigma) ** 2
            share = (own + float(measured_price(release, 1))) / mu**2
            assert share == pytest.approx(1.0, abs=1e-9)


class TestFile:
    def test_it_is_chained_by_digests(self, months: Series) -> None:
        lines = months.path.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(lines):
            damaged = line.replace(b'"label":"m2"', b'"label":"m9"').replace(b'"apart":1', b'"apart":2')
            if damaged != line:
                with pytest.raises(ReleaseError, match="digest"):
                    Stream.of(b"".join([*lines[:number], damaged, *lines[number + 1 :]]))
        with pytest.raises(ReleaseError, match="digest"):
            Stream.of(b"".join([lines[0], lines[1], lines[3]]))

    def test_a_torn_last_line_is_no_period(self, months: Series) -> None:
        raw = months.path.read_bytes()
        assert Stream.of(raw[:-10]).labels == ("m1", "m2", "m3", "m4", "m5")

    @pytest.mark.parametrize("raw", [b"", b"{}\n", b"nothing\n", b'{"format": "dpgram-release"}\n'])
    def test_other_files_are_refused(self, raw: bytes) -> None:
        with pytest.raises(ReleaseError):
            Stream.of(raw)

    def test_nothing_but_cells_and_counts_depends_on_the_data(self, tmp_path: Path) -> None:
        """Plain columns: the same facts for two tables, and equal sizes of files but for digits."""
        heads = []
        for number, table in enumerate([people(0, 300), people(5_000, 40)]):
            path = tmp_path / f"{number}.series"
            seeded(path, [table], adaptive=False)
            stream = Stream.read(path)
            heads.append((stream.opening, stream.head.schema, stream.periods[0].histograms))
        assert heads[0] == heads[1]

    def test_the_curators_file_is_for_its_owner_and_says_so(self, months: Series) -> None:
        path = secret_path(months.path)
        assert path.name.endswith(".NOT-PRIVATE")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"NOT PRIVATE" in path.read_bytes().splitlines()[0]

    def test_a_curators_file_that_others_may_read_is_refused(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        secret_path(series.path).chmod(0o644)
        with pytest.raises(DpgramError, match="its owner alone may open, under one name; got mode 644"):
            series.publish(people(50, 50), "m2")

    @pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
    def test_a_link_in_place_of_the_curators_file_is_refused(self, tmp_path: Path, link: str) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        path, other = secret_path(series.path), tmp_path / "other"
        path.rename(other)
        before = other.read_bytes()
        getattr(path, link)(other)
        for refused in (
            lambda: series.publish(people(50, 50), "m2"),
            lambda: series.restore({"m1": people(0, 50)}),
        ):
            with pytest.raises(DpgramError, match=r"NOT-PRIVATE must be a file .*under one name; got .*link"):
                refused()
        assert other.read_bytes() == before

    def test_a_damaged_curators_file_is_refused(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50), people(50, 50)])
        path = secret_path(series.path)
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b'"m1"', b'"m3"'))
        before = path.read_bytes()
        with pytest.raises(DpgramError, match=r"record 1 of .* does not match its digest"):
            series.publish(people(100, 50), "m3")
        assert path.read_bytes() == before
        path.write_bytes(whole[: whole.index(b"\n") + 1] + whole[whole.index(b'{"kind":"line"') :])
        with pytest.raises(DpgramError, match="lacks period 1"):
            kept(series)


class TestParticipation:
    @pytest.mark.parametrize(("participations", "apart"), [(1, 1), (2, 1), (2, 3), (3, 2), (9, 1)])
    def test_they_are_found_in_every_piece_of_a_table(self, participations: int, apart: int) -> None:
        """Whether everybody is gone through or sorted: the same people as the rule says one by one."""
        key, draw = b"k" * 32, np.random.default_rng(3)
        periods = [set(draw.choice(20_000, 3_000, replace=False).tolist()) for _ in range(5)]
        past = [np.sort(keyed_hashes([str(each) for each in there], key)) for there in periods]
        left_out = LeftOut(key, past, participations=participations, apart=apart)
        pieces = [np.repeat(np.arange(first, first + 1_000), 2) for first in range(0, 20_000, 1_000)]
        assert len(pieces) > GONE_THROUGH
        found = [ids[left_out.among(pa.array(ids.astype(str), pa.large_string()))].tolist() for ids in pieces]
        near = periods[len(periods) - (apart - 1) :]
        gone = [
            person
            for person in range(20_000)
            if sum(person in there for there in periods) >= participations
            or any(person in there for there in near)
        ]
        assert [person for each in found for person in each] == sorted([*gone, *gone])

    def test_nobody_counts_more_often_than_allowed(self, tmp_path: Path) -> None:
        counted: list[PolicyCounts] = []
        series = Series.create(
            tmp_path / "a.series",
            SCHEMA,
            epsilon=4.0,
            delta=1e-5,
            periods=8,
            rows=dg.Rows(unit="id"),
            participations=2,
            apart=2,
            adaptive=False,
        )
        for number in range(1, 7):  # the same 40 people come every month
            series.publish(people(0, 40), f"m{number}", engine=ENGINE, progress=False, report=counted.append)
        assert [each.rows_used for each in counted] == [40, 0, 40, 0, 0, 0]
        assert [each.rows_left_out for each in counted] == [0, 40, 0, 40, 40, 40]

    def test_one_persons_rows_do_not_change_anothers_fate(self, tmp_path: Path) -> None:
        """Exact sums of all periods with and without one person differ in that person's periods alone."""
        found = []
        for number, first in enumerate([0, 1]):
            tables = [people(0, 30).slice(first), people(20, 30), people(0, 60).slice(first)]
            series = seeded(tmp_path / f"{number}.series", tables, adaptive=False)
            found.append(kept(series))
        assert found[0][0].cells != found[1][0].cells
        assert [each.cells for each in found[0][1:]] == [each.cells for each in found[1][1:]]

    def test_ids_are_kept_as_keyed_hashes(self, tmp_path: Path) -> None:
        table = pa.table({"id": ["Ada Lovelace"], "x": [1.0], "y": [2.0]})
        one, two = (seeded(tmp_path / f"{name}.series", [table]) for name in "ab")
        assert b"Lovelace" not in secret_path(one.path).read_bytes()
        assert kept(one)[0].people.tolist() != kept(two)[0].people.tolist()

    def test_ids_of_another_type_are_the_same_persons(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 30)], adaptive=False)
        counted: list[PolicyCounts] = []
        texts = people(0, 30).set_column(0, "id", pa.array([str(i) for i in range(30)]))
        from dpgram.privacy import SeededEntropy
        from dpgram.series._curate import publish

        publish(series.path, texts, "m2", engine=ENGINE, report=counted.append, entropy=SeededEntropy(9))
        assert counted[0].rows_left_out == 30

    @pytest.mark.parametrize("engine", ["local", "dask"])
    def test_engines_leave_out_the_same_people(self, engine: str, tmp_path: Path) -> None:
        data: Any = people(0, 400).to_pandas()
        again: Any = people(100, 400).to_pandas()
        if engine == "dask":
            dask = pytest.importorskip("dask.dataframe")
            data, again = (dask.from_pandas(table, npartitions=3) for table in (data, again))
        series = Series.create(
            tmp_path / "a.series", SCHEMA, epsilon=4.0, delta=1e-5, periods=8, rows=dg.Rows(unit="id")
        )
        counted: list[PolicyCounts] = []
        for number, table in enumerate([data, again], start=1):
            series.publish(table, f"m{number}", engine=engine, progress=False, report=counted.append)
        assert [each.rows_left_out for each in counted] == [0, 300]
        assert [len(each.people) for each in kept(series)] == [400, 100]


class TestRepeats:
    def test_a_period_published_twice_is_the_same_release(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 200), people(200, 200)])
        before = series.path.read_bytes()
        assert not series.published_before("m3")
        for number, table in ((1, people(0, 5)), (2, None)):
            assert series.published_before(f"m{number}")
            with pytest.warns(DpgramWarning, match=f"'m{number}' was published before: this table was not"):
                assert series.publish(table, f"m{number}") == series.total(number)
        assert series.path.read_bytes() == before

    def test_a_repeat_without_the_curators_file_is_told(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 200)])
        (tmp_path / "a.series.NOT-PRIVATE").unlink()
        with pytest.warns(DpgramWarning, match="'m1' was published before"):
            assert series.publish("nowhere.csv", "m1") == series.total(1)

    def test_what_was_drawn_before_an_interrupt_is_what_is_published(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Interrupted between the draw and the public file, for the first period and for a later one."""
        from dpgram.publishing.measurements.stream import StreamedGram
        from dpgram.series import _curate

        drawn: list[tuple[str, ...]] = []
        honest = StreamedGram.draw

        def noted(self: StreamedGram, exact: Any, entropy: Any) -> tuple[str, ...]:
            drawn.append(honest(self, exact, entropy))
            return drawn[-1]

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(StreamedGram, "draw", noted)
        series = Series.create(
            tmp_path / "a.series", SCHEMA, epsilon=4.0, delta=1e-5, periods=8, rows=dg.Rows(unit="id")
        )
        for number in (1, 2):
            with monkeypatch.context() as patch:
                patch.setattr(_curate, "_append", interrupt)
                with pytest.raises(KeyboardInterrupt):
                    series.publish(people(300 * number, 300), f"m{number}", engine=ENGINE, progress=False)
            assert len(Stream.read(series.path).periods) == number - 1
            with pytest.raises(OptionsError, match=f"'m{number}' was begun and interrupted"):
                series.publish(people(9_000, 300), "other", engine=ENGINE, progress=False)
            # Other rows, or none: what was drawn stays, and they are not read.
            assert not series.published_before(f"m{number}")
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                series.publish(people(0, 5), f"m{number}", engine=ENGINE, progress=False)
            assert not [each for each in told if "published before" in str(each.message)]
            assert Stream.read(series.path).periods[-1].cells == drawn[-1]
            assert len(drawn) == number
        assert [len(each.people) for each in kept(series)] == [300, 300]
        assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE"]

    def test_whoever_was_in_a_table_of_which_something_was_drawn_has_counted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first period is interrupted after its histograms, and goes on with a table of other people."""
        from dpgram.publishing.measurements.gram import FirstGram

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        series = Series.create(
            tmp_path / "a.series", SCHEMA, epsilon=4.0, delta=1e-5, periods=8, rows=dg.Rows(unit="id")
        )
        with monkeypatch.context() as patch:
            patch.setattr(FirstGram, "record", interrupt)
            with pytest.raises(KeyboardInterrupt):
                series.publish(people(0, 300), "m1", engine=ENGINE, progress=False)
        with pytest.raises(OptionsError, match="'m1' was begun"):
            series.publish(people(0, 300), "other", engine=ENGINE, progress=False)
        with pytest.warns(DpgramWarning, match=r"of the table that it read, comes from a\.series\.unf"):
            series.publish(people(300, 200), "m1", engine=ENGINE, progress=False)
        counted: list[PolicyCounts] = []
        series.publish(people(0, 600), "m2", engine=ENGINE, progress=False, report=counted.append)
        assert counted[0].rows_left_out == 500

    def test_what_a_killed_run_left_beside_a_published_period_goes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from dpgram.publishing._journal import Journal

        series = Series.create(tmp_path / "a.series", SCHEMA, epsilon=4.0, delta=1e-5, periods=8)
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "finish", lambda self: None)
            series.publish(people(0, 200), "m1", engine=ENGINE, progress=False)
        assert len(names(tmp_path)) == 3
        before = series.path.read_bytes()
        assert not series.published_before("m1")
        with warnings.catch_warnings():  # it is completed, no repeat
            warnings.simplefilter("error")
            series.publish(people(0, 200), "m1", engine=ENGINE, progress=False)
        assert series.published_before("m1")
        assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE"]
        assert series.path.read_bytes() == before

    def test_a_creation_that_was_interrupted_is_charged_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from dpgram.series import _curate

        ledger = dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=8, delta=1e-4)
        facts: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "periods": 8, "ledger": ledger}

        def interrupt(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(_curate, "write_whole", interrupt)
            with pytest.raises(KeyboardInterrupt):
                Series.create(tmp_path / "a.series", SCHEMA, **facts)
        assert len(ledger.history()) == 1
        Series.create(tmp_path / "a.series", SCHEMA, **facts)
        assert len(ledger.history()) == 1
        # Another one is another charge, also under the same name once that is free.
        Series.create(tmp_path / "b.series", SCHEMA, **facts)
        (tmp_path / "a.series").unlink()
        Series.create(tmp_path / "a.series", SCHEMA, **facts)
        assert len(ledger.history()) == 3

    def test_a_charge_whose_series_has_begun_serves_no_other(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Killed between the public file and the end of the call: the charge could be found again."""
        from dpgram.publishing._journal import Journal

        ledger = dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=8, delta=1e-4)
        facts: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "periods": 8, "ledger": ledger}
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "finish", lambda self: None)
            series = Series.create(tmp_path / "a.series", SCHEMA, **facts)
        assert any("unfinished" in name for name in names(tmp_path))
        series.publish(people(0, 200), "m1", engine=ENGINE, progress=False)
        assert not any("unfinished" in name for name in names(tmp_path))
        for path in (series.path, secret_path(series.path)):
            path.rename(path.with_name("moved." + path.name))
        Series.create(tmp_path / "a.series", SCHEMA, **facts)
        assert len(ledger.history()) == 2

    def test_a_missing_month(self, tmp_path: Path) -> None:
        series = Series.create(
            tmp_path / "a.series", SCHEMA, epsilon=4.0, delta=1e-5, periods=8, rows=dg.Rows(unit="id")
        )
        series.publish(people(0, 2_000), "m1", engine=ENGINE, progress=False)
        series.publish(None, "m2")
        series.publish(people(2_000, 2_000), "m3", engine=ENGINE, progress=False)
        assert abs(series.period("m2").count()) < 200
        assert series.total().count() == pytest.approx(4_000, rel=0.1)

    def test_the_horizon_ends(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50), people(50, 50)], periods=2)
        with pytest.raises(OptionsError, match="this series has reached its horizon"):
            series.publish(people(100, 50), "m3")

    def test_restored_from_kept_tables(self, tmp_path: Path) -> None:
        tables = [people(0, 200), people(150, 200)]
        series = seeded(tmp_path / "a.series", tables)
        before = kept(series)
        secret_path(series.path).unlink()
        with pytest.raises(DpgramError, match="missing"):
            series.publish(people(500, 50), "m3")
        series.restore({"m1": tables[0], "m2": tables[1]}, engine=ENGINE)
        assert [each.cells for each in kept(series)] == [each.cells for each in before]
        assert [len(each.people) for each in kept(series)] == [200, 150]
        assert stat.S_IMODE(secret_path(series.path).stat().st_mode) == 0o600

    def test_restored_from_another_table_is_refused(self, tmp_path: Path) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 2_000)])
        before = secret_path(series.path).read_bytes()
        with pytest.raises(DpgramError, match="not the one that was published"):
            series.restore({"m1": people(0, 1_000)}, engine=ENGINE)
        assert secret_path(series.path).read_bytes() == before


class TestBudget:
    def test_one_charge_for_the_horizon(self, tmp_path: Path) -> None:
        ledger = dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=3, delta=1e-5, unit="id")
        series = Series.create(
            tmp_path / "a.series",
            SCHEMA,
            epsilon=1.0,
            delta=1e-6,
            periods=8,
            rows=dg.Rows(unit="id"),
            ledger=ledger,
        )
        for number in range(3):
            series.publish(people(300 * number, 300), f"m{number}", engine=ENGINE, progress=False)
        assert len(ledger.history()) == 1
        ledger.verify([series.total(), series.period(2), series.window(1, 2)])
        assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE", "l.ledger"]

    def test_no_budget_no_series(self, tmp_path: Path) -> None:
        ledger = dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=0.5, delta=1e-6)
        with pytest.raises(BudgetExceeded):
            Series.create(tmp_path / "a.series", SCHEMA, epsilon=1.0, delta=1e-6, periods=8, ledger=ledger)
        assert names(tmp_path) == ["l.ledger"]

    def test_no_ledger_pays_for_seeded_noise(self, tmp_path: Path) -> None:
        from dpgram.privacy import SeededEntropy
        from dpgram.series._curate import create

        ledger = dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=3, delta=1e-5)
        facts: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "periods": 8}
        with pytest.raises(OptionsError, match="seeded"):
            create(tmp_path / "a.series", SCHEMA, ledger=ledger, entropy=SeededEntropy(1), **facts)
        assert len(ledger.history()) == 0


class TestMistakes:
    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"delta": 0}, "no pure guarantee"),
            ({"periods": 0}, "periods must be"),
            ({"periods": 481}, "periods must be"),
            ({"periods": 2.5}, "periods must be"),
            ({"participations": 13, "rows": dg.Rows(unit="id")}, "participations must be"),
            ({"participations": 2}, "without a unit"),
            ({"apart": 0}, "apart must be"),
            ({"rows": dg.Rows(by=dg.categorical("g", ["a"]))}, "neither groups nor blocks"),
            ({"rows": dg.Rows(weight=dg.numeric("w", 0, 3))}, "must be one of the schema"),
            ({"epsilon": 1e-5}, "noise"),
        ],
        ids=str,
    )
    def test_creation(self, options: dict[str, Any], match: str, tmp_path: Path) -> None:
        facts = {"epsilon": 1.0, "delta": 1e-6, "periods": 12, **options}
        with pytest.raises((GuaranteeError, DpgramError), match=match):
            Series.create(tmp_path / "a.series", SCHEMA, **facts)
        assert names(tmp_path) == []

    def test_open_columns_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DpgramError, match="has no bounds"):
            Series.create(
                tmp_path / "a.series", dg.Schema(dg.numeric("x")), epsilon=1.0, delta=1e-6, periods=12
            )

    def test_an_existing_file_is_left_alone(self, months: Series) -> None:
        before = months.path.read_bytes()
        with pytest.raises(OptionsError, match="already"):
            Series.create(months.path, SCHEMA, epsilon=1.0, delta=1e-6, periods=12)
        assert months.path.read_bytes() == before

    def test_the_first_period_needs_rows(self, tmp_path: Path) -> None:
        series = Series.create(tmp_path / "a.series", SCHEMA, epsilon=1.0, delta=1e-6, periods=12)
        with pytest.raises(OptionsError, match="first period"):
            series.publish(None, "m1")

    @pytest.mark.parametrize("period", ["", "a" * 65, "a\nb", 7, "m1 ", " m9", " "])
    def test_names_of_periods(self, period: Any, months: Series) -> None:
        with pytest.raises(OptionsError, match="a period needs a name"):
            months.publish(people(0, 5), period)

    @pytest.mark.parametrize("window", [("m1", "m9"), (0, 3), (4, 2)])
    def test_windows_that_are_not_there(self, window: tuple[Any, Any], months: Series) -> None:
        with pytest.raises(ReleaseError, match="no such"):
            months.window(*window)

    def test_a_table_that_cannot_be_read_costs_no_period(self, tmp_path: Path) -> None:
        series = Series.create(tmp_path / "a.series", SCHEMA, epsilon=4.0, delta=1e-5, periods=12)
        with pytest.raises(DpgramError):
            series.publish(tmp_path / "nothing.csv", "m1")
        assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE"]
        series.publish(people(0, 100), "first", engine=ENGINE, progress=False)
        assert series.labels == ("first",)

    def test_two_curators_at_once(self, months: Series) -> None:
        stream = Stream.read(months.path)
        with (
            open_secret(secret_path(months.path), stream.head.series),
            pytest.raises(DpgramError, match=r"another period .* is being published"),
        ):
            months.publish(people(0, 5), "m7")


class TestDrift:
    def test_what_the_clip_takes_is_told_by_period(self, tmp_path: Path) -> None:
        """The last month has rows far outside of what the first one showed."""
        tables = [people(4_000 * t, 4_000, slope=2.0) for t in range(3)]
        far = people(50_000, 4_000)
        far = far.set_column(2, "y", pa.array(np.where(np.arange(4_000) % 2, -19.0, 39.0)))
        series = seeded(tmp_path / "a.series", [*tables, far])
        text = series.summary()
        assert "In m4 the clip took clearly more" in text
        calm = seeded(tmp_path / "b.series", tables)
        assert "clearly more" not in calm.summary()


def test_without_units_and_warnings(tmp_path: Path) -> None:
    """Rows by themselves; nothing is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        series = Series.create(tmp_path / "a.series", SCHEMA, epsilon=4.0, delta=1e-5, periods=12)
        series.publish(people(0, 3_000), "m1", engine=ENGINE, progress=False)
        series.publish(people(0, 3_000), "m2", engine=ENGINE, progress=False)
    assert series.total().count() == pytest.approx(6_000, rel=0.1)
