"""`Schema`: which columns are read, and how each becomes numbers in [-1, 1]. Public facts only.

A row x becomes a(x) with |a(x)|² ≤ Σ weight². A schema never looks at data: bounds
and levels come from a codebook, a law of nature or common sense, not from the table they describe. The same
facts are kept as TOML (for people) and as JSON (inside a release).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Self, cast, final

from dpgram.errors import SchemaError
from dpgram.files import written
from dpgram.schema.columns import (
    CONSTANT,
    KINDS,
    Column,
    DerivedColumn,
    SourceColumn,
    first_repeated,
)
from dpgram.schema.encodings import EncodedColumn
from dpgram.schema.reading import LAYOUT_FORMS, FileLayout
from dpgram.schema.toml_form import read_toml, toml_table, toml_value

MAX_WIDTH: Final = 1_400
"""Most encoded columns of one schema: keeps the triangle below 10^6 cells, for which the slack of discrete
noise is proven, and d × d work arrays small."""
LONGEST_TEXT: Final = 4_000
"""Characters of a name or level in a file: a column's name is repeated before each of its levels."""


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Schema:
    """Declared columns, in order, with a constant column first unless `constant=False`.

    `encoding`, `separator` and `sheet` say how text files and workbooks of the table are written; of a sheet
    `skip`, `header` and `footer` count the rows above the header, of it and below the table.

    >>> schema = Schema(numeric("age", 18, 90), categorical("smoker", ["no", "yes"]))
    >>> schema.names
    ('(constant)', 'age', 'smoker=no', 'smoker=yes')
    >>> schema.max_norm_squared
    3.0
    """

    columns: tuple[Column, ...]
    constant: bool
    blocks: tuple[tuple[str, ...], ...] | None
    """Names of the columns of each of several releases that share one budget; None: one release of all."""
    layout: FileLayout
    """How files of the table are written: encoding, separator, sheet, and where the table is in it."""
    names: tuple[str, ...] = field(compare=False, repr=False)
    """Names of the encoded columns, that is, of the rows and columns of the Gram matrix."""
    _declared: dict[str, Column] = field(compare=False, repr=False)
    _places: dict[str, tuple[int, ...]] = field(compare=False, repr=False)
    _derived: tuple[DerivedColumn, ...] = field(compare=False, repr=False)
    _encoded: list[tuple[EncodedColumn, ...]] = field(compare=False, repr=False)
    """What `encoded` gave, once it was asked for."""

    def __init__(
        self,
        *columns: Column,
        constant: bool = True,
        blocks: Sequence[Sequence[str]] | None = None,
        encoding: str | None = None,
        separator: str | None = None,
        sheet: str | None = None,
        skip: int | None = None,
        header: int | None = None,
        footer: int | None = None,
    ) -> None:
        for column in columns:
            # A kind that is not registered would make a release that nobody can load.
            if not isinstance(column, Column) or KINDS.get(column.kind) is not type(column):
                raise SchemaError(
                    "a schema is made of columns",
                    got=f"a {type(column).__name__}",
                    remedy="Write Schema(numeric(...), categorical(...), ...)",
                )
            _refuse_long_texts(repr(column.name)[:100], column.to_dict())
        if not columns:
            raise SchemaError("a schema needs at least one column")
        columns = _beside(columns)
        if not isinstance(constant, bool):
            raise SchemaError("a schema's `constant` must be true or false", got=repr(constant))
        _check_width(columns, constant=constant)
        names = tuple(name for column in columns for name in column.encoded_names)
        names = (CONSTANT, *names) if constant else names
        levels = [name for column in columns for name in column.encoded_names if name != column.name]
        repeated = first_repeated([*(column.name for column in columns), *levels])
        if repeated is not None:
            raise SchemaError(f"the column {repeated!r} is declared twice", remedy="Keep one of them")
        _check_derived(columns)
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "constant", constant)
        object.__setattr__(self, "blocks", None if blocks is None else _checked_blocks(blocks))
        layout = FileLayout(
            encoding=encoding, separator=separator, sheet=sheet, skip=skip, header=header, footer=footer
        )
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_declared", {column.name: column for column in columns})
        object.__setattr__(self, "_places", _places(columns, names))
        derived = tuple(column for column in columns if isinstance(column, DerivedColumn))
        object.__setattr__(self, "_derived", derived)
        object.__setattr__(self, "_encoded", [])
        self._check_blocks()

    def __repr__(self) -> str:
        named = ", ".join(column.name for column in self.columns[:8])
        more = ", …" if len(self.columns) > 8 else ""
        return f"<Schema: {len(self.columns)} columns ({self.width} encoded): {named[:400]}{more}>"

    @property
    def width(self) -> int:
        """d: the number of encoded columns."""
        return len(self.names)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def max_norm_squared(self) -> float:
        """The largest |a|² the schema allows: weight² for each declared column, and 1 for the constant."""
        return float(self.constant) + sum(column.weight**2 for column in self.columns)

    @property
    def columns_read(self) -> tuple[SourceColumn, ...]:
        """The columns that are read from the table, in order."""
        return tuple(column for column in self.columns if isinstance(column, SourceColumn))

    @property
    def columns_derived(self) -> tuple[DerivedColumn, ...]:
        """The columns that are computed from others, in order."""
        return self._derived

    @property
    def source_columns(self) -> tuple[str, ...]:
        """Names of the columns to read from the table."""
        return tuple(column.name for column in self.columns_read)

    @property
    def unbounded(self) -> tuple[str, ...]:
        """Columns whose bounds were left open."""
        return tuple(column.name for column in self.columns if column.open_bounds)

    @property
    def without_levels(self) -> tuple[str, ...]:
        """Columns whose levels were left open."""
        return tuple(column.name for column in self.columns if column.open_levels)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Columns that a file leaves open without saying `learn = true`: checked, but never published."""
        return tuple(column.name for column in self.columns if column.undecided)

    @property
    def encoded(self) -> tuple[EncodedColumn, ...]:
        """Every encoded column; needs all bounds."""
        if not self._encoded:
            head = (EncodedColumn(name=CONSTANT, source=CONSTANT, kind="constant"),) if self.constant else ()
            self._encoded.append(head + tuple(found for column in self.columns for found in column.encoded()))
        return self._encoded[0]

    @property
    def known_sums(self) -> tuple[Mapping[int, float], ...]:
        """Functions of the encoded row that are zero in every row that lacks nothing: position → factor.

        The levels of a group add up to the constant, or to those of another group; products with the levels
        of a group add up to the other factor. None follows from the others.

        Proof: proofs/adaptive.md#adaptive-null.
        """
        weights = {place: column.weight for column in self.columns for place in self.indices(column.name)}
        groups = [
            {place: 1.0 / weights[place] for place in self.indices(column.name)}
            for column in self.columns
            if column.group_levels
        ]
        if self.constant:
            found: list[Mapping[int, float]] = [{**group, 0: -1.0} for group in groups]
        else:
            found = [{**group, **_negative(groups[0])} for group in groups[1:]]
        for derived in self.columns_derived:
            if any(self.column(name).group_levels for name in derived.factors):
                grouped = tuple(bool(self.column(name).group_levels) for name in derived.factors)
                found += _sums_of_products(derived, grouped, self._places, weights)
        return tuple(found)

    def column(self, name: str) -> Column:
        """The declared column of that name.

        >>> schema.column("age").bounds
        (18.0, 90.0)
        """
        try:
            return self._declared[name]
        except (KeyError, TypeError):
            raise self._unknown(name) from None

    def indices(self, name: str) -> tuple[int, ...]:
        """Positions in the Gram matrix of one declared column (all its levels), or of one encoded column.

        >>> Schema(numeric("age", 18, 90), categorical("smoker", ["no", "yes"])).indices("smoker")
        (2, 3)
        """
        try:
            return self._places[name]
        except (KeyError, TypeError):  # of a list in place of a name
            raise self._unknown(name) from None

    def _unknown(self, name: str) -> SchemaError:
        known = [column.name for column in self.columns]
        near = difflib.get_close_matches(str(name), [*known, *self.names], n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known[:20])}"
        return SchemaError(f"no column {name!r} in the schema", remedy=hint)

    def with_bounds(self, bounds: Mapping[str, tuple[float, float]], *, weight: float = 1.0) -> Schema:
        """The same schema with the bounds of some numeric columns set (say, learnt privately).

        Bounds of dates are in days and are widened to whole days, which have a text form. `weight` multiplies
        the weights of these columns and of what is derived from them.

        >>> open_schema = dg.Schema(dg.numeric("income"))
        >>> open_schema.unbounded
        ('income',)
        >>> open_schema.with_bounds({"income": (0.0, 90_000.0)}).unbounded
        ()
        """
        columns: list[Column] = []
        for column in self._columns_including(bounds):
            if column.name in bounds:
                columns.append(column.with_bounds(*bounds[column.name]).reweighted(weight))
            elif bounds.keys().isdisjoint(column.factors):
                columns.append(column)
            else:
                columns.append(column.reweighted(weight))
        return self.with_columns(columns)

    def with_levels(self, levels: Mapping[str, tuple[str, ...]]) -> Schema:
        """The same schema with the levels of some categorical columns set (say, learnt privately).

        >>> open_schema = dg.Schema(dg.categorical("city"))
        >>> open_schema.with_levels({"city": ("Bern", "Basel")}).names
        ('(constant)', 'city=Bern', 'city=Basel', 'city=other')
        """
        columns = [
            column.with_levels(levels[column.name]) if column.name in levels else column
            for column in self._columns_including(levels)
        ]
        return self.with_columns(columns)

    def with_blocks(self, blocks: Sequence[Sequence[str]] | None) -> Schema:
        """The same columns in these blocks, or, with None, in one.

        >>> schema.with_blocks([["age", "charges"], ["smoker", "charges"]]).blocks
        (('age', 'charges'), ('smoker', 'charges'))
        """
        return self._like(self.columns, blocks)

    def with_columns(self, columns: Iterable[Column]) -> Schema:
        """These columns in place of its own; all else as it is.

        >>> schema.with_columns(schema.columns[:2]).source_columns
        ('age', 'smoker')
        """
        return self._like(columns, self.blocks)

    def _like(self, columns: Iterable[Column], blocks: Sequence[Sequence[str]] | None) -> Schema:
        layout: dict[str, Any] = self.layout.to_dict()
        return Schema(*columns, constant=self.constant, blocks=blocks, **layout)

    def in_blocks(self) -> tuple[Schema, ...]:
        """One schema for each block; columns that products need must be named with them.

        >>> halves = schema.with_blocks([["age", "charges"], ["smoker", "charges"]])
        >>> [half.names for half in halves.in_blocks()]
        [('(constant)', 'age', 'charges'), ('(constant)', 'smoker=no', 'smoker=yes', 'charges')]
        """
        if self.blocks is None:
            return (self,)
        return tuple(
            self._like((column for column in self.columns if column.name in names), None)
            for names in self.blocks
        )

    def as_counted(self) -> Schema:
        """What decides how values are counted: without the rules for reading them, and without words.

        Sites that write their tables differently count alike where this is equal.

        >>> german = dg.Schema(dg.numeric("age", 18, 90, decimal=",", label="Alter"), separator=";")
        >>> german.as_counted() == dg.Schema(dg.numeric("age", 18, 90))
        True
        """
        columns = [column.as_counted() for column in self.columns]
        return Schema(*columns, constant=self.constant, blocks=self.blocks)

    def _check_blocks(self) -> None:
        for names in self.blocks or ():
            known = {self.column(name).name for name in names}
            if len(known) < len(names):
                raise SchemaError("a block names a column twice", got=", ".join(map(repr, names)))

    def _columns_including(self, names: Iterable[str]) -> tuple[Column, ...]:
        """All columns, once it is sure that these are among them."""
        for name in names:
            self.column(name)
        return self.columns

    def to_dict(self) -> dict[str, object]:
        """The JSON form: `{"constant": …, "columns": [{"kind": …, "name": …, …}, …]}`; defaults left out.

        >>> dg.Schema(dg.boolean("smoker")).to_dict()
        {'constant': True, 'columns': [{'kind': 'boolean', 'name': 'smoker'}]}
        """
        form: dict[str, object] = {"constant": self.constant, **self.layout.to_dict()}
        if self.blocks is not None:
            form["blocks"] = [list(names) for names in self.blocks]
        return form | {"columns": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, form: Mapping[str, object]) -> Self:
        """Read the JSON form; refuses what it does not know.

        >>> dg.Schema.from_dict(schema.to_dict()) == schema
        True
        """
        unknown = set(form) - {"constant", "columns", "blocks", *LAYOUT_FORMS}
        if unknown:
            raise SchemaError(
                "a schema has an unknown entry",
                got=repr(min(map(str, unknown))),
                limit=", ".join(("constant", "columns", "blocks", *LAYOUT_FORMS)),
            )
        constant, columns = form.get("constant", True), form.get("columns")
        if not isinstance(constant, bool):
            raise SchemaError("a schema's `constant` must be true or false", got=repr(constant))
        if not isinstance(columns, list):
            raise SchemaError("a schema needs a list `columns`", got=f"a {type(columns).__name__}")
        if len(columns) > MAX_WIDTH:  # before a column is made of each
            raise SchemaError("the schema has too many columns", got=len(columns), limit=str(MAX_WIDTH))
        blocks = form.get("blocks")
        if blocks is not None and not isinstance(blocks, list):
            raise SchemaError("a schema's `blocks` are a list of lists of names", got=repr(blocks)[:100])
        layout: dict[str, Any] = {name: form[name] for name in LAYOUT_FORMS if name in form}
        found = [_column_from_dict(column) for column in columns]
        return cls(*found, constant=constant, blocks=blocks, **layout)

    def to_file(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the TOML form. A file that is there is replaced only with `overwrite`.

        >>> schema.to_file("people.toml")
        >>> dg.Schema.from_file("people.toml") == schema
        True
        """
        written(path, self.to_toml().encode(), overwrite=overwrite, what="schema")

    def to_toml(self) -> str:
        """The TOML form: one `[[columns]]` table for each column.

        >>> print(dg.Schema(dg.numeric("age", 18, 90)).to_toml())
        # The public row contract: bounds and levels come from public knowledge, not from the data.
        constant = true
        <BLANKLINE>
        [[columns]]
        kind = "numeric"
        name = "age"
        low = 18
        high = 90
        """
        head = (
            f"# The public row contract: bounds and levels come from public knowledge, not from the data.\n\
constant = {json.dumps(self.constant)}\n"
        )
        head += "".join(f"{name} = {toml_value(value)}\n" for name, value in self.layout.to_dict().items())
        if self.blocks is not None:
            head += f"blocks = {toml_value([list(names) for names in self.blocks])}\n"
        return head + "".join(toml_table(column.to_dict()) for column in self.columns)

    def codebook(self, form: Literal["text", "markdown"] = "text") -> str:
        """What each column is, for people: label, range, units, source of its bounds, how it is written.

        >>> age = dg.numeric("age", 18, 90, label="Age", units="years", source="rules, §4")
        >>> print(dg.Schema(age).codebook())
        age: Age
          kind: numeric
          range: 18 to 90
          units: years
          source: rules, §4
        <BLANKLINE>
        """
        from dpgram.schema.codebook import codebook

        return codebook(self, form)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a TOML schema.

        >>> schema.to_file("people.toml")
        >>> dg.Schema.from_file("people.toml").source_columns
        ('age', 'smoker', 'charges')
        """
        remedy = "Check the path; `dpgram schema TABLE -o FILE` writes one to fill in"
        return cls.from_dict(read_toml(Path(path), "schema", SchemaError, remedy=remedy))


def _places(columns: Iterable[Column], names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Where each encoded and each declared column is in the Gram matrix."""
    places: dict[str, tuple[int, ...]] = {name: (place,) for place, name in enumerate(names)}
    for column in columns:
        places[column.name] = tuple(places[name][0] for name in column.encoded_names)
    return places


