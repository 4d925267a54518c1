"""Job files that are still being written: what is read comes back, and nothing is required."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import pytest

from dpgram.errors import JobError
from dpgram.job._file import SECTIONS
from dpgram.job.draft import draft_job, draft_text, read_draft, write_draft

FORMS = [
    {},
    {"data": {"file": "a.csv"}},
    {"constant": False, "blocks": [["a", "b"], ["a", "c"]], "data": {"file": "a.csv", "separator": "\t"}},
    {
        "columns": [
            {"kind": "numeric", "name": "a \"b\" 'c'\n\\", "low": 0, "high": 1.5, "missing": ["−999", ""]}
        ]
    },
    {"columns": [{"kind": "numeric", "name": "day", "low": date(2020, 1, 1), "high": date(2021, 1, 1)}]},
    {
        "privacy": {
            "epsilon": 1e-06,
            "delta": 0,
            "ledger": False,
            "mechanism": {"name": "sketch", "degrees": 400},
        }
    },
    {"models": [{"family": "linear", "target": "cost"}, {"family": "probit", "target": "x", "on": ["a"]}]},
    {
        "about": {"title": "Ωμέγα \u202e evil"},
        "rows": {"strict": True},
        "outputs": {"release": "r.dpgram.json"},
    },
    {name: {"some": "words", "more": 3} for name in SECTIONS},
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(form))
def test_what_is_written_is_what_was_meant(form: dict[str, object]) -> None:
    assert tomllib.loads(draft_text(form)) == form


def test_nothing_is_required_and_unknown_keys_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    write_draft({"data": {"file": "a.csv"}}, path)
    assert read_draft(path) == {"data": {"file": "a.csv"}}
    with pytest.raises(JobError, match="the key 'epsilon' of \\[privacy\\] is missing"):
        draft_job(read_draft(path), path)
    write_draft({"data": {"fiel": "a.csv"}}, path)
    with pytest.raises(JobError, match="Did you mean 'file'"):
        read_draft(path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "job.toml"
    write_draft({"data": {"file": "a.csv"}}, path)
    before = path.read_bytes()

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpgram.files.os.fsync", fails)
    with pytest.raises(OSError, match="No space"):
        write_draft({"data": {"file": "b.csv"}}, path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["job.toml"]
