"""Step 5, models and outputs: what is declared beforehand, which files are written, who signs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from dpgram.errors import DpgramError
from dpgram.job.draft import draft_job
from dpgram.release.signing import SigningKey
from dpgram.rows.rules import Rows, row_rules
from dpgram.wizard.posted import Posted
from dpgram.wizard.session import Form, Session
from dpgram.wizard.words import beside, told

ABOUT: Final = ("title", "description", "contact", "licence")
ENDINGS: Final = {
    "release": ".dpgram.json",
    "explorer": ".html",
    "report": ".html",
    "evaluation": ".html",
    "registry": ".yaml",
}
"""The files that a job may write, and how their names end."""
FAMILIES: Final = {
    "linear": "how a number changes (linear)",
    "logistic": "how likely a yes is (logistic)",
    "probit": "how likely a yes is (probit)",
    "poisson": "how often something happens (Poisson)",
}


def values(session: Session) -> dict[str, Any]:
    outputs, about = session.section("outputs"), session.section("about")
    key = session.shown(outputs.get("key"))
    there = bool(key) and (session.folder.root / key).exists()
    return {
        **{name: session.shown(outputs.get(name)) for name in ENDINGS},
        **{name: about.get(name, "") for name in ABOUT},
        "sign": "existing" if there else "new" if key else "none",
        "key": key or "curator.key",
        "family": "",
        "target": "",
        "on": [],
        "drop": [],
    }


def view(session: Session) -> dict[str, Any]:
    return {
        "models": session.form.get("models", []),
        "families": FAMILIES,
        "target_options": [(name, name) for name in _targets(session)],
        "features": _columns(session),
    }


def _schema(session: Session) -> Any:
    return row_rules(session.schema(), Rows(**session.section("rows"))).schema


def _columns(session: Session) -> list[str]:
    try:
        return [column.name for column in _schema(session).columns]
    except DpgramError:
        return []


def _targets(session: Session) -> list[str]:
    """Columns of numbers and truth values, and every level of the others."""
    try:
        schema = _schema(session)
    except DpgramError:
        return []
    open_columns = {*schema.unbounded, *schema.without_levels}
    return [
        name
        for column in schema.columns_read
        if column.name not in open_columns
        for name in (column.encoded_names if column.group_levels else [column.name])
    ]


def take(session: Session, posted: Posted) -> dict[str, str]:
    outputs, errors = _outputs(session, posted)
    new_key = posted.text("sign") == "new"
    if posted.text("sign") != "none":
        outputs |= _key(session, posted, errors, new=new_key)
    if errors:
        return errors
    models = [
        model
        for number, model in enumerate(session.form.get("models", []))
        if str(number) not in posted.all("drop")
    ]
    if posted.text("family"):
        models.append(_model(posted))
    about = {name: posted.text(name) for name in ABOUT if posted.text(name)}
    form = session.changed(outputs=outputs, models=models, about=about)
    problem = _wrong(session, form)
    if problem is not None:
        return beside(
            problem, {"model": "target", "(": "target", **dict(zip(ABOUT, ABOUT, strict=True))}, "target"
        )
    session.accept(form)
    session.new_key = new_key
    return {}


def _wrong(session: Session, form: Form) -> DpgramError | None:
    """What `dpgram run` would refuse of the models and texts; no row is read."""
    if "privacy" not in form:
        return None
    try:
        with session.payable(draft_job(form, session.job_path), session.new_ledger) as job:
            job.price()
    except DpgramError as problem:
        return problem
    return None


def _model(posted: Posted) -> dict[str, Any]:
    model: dict[str, Any] = {"family": posted.text("family"), "target": posted.text("target")}
    features = [name for name in posted.all("on") if name]
    return {**model, "on": features} if features else model


def _outputs(session: Session, posted: Posted) -> tuple[dict[str, Any], dict[str, str]]:
    outputs: dict[str, Any] = {}
    errors: dict[str, str] = {}
    places: list[Path] = []
    for name in ENDINGS:  # a name that was taken before stays: the job knows whether it has made the file
        if not posted.text(name):
            if name == "release":
                errors[name] = "the release has no name. Type one, such as visits.dpgram.json"
            continue
        try:
            place = session.folder.place(posted.text(name))
        except DpgramError as problem:
            errors[name] = told(problem)
            continue
        if not place.name.endswith(ENDINGS[name]):
            errors[name] = f"the name must end in {ENDINGS[name]}. Type {place.name}{ENDINGS[name]}"
        elif not place.parent.is_dir():
            errors[name] = "this folder does not exist. Name a file in a folder that does"
        elif place in places:
            errors[name] = "two files have the same name. Give each its own"
        elif place.exists() and session.in_job(place) != session.section("outputs").get(name):
            errors[name] = (
                f"{session.folder.shown(place)} is there already. Name another file, or move that one away"
            )
        places.append(place)
        outputs[name] = session.in_job(place)
    return outputs, errors


def _key(session: Session, posted: Posted, errors: dict[str, str], *, new: bool) -> dict[str, str]:
    try:
        place = session.folder.place(posted.text("key"))
        if new and place.exists():
            errors["key"] = (
                "this file is there already, and a key is never replaced. Choose it as existing key"
            )
        elif not new:
            SigningKey.open(place)
        return {"key": session.in_job(place)}
    except DpgramError as problem:
        errors["key"] = told(problem)
        return {}
