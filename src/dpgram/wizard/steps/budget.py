"""Step 4, the budget: which ledger pays, how much, and what that buys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, final

from dpgram.errors import DpgramError, LedgerError
from dpgram.mechanisms import Auto, as_mechanism
from dpgram.planning import Plan, plan
from dpgram.privacy.ledger import Ledger
from dpgram.rows.rules import Rows, row_rules
from dpgram.wizard.folder import LEDGERS
from dpgram.wizard.posted import Posted
from dpgram.wizard.session import NewLedger, Session
from dpgram.wizard.words import beside, told

EPSILONS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
"""Where the slider stops."""
QUESTIONS: Final = 6
"""Effects that are forecast on the page."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What somebody else has published with, and where that is written."""

    who: str
    epsilon: str
    source: str


OTHERS: Final = (
    Choice(
        who="Searches for symptoms (Google, 2020), for each person and day",
        epsilon="1.68",
        source="Bavadekar and others 2020, arXiv 2009.01265",
    ),
    Choice(
        who="Assistive AI (Microsoft, 2020)",
        epsilon="4 (δ below 10⁻⁷)",
        source="OpenDP deployments registry",
    ),
    Choice(
        who="Registry of live births of 2014 (Israel's Ministry of Health, 2024)",
        epsilon="9.98",
        source="Hod and Canetti 2024, arXiv 2405.00267",
    ),
    Choice(
        who="Redistricting data of the 2020 census, persons (U.S. Census Bureau, 2021)",
        epsilon="17.14",
        source="Abowd and others 2022, Harvard Data Science Review",
    ),
)


def values(session: Session) -> dict[str, Any]:
    privacy, new = session.section("privacy"), session.new_ledger
    ledger = privacy.get("ledger")
    stem = session.folder.shown(session.job_path).removesuffix(".toml").removesuffix("-job")
    path = session.shown(ledger)
    there = bool(path) and (session.folder.root / path).exists()
    first = "ledger" in privacy or not session.folder.listed(
        LEDGERS
    )  # else one of those may be for this table
    pays = "none" if ledger is False else "existing" if there or not first else "new"
    return {
        "pays": pays,
        "existing": path if there else "",
        "path": path if path and not there else session.folder.free(stem, ".ledger"),
        "name": stem if new is None else new.name,
        "total_epsilon": "3" if new is None else f"{new.epsilon:g}",
        "total_delta": "1e-5" if new is None else f"{new.delta:g}",
        "epsilon": _number(privacy.get("epsilon", 1)),
        "delta": _number(privacy.get("delta", 1e-6)),
        "reason": privacy.get("reason", ""),
        "approved_by": privacy.get("approved_by", ""),
    }


def _number(value: float) -> str:
    return f"{value:g}"


def view(session: Session) -> dict[str, Any]:
    forecast, problem = _forecast(session)
    return {
        "ledger_options": [
            (name, f"{name}: {_left(session, name)}") for name in session.folder.listed(LEDGERS)
        ],
        "epsilons": EPSILONS,
        "others": OTHERS,
        "forecast": forecast,
        "no_forecast": problem,
        "kept": {
            key: value
            for key, value in session.section("privacy").items()
            if key
            in ("mechanism", "adaptive", "adjacency", "engine", "threads", "note", "stop_if_check_fails")
        },
    }


def _left(session: Session, name: str) -> str:
    try:
        return str(Ledger.open(session.folder.place(name)).left())
    except DpgramError as problem:
        return f"cannot be used: {told(problem)}"


def _forecast(session: Session) -> tuple[dict[str, Any] | None, str]:
    """As it was made before, as long as the facts are the same."""
    said = ("delta", "mechanism", "adaptive", "adjacency")
    privacy = {key: session.section("privacy").get(key) for key in said}
    facts = f"{session.columns_state} {privacy}"
    if session.forecast is None or session.forecast[0] != facts:
        session.forecast = (facts, *_forecast_anew(session))
    return session.forecast[1:]


