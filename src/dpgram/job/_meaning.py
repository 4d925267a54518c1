"""What the sections of a job file mean, as the fields of `Job`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from dpgram.errors import JobError
from dpgram.job import _file
from dpgram.job._outputs import Outputs
from dpgram.job._series import Growing
from dpgram.job.databases import ENVIRONMENT, address_of
from dpgram.mechanisms import MECHANISMS, Auto, Mechanism, as_mechanism
from dpgram.models.declared import model_of
from dpgram.publishing.split import Adaptive
from dpgram.rows.rules import Rows
from dpgram.schema import Schema
from dpgram.schema.reading import LAYOUT_FORMS


def job_fields(form: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a checked form means, as the fields of `Job`."""
    privacy, outputs = form["privacy"], form["outputs"]
    ledger = privacy["ledger"]
    found: dict[str, Any] = {
        **_data(form["data"], folder),
        "schema": _schema(form, folder),
        "rows": Rows(**form.get("rows", {})),
        "epsilon": privacy["epsilon"],
        "delta": privacy["delta"],
        "ledger": None if ledger is False else folder / ledger,
        "about": dict(form.get("about", {})),
        "outputs": Outputs(**{name: folder / path for name, path in outputs.items()}),
    }
    plain = ("adjacency", "engine", "threads", "reason", "approved_by", "note", "stop_if_check_fails")
    found |= {name: privacy[name] for name in plain if name in privacy}
    if "adaptive" in privacy:
        found["adaptive"] = _adaptive(privacy["adaptive"])
    if "mechanism" in privacy:
        found["mechanism"] = _mechanism(privacy["mechanism"])
    if "series" in form:
        asked = dict(form["series"])
        found["series"] = Growing(file=folder / asked.pop("file"), **asked)
    found["models"] = tuple(model_of(one) for one in form.get("models", ()))
    return found


def _data(section: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The files, or a database and what is asked of it; its address stays where it is until it is read."""
    file, query = section["file"], section.get("query")
    asks = any(one.startswith(ENVIRONMENT) for one in (file if isinstance(file, list) else [file]))
    if query is None and asks:
        raise JobError("a database needs a query", remedy='Write below [data]: query = "SELECT … FROM …"')
    if query is not None:
        if isinstance(file, list):
            raise JobError("a query reads one database", got=f"{len(file)} of them", remedy="Name one `file`")
        if not asks:
            address_of(file)  # refused where it is an address
    return {"data": _place(file, folder), "query": query}


def _place(file: str | list[str], folder: Path) -> str | list[str]:
    if isinstance(file, list):
        return [cast("str", _place(one, folder)) for one in file]
    return file if "://" in file or file.startswith(ENVIRONMENT) else str(folder / file)


def _schema(form: Mapping[str, Any], folder: Path) -> Schema:
    layout = {name: form["data"][name] for name in LAYOUT_FORMS if name in form["data"]}
    inline = {name: form[name] for name in _file.BESIDE if name in form}
    file = form["data"].get("schema")
    if (file is None) == ("columns" not in form):
        raise JobError(
            "the columns stand in [[columns]], or in a schema file of their own",
            got="neither" if file is None else "both",
            remedy='Write [[columns]] as in a schema, or schema = "visits-schema.toml" below [data]',
        )
    if file is None:
        return Schema.from_dict({**inline, **layout})
    if inline or layout:
        raise JobError(
            f"{min([*inline, *layout])!r} belongs in the schema file, where there is one",
            remedy=f"Write it into {file}",
        )
    return Schema.from_file(folder / file)


def _adaptive(asked: bool | dict[str, Any]) -> bool | Adaptive:
    if isinstance(asked, bool):
        return asked
    known = dict.fromkeys((each.name for each in fields(Adaptive)), _file.number)
    return Adaptive(**_file.check_table("`adaptive` of [privacy]", asked, known))


def _mechanism(asked: str | dict[str, Any]) -> Mechanism | Auto:
    if isinstance(asked, str):
        return as_mechanism(asked)
    parameters = dict(asked)
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise JobError(
            "the table `mechanism` of [privacy] needs a `name`",
            limit=", ".join(MECHANISMS),
            remedy='Write mechanism = { name = "sketch", degrees = 400 }',
        )
    kind = type(as_mechanism(name))
    known = {each.name for each in fields(kind)} if is_dataclass(kind) else set()
    for key in parameters:
        if key not in known:
            raise JobError(
                f"the mechanism {name!r} has no parameter {key!r}",
                limit=", ".join(sorted(known)) or "it has none",
                remedy=_file.nearest(key, known) if known else "Leave it out",
            )
    return kind(**parameters)