def _negative(function: Mapping[int, float]) -> dict[int, float]:
    return {place: -value for place, value in function.items()}


def _sums_of_products(
    derived: DerivedColumn,
    grouped: Sequence[bool],
    places: Mapping[str, tuple[int, ...]],
    weights: Mapping[int, float],
) -> list[Mapping[int, float]]:
    """For each column of one factor, the products with all levels of the other (`grouped`), less itself."""
    found: list[Mapping[int, float]] = []
    for side in (0, 1):
        if not grouped[1 - side]:
            continue
        sums: dict[str, dict[int, float]] = {}
        for name, part in zip(derived.encoded_names, derived.parts, strict=True):
            own, (place,) = part.factors[side], places[name]
            (at,) = places[own]
            sums.setdefault(own, {at: -1.0 / weights[at]})[place] = 1.0 / weights[place]
        # With two groups all sums of both together are the constant: the last one follows from the rest.
        found += list(sums.values())[: len(sums) - (side == 1 and all(grouped))]
    return found


def _checked_blocks(blocks: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    if isinstance(blocks, str) or len(blocks) < 2 or any(isinstance(names, str) for names in blocks):
        raise SchemaError(
            "blocks must be two or more lists of column names",
            got=repr(blocks)[:100],
            remedy='Write blocks=[["a", "b"], ["a", "c"]]',
        )
    if len(blocks) > MAX_WIDTH or not all(names for names in blocks):
        raise SchemaError("each block is a list of column names", limit=f"at most {MAX_WIDTH} blocks")
    if not all(isinstance(name, str) for names in blocks for name in names):
        raise SchemaError("each block is a list of column names", got=repr(blocks)[:100])
    return tuple(tuple(names) for names in blocks)


def _check_width(columns: Iterable[Column], *, constant: bool) -> None:
    width = int(constant) + sum(column.encoded_width for column in columns)
    if width > MAX_WIDTH:
        raise SchemaError(
            "the schema has too many encoded columns",
            got=width,
            limit=f"{MAX_WIDTH} (each level of a categorical column counts, and each of its products)",
            remedy="Publish fewer columns; noise grows with each of them",
        )


def _beside(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Each column as it is among the others: products take the levels of their factors."""
    declared = {column.name: column for column in columns}
    return tuple(
        column.beside(declared) if isinstance(column, DerivedColumn) else column for column in columns
    )


def _check_derived(columns: Iterable[Column]) -> None:
    declared = {column.name: column for column in columns}
    for column in declared.values():
        if not isinstance(column, DerivedColumn):
            continue
        for name in column.factors:
            factor = declared.get(name)
            if factor is None:
                raise SchemaError(
                    f"{column.name!r} is made from {name!r}, which the schema does not declare",
                    remedy=f"Declare it too: numeric({name!r}, low, high)",
                )
            if not _may_be_factor(type(factor), column):
                allowed = [name for name, kind in KINDS.items() if _may_be_factor(kind, column)]
                raise SchemaError(
                    f"{column.name!r} cannot be made from {name!r}",
                    got=f"a {factor.kind} column",
                    limit=" or ".join(allowed),
                )


def _may_be_factor(kind: type[Column], derived: DerivedColumn) -> bool:
    return issubclass(kind, SourceColumn) and kind.encoded_as in derived.factor_encodings


def _column_from_dict(entry: object) -> Column:
    if not isinstance(entry, Mapping):
        raise SchemaError("each entry of `columns` must be a table", got=f"a {type(entry).__name__}")
    kind = entry.get("kind")
    declared = KINDS.get(kind) if isinstance(kind, str) else None
    label = repr(entry.get("name", entry.get("column", entry.get("left", "?"))))[:100]
    if declared is None:
        raise SchemaError(
            f"column {label} has an unknown kind",
            got=repr(kind),
            limit=", ".join(KINDS),
        )
    keys = set(entry) - {"kind"}
    learn = entry.get("learn", False)
    declared.form.check(declared.kind, label, keys)
    if "levels" in keys and not isinstance(entry["levels"], list | tuple):
        raise SchemaError(f"column {label}: `levels` must be a list")
    _refuse_long_texts(label, entry)
    column = declared.from_entries(**{key: entry[key] for key in keys - {"learn"}})
    is_open = column.open_bounds or column.open_levels
    if "learn" in keys and learn is not True:
        raise SchemaError(
            f"`learn` of column {label} must be true", got=repr(learn)[:100], remedy="Leave it out"
        )
    if learn and not is_open:
        raise SchemaError(
            f"column {label} says `learn`, and nothing of it is left open",
            remedy="Leave it out, or the bounds or levels beside it",
        )
    return replace(cast("Any", column), undecided=True) if is_open and not learn else column


def _refuse_long_texts(label: str, entry: Mapping[str, Any]) -> None:
    """What a release says of a column: with longer texts it could be published, and never be loaded."""
    texts = [text for text in (*entry.values(), *entry.get("levels", ())) if isinstance(text, str)]
    if any(len(text) > LONGEST_TEXT for text in texts):
        raise SchemaError(
            f"column {label}: a name or level is too long",
            got=f"{max(map(len, texts)):,} characters",
            limit=f"{LONGEST_TEXT:,} characters",
        )