def _forecast_anew(session: Session) -> tuple[dict[str, Any] | None, str]:
    """What each ε of the slider would tell, from public facts; or why nothing can be said."""
    privacy = session.section("privacy")
    rows = Rows(**session.section("rows"))
    if rows.by is not None or session.form.get("blocks"):
        return None, "there is no forecast for several releases at once"
    delta = privacy.get("delta", 1e-6)
    asked = as_mechanism("gaussian" if delta else "matrix-laplace")
    own = as_mechanism(privacy["mechanism"]) if isinstance(privacy.get("mechanism"), str) else asked
    try:
        found = plan(
            row_rules(session.schema(), rows).schema,
            epsilon=1.0,
            delta=delta,
            rows=rows,
            adjacency=privacy.get("adjacency", "add-remove"),
            adaptive=privacy.get("adaptive") is not False,
            mechanisms=[asked if isinstance(own, Auto) else own],
            simulate=False,
        )
        return _told(found) | {"counted": "rows" if rows.unit is None else "persons"}, ""
    except DpgramError as problem:
        return None, told(problem)


def _told(found: Plan) -> dict[str, Any]:
    margins = {epsilon: found.margins(epsilon) for epsilon in EPSILONS}
    names = list(margins[EPSILONS[0]])[:QUESTIONS]
    return {
        "target": found.target,
        "rows": found.rows,
        "assumption": found.assumption,
        "names": names,
        "lines": [(epsilon, [_margin(margins[epsilon][name]) for name in names]) for epsilon in EPSILONS],
    }


def _margin(value: float) -> str:
    """Three digits, as people write them."""
    if not math.isfinite(value):
        return "nothing"
    return f"± {value:,.0f}" if value >= 1_000.0 else f"± {value:.3g}"


PLACES: Final = {
    "has left": "epsilon",
    "left of": "epsilon",
    "budget": "epsilon",
    "delta": "delta",
    "epsilon": "epsilon",
    "ledger": "existing",
}


def take(session: Session, posted: Posted) -> dict[str, str]:
    hidden = ("epsilon", "delta", "ledger", "reason", "approved_by")
    privacy = {key: value for key, value in session.section("privacy").items() if key not in hidden}
    errors = {}
    for key in ("epsilon", "delta"):
        value = posted.number(key)
        if not isinstance(value, int | float):
            said = "nothing stands here" if value is None else f"got {value!r}"
            errors[key] = f"{said}. Type a number, such as {'1' if key == 'epsilon' else '1e-6'}"
        privacy[key] = value
    pays, new = posted.text("pays"), None
    if pays == "none":
        privacy["ledger"] = False
    elif pays == "existing":
        privacy["ledger"] = _existing(session, posted, errors)
    else:
        privacy["ledger"], new = _new(session, posted, errors)
    privacy |= {key: posted.text(key) for key in ("reason", "approved_by") if posted.text(key)}
    if errors:
        return errors
    form = session.changed(privacy=privacy)
    try:
        job = session.job(form)
        with session.payable(job, new) as paid:
            paid.price()
    except LedgerError as problem:
        return beside(problem, PLACES, "existing" if pays == "existing" else "path")
    except DpgramError as problem:
        return beside(problem, PLACES, "epsilon")
    session.accept(form)
    session.new_ledger = new
    return {}


def _existing(session: Session, posted: Posted, errors: dict[str, str]) -> str:
    if not posted.text("existing"):
        errors["existing"] = (
            "no ledger is chosen. Choose the one of this table, or say above that this is its first release"
        )
        return ""
    try:
        return session.in_job(session.folder.file(posted.text("existing")))
    except DpgramError as problem:
        errors["existing"] = told(problem)
        return ""


def _new(session: Session, posted: Posted, errors: dict[str, str]) -> tuple[str, NewLedger | None]:
    try:
        place = session.folder.place(posted.text("path"))
    except DpgramError as problem:
        errors["path"] = told(problem)
        return "", None
    if place.exists():
        errors["path"] = (
            f"{session.folder.shown(place)} is there already. Choose it above as the one that pays"
        )
    elif not place.parent.is_dir():
        errors["path"] = "this folder does not exist. Name a file in a folder that does"
    total = {}
    for key in ("epsilon", "delta"):
        value = posted.number(f"total_{key}")
        if not isinstance(value, int | float):
            errors[f"total_{key}"] = f"got {value!r}. Type a number"
        else:
            total[key] = float(value)
    if not posted.text("name"):
        errors["name"] = "the data set has no name. Type one, such as visits"
    if errors:
        return "", None
    return session.in_job(place), NewLedger(name=posted.text("name"), **total)
