"""What a release shows: matrices, moments, words; and whether its parts agree with one another."""

from __future__ import annotations

import dataclasses
import math

import msgspec
import numpy as np
import pytest

from dpgram.analysis.association import correlations
from dpgram.analysis.denoise import NO_NOISE, central_moments
from dpgram.analysis.display import in_words
from dpgram.analysis.moments import Moments
from dpgram.document.fields import (
    MechanismUsed,
    PublishedMatrix,
    StatedGuarantee,
)
from dpgram.document.original_units import change_of_units
from dpgram.errors import AnalysisError, DpgramError, ReleaseError
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED, cell_unit
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.events import GaussianEvent, PureEvent
from dpgram.release import Release
from dpgram.schema import Schema, boolean, numeric

from .releases import RELEASES, encoded_rows, gaussian_release, laplace_release, schema, triangle, zeros


def original_values(declared: Schema, encoded: np.ndarray) -> np.ndarray:
    """The table behind the encoded rows: a product is that of the values, `age^P2` stands for age²."""
    columns = {
        column.name: column.centre + column.half_width * encoded[:, i] / column.weight
        for i, column in enumerate(declared.encoded)
    }
    columns["age*charges"] = columns["age"] * columns["charges"]
    columns["age^P2"] = columns["age"] ** 2
    return np.column_stack(list(columns.values()))


