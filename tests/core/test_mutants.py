"""Broken cores: each check left out, rounding reversed and bound halved is seen by a named quick test.

A mutant is one text of a module replaced by another. The core is loaded anew with it, and so is the test that
must fail. Where the guarantee holds all the same the second lock is named, itself a mutant: with both broken
the test fails.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import pytest

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "src" / "dpgram" / "core"


@dataclass(frozen=True)
class Mutant:
    """One replacement in one module; `seen_by` is the file and the name of a test."""

    name: str
    module: str
    text: str
    instead: str
    seen_by: str = field(kw_only=True)
    lock: Mutant | None = field(kw_only=True, default=None)


class Loader(SourceFileLoader):
    """A module whose source is changed in one place."""

    def __init__(self, name: str, mutants: Sequence[Mutant]) -> None:
        super().__init__(name, str(CORE / f"{name.rpartition('.')[2]}.py"))
        self._mutants = mutants

    def get_code(self, fullname: str) -> CodeType:
        source = Path(self.path).read_text(encoding="utf-8")
        for one in self._mutants:
            assert source.count(one.text) == 1, (
                f"{one.name}: the text is there {source.count(one.text)} times"
            )
            source = source.replace(one.text, one.instead)
        return compile(source, self.path, "exec")


class Finder:
    """Finds modules of the core with their mutants."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self._mutants = mutants

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        own = [one for one in self._mutants if f"dpgram.core.{one.module}" == name]
        if not own:
            return None
        return importlib.util.spec_from_file_location(name, loader=Loader(name, own))


@contextmanager
def core_with(mutants: Sequence[Mutant]) -> Iterator[None]:
    """In here imports of the core, and of what needs it, lead to one with these mutants."""

    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "dpgram"}
    kept, names = ("dpgram", "dpgram.errors"), vars(before["dpgram"]).copy()
    for name in before:
        if name not in kept:
            del sys.modules[name]
    finder = Finder(mutants)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] == "dpgram"]:
            del sys.modules[name]
        sys.modules |= before
        # Importing made the new ones attributes of the one folder that stayed.
        vars(before["dpgram"]).clear()
        vars(before["dpgram"]).update(names)


