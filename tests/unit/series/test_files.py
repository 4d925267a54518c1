"""The two files of a series, when they are old, edited, lost or in the way: no second noise, no lost charge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.series.streams import ENGINE, names, people, seeded

from dpgram.errors import DpgramError, OptionsError
from dpgram.privacy import SeededEntropy
from dpgram.publishing import _journal
from dpgram.publishing.measurements.stream import StreamedGram
from dpgram.series import Series, _curate
from dpgram.series._secret import secret_path
from dpgram.series.stream import Stream

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")

FACTS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "periods": 8}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Every line of a stream that is drawn from now on."""
    every: list[tuple[str, ...]] = []
    honest = StreamedGram.draw

    def noted(self: StreamedGram, exact: Any, entropy: Any) -> tuple[str, ...]:
        every.append(honest(self, exact, entropy))
        return every[-1]

    monkeypatch.setattr(StreamedGram, "draw", noted)
    return every


def published(series: Series, table: Any, period: str, **options: Any) -> Stream:
    """One more period, with noise of the kind that the series has."""
    noise = SeededEntropy(77) if Stream.read(series.path).head.entropy == "seeded" else None
    return _curate.publish(
        series.path, table, period, engine=ENGINE, progress=False, entropy=noise, **options
    )


def interrupted(series: Series, table: Any, period: str, patch: pytest.MonkeyPatch) -> None:
    """A period that is drawn, and stopped before its line is out."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with patch.context() as here:
        here.setattr(_curate, "_appended", interrupt)
        with pytest.raises(KeyboardInterrupt):
            published(series, table, period)


class TestNoSecondNoise:
    @pytest.mark.parametrize("label", ["m2", "other"])
    def test_an_old_copy_of_the_public_file_draws_nothing(
        self, label: str, tmp_path: Path, drawn: list[Any]
    ) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        old = series.path.read_bytes()
        published(series, people(50, 50), "m2")
        series.path.write_bytes(old)
        with pytest.raises(DpgramError, match=r"'m2' was drawn before, .* an old copy"):
            published(series, people(50, 50), label)
        assert len(drawn) == 2
        assert series.path.read_bytes() == old

    def test_files_of_other_labels_do_not_go_together(self, tmp_path: Path, drawn: list[Any]) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        old = [path.read_bytes() for path in (series.path, secret_path(series.path))]
        published(series, people(50, 50), "m2")
        other = series.path.read_bytes()
        for path, raw in zip((series.path, secret_path(series.path)), old, strict=True):
            path.write_bytes(raw)
        published(series, people(50, 50), "another")
        series.path.write_bytes(other)
        with pytest.raises(DpgramError, match="period 2 of the series is not the one in"):
            published(series, people(100, 50), "m3")
        assert len(drawn) == 3

    def test_another_version_of_the_library_goes_on(
        self, tmp_path: Path, drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series = seeded(tmp_path / "a.series", [people(0, 50)])
        interrupted(series, people(50, 50), "m2", monkeypatch)
        monkeypatch.setattr(_journal, "version", lambda _: "999.0")
        assert published(series, people(50, 50), "m2").periods[-1].cells == drawn[-1]
        assert len(drawn) == 2
        assert names(tmp_path) == ["a.series", "a.series.NOT-PRIVATE"]

    def test_names_with_the_letters_of_patterns(
        self, tmp_path: Path, drawn: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        series = seeded(tmp_path / "a[1].series", [people(0, 50)])
        interrupted(series, people(50, 50), "m2", monkeypatch)
        with pytest.raises(OptionsError, match="'m2' was begun and interrupted"):
            published(series, people(50, 50), "other")
        with monkeypatch.context() as patch:
            patch.setattr(_journal.Journal, "finish", lambda self: None)
            published(series, people(50, 50), "m2")
        published(series, None, "m2")
        assert len(drawn) == 2
        assert names(tmp_path) == ["a[1].series", "a[1].series.NOT-PRIVATE"]