class TestViews:
    def test_the_matrix_is_symmetric_and_in_encoded_units(self) -> None:
        release = gaussian_release()
        rows = encoded_rows(release.schema, 400, 1)
        matrix = release.matrix()
        assert (matrix == matrix.T).all()
        # Rounding a row to the lattice moves each entry by at most half a step.
        step = release.radius / ROW_NORM
        np.testing.assert_allclose(matrix, rows.T @ rows, atol=400 * release.radius * step)
        expected = release.lattice_matrix.astype(float) * cell_unit(release.radius)
        np.testing.assert_array_equal(matrix, expected)

    def test_original_units_undo_the_encoding(self) -> None:
        """T G Tᵀ equals the Gram of the table in original units, computed from the rows."""
        release = gaussian_release()
        encoded = encoded_rows(release.schema, 400, 1)
        original = original_values(release.schema, encoded)
        got, want = release.matrix("original"), original.T @ original
        np.testing.assert_allclose(
            got, want, rtol=2e-4, atol=2e-4 * np.sqrt(np.outer(np.diag(want), np.diag(want))).max()
        )
        scale = np.sqrt(np.diag(want))
        np.testing.assert_allclose(got / np.outer(scale, scale), want / np.outer(scale, scale), atol=3e-4)

    def test_descriptive_statistics_without_noise(self) -> None:
        release = gaussian_release()
        encoded = encoded_rows(release.schema, 400, 1)
        original = original_values(release.schema, encoded)[:, 1:]
        assert release.count() == pytest.approx(400, rel=1e-3)
        mean = release.mean()
        assert list(mean) == [*release.columns[1:-2], "age:charges", "age^2"]
        spread = original.std(axis=0)
        np.testing.assert_allclose(
            (np.array(list(mean.values())) - original.mean(axis=0)) / spread, 0, atol=2e-3
        )
        want = np.cov(original.T, bias=True)
        units = change_of_units(release.schema)[1:, 1:]
        quiet = dataclasses.replace(Moments.of(release), noise=NO_NOISE)
        np.testing.assert_allclose(
            units @ central_moments(quiet) @ units.T / np.outer(spread, spread),
            want / np.outer(spread, spread),
            atol=5e-3,
        )
        # The release itself states noise that is not there, and draws the covariance towards zero for it.
        back = np.linalg.inv(units)
        shrunk = back @ np.asarray(release.covariance()) @ back.T
        assert np.linalg.eigvalsh(shrunk)[0] >= -1e-12
        assert 0.5 < np.trace(shrunk) / np.trace(back @ want @ back.T) < 1.0
        quiet_correlation = correlations(quiet)
        # Squares and products of columns are left out.
        np.testing.assert_allclose(quiet_correlation, np.corrcoef(encoded[:, 1:-2].T), atol=5e-3)

    def test_correlation_is_a_correlation_whatever_the_noise(self) -> None:
        draw = np.random.default_rng(5)
        declared = schema()
        for _ in range(20):
            noise = draw.normal(0, 1e10, (declared.width, declared.width))
            cells = gaussian_release().lattice_matrix.astype(float) + noise + noise.T
            cells[0, 0] = abs(cells[0, 0])
            published = PublishedMatrix(kind="gram", exponent=0, cells=triangle(cells))
            found = gaussian_release(published=published).correlation(kind="table")
            known = ~np.isnan(np.diag(found.estimate))
            inner = found.estimate[np.ix_(known, known)]
            low, high = (ends[np.ix_(known, known)] for ends in found.conf_int())
            assert (np.diag(inner) == 1).all()
            assert ((low <= inner) & (inner <= high) & (low >= -1) & (high <= 1)).all()
            assert np.isnan(found.estimate[~known]).all()

    def test_analyses_are_those_of_the_library(self) -> None:
        from dpgram.analysis.association import partial_correlation
        from dpgram.analysis.pca import pca
        from dpgram.analysis.regress import regress

        sigma = ROW_NORM_SQUARED / 1000  # next to no noise, so that every analysis has an answer
        release = gaussian_release(
            mechanism=MechanismUsed(name="gaussian", parameters={"sigma": sigma}, choice="asked for"),
            noise=SymmetricGaussian(sigma=sigma),
            guarantee=StatedGuarantee(epsilon=1e6, delta=1e-6, mu=1000.0, statement="none to speak of"),
            receipt=None,
        )
        assert (
            release.regress("charges", ["age"]).fitted_params
            == regress(release, "charges", ["age"]).fitted_params
        )
        ours, theirs = release.pca(2, standardise=False), pca(release, 2)
        np.testing.assert_array_equal(ours.loadings, theirs.loadings)
        assert release.partial_correlation("age", "active", []) == partial_correlation(
            release, "age", "active", []
        )

    def test_no_constant_no_means(self) -> None:
        declared = Schema(numeric("age", 0, 90), boolean("b"), constant=False)
        release = gaussian_release(schema=declared, published=zeros(2))
        for view in (release.count, release.mean, release.covariance, lambda: release.matrix("original")):
            with pytest.raises(AnalysisError, match="constant"):
                view()
        assert "no count" in str(release)

    def test_noise_larger_than_the_table(self) -> None:
        release = gaussian_release(published=zeros(schema().width))
        for view in (release.mean, release.covariance, release.correlation):
            with pytest.raises(AnalysisError, match="larger than the whole table"):
                view()
        assert "about 0" in str(release)

    def test_unknown_units(self) -> None:
        with pytest.raises(ReleaseError, match="metres"):
            gaussian_release().matrix("metres")  # the point of the test

    def test_the_integers_cannot_be_changed_in_place(self) -> None:
        with pytest.raises(ValueError, match="read-only"):
            gaussian_release().lattice_matrix[0, 0] = 1

    def test_a_release_is_frozen(self) -> None:
        with pytest.raises(AttributeError):
            gaussian_release().radius = 2.0  # the point of the test