def loaded(file: str) -> ModuleType:
    """A file of tests, loaded anew with the core that is there now."""
    path = HERE / f"{file}.py"
    spec = importlib.util.spec_from_file_location(f"mutants_{file}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def run(module: ModuleType, name: str) -> None:
    """A test with all its parameters, or all tests of a file."""
    for each in [name] if name else [one for one in vars(module) if one.startswith("test_")]:
        function: Callable[..., None] = getattr(module, each)
        marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
        for chosen in itertools.product(*(mark.args[1] for mark in marks)):
            with pytest.MonkeyPatch.context() as patch:
                given: dict[str, object] = {"monkeypatch": patch, "entropy": getattr(module, "fixed", None)}
                for mark, values in zip(marks, chosen, strict=True):
                    names, several = mark.args[0], isinstance(mark.args[0], tuple)
                    given |= zip(names, values, strict=True) if several else {names: values}
                wanted = inspect.signature(function).parameters
                function(**{name: value for name, value in given.items() if name in wanted})


def fails(test: str, *mutants: Mutant) -> bool:
    file, _, name = test.partition("::")
    with core_with(mutants):
        for one in mutants:
            importlib.import_module(f"dpgram.core.{one.module}")  # a text that does not fit is no success
        module = loaded(file)
        try:
            run(module, name)
        except (Exception, pytest.fail.Exception):  # noqa: BLE001 (however it shows)
            return True
    return False


BOUNDS = "test_encode::test_lines_lie_within_their_bounds"
REFUSED = "test_encode::test_no_map_is_accepted_whose_numbers_could_be_inexact"
LOST = "test_encode::test_what_is_lost_is_counted_by_its_kind"
NEIGHBOURS = "test_neighbours::test_other_rows_keep_their_bits_and_every_row_its_bound"
FAILED_ROWS = "test_lattice::test_a_row_that_fails_the_test_counts_nowhere"
SIZES = "test_lattice::test_weights_and_sizes"
THIRDS = "test_lattice::test_a_third_of_a_unit_is_rounded_down"
ALONE = "test_lattice::test_a_row_alone_has_the_bits_that_it_has_among_others"
LIBRARY = "test_lattice::test_inexact_libraries_are_refused"
UNITS = "test_sums::test_what_one_unit_adds_is_bounded"
APART = "test_sums::test_a_unit_taken_away_takes_what_it_adds_alone"
ALIKE = "test_sums::test_rows_that_count_alike_and_only_so_many"
GROUPS = "test_sums::test_groups_together_are_the_whole"
WHOLE = "test_sums::test_what_is_not_whole_is_refused"
FLUSH = "test_sums::test_float_sums_are_exact_up_to_the_flush"
SENSITIVITY = "test_prices::test_sensitivities"
NOISE = "test_prices::test_noise_without_a_proof_has_no_price"
MU = "test_prices::test_the_largest_mu_keeps_its_promise_and_little_more_would_not"
KEEPS = "test_prices::test_everything_together_keeps_the_guarantee"
CELLS = "test_prices::test_scales_of_noise_have_power_both_ways"
MATRICES = "test_prices::test_every_cell_of_a_matrix_has_noise_of_its_own"
BALLS = "test_noise::test_the_matrix_agrees_with_floats_on_the_same_uniforms"

EVERY_ROW = Mutant("no test of |q|²", "lattice", "    if len(over):\n", "    if False:\n", seen_by=NEIGHBOURS)
CLIPPED_WEIGHTS = Mutant("weights above 1", "units", "np.clip(weights, 0.0, 1.0)", "weights", seen_by=UNITS)

ENCODE = [
    Mutant("no upper end", "encode", "np.minimum(z, self.high, out=z)", "z", seen_by=BOUNDS),
    Mutant("no lower end", "encode", "np.maximum(z, self.low, out=z)", "z", seen_by=BOUNDS),
    Mutant("a line not rounded", "encode", "return np.rint(z, out=z)", "return z", seen_by=BOUNDS),
    Mutant("gaps keep what stood there", "encode", "out[lost] = line.absent", "pass", seen_by=BOUNDS),
    Mutant(
        "gaps beyond the bound", "encode", "EXACT + 1, abs(line.absent))", "EXACT + 1, 0)", seen_by=BOUNDS
    ),
    Mutant(
        "infinite cells count",
        "encode",
        "    lost = ~np.isfinite(cell)\n",
        "    lost = np.isnan(cell)\n",
        seen_by=BOUNDS,
    ),
    Mutant("clamped where none lies outside", "encode", "cell.min() >= line.low and ", "", seen_by=BOUNDS),
    Mutant("parts of levels", "encode", " & (np.floor(cell) == cell)", "", seen_by=LOST),
    Mutant("lines too large", "encode", "if bound > EXACT:", "if False:", seen_by=REFUSED),
    Mutant(
        "products too large",
        "encode",
        "self.bounds[line.source] * self.bounds[line.other] > EXACT",
        "False",
        seen_by=REFUSED,
    ),
    Mutant(
        "sums too large",
        "encode",
        "sum(map(int.__mul__, map(abs, row), self.bounds)) > EXACT",
        "False",
        seen_by=REFUSED,
    ),
    Mutant("bounds half as large", "encode", "max(int(found) if", "max(int(found) // 2 if", seen_by=BOUNDS),
    Mutant(
        "transforms of floats", "encode", "any(type(x) is not int for x in row)", "False", seen_by=REFUSED
    ),
]
LATTICE = [
    EVERY_ROW,
    Mutant("rows not rounded", "lattice", "            np.rint(out, out=out)\n", "", seen_by=NEIGHBOURS),
    Mutant(
        "no second test",
        "lattice",
        'cut[:, ~(np.einsum("ij,ij->j", cut, cut) <= limit[over])] = 0.0',
        "pass",
        seen_by=FAILED_ROWS,
    ),
    Mutant(
        "a limit twice as large", "lattice", "SQUARE // sizes", "2 * (SQUARE // sizes)", seen_by=NEIGHBOURS
    ),
    Mutant("a third rounded up", "lattice", "SQUARE // sizes", "-(-SQUARE // sizes)", seen_by=THIRDS),
    Mutant("weights left out", "lattice", "np.multiply(factor, weights, out=factor)", "pass", seen_by=SIZES),
    Mutant("rows with gaps count", "lattice", "factor[lost] = 0.0", "pass", seen_by=SIZES),
    Mutant(
        "lengths added up pairwise",
        "lattice",
        "    np.multiply(lines[0], lines[0], out=total)\n    for line in lines[1:]:",
        "    np.add.reduce(lines * lines, axis=0, out=total)\n    for line in ():",
        seen_by=ALONE,
    ),
    Mutant("any library", "lattice", "if not _exact(min(width, 512)):", "if False:", seen_by=LIBRARY),
    Mutant(
        "no clip", "lattice", "np.divide(radius, factor, out=factor)", "factor[:] = 1.0", seen_by=NEIGHBOURS
    ),
    Mutant(
        "sizes left out",
        "lattice",
        "np.divide(factor, np.sqrt(sizes.astype(np.float64)), out=factor)",
        "pass",
        seen_by=NEIGHBOURS,
        lock=EVERY_ROW,
    ),
    Mutant(
        "cut by rounding",
        "lattice",
        "cut = np.trunc(exact(over))",
        "cut = np.rint(exact(over))",
        seen_by=NEIGHBOURS,
        lock=Mutant(
            "no second test",
            "lattice",
            'cut[:, ~(np.einsum("ij,ij->j", cut, cut) <= limit[over])] = 0.0',
            "pass",
            seen_by=NEIGHBOURS,
        ),
    ),
]
UNIT = [
    CLIPPED_WEIGHTS,
    Mutant(
        "one row too many",
        "units",
        "_places(owners[order]) < at_most",
        "_places(owners[order]) <= at_most",
        seen_by=ALIKE,
    ),
    Mutant(
        "every row counts whole",
        "units",
        "np.maximum(sizes[units], 1)",
        "np.ones_like(sizes[units])",
        seen_by=UNITS,
    ),
    Mutant(
        "one row less to share",
        "units",
        "np.full(self.rows, counting.limit)",
        "np.full(self.rows, counting.limit - 1)",
        seen_by=ALIKE,
    ),
    Mutant(
        "every row of a unit in a histogram",
        "units",
        "best[1:] = owners[order[1:]] != owners[order[:-1]]",
        "pass",
        seen_by=UNITS,
    ),
    Mutant("chosen by place", "units", "(second, first, gaps, owners)", "(gaps, owners)", seen_by=APART),
    Mutant(
        "rows without a rule",
        "units",
        "if self._owned is None and any(",
        "if False and any(",
        seen_by="test_sums::test_units_without_a_rule_are_refused",
    ),
    Mutant(
        "counted in rows of those left out",
        "units",
        "grouped & weighted & ~out",
        "grouped & weighted",
        seen_by="test_sums::test_who_is_left_out_counts_nowhere",
    ),
    Mutant(
        "shares rounded up",
        "units",
        "np.floor(np.square(self.weights[places]) * SQUARE)",
        "np.ceil(np.square(self.weights[places]) * SQUARE) ",
        seen_by=UNITS,
        lock=CLIPPED_WEIGHTS,
    ),
]
SUMS = [
    Mutant(
        "sums that are not whole",
        "sums",
        "if not np.array_equal(whole, self._floats):",
        "if False:",
        seen_by=WHOLE,
    ),
    Mutant(
        "no checksum",
        "sums",
        "if np.add.reduce(found, axis=None) != np.dot(rows, rows):",
        "if False:",
        seen_by=WHOLE,
    ),
    Mutant("no flush", "sums", "if self._pending + len(piece) > EXACT_ROWS:", "if False:", seen_by=FLUSH),
    Mutant(
        "any number of rows",
        "sums",
        "if seen.rows_used > MOST_ROWS:",
        "if False:",
        seen_by="test_sums::test_too_many_rows_are_refused",
    ),
    Mutant(
        "m in one group only", "sums", "block.placed_anywhere & able", "block.placed & able", seen_by=GROUPS
    ),
    Mutant(
        "rows beyond the limit", "sums", "block.placed & (counted | ~able)", "block.placed", seen_by=ALIKE
    ),
    Mutant(
        "sizes forgotten",
        "sums",
        "sizes=None if sizes is None else sizes[places]",
        "sizes=None",
        seen_by=UNITS,
    ),
    Mutant(
        "weights forgotten",
        "sums",
        "weights=None if block.weights is None else block.weights[places]",
        "weights=None",
        seen_by="test_sums::test_weighted_rows_count_less",
    ),
    Mutant(
        "two shares at a node",
        "sums",
        "_counted(first, own, STEPS) - beyond",
        "_counted(first, own, STEPS)",
        seen_by=UNITS,
    ),
    Mutant(
        "nodes beyond the end",
        "sums",
        "np.where(position < STEPS, position, float(STEPS))",
        "position * 2.0",
        seen_by=UNITS,
    ),
    Mutant(
        "every row of a unit counted",
        "sums",
        "        chosen = block.once\n        read, used",
        "        chosen = np.flatnonzero(block.placed)\n        read, used",
        seen_by=UNITS,
    ),
    Mutant(
        "every text of a unit counted",
        "sums",
        "        chosen = block.once\n        read = int",
        "        chosen = np.flatnonzero(block.placed)\n        read = int",
        seen_by=UNITS,
    ),
]
PRICES = [
    Mutant(
        "one of two contributions", "sensitivity", '"replace-one": 2', '"replace-one": 1', seen_by=SENSITIVITY
    ),
    Mutant(
        "half of Δ₂²",
        "sensitivity",
        "histograms(what) * SQUARE**2",
        "histograms(what) * SQUARE**2 // 2",
        seen_by=SENSITIVITY,
    ),
    Mutant(
        "half of Δ₁",
        "sensitivity",
        "histograms(what) * SQUARE\n",
        "histograms(what) * SQUARE // 2\n",
        seen_by=SENSITIVITY,
    ),
    Mutant("one histogram of many", "sensitivity", "return len(columns)", "return 1", seen_by=SENSITIVITY),
    Mutant("one of many counts", "sensitivity", "return what.shape[0]", "return 1", seen_by=SENSITIVITY),
    Mutant("one column of texts", "sensitivity", "return len(lines)", "return 1", seen_by=SENSITIVITY),
    Mutant(
        "groups of several kinds",
        "sensitivity",
        "if len(found) == 1:",
        "if found:",
        seen_by="test_prices::test_what_has_no_proof_has_no_sensitivity",
    ),
    Mutant(
        "half of the least σ",
        "accounting",
        "SIGMA_AT_LEAST: Final = 2.0**26",
        "SIGMA_AT_LEAST: Final = 2.0**25",
        seen_by=NOISE,
    ),
    Mutant(
        "Laplace cells of a matrix",
        "accounting",
        '(noise.law == "matrix-laplace") != (',
        '(noise.law == "matrix-laplace") and not (',
        seen_by=NOISE,
    ),
    Mutant(
        "texts without their δ",
        "accounting",
        "(noise.delta > 0.0) != isinstance(what, Levels)",
        "noise.delta < 0.0",
        seen_by=NOISE,
    ),
    Mutant(
        "no scale is too small", "accounting", "if noise.scale < SIGMA_AT_LEAST:", "if False:", seen_by=NOISE
    ),
    Mutant(
        "the curve rounded down",
        "accounting",
        "first * (1.0 + room) - second * (1.0 - room)",
        "first * (1.0 - room) - second * (1.0 + room)",
        seen_by="test_prices::test_the_curve_is_never_below_the_truth",
    ),
    Mutant("no room in δ", "accounting", "delta * (1.0 - 1.5 * SLACK)", "delta", seen_by=MU),
    Mutant("no room in ε", "accounting", "math.nextafter(epsilon - SLACK, 0.0)", "epsilon", seen_by=MU),
    Mutant(
        "pure ε for nothing",
        "accounting",
        "Fraction(epsilon) - spent.epsilon",
        "Fraction(epsilon)",
        seen_by=KEEPS,
    ),
    Mutant(
        "δ of texts for nothing",
        "accounting",
        "Fraction(delta) - spent.delta",
        "Fraction(delta)",
        seen_by=KEEPS,
    ),
    Mutant(
        "parts that are not held",
        "accounting",
        "            and self.delta <= other.delta * ROUNDED\n",
        "",
        seen_by="test_prices::test_prices_by_hand",
    ),
    Mutant(
        "drawn before it is paid",
        "run",
        "            office.pay()\n            drawn =",
        "            drawn =",
        seen_by="test_run::test_the_order",
    ),
    Mutant(
        "seen before it is kept",
        "run",
        "            office.keep(number, stage, published)\n",
        "",
        seen_by="test_run::test_the_order",
    ),
    Mutant(
        "drawn beyond the promise",
        "run",
        "if not spent.within(promised):",
        "if False:",
        seen_by="test_run::test_what_was_not_promised_is_not_read",
    ),
    Mutant(
        "drawn a second time",
        "run",
        "if published is None:",
        "if True:",
        seen_by="test_run::test_a_stage_that_was_kept_is_not_drawn_again",
    ),
    Mutant(
        "every text is shown",
        "run",
        " if cell >= least}",
        "}",
        seen_by="test_run::test_texts_are_shown_above_a_threshold_alone",
    ),
]
DRAWN = [
    Mutant(
        "off the diagonal rounded down",
        "noise",
        "while 2 * Fraction(scale) ** 2 < Fraction(sigma) ** 2:",
        "while False:",
        seen_by="test_prices::test_noise_lies_where_the_price_says",
    ),
    Mutant(
        "half the noise of cells",
        "noise",
        "flat + sample(noise.scale, flat.size)",
        "flat + sample(noise.scale / 2, flat.size)",
        seen_by=CELLS,
    ),
    Mutant(
        "one draw for all cells",
        "noise",
        "flat + sample(noise.scale, flat.size)",
        "flat + sample(noise.scale, 1)",
        seen_by=CELLS,
    ),
    Mutant(
        "no noise on the diagonal",
        "noise",
        "exact.diagonal().astype(object) + diagonal",
        "exact.diagonal().astype(object)",
        seen_by=MATRICES,
    ),
    Mutant(
        "no noise below the diagonal",
        "noise",
        "exact[below].astype(object) + rest",
        "exact[below].astype(object)",
        seen_by=MATRICES,
    ),
    Mutant(
        "too little off the diagonal",
        "noise",
        "entropy.discrete_gaussian(offdiagonal_scale_at_least(noise.scale)",
        "entropy.discrete_gaussian(noise.scale / 2",
        seen_by=MATRICES,
    ),
    Mutant(
        "a law that ends",
        "noise",
        "whole = largest + _unbounded(beyond, largest, draw)",
        "whole = largest",
        seen_by="test_noise::test_a_laplace_draw_at_the_end_of_its_range_goes_on",
    ),
    Mutant("rounded down, not to the nearest", "balls", "(ball + arb((1, -1)))", "ball", seen_by=BALLS),
    Mutant(
        "one Wishart matrix of two",
        "balls",
        "[-x for x in normals[half:]]",
        "[x for x in normals[half:]]",
        seen_by=BALLS,
    ),
    Mutant(
        "balls too small",
        "balls",
        "radius = (1, exponent)",
        "radius = (1, exponent - 1)",
        seen_by="test_balls::test_numbers_read_elsewhere_go_on",
    ),
]
MUTANTS = [*ENCODE, *LATTICE, *UNIT, *SUMS, *PRICES, *DRAWN]


def name_of(mutant: Mutant) -> str:
    return f"{mutant.module}: {mutant.name}"


@pytest.mark.parametrize("test", sorted({one.seen_by for one in MUTANTS}))
def test_the_core_itself_passes(test: str) -> None:
    assert not fails(test)


@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.lock is None], ids=name_of)
def test_a_mutant_is_seen(mutant: Mutant) -> None:
    assert fails(mutant.seen_by, mutant)


