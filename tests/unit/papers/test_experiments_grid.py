"""The runner of the papers' experiments: resumable, deterministic, indifferent to the number of processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from dpgram.errors import DpgramError
from dpgram_papers.experiments import grid as grids
from dpgram_papers.experiments.claims import verdict_on, verdict_on_parts, write_verdicts
from dpgram_papers.experiments.drawing import Line, Panel, PaperFigure, draw
from dpgram_papers.experiments.grid import Grid, Key, generator_of, run

CALLS: list[Key] = []


def measure(cell: Key, seed: int) -> Mapping[str, float]:
    CALLS.append(cell)
    value = float(generator_of(seed, *cell).standard_normal())
    return {"a": value, "b": 10.0 * float(cell[0])}


def a_grid(rows: int = 3, runs: int = 2) -> Grid:
    cells = tuple((i, run) for i in range(rows) for run in range(runs))
    return Grid(keys=("i", "run"), columns=("a", "b"), cells=cells, measure=measure, together=runs)


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


def test_finished_cells_are_kept_and_skipped(tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    first = run(a_grid(2), file, seed=1)
    assert len(CALLS) == 4
    again = run(a_grid(3), file, seed=1)
    assert CALLS[4:] == [(2, 0), (2, 1)]
    np.testing.assert_array_equal(first.table, again.table[:4])
    written = file.read_text()
    run(a_grid(3), file, seed=1)
    assert len(CALLS) == 6
    assert file.read_text() == written


def test_a_line_cut_short_is_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    whole = run(a_grid(), file, seed=1)
    file.write_text(file.read_text()[:-5])
    CALLS.clear()
    again = run(a_grid(), file, seed=1)
    assert CALLS == [(2, 1)]
    np.testing.assert_array_equal(whole.table, again.table)


def test_another_seed_is_another_experiment(tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    one, two = run(a_grid(), file, seed=1), run(a_grid(), file, seed=2)
    assert len(CALLS) == 12
    assert not np.any(one.values("a") == two.values("a"))
    np.testing.assert_array_equal(run(a_grid(), file, seed=1).table, one.table)


def test_two_processes_find_the_same(tmp_path: Path) -> None:
    alone = run(SHARED, tmp_path / "one.csv", seed=3)
    together = run(SHARED, tmp_path / "two.csv", seed=3, processes=2)
    np.testing.assert_array_equal(alone.table, together.table)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


# A function that another process can import by its name.
SHARED = Grid(
    keys=("log2_rows", "run", "log2_direct", "m"),
    columns=("non-private",),
    cells=((12, 0, 12, 0), (12, 1, 12, 0)),
    measure=__import__("dpgram_papers.experiments.sheffet_multiple", fromlist=["measure"]).measure,
)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    file.write_text("seed,other\n1,2\n")
    with pytest.raises(DpgramError, match="another experiment"):
        run(a_grid(), file, seed=1)


def test_progress_is_told(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    run(a_grid(), tmp_path / "grid.csv", seed=1, tell=lambda done, of: heard.append((done, of)))
    assert heard == [(k, 6) for k in range(7)]


def test_what_was_found_can_be_asked(tmp_path: Path) -> None:
    found = run(a_grid(), tmp_path / "grid.csv", seed=1)
    assert found.axis("i") == [0, 1, 2]
    np.testing.assert_array_equal(found.series("b", "i"), [0.0, 10.0, 20.0])
    assert found.deviation("b", i=1) == 0.0
    assert np.isnan(found.mean("b", i=7))


def test_claims_are_written(tmp_path: Path) -> None:
    verdicts = [
        verdict_on("§1", "a | b", True, "2"),
        verdict_on("§2", "c", False, "it is not", printed=True),
        verdict_on("§3", "d", None, "no such setting"),
    ]
    assert [v.outcome for v in verdicts] == ["pass", "false as printed", "not measured"]
    assert verdicts[1].text == "false as printed, because it is not"
    write_verdicts(verdicts, tmp_path / "claims", "Claims")
    assert (tmp_path / "claims.md").read_text().count("\n| ") == 4
    assert (tmp_path / "claims.csv").read_text().splitlines()[0] == "place,claim,outcome,found"


def test_a_claim_about_a_range_may_hold_in_part() -> None:
    outcomes = [
        verdict_on_parts("§1", "a", holds, "b").outcome
        for holds in ([True, True], [False, True, True], [False, False])
    ]
    assert outcomes == ["pass", "holds in part", "fail"]
    nowhere = verdict_on_parts("§1", "a", [False], "b", nowhere="not measured")
    assert nowhere.outcome == "not measured"


def test_figures_are_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    line = Line(label="a", x=[1.0, 2.0], y=[3.0, np.nan], spread=[0.1, np.nan])
    paper_figure = PaperFigure(
        title="t", panels=(Panel(title="p", lines=(line,), x_label="x", y_label="y"),) * 4, columns=3
    )
    made = [[file.read_bytes() for file in draw(paper_figure, tmp_path / name)] for name in ("one", "two")]
    assert made[0] == made[1]
    assert grids.PROCESSES_AT_MOST == 2
