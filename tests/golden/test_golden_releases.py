"""Released files must reload for ever: these were written by earlier versions and are never made again.

Made by make_releases.py; the numbers below were read from the files when they were made (dpgram 0.1.0).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest

from dpgram.document.measurements import known_rows, learnt_bounds, learnt_levels
from dpgram.privacy.events import GaussianEvent
from dpgram.release import json_schema as release_schema
from dpgram.release import load

HERE = Path(__file__).parent


class Known(NamedTuple):
    digest: str
    columns: int
    first_cell: int
    count: float
    charges: float
    guarantee: tuple[float, float]


KNOWN = {
    "insurance-gaussian-v1": Known(
        digest="ab7e0d02c44468fbaa3d18baf8b75a5f427e4b631d1fdaf7a3a0596aab3201b6",
        columns=15,
        first_cell=211_671_664_325,
        count=1997.765339378521,
        charges=6675.979503985739,
        guarantee=(1.0, 1e-6),
    ),
    "insurance-matrix-laplace-v1": Known(
        digest="2b71ea6be42f0a07fd352e5d798d198fad032defe2a20d664b0b1af4a1e02081",
        columns=8,
        first_cell=552_785_714_275,
        count=1158.3490829158109,
        charges=6870.614001903425,
        guarantee=(2.0, 0.0),
    ),
    "insurance-described-v1": Known(
        digest="8db18b237bee2bc2e1cfd00eedd1ee6167dab0bd3b7e05b2c963a2995c8e7ef2",
        columns=8,
        first_cell=552_785_714_275,
        count=1158.3490829158109,
        charges=6870.614001903425,
        guarantee=(2.0, 0.0),
    ),
    "insurance-learnt-v1": Known(
        digest="58063badb700cb33a06e088f92f051e5f7b4a9a5ad2c553f90c41d709a42a1e7",
        columns=7,
        first_cell=999_254_096_436,
        count=4816.012636477133,
        charges=6251.47122830001,
        guarantee=(2.0, 1e-6),
    ),
}


def test_no_file_is_forgotten() -> None:
    assert {path.name.removesuffix(".dpgram.json") for path in HERE.glob("*.json")} == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_reloads_as_it_was(name: str) -> None:
    path, known = HERE / f"{name}.dpgram.json", KNOWN[name]
    release = load(path)
    assert release.digest == known.digest
    assert release.to_json() == path.read_bytes()
    assert release.schema.width == known.columns
    assert release.lattice_matrix[0, 0] == known.first_cell
    assert release.count() == pytest.approx(known.count, rel=1e-9)
    assert release.mean()["charges"] == pytest.approx(known.charges, rel=1e-9)
    assert (release.guarantee.epsilon, release.guarantee.delta) == known.guarantee
    jsonschema.validate(json.loads(path.read_bytes()), release_schema.json_schema())


def test_receipt_is_read_back() -> None:
    receipt = load(HERE / "insurance-gaussian-v1.dpgram.json").receipt
    assert receipt is not None
    assert receipt.ledger_name == "golden “ledger”"
    assert receipt.entry == 1
    assert isinstance(receipt.event, GaussianEvent)


def test_words_about_a_release_are_read_back() -> None:
    about = load(HERE / "insurance-described-v1.dpgram.json").about
    assert about is not None
    assert (about.title, about.licence) == ("Insured people", "CC BY 4.0")
    assert load(HERE / "insurance-matrix-laplace-v1.dpgram.json").about is None


def test_what_the_first_edition_learnt_is_read_as_measurements() -> None:
    """Written by the first edition with `bounds_budget`, `levels_budget` and a private clip (seed 5)."""
    release = load(HERE / "insurance-learnt-v1.dpgram.json")
    assert [type(each).__name__.removeprefix("Measured") for each in release.measured] == [
        "Rows",
        "Levels",
        "Octaves",
        "Bins",
        "Lengths",
    ]
    assert learnt_bounds(release) == ("age", "charges")
    assert learnt_levels(release) == {"smoker": ("no", "yes")}
    assert known_rows(release) == pytest.approx(5_364_916_829_907 / 2**30)
    fitted = release.regress("charges").fitted_params
    assert fitted["age"] == pytest.approx(114.16720513067426, rel=1e-6)
    assert fitted["smoker=yes"] == pytest.approx(10422.17769657992, rel=1e-6)
