"""The release file: closed, canonical, validated; a hostile file gives ReleaseError and nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram import release_schema
from dpgram.analysis.denoise import NOTHING, central_moments
from dpgram.analysis.moments import Moments
from dpgram.canonical_json import canonical_bytes, sha256_hex
from dpgram.errors import AnalysisError, DpgramError, ReleaseError
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED, cell_unit
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.privacy.events import GaussianEvent, PureEvent
from dpgram.privacy.receipt import Receipt
from dpgram.release import Release, load
from dpgram.release_display import in_words
from dpgram.release_parts import (
    MechanismUsed,
    Policy,
    PublishedMatrix,
    StatedGuarantee,
)
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

SIGMA = 4.3 * ROW_NORM_SQUARED


def triangle(matrix: npt.NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(int(matrix[i, j])) for i in range(len(matrix)) for j in range(i + 1))


def schema() -> Schema:
    return Schema(
        numeric("age", 18, 90),
        categorical("smoker", ["no", "yes"]),
        boolean("active", weight=0.5),
        numeric("charges", 0, 50_000, weight=2.0),
        product("age", "charges"),
        legendre("age", 2),
    )


def encoded_rows(declared: Schema, rows: int, seed: int) -> npt.NDArray[np.float64]:
    """Rows that obey the schema, in encoded units."""
    draw = np.random.default_rng(seed)
    z = {name: draw.uniform(-1, 1, rows) for name in ("age", "charges")} | {
        "active": draw.choice([-1.0, 1.0], rows)
    }
    smoker = draw.integers(2, size=rows)
    blocks = {
        "(constant)": np.ones(rows),
        "smoker=no": 1.0 - smoker,
        "smoker=yes": smoker.astype(float),
        "age*charges": z["age"] * z["charges"],
        "age^P2": (3 * z["age"] ** 2 - 1) / 2,
        **z,
    }
    return np.column_stack([blocks[column.name] * column.weight for column in declared.encoded])


def gaussian_release(**changes: Any) -> Release:
    """A release with real content; `changes` replaces fields."""
    declared = changes.pop("schema", schema())
    radius = math.sqrt(declared.max_norm_squared)
    if "published" not in changes:
        rows = np.round(encoded_rows(declared, 400, 1) * ROW_NORM / radius)
        changes["published"] = PublishedMatrix(kind="gram", exponent=0, cells=triangle(rows.T @ rows))
    fields: dict[str, Any] = {
        "library": "0.1.0",
        "schema": declared,
        "radius": radius,
        "policy": Policy(missing="drop", strict=False),
        "adjacency": "add-remove",
        "mechanism": MechanismUsed(name="gaussian", parameters={"sigma": SIGMA}, choice="asked for"),
        "noise": SymmetricGaussian(sigma=SIGMA),
        "guarantee": StatedGuarantee(
            epsilon=1.0,
            delta=1e-6,
            mu=ROW_NORM_SQUARED / SIGMA,
            statement=in_words(epsilon=1.0, delta=1e-6, adjacency="add-remove", unit=None),
        ),
        "entropy": "system",
        "receipt": Receipt(
            ledger_name="insurance",
            ledger_id="0" * 32,
            entry=1,
            receipt_id="1" * 32,
            event=GaussianEvent(mu=ROW_NORM_SQUARED / SIGMA),
            head="2" * 64,
        ),
    }
    return Release(**(fields | changes))


def laplace_release(**changes: Any) -> Release:
    theta = 1.0 / (2 * ROW_NORM_SQUARED)
    return gaussian_release(
        **{
            "adjacency": "replace-one",
            "public_rows": 400,
            "mechanism": MechanismUsed(
                name="matrix-laplace", parameters={"theta": theta}, choice="delta = 0 was asked for"
            ),
            "noise": MatrixLaplace(theta=theta, width=schema().width),
            "guarantee": StatedGuarantee(epsilon=1.0, delta=0.0, statement="…"),
            "receipt": None,
        }
        | changes
    )


RELEASES = pytest.mark.parametrize(
    "release", [gaussian_release(), laplace_release()], ids=["gaussian", "laplace"]
)


def content_of(release: Release) -> dict[str, Any]:
    return json.loads(release.to_json())


def sealed(content: dict[str, Any]) -> bytes:
    """A file with that content and a matching digest: what a careful forger would write."""
    content = {key: value for key, value in content.items() if key != "digest"}
    return canonical_bytes(content | {"digest": sha256_hex(content)})


def set_at(content: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    copy = json.loads(json.dumps(content))
    *parents, last = path.split(".")
    place = copy
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    place[int(last) if isinstance(place, list) else last] = value
    return copy


class TestFile:
    @RELEASES
    def test_round_trip(self, release: Release, tmp_path: Path) -> None:
        path = release.save(tmp_path / "x.dpgram.json")
        again = load(path)
        assert again == release
        assert again.to_json() == release.to_json() == path.read_bytes()
        assert (again.lattice_matrix == release.lattice_matrix).all()

    def test_the_list_of_fields_is_closed(self) -> None:
        """Whatever is added here must be a public fact: nothing but the cells may depend on the data."""
        content = content_of(gaussian_release())
        assert set(content) == {
            "format", "version", "library", "schema", "radius", "lattice_bits", "policy", "adjacency", "unit",
            "public_rows", "mechanism", "noise", "guarantee", "entropy", "matrix", "receipt", "digest",
        }  # fmt: skip
        assert set(content["policy"]) == {"missing", "strict"}
        assert set(content["mechanism"]) == {"name", "parameters", "choice"}
        assert set(content["mechanism"]["parameters"]) == {"sigma"}
        assert set(content["noise"]) == {"type", "sigma"}
        assert set(content["guarantee"]) == {"epsilon", "delta", "numerical_delta", "mu", "rho", "statement"}
        assert set(content["matrix"]) == {"kind", "exponent", "cells"}
        assert set(content["schema"]) == {"columns", "constant"}
        assert set(content["receipt"]) == {
            "ledger_name", "ledger_id", "entry", "receipt_id", "event", "head",
        }  # fmt: skip
        laplace = content_of(laplace_release())
        assert set(laplace["mechanism"]["parameters"]) == {"theta"}
        assert set(laplace["noise"]) == {"type", "theta", "width"}

    @RELEASES
    def test_digest_is_of_the_text_without_the_digest(self, release: Release) -> None:
        """A reader in any language can check it on the raw bytes."""
        raw = release.to_json()
        member = f'"digest":"{release.digest}",'.encode()
        assert raw.count(member) == 1
        assert hashlib.sha256(raw.replace(member, b"").rstrip(b"\n")).hexdigest() == release.digest

    @RELEASES
    def test_json_schema_accepts_the_file(self, release: Release) -> None:
        jsonschema.validate(content_of(release), json.loads(release_schema.FILE.read_text(encoding="utf-8")))

    def test_committed_json_schema_is_the_generated_one(self) -> None:
        fresh = release_schema.FILE.read_text(encoding="utf-8") == release_schema.as_file()
        assert fresh, "write it again: python -m dpgram.release_schema"

    @pytest.mark.parametrize("field", sorted(content_of(gaussian_release())))
    def test_json_schema_and_loader_want_every_field(self, field: str) -> None:
        content = content_of(gaussian_release())
        del content[field]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content, release_schema.json_schema())
        with pytest.raises(ReleaseError):
            Release.from_json(canonical_bytes(content) if field == "digest" else sealed(content))

    def test_spaces_and_order_do_not_matter(self) -> None:
        release = gaussian_release()
        pretty = json.dumps(content_of(release), indent=3, ensure_ascii=True).encode()
        assert Release.from_json(pretty) == release

    def test_save_replaces_and_leaves_nothing_beside(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        path.write_text("old")
        gaussian_release().save(path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert load(path) == gaussian_release()

    def test_failed_save_keeps_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "x.json"
        path.write_text("old")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(ReleaseError, match="No space left"):
            gaussian_release().save(path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]
        assert path.read_text() == "old"

    def test_save_and_load_name_the_path(self, tmp_path: Path) -> None:
        with pytest.raises(ReleaseError, match="nowhere"):
            gaussian_release().save(tmp_path / "nowhere" / "x.json")
        with pytest.raises(ReleaseError, match=r"absent\.json"):
            load(tmp_path / "absent.json")
        with pytest.raises(ReleaseError):
            load(tmp_path)

    def test_too_large_a_file_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = gaussian_release().save(tmp_path / "x.json")
        monkeypatch.setattr("dpgram.release.LARGEST_FILE", path.stat().st_size - 1)
        with pytest.raises(ReleaseError, match="too large"):
            load(path)

    def test_unicode_names_survive(self) -> None:
        declared = Schema(numeric("größe ✓ \u2028", 0, 1), categorical('a"b<script>', ["é", "\t"]))
        release = gaussian_release(schema=declared, published=_zeros(declared.width))
        assert Release.from_json(release.to_json()) == release


def _zeros(width: int) -> PublishedMatrix:
    return PublishedMatrix(kind="gram", exponent=0, cells=("0",) * (width * (width + 1) // 2))


def rejected(raw: bytes) -> str:
    with pytest.raises(ReleaseError) as caught:
        Release.from_json(raw)
    assert len(str(caught.value)) < 800
    return str(caught.value)


class TestHostileFiles:
    """Only ReleaseError may come out, whatever is in the file."""

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("version", 2), ("version", 0), ("version", True), ("version", 10**400), ("version", "1"),
            ("format", "pickle"), ("format", None), ("format", ["dpgram-release"]),
            ("library", 1), ("library", "x" * 65),
            ("lattice_bits", 16), ("lattice_bits", 15.0),
            ("radius", 0), ("radius", -1.0), ("radius", 1e60), ("radius", "1"), ("radius", 10**400),
            ("adjacency", "add"), ("adjacency", None), ("unit", 3), ("unit", "x" * 1001),
            ("public_rows", 400), ("public_rows", -1), ("public_rows", 1.5), ("public_rows", 2**60),
            ("policy.missing", "guess"), ("policy.strict", 0), ("policy.strict", None), ("policy.extra", 1),
            ("mechanism.name", "matrix-laplace"), ("mechanism.name", "os.system"), ("mechanism.name", None),
            ("mechanism.parameters", {}), ("mechanism.parameters", []), ("mechanism.parameters.sigma", "1"),
            ("mechanism.parameters.sigma", SIGMA / 2),
            ("mechanism.parameters.sigma", -SIGMA), ("mechanism.parameters.theta", 1.0),
            ("mechanism.choice", None), ("mechanism.choice", "x" * 5000),
            ("noise.sigma", SIGMA / 2), ("noise.sigma", None), ("noise.type", "none"), ("noise.width", 3),
            ("guarantee.epsilon", 0), ("guarantee.epsilon", -1), ("guarantee.delta", 1),
            ("guarantee.delta", -1e-9), ("guarantee.delta", 0), ("guarantee.mu", None), ("guarantee.mu", 0.1),
            ("guarantee.mu", 0),
            ("guarantee.rho", -1), ("guarantee.numerical_delta", 1), ("guarantee.statement", None),
            ("entropy", "none"), ("entropy", None),
            ("matrix.kind", "inverse"), ("matrix.kind", "exec"), ("matrix.exponent", 1),
            ("matrix.exponent", 10**9), ("matrix.cells", []), ("matrix.cells", "123"), ("matrix.cells.0", 5),
            ("matrix.cells.0", "+5"), ("matrix.cells.0", "05"), ("matrix.cells.0", "-0"),
            ("matrix.cells.0", "1e3"), ("matrix.cells.0", " 5"), ("matrix.cells.0", "5\n"),
            ("matrix.cells.0", "٣"), ("matrix.cells.0", "1_0"), ("matrix.cells.0", "5.0"),
            ("matrix.cells.0", ""), ("matrix.cells.0", "nan"), ("matrix.cells.0", "9" * 61),
            ("matrix.cells.0", "9" * 100_000), ("matrix.cells.0", None),
            ("schema", []), ("schema", {}), ("schema.columns", []), ("schema.columns", {"a": 1}),
            ("schema.columns.0", "age"), ("schema.columns.0.kind", "eval"), ("schema.columns.0.low", None),
            ("schema.columns.0.low", "x"), ("schema.columns.0.low", 1e300), ("schema.columns.0.weight", [1]),
            ("schema.columns.0.weight", 1e9), ("schema.columns.0.name", "charges"),
            ("schema.columns.0.name", 7), ("schema.columns.0.name", ""), ("schema.columns.0.name", "\ud800"),
            ("schema.columns.0.extra", 1),
            ("schema.columns.1.levels", "no"), ("schema.columns.1.levels", [1.5]),
            ("schema.columns.1.levels", ["no", "no"]), ("schema.columns.1.levels", [[]]),
            ("schema.columns.5.degree", 10**9), ("schema.columns.5.degree", "2"), ("schema.constant", 1),
            ("schema.extra", 1), ("receipt", []), ("receipt.event", {"event": "gaussian/2", "mu": 1.0}),
            ("receipt.event.mu", -1.0), ("receipt.event.mu", 10**400), ("receipt.entry", "1"),
            ("receipt.entry", 0), ("receipt.entry", 2**60), ("receipt.head", "2" * 63), ("receipt.head", "Z"),
            ("receipt.head", "Z" * 64),
            ("receipt.ledger_id", ""), ("receipt.receipt_id", "1\n"), ("receipt.ledger_name", "x" * 1001),
            ("receipt.extra", 1), ("extra", 1),
        ],
    )  # fmt: skip
    def test_edited_fields_even_with_a_matching_digest(self, path: str, value: object) -> None:
        content = set_at(content_of(gaussian_release()), path, value)
        try:
            raw = sealed(content)
        except UnicodeEncodeError:
            raw = json.dumps(content).encode()
        rejected(raw)

    @pytest.mark.parametrize(
        "raw",
        [
            b"", b" ", b"null", b"[]", b"{}", b"\xff\xfe", b"\x80", b"\x00" * 10, b"{", b'{"format"', b"NaN",
            b"[" * 200_000, b'{"a":' * 200_000, b"9" * 100_000, b"-Infinity", b'"\\ud800"',
            b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.",
        ],
    )  # fmt: skip
    def test_what_is_no_release(self, raw: bytes) -> None:
        rejected(raw)

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000])
    def test_numbers_that_are_none(self, number: str) -> None:
        raw = gaussian_release().to_json().replace(b'"radius":', f'"radius":{number},"was":'.encode())
        assert "clean JSON" in rejected(raw)

    def test_repeated_key(self) -> None:
        raw = gaussian_release().to_json()
        assert "twice" in rejected(raw.replace(b'{"adjacency"', b'{"adjacency":"replace-one","adjacency"'))
        assert "twice" in rejected(
            raw.replace(b'{"epsilon"', b'{"epsilon":9,"epsilon"', 1).replace(
                b'{"delta"', b'{"delta":0.5,"delta"', 1
            )
        )

    @pytest.mark.parametrize("digest", ["", "0" * 64, None, 5, ["x"]])
    def test_wrong_digest(self, digest: object) -> None:
        assert "digest" in rejected(canonical_bytes(content_of(gaussian_release()) | {"digest": digest}))

    def test_one_changed_cell_is_noticed(self) -> None:
        release = gaussian_release()
        cell = release.published.cells[3]
        raw = release.to_json().replace(f'"{cell}"'.encode(), f'"{int(cell) + 1}"'.encode())
        assert "digest" in rejected(raw)

    def test_deeply_nested_inside(self) -> None:
        raw = gaussian_release().to_json().replace(b'"unit":null', b'"unit":' + b"[" * 50_000 + b"]" * 50_000)
        rejected(raw)

    def test_every_truncation(self) -> None:
        raw = gaussian_release().to_json()
        for end in range(0, len(raw) - 2, 7):
            rejected(raw[:end])

    @settings(max_examples=400, deadline=None)
    @given(data=st.data())
    def test_mutated_bytes_never_load_as_something_else(self, data: st.DataObject) -> None:
        release = gaussian_release()
        raw = bytearray(release.to_json())
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(raw) - 1))
            match data.draw(st.sampled_from(["set", "delete", "insert"])):
                case "set":
                    raw[at] = data.draw(st.integers(0, 255))
                case "delete":
                    del raw[at]
                case _:
                    raw.insert(at, data.draw(st.integers(0, 255)))
        try:
            loaded = Release.from_json(bytes(raw))
        except ReleaseError:
            return
        assert loaded == release

    @settings(max_examples=300, deadline=None)
    @given(data=st.data())
    def test_random_values_in_random_places_of_a_well_sealed_file(self, data: st.DataObject) -> None:
        """Past the digest too: either refused by name, or a release that saves and prints."""
        content = content_of(gaussian_release())
        paths = list(_paths(content))
        path = data.draw(st.sampled_from(paths))
        value = data.draw(_JSON)
        try:
            release = Release.from_json(sealed(set_at(content, path, value)))
        except (ReleaseError, UnicodeEncodeError):
            return
        assert Release.from_json(release.to_json()) == release
        str(release)
        release._repr_html_()
        for view in (
            release.mean,
            release.covariance,
            release.correlation,
            lambda: release.matrix("original"),
        ):
            with contextlib.suppress(AnalysisError):
                view()

    @settings(max_examples=200, deadline=None)
    @given(raw=st.binary(max_size=200))
    def test_random_bytes(self, raw: bytes) -> None:
        rejected(raw)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "0", "-1", "gaussian", "gram", "1970-01-01", "add-remove", "replace-one"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def _paths(value: object, prefix: str = "") -> Any:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{prefix}{key}"
            yield from _paths(inner, f"{prefix}{key}.")
    elif isinstance(value, list):
        for index, inner in enumerate(value[:3]):
            yield f"{prefix}{index}"
            yield from _paths(inner, f"{prefix}{index}.")


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
        original = np.column_stack(
            [
                column.centre + column.half_width * encoded[:, i] / column.weight
                if column.kind != "constant"
                else encoded[:, i]
                for i, column in enumerate(release.schema.encoded)
            ]
        )
        got, want = release.matrix("original"), original.T @ original
        np.testing.assert_allclose(
            got, want, rtol=2e-4, atol=2e-4 * np.sqrt(np.outer(np.diag(want), np.diag(want))).max()
        )
        scale = np.sqrt(np.diag(want))
        np.testing.assert_allclose(got / np.outer(scale, scale), want / np.outer(scale, scale), atol=3e-4)

    def test_descriptive_statistics_without_noise(self) -> None:
        release = gaussian_release()
        encoded = encoded_rows(release.schema, 400, 1)
        original = np.column_stack(
            [c.centre + c.half_width * encoded[:, i] / c.weight for i, c in enumerate(release.schema.encoded)]
        )[:, 1:]
        assert release.count() == pytest.approx(400, rel=1e-3)
        mean = release.mean()
        assert list(mean) == list(release.columns[1:])
        spread = original.std(axis=0)
        np.testing.assert_allclose(
            (np.array(list(mean.values())) - original.mean(axis=0)) / spread, 0, atol=2e-3
        )
        want = np.cov(original.T, bias=True)
        units = np.array([c.half_width / c.weight for c in release.schema.encoded[1:]])
        quiet = dataclasses.replace(Moments.of(release), noise=NOTHING)
        np.testing.assert_allclose(
            central_moments(quiet) * np.outer(units / spread, units / spread),
            want / np.outer(spread, spread),
            atol=5e-3,
        )
        # The release itself states noise that is not there, and draws the covariance towards zero for it.
        shrunk = release.covariance() / np.outer(units, units)
        assert np.linalg.eigvalsh(shrunk)[0] >= -1e-12
        assert 0.5 < np.trace(shrunk) / np.trace(want / np.outer(units, units)) < 1.0
        np.testing.assert_allclose(release.correlation(), np.corrcoef(original.T), atol=5e-3)

    def test_correlation_is_a_correlation_whatever_the_noise(self) -> None:
        draw = np.random.default_rng(5)
        declared = schema()
        for _ in range(20):
            noise = draw.normal(0, 1e10, (declared.width, declared.width))
            cells = gaussian_release().lattice_matrix.astype(float) + noise + noise.T
            cells[0, 0] = abs(cells[0, 0])
            published = PublishedMatrix(kind="gram", exponent=0, cells=triangle(cells))
            correlation = gaussian_release(published=published).correlation()
            known = ~np.isnan(np.diag(correlation))
            inner = correlation[np.ix_(known, known)]
            assert (np.diag(inner) == 1).all()
            assert np.linalg.eigvalsh(inner)[0] > -1e-9
            assert np.isnan(correlation[~known]).all()

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
            release.regress("charges", ["age"]).coefficients
            == regress(release, "charges", ["age"]).coefficients
        )
        ours, theirs = release.pca(2, standardise=False), pca(release, 2)
        np.testing.assert_array_equal(ours.loadings, theirs.loadings)
        assert release.partial_correlation("age", "active", []) == partial_correlation(
            release, "age", "active", []
        )

    def test_no_constant_no_means(self) -> None:
        declared = Schema(numeric("age", 0, 90), boolean("b"), constant=False)
        release = gaussian_release(schema=declared, published=_zeros(2))
        for view in (release.count, release.mean, release.covariance, lambda: release.matrix("original")):
            with pytest.raises(AnalysisError, match="constant"):
                view()
        assert "no count" in str(release)

    def test_noise_larger_than_the_table(self) -> None:
        release = gaussian_release(published=_zeros(schema().width))
        for view in (release.mean, release.covariance, release.correlation):
            with pytest.raises(AnalysisError, match="larger than the whole table"):
                view()
        assert "about 0" in str(release)

    def test_unknown_units(self) -> None:
        with pytest.raises(ReleaseError, match="metres"):
            gaussian_release().matrix("metres")  # type: ignore[arg-type]  # the point of the test

    def test_the_integers_cannot_be_changed_in_place(self) -> None:
        with pytest.raises(ValueError, match="read-only"):
            gaussian_release().lattice_matrix[0, 0] = 1

    def test_a_release_is_frozen(self) -> None:
        with pytest.raises(AttributeError):
            gaussian_release().radius = 2.0  # type: ignore[misc]  # the point of the test


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
        html = gaussian_release(schema=declared, published=_zeros(3))._repr_html_()
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
        assert in_words(epsilon=5000.0, delta=0, adjacency="add-remove", unit=None)


class TestConsistency:
    """Mechanism, noise and guarantee must tell one story, also when built in Python."""

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
