"""Each defect of fits that was once there, put back into today's code: the test named for it fails.

The code of that time has another interface, so that the tests cannot be run on it. What they would have shown
is shown here: the test passes as the code is, and fails once the defect is back.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.unit import test_cli as commands
from tests.unit.analysis import test_association as associations
from tests.unit.analysis import test_conventions as conventions
from tests.unit.analysis import test_plots as plots
from tests.unit.analysis import test_repair as repairs

from dpgram import figures
from dpgram.analysis import association, design, inference, repair, summary, trust
from dpgram.analysis import plots as drawing
from dpgram.analysis.moments import Moments
from dpgram.analysis.results import Regression
from dpgram.cli import analyse
from dpgram.document import original_units

regress = import_module("dpgram.analysis.regress")  # its name in the folder is that of the function
run, odd = commands.run, commands.odd  # fixtures

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Defect:
    name: str
    back: Callable[[Patch], None]
    """Puts it back into the code."""
    tests: tuple[Callable[..., None], ...]
    given: tuple[dict[str, Any], ...] = ({},)
    """Arguments of the tests that are no fixtures: the defect shows with each of them."""
    fails: type[Exception] = AssertionError
    """How the tests fail, where it is not a comparison or an error that did not come."""


def noise_has_correlations(patch: Patch) -> None:
    patch.setattr(association, "SIGNAL_TO_NOISE", -np.inf)


def correlations_have_no_intervals(patch: Patch) -> None:
    patch.setattr(
        association.Correlations, "conf_int", lambda found, level=0.95: (found.estimate, found.estimate)
    )


def an_infinite_interval_beside_an_error(patch: Patch) -> None:
    patch.setattr(inference.Inference, "bounded", lambda found, level=0.95: found.trusted)


def a_bare_mark(patch: Patch) -> None:
    patch.setattr(drawing, "_open_ended", lambda axis, places: None)


def the_first_level(patch: Patch) -> None:
    def first(moments: Moments, name: str) -> str:
        return str(moments.schema.encoded[moments.schema.indices(name)[0]].level)

    patch.setattr(design, "most_frequent", first)


def products_about_the_middle(patch: Patch) -> None:
    as_it_is = original_units._derived

    def centred(place: int, column: Any, *given: Any) -> original_units.OriginalColumn:
        found = as_it_is(place, column, *given)
        return replace(found, parts={place: found.scale / column.weight})

    patch.setattr(original_units, "_derived", centred)


def shrunken_params(patch: Patch) -> None:
    patch.setattr(Regression, "params", property(lambda fit: fit.fitted_params))


def almost_zero(patch: Patch) -> None:
    patch.setattr(regress, "ROUNDING", 0.0)


def refused_and_too_wide(patch: Patch) -> None:
    as_it_is = trust.noise_cautions
    patch.setattr(
        inference, "noise_cautions", lambda moments, solution, refused=False: as_it_is(moments, solution)
    )


def no_reason(patch: Patch) -> None:
    patch.setattr(summary, "reasons", lambda inference, level: [None] * len(inference.names))


def weights_are_rows(patch: Patch) -> None:
    as_it_is = summary.rows_fact
    patch.setattr(summary, "rows_fact", lambda moments: as_it_is(replace(moments, survey_weight=None)))


def refused_without_names(patch: Patch) -> None:
    patch.setattr(trust, "_between", lambda solution, moments, design: "")


def names_end_at_a_comma(patch: Patch) -> None:
    def split(texts: Any, schema: Any) -> list[str] | None:
        return None if texts is None else [name.strip() for text in texts for name in text.split(",")]

    patch.setattr(analyse, "given_names", split)


def always_shifted(patch: Patch) -> None:
    def shifted(gram: Any, context: repair.Context) -> Any:
        centred = repair.subtract_mean(gram, context)
        return centred + context.noise.expected_norm(len(gram)) * np.eye(len(gram))

    patch.setitem(repair.POLICIES, "add-norm", shifted)


def a_figure_of_matplotlib(patch: Patch) -> None:
    patch.setattr(figures, "_shown_in_notebooks", lambda: Figure)


NO_INTERVAL, ONE_ESTIMATE = conventions.TestNoInterval(), conventions.TestOneEstimate()
REFERENCE, LASSO, ANALYST = conventions.TestReference(), conventions.TestLasso(), commands.TestAnalyst()

DEFECTS = (
    Defect(
        "noise is shown as a correlation",
        noise_has_correlations,
        (associations.test_what_the_noise_hides_is_refused_by_name, plots.test_correlations),
    ),
    Defect(
        "a level without a row is among the strongest",
        noise_has_correlations,
        (associations.test_a_level_that_no_row_has_is_never_among_the_strongest,),
    ),
    Defect(
        "the strongest correlations are those of noise",
        correlations_have_no_intervals,
        (associations.test_nothing_is_strong_where_nothing_is_related,),
    ),
    Defect(
        "an infinite interval has an error and a p-value",
        an_infinite_interval_beside_an_error,
        (
            NO_INTERVAL.test_no_interval_is_no_error_and_no_p_value,
            NO_INTERVAL.test_neither_has_the_summary_or_the_frame,
        ),
    ),
    Defect(
        "no interval is drawn as a bare mark",
        a_bare_mark,
        (NO_INTERVAL.test_the_figure_has_an_arrow_instead_of_a_bare_mark,),
    ),
    Defect(
        "the reference is the first level, even if it is empty",
        the_first_level,
        (
            REFERENCE.test_the_most_frequent_level_is_compared_with,
            REFERENCE.test_an_empty_first_level_no_longer_costs_the_others_their_intervals,
            ANALYST.test_the_reference_level_is_the_most_frequent_or_the_one_asked_for,
        ),
    ),
    Defect(
        "interactions are centred at mid-range",
        products_about_the_middle,
        (conventions.test_difference_in_differences_is_what_r_shows,),
    ),
    Defect(
        "the mean of a product has other units than its coefficient",
        products_about_the_middle,
        (conventions.test_the_mean_of_a_product_is_that_of_the_values,),
    ),
    Defect(
        "coefficients are shrunken and their errors belong to others",
        shrunken_params,
        (
            ONE_ESTIMATE.test_params_are_what_errors_and_intervals_belong_to,
            ONE_ESTIMATE.test_the_fitted_ones_are_others_and_predict_uses_them,
        ),
    ),
    Defect("zeros of the lasso are not zero", almost_zero, (LASSO.test_zeros_are_zeros,)),
    Defect(
        "intervals that are not given are too wide",
        refused_and_too_wide,
        (conventions.test_where_intervals_are_refused_nothing_is_said_of_their_width,),
    ),
    Defect(
        "the JSON of a refused fit does not say why",
        no_reason,
        (ANALYST.test_the_json_of_a_refused_fit_says_why,),
    ),
    Defect(
        "the JSON of a coefficient without an interval does not say why",
        no_reason,
        (ANALYST.test_the_json_of_one_coefficient_without_an_interval_says_why,),
        fails=TypeError,  # no text to look in
    ),
    Defect(
        "the sum of weights is called rows",
        weights_are_rows,
        (conventions.test_with_weights_the_summary_does_not_call_their_sum_rows,),
    ),
    Defect(
        "a refused fit does not say which columns collide",
        refused_without_names,
        (conventions.test_a_refused_fit_says_which_columns_collide,),
    ),
    Defect(
        "a column with a comma in its name cannot be named",
        names_end_at_a_comma,
        (ANALYST.test_a_column_with_a_comma_in_its_name_can_be_named,),
        ({"how": "whole"}, {"how": "quoted"}, {"how": "twice"}),
    ),
    Defect(
        "add-norm shifts a matrix that needs no repair",
        always_shifted,
        (repairs.test_add_norm_shrinks_only_where_the_matrix_is_not_positive_definite,),
        ({"rows": 2000, "shrinks": False},),
    ),
    Defect(
        "figures do not show in a notebook",
        a_figure_of_matplotlib,
        (conventions.test_every_figure_shows_itself_in_a_notebook,),
        fails=AttributeError,  # no _repr_png_
    ),
)


@pytest.mark.parametrize(
    ("defect", "test"),
    [pytest.param(each, test, id=f"{each.name}-{test.__name__}") for each in DEFECTS for test in each.tests],
)
def test_it_is_caught(
    defect: Defect,
    test: Callable[..., None],
    monkeypatch: Patch,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    def arguments(given: dict[str, Any], folder: Path) -> dict[str, Any]:
        folder.mkdir(parents=True)
        known = {"tmp_path": folder, **given}
        return {
            name: known[name] if name in known else request.getfixturevalue(name)
            for name in inspect.signature(test).parameters
        }

    for number, given in enumerate(defect.given):
        test(**arguments(given, tmp_path / f"{number} without"))
        with monkeypatch.context() as patch:
            defect.back(patch)
            with pytest.raises((defect.fails, pytest.fail.Exception)):
                test(**arguments(given, tmp_path / f"{number} with"))
