"""Figures are drawn without a window or global state, at 800 pixels, and say what they must."""

from __future__ import annotations

import builtins
import struct
from pathlib import Path

import numpy as np
import pytest
from tests.unit.analysis.tables import exact_moments, insurance, insurance_schema

from dpgram.analysis.association import correlations
from dpgram.analysis.pca import pca
from dpgram.analysis.plots import coefficient_plot, correlation_plot
from dpgram.analysis.regress import regress
from dpgram.errors import DpgramError, MissingExtra
from dpgram.figures import WIDTH
from dpgram.schema import Schema, categorical, numeric

MOMENTS = exact_moments(insurance_schema(derived=True), insurance(20_000), sigma=40.0)
FIT = regress(MOMENTS, "charges")


def png_width(path: Path) -> int:
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">I", content[16:20])[0]


def words(figure: object) -> str:
    texts = [
        text.get_text() for axis in figure.axes for text in (axis.title, axis.xaxis.label, axis.yaxis.label)
    ]
    texts += [axis.get_title(loc="left") for axis in figure.axes]
    texts += [tick.get_text() for axis in figure.axes for tick in axis.get_yticklabels()]
    texts += [text.get_text() for axis in figure.axes for text in axis.texts]
    texts += [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return "\n".join(texts)


def test_coefficients_with_intervals(tmp_path: Path) -> None:
    figure = FIT.plot(str(tmp_path / "fit.png"))
    assert png_width(tmp_path / "fit.png") == 800 == 100 * WIDTH
    told = words(figure)
    for name in FIT.names[1:]:
        assert name in told
    assert "95% interval (population)" in told
    assert "(intercept)" not in told
    (lines,) = figure.axes[0].collections
    assert len(lines.get_segments()) == len(FIT.names) - 1


def test_intervals_are_drawn_where_they_are() -> None:
    """To their ends, or to the edge of the axis, where the number of an end beyond it is told."""
    figure = coefficient_plot(FIT, level=0.9, kind="table")
    (axis,) = figure.axes
    (lines,) = axis.collections
    left, right = axis.get_xlim()
    beyond = {text.get_text() for text in axis.texts}
    intervals, whole = FIT.conf_int(0.9, "table"), 0
    for name, segment in zip(FIT.names[1:], lines.get_segments(), strict=True):
        span = {"age": 72.0, "bmi": 50.0}.get(name)
        if span is None:
            continue
        low, high = (span * end for end in intervals[name])
        np.testing.assert_allclose([segment[0][0], segment[1][0]], [max(low, left), min(high, right)])
        cut = [f"{end:.3g}" for end in (low, high) if not left <= end <= right]
        assert set(cut) <= beyond
        whole += not cut
    assert whole  # one of the two at least is inside


def test_refused_intervals_are_not_drawn() -> None:
    fit = regress(exact_moments(insurance_schema(), insurance(2000), sigma=900.0), "charges")
    figure = fit.plot()
    assert not figure.axes[0].collections
    assert "no intervals" in words(figure)


@pytest.mark.parametrize(("k", "panels"), [(1, 1), (2, 2), (5, 2)])
def test_components(tmp_path: Path, k: int, panels: int) -> None:
    figure = pca(MOMENTS, k).plot(tmp_path / "pca.png")
    assert png_width(tmp_path / "pca.png") == 800
    assert len(figure.axes) == panels
    assert "Scree" in words(figure)
    if panels == 2:
        assert "component 2" in words(figure)


def test_unstable_components_are_called_so() -> None:
    noisy = exact_moments(insurance_schema(), insurance(2000), sigma=60.0)
    assert "NOT stable" in words(pca(noisy, 3, on=["region"]).plot())


def test_correlations(tmp_path: Path) -> None:
    """Grey for what the noise hides, empty where an interval includes zero, a number elsewhere."""
    name = "a name that is far too long to print"
    rng = np.random.default_rng(3)
    x, unrelated = rng.normal(0, 0.3, (2, 4_000)).clip(-1, 1)
    schema = Schema(
        numeric("x", -1, 1),
        numeric("unrelated", -1, 1),
        numeric("same", -1, 1),
        categorical(name, ["a", "b"]),
    )
    columns = {"x": x, "unrelated": unrelated, "same": x + rng.normal(0, 0.1, 4_000)}
    columns[name] = np.array(["a"] * 4_000)
    found = correlations(exact_moments(schema, columns, sigma=5.0))
    figure = correlation_plot(found, path=tmp_path / "c.png")
    assert png_width(tmp_path / "c.png") == 800
    told = words(figure)
    assert {"a nam…g to print=a", "a nam…g to print=b"} <= set(told.split("\n"))  # cut, and told apart
    assert "hidden by the privacy noise" in told
    texts = np.array([text.get_text() for text in figure.axes[0].texts]).reshape(5, 5)
    assert (texts[3:] == "–").all()
    assert (texts[:, 3:] == "–").all()
    assert texts[0, 1] == texts[1, 0] == ""
    assert texts[0, 2] == f"{found.estimate[0, 2]:.2f}"
    (image,) = figure.axes[0].images
    assert image.get_array().mask[3:].all()
    assert image.get_array()[0, 1] == 0.0


def test_wide_correlations_have_no_numbers() -> None:
    schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(60)))
    rows = np.random.default_rng(0).uniform(-1, 1, (500, 60))
    figure = correlation_plot(correlations(exact_moments(schema, {f"x{i}": rows[:, i] for i in range(60)})))
    assert not figure.axes[0].texts
    assert len(figure.axes[0].get_yticklabels()) <= 60


def test_matplotlib_is_asked_for_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *arguments: object, **options: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"dpgram\[plot\]"):
        FIT.plot()


@pytest.mark.parametrize("name", ["fit.foo", "fit"])
def test_a_name_that_tells_no_format_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DpgramError, match=rf"must end in its format; got '{name}'; .* Name it fit\.png"):
        FIT.plot(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DpgramError, match="Choose a folder that exists"):
        FIT.plot(tmp_path / "no" / "fit.png")


def test_a_figure_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "fit.png").write_bytes(b"earlier")
    FIT.plot(tmp_path / "fit.png")
    assert png_width(tmp_path / "fit.png") == 800


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
@pytest.mark.parametrize("dark", [False, True])
def test_dark_and_light_in_every_form(tmp_path: Path, kind: str, dark: bool) -> None:
    """Writing stands out from its ground by at least 4.5 : 1 in both."""
    from matplotlib.colors import to_rgb

    figures = [
        FIT.plot(str(tmp_path / f"fit.{kind}"), dark=dark),
        pca(MOMENTS).plot(tmp_path / f"pca.{kind}", dark=dark),
        correlation_plot(correlations(MOMENTS), path=tmp_path / f"correlation.{kind}", dark=dark),
    ]
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind]
    for name in ("fit", "pca", "correlation"):
        assert (tmp_path / f"{name}.{kind}").read_bytes().startswith(start)

    def light(colour: object) -> float:
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in to_rgb(colour)]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    for figure in figures:
        ground = light(figure.get_facecolor())
        assert (ground < 0.1) == dark
        for axis in figure.axes:
            for text in (axis.xaxis.label, *axis.get_xticklabels(), *axis.get_yticklabels()):
                low, high = sorted((light(text.get_color()), ground))
                assert (high + 0.05) / (low + 0.05) >= 4.5
