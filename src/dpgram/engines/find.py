"""Which engine reads a table: one that was named or given, or the one that asks for data of this type."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from dpgram.engines.base import Engine
from dpgram.errors import DpgramError, require_publish

ENTRY_POINT_GROUP: Final = "dpgram.engines"
"""Entry points in this group name engines of other packages: what is called without arguments to get one."""

ENGINES: Final[Mapping[str, tuple[str, str]]] = {
    "local": ("dpgram.engines.local", "LocalEngine"),
    "dask": ("dpgram.engines.dask", "DaskEngine"),
    "spark": ("dpgram.engines.spark", "SparkEngine"),
    "partials": ("dpgram.engines.partials", "PartialsEngine"),
}
"""Our own. Their modules load neither Dask nor Spark until a table is read."""


def find_engine(engine: object, data: object, *, threads: int | None = None) -> Engine:
    """The engine for `data`; `engine` is "auto", a name, or an engine object with its options.

    `threads` is an option of the local engine: any other engine refuses it.
    """
    require_publish()
    if isinstance(engine, str):
        found = _detected(data) if engine == "auto" else _named(engine)
    elif all(callable(getattr(engine, method, None)) for method in ("add_up", "accepts")):
        found = cast("Engine", engine)
    else:
        raise DpgramError(
            "this is not an engine",
            got=f"a {type(engine).__name__}",
            limit=f"'auto', {', '.join(map(repr, ENGINES))}, or an object such as DaskEngine()",
        )
    if threads is None:
        return found
    if found.name != "local":
        raise DpgramError(
            "threads is an option of the local engine",
            got=f"the engine {found.name!r}",
            remedy="Leave threads out; the options of the engine itself control how work is distributed",
        )
    return cast("Engine", _class("local")(threads=threads))


def _detected(data: object) -> Engine:
    for name in ENGINES:
        if name != "local" and (engine := _named(name)).accepts(data):
            return engine
    # The local engine reads whatever has a form it knows; only then others' packages are loaded.
    from dpgram.sources import is_known

    if not is_known(data):
        for point in _others().values():
            offered: Engine = point.load()()
            if offered.accepts(data):
                return offered
    return _named("local")


def _named(name: str) -> Engine:
    if name in ENGINES:
        return cast("Engine", _class(name)())
    others = _others()
    if name not in others:
        raise DpgramError(
            "there is no such engine",
            got=repr(name),
            limit=f"'auto', {', '.join(map(repr, [*ENGINES, *sorted(others)]))}",
            remedy="Check the name, or install the package that brings it "
            f"(entry point group {ENTRY_POINT_GROUP!r})",
        )
    engine: Engine = others[name].load()()
    return engine


def _class(name: str) -> Any:
    module, kind = ENGINES[name]
    return getattr(import_module(module), kind)


def _others() -> dict[str, EntryPoint]:
    """Engines of other packages; none can take the name of one of ours."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP) if point.name not in ENGINES}