class TestWords:
    @RELEASES
    def test_text_tells_everything_a_reader_needs(self, release: Release) -> None:
        text = str(release)
        for part in (
            *release.columns,
            release.digest,
            release.mechanism.name,
            release.adjacency,
            "ε = 1",
            "rows",
        ):
            assert part in text
        assert max(map(len, text.splitlines())) <= 100

    def test_repr_is_one_line(self) -> None:
        assert (
            repr(gaussian_release()) == "<Release: 8 columns, gaussian, epsilon=1, delta=1e-06, add-remove>"
        )

    def test_html_is_escaped(self) -> None:
        declared = Schema(numeric("<script>alert(1)</script>", 0, 1), numeric("a&b", 0, 1))
        html = gaussian_release(schema=declared, published=zeros(3))._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
        assert "a&amp;b" in html

    def test_seeded_noise_is_shouted(self) -> None:
        assert "SEEDED" in str(gaussian_release(entropy="seeded", receipt=None))
        assert "SEEDED" not in str(gaussian_release())

    def test_no_ledger_pays_for_seeded_noise(self) -> None:
        with pytest.raises(ReleaseError, match="seeded"):
            gaussian_release(entropy="seeded")

    def test_statement_says_who_is_protected(self) -> None:
        words = in_words(epsilon=math.log(3), delta=0.0, adjacency="replace-one", unit="person_id")
        assert "'person_id'" in words
        assert "at most 3 " in words
        assert "replacing" in words
        assert "δ = 0" in words
        assert "adding or removing" in in_words(epsilon=1, delta=1e-6, adjacency="add-remove", unit=None)
        exact = in_words(epsilon=1, delta=0.0, adjacency="add-remove", unit=None)
        assert exact.endswith("without exception (δ = 0).")
        rounded = in_words(epsilon=1, delta=0.0, adjacency="add-remove", unit=None, numerical_delta=1.01e-12)
        assert "without exception" not in rounded
        assert "0 (δ) + 1.1e-12" in rounded
        assert "floating point" in rounded

    @pytest.mark.parametrize(
        ("epsilon", "words"), [(1000.0, "at most e^1000 (ε = 1000)"), (1e6, "at most e^1e+06 (ε = 1e+06)")]
    )
    def test_a_factor_that_no_float_holds_is_left_as_a_power(self, epsilon: float, words: str) -> None:
        assert words in in_words(epsilon=epsilon, delta=0, adjacency="add-remove", unit=None)
        assert "at most 1.014e+304" in in_words(epsilon=700, delta=0, adjacency="add-remove", unit=None)


class TestConsistency:
    """Mechanism, noise and guarantee must be consistent, also when built in Python."""

    def test_weaker_noise_than_claimed(self) -> None:
        for release, factor in ((gaussian_release(), 1.01), (laplace_release(), 0.99)):
            told = release.guarantee
            weaker = (
                msgspec.structs.replace(told, mu=told.mu / factor)
                if told.mu is not None
                else msgspec.structs.replace(told, epsilon=told.epsilon * factor)
            )
            with pytest.raises(ReleaseError, match="contradict"):
                msgspec.structs.replace(release, guarantee=weaker)

    @pytest.mark.parametrize("changes", [{"epsilon": 0.95}, {"delta": 5e-7}, {"rho": 0.027}], ids=str)
    def test_more_promised_than_the_gaussian_gives(self, changes: dict[str, float]) -> None:
        """σ = 4.3 rows: ε = 1 needs 4.225 at δ = 10⁻⁶, and ρ = μ²/2 = 0.02704."""
        release = gaussian_release()
        with pytest.raises(ReleaseError, match="contradict"):
            gaussian_release(guarantee=msgspec.structs.replace(release.guarantee, **changes))

    def test_receipt_for_less_than_was_drawn(self) -> None:
        release = gaussian_release()
        assert release.receipt is not None
        for event in (GaussianEvent(mu=0.99 * (release.guarantee.mu or 0.0)), PureEvent(epsilon=1.0)):
            with pytest.raises(ReleaseError, match="charged for less"):
                gaussian_release(receipt=msgspec.structs.replace(release.receipt, event=event))
        paid = msgspec.structs.replace(release.receipt, event=PureEvent(epsilon=1.0))
        assert laplace_release(receipt=paid).receipt == paid
        with pytest.raises(ReleaseError, match="charged for less"):
            laplace_release(receipt=msgspec.structs.replace(paid, event=PureEvent(epsilon=0.9)))

    def test_replace_one_needs_root_two_more(self) -> None:
        with pytest.raises(ReleaseError, match="contradict"):
            gaussian_release(adjacency="replace-one", public_rows=400)

    @pytest.mark.parametrize("rows", [None, 400])
    def test_row_count_under_replace_one_only(self, rows: int | None) -> None:
        build = laplace_release if rows is None else gaussian_release
        with pytest.raises(ReleaseError, match="row count"):
            build(public_rows=rows)

    def test_errors_are_of_one_tree(self) -> None:
        assert issubclass(ReleaseError, DpgramError)


def test_the_digest_is_shown_in_one_piece_beside_wide_names(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpgram.analysis import display

    release = gaussian_release()
    facts = [("the name of a wide fact", "word " * 40), ("digest", release.digest)]
    monkeypatch.setattr(display, "facts", lambda *_, **__: facts)
    *others, last = display.as_text(release).splitlines()
    assert last.split() == ["digest", release.digest]
    assert max(map(len, others)) <= display.WIDTH
