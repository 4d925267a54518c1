"""Whatever carries a promise says so where its noise came from a seed, and only there."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.unit.releases import gaussian_release
from tests.unit.series.streams import people, seeded

from dpgram.release import Release


def told(release: Release, folder: Path) -> dict[str, str]:
    files = {
        "csv": release.to_csv(folder / "a.csv"),
        "xport": release.to_xport(folder / "a.xpt"),
        "stata": release.to_stata(folder / "a.dta"),
        "lavaan": release.to_lavaan(folder / "a.R"),
    }
    texts = {name: Path(path).read_bytes().decode("latin-1") for name, path in files.items()}
    return texts | {"repr": repr(release), "str": str(release)}


@pytest.mark.parametrize("entropy", ["system", "seeded"])
def test_releases(tmp_path: Path, entropy: str) -> None:
    release = msgspec.structs.replace(gaussian_release(), entropy=entropy, receipt=None)
    for name, text in told(release, tmp_path).items():
        assert ("SEEDED" in text) == (entropy == "seeded"), name


def test_series(tmp_path: Path) -> None:
    series = seeded(tmp_path / "a.series", [people(0, 200), people(200, 400)])
    assert "SEEDED: whoever knows the seed" in str(series)
    assert "SEEDED" in repr(series)


def test_trends(tmp_path: Path) -> None:
    series = seeded(tmp_path / "a.series", [people(0, 3000), people(3000, 3000)])
    assert "the noise came from a seed" in str(series.trend("y", ["x"]))