@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.lock is not None], ids=name_of)
def test_a_second_lock_holds(mutant: Mutant) -> None:
    assert mutant.lock is not None
    assert not fails(mutant.seen_by, mutant)
    assert fails(mutant.seen_by, mutant, mutant.lock)


FILES = {
    "units": ["test_sums"],
    "sensitivity": ["test_prices"],
    "accounting": ["test_prices"],
    "noise": ["test_noise"],
    "balls": ["test_noise"],
}
"""Which files see a refusal that is left out; of other modules the file of that name."""


def refusals() -> Iterator[Mutant]:
    """Every `raise` of the core, left out."""
    for path in sorted(CORE.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines(keepends=True)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Raise) and node.exc is not None and node.cause is None:
                before = "".join(lines[node.lineno - 3 : node.lineno - 1])
                text = before + "".join(lines[node.lineno - 1 : node.end_lineno])
                gone = before + " " * node.col_offset + "pass\n"
                for file in FILES.get(path.stem, [f"test_{path.stem}"]):
                    yield Mutant(f"line {node.lineno}", path.stem, text, gone, seen_by=file)


@pytest.mark.full
@pytest.mark.parametrize("mutant", list(refusals()), ids=name_of)
def test_no_refusal_can_go(mutant: Mutant) -> None:
    assert fails(mutant.seen_by, mutant)


@pytest.mark.full
@pytest.mark.parametrize("file", sorted({one.seen_by for one in refusals()}))
def test_the_core_itself_passes_whole_files(file: str) -> None:
    assert not fails(file)


def test_the_real_core_is_back() -> None:
    import dpgram.core.sums
    from dpgram.core.encode import Line, RowMap

    with core_with([EVERY_ROW]):
        from dpgram.core import lattice

        mutant = lattice
    from dpgram.core import lattice

    assert mutant is not lattice
    assert lattice is sys.modules["dpgram.core.lattice"]
    assert dpgram.core.sums.Work is lattice.Work
    assert isinstance(RowMap((Line(kind="one"),), (), 1.0), dpgram.core.sums.RowMap)


def test_nothing_stays_of_a_core_that_was_loaded_beside() -> None:
    """Names of the library that are functions must not become modules for the tests that follow."""
    import dpgram

    before, modules = vars(dpgram).copy(), set(sys.modules)
    with core_with([]):
        importlib.import_module("dpgram.publishing.publisher")
    assert vars(dpgram) == before
    assert {name for name in sys.modules if name.startswith("dpgram")} <= modules
