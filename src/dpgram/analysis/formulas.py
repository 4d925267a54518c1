"""A formula over declared columns: "log_wage ~ education * experience + C(region, Treatment('south'))".

formulaic's parser expands the operators; what each factor means is looked up in the schema, and nothing is
evaluated. A release holds the columns that its curator declared, so what was not declared cannot be asked
for: the answer says how a curator would declare it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from dpgram.analysis.asked import asked_columns, asked_reference
from dpgram.document.original_units import original_columns
from dpgram.errors import AnalysisError, MissingExtra
from dpgram.schema import Schema

CURVES: Final = ("poly", "bs", "cr", "cs", "cc")
QUOTED: Final = re.compile(r"([`'\"]).*?\1")
EVERY_OTHER: Final = re.compile(r"(?<!\w)\.(?!\w)")
"""The dot that stands for all columns but the target; not that of a name or a number."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a formula asks for, in the words of `regress`."""

    target: str
    on: tuple[str, ...] | None
    """None: all other columns."""
    intercept: bool
    reference: Mapping[str, str]


def asked_question(
    schema: Schema,
    target: str,
    on: Sequence[str] | None,
    *,
    intercept: bool = True,
    reference: Mapping[str, str] | None = None,
) -> Question:
    """What is asked for by a formula in place of the target, or by a target and a list of columns."""
    levels = asked_reference(schema, reference)
    if not is_formula(schema, target):
        columns = None if on is None else tuple(asked_columns(schema, on))
        return Question(target=target, on=columns, intercept=intercept, reference=levels)
    if on is not None:
        raise AnalysisError(
            "a formula names its own columns",
            got=f"on={asked_columns(schema, on)} as well",
            remedy="Leave out `on`",
        )
    asked = read_formula(schema, target)
    return replace(asked, intercept=asked.intercept and intercept, reference={**levels, **asked.reference})


def is_formula(schema: Schema, text: object) -> bool:
    """Whether this is a formula and not a column's name."""
    names = {*schema.names, *(column.name for column in schema.columns)}
    return isinstance(text, str) and "~" in text and text not in names


def read_formula(schema: Schema, text: str) -> Question:
    """The columns that a formula names, or what is not among them."""
    try:
        return _question(schema, text)
    except AnalysisError:
        if names := _without_backticks(schema, text):
            raise AnalysisError(
                f"a name that is no single word stands between backticks in a formula: {_listed(names)}",
                got=repr(text),
                remedy=f"Write {_with_backticks(text, names)!r}. "
                "In place of backticks, Q('…') does the same.",
            ) from None
        raise


_SET_APART: Final = re.compile(r"(`[^`]*`|'[^']*'|\"[^\"]*\")")
"""Names between backticks and texts between quotes."""


def _without_backticks(schema: Schema, text: str) -> list[str]:
    """Columns whose name is no word for a formula and stands there as if it were; the longest first."""
    bare = " ".join(_SET_APART.split(text)[::2])
    # Not those of computed columns, which are formulas.
    names = {name for column in schema.columns_read for name in (column.name, *column.encoded_names)}
    found = []
    for name in sorted(names, key=lambda name: (-len(name), name)):
        if not name.isidentifier() and name in bare:
            found.append(name)
            bare = bare.replace(name, " ")
    return found


def _with_backticks(text: str, names: Sequence[str]) -> str:
    parts = _SET_APART.split(text)
    pattern = "|".join(map(re.escape, names))  # the longest first
    parts[::2] = [re.sub(pattern, lambda found: f"`{found[0]}`", part) for part in parts[::2]]
    return "".join(parts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5]))


def _question(schema: Schema, text: str) -> Question:
    if not text.rpartition("~")[2].strip():
        raise AnalysisError(
            "the formula names nothing to the right of ~",
            got=repr(text),
            remedy=f'Name columns there, or write "{text.strip()} 1" for the intercept alone',
        )
    left, right = _parsed(schema, text)
    if len(left) != 1 or len(left[0]) != 1:
        raise AnalysisError(
            "a formula has one column to its left", got=repr(text), remedy='Write "y ~ a + b".'
        )
    asked = _Asked(schema=schema, references={})
    target = asked.name(left[0][0])
    intercept, on = False, []
    for term in right:
        if term in (["1"], ["0"]):
            intercept = intercept or term == ["1"]
        else:
            on.append(asked.column(term))
    if EVERY_OTHER.search(QUOTED.sub("", text)):
        own = schema.encoded[schema.indices(target)[0]].source
        made = {name for column in schema.columns if own in column.factors for name in column.encoded_names}
        made |= {own, *(column.name for column in schema.columns if own in column.factors)}
        on = [name for name in on if name not in made]
    return Question(
        target=target, on=tuple(dict.fromkeys(on)), intercept=intercept, reference=asked.references
    )


def _parsed(schema: Schema, text: str) -> tuple[list[list[str]], list[list[str]]]:
    """The terms on either side, each a list of factors."""
    try:
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    except ImportError:
        raise MissingExtra("formulaic", "formula") from None
    known = [column.name for column in schema.columns]
    try:
        terms = DefaultFormulaParser().get_terms(text, context={"__formulaic_variables_available__": known})
    except (FormulaicError, SyntaxError, ValueError, RecursionError):
        raise AnalysisError(
            "the formula cannot be read",
            got=repr(text),
            remedy='Write one column, ~ and columns with + between them: "y ~ a + b", or "y ~ a * C(b)"',
        ) from None
    if not hasattr(terms, "lhs"):
        return [], []
    left, right = (
        [[str(factor.expr) for factor in term.factors] for term in side] for side in (terms.lhs, terms.rhs)
    )
    return left, right


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Factors and terms as declared columns; notes the reference levels on the way."""

    schema: Schema
    references: dict[str, str]

    def column(self, factors: list[str]) -> str:
        """The declared column of a term: itself, a product, a power."""
        parts = [self._part(factor) for factor in factors]
        names = [name for part in parts for name in part]
        if len(names) == 1:
            return names[0]
        if groups := [name for name in names if self._is_group(name)]:
            return self._interaction(groups[0], names)
        return self._monomial(names)

    def name(self, factor: str) -> str:
        """One column, or one level of a categorical one, by its name."""
        (name,) = [*self._part(factor)][:1]
        return name

    def _part(self, factor: str) -> tuple[str, ...]:
        if self._known(factor):
            return (factor,)
        try:
            node = ast.parse(factor, mode="eval").body
        except SyntaxError:
            raise self._unknown(factor) from None
        if isinstance(node, ast.Name):
            raise self._unknown(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node.func.id, node, factor)
        return self._powers(node, factor)

    def _call(self, function: str, node: ast.Call, text: str) -> tuple[str, ...]:
        if function == "Q" and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
            name = str(node.args[0].value)
            if not self._known(name):
                raise self._unknown(name)
            return (name,)
        if function == "I" and len(node.args) == 1:
            return self._powers(node.args[0], text)
        if function == "C" and node.args:
            return (self._categorical(node, text),)
        if function in CURVES:
            raise AnalysisError(
                f"{text} is not a column of this release",
                remedy='Powers are written out, "a + I(a**2)", where the curator declared legendre("a", 2).',
            )
        inside = ast.unparse(node.args[0]) if node.args else "…"
        raise AnalysisError(
            f"this release has no column {text!r}: values are transformed before they are published",
            remedy=f"The curator would add a column {function}_{inside} to the table and declare it: "
            f'numeric("{function}_{inside}", low, high).',
        )

    def _categorical(self, node: ast.Call, text: str) -> str:
        first = node.args[0]
        name = first.id if isinstance(first, ast.Name) else ast.unparse(first).strip("`'\"")
        if isinstance(first, ast.Call):
            (name,) = self._part(ast.unparse(first))
        if not self._known(name):
            raise self._unknown(name)
        column = self.schema.column(name)
        if not column.group_levels:
            if column.kind == "boolean" and len(node.args) == 1 and not node.keywords:
                return name
            raise AnalysisError(
                f"{name!r} was declared as {column.kind}, so it has no levels to compare",
                remedy=f'The curator would declare it: categorical("{name}", [levels]).',
            )
        for coding in [*node.args[1:], *(keyword.value for keyword in node.keywords)]:
            self.references[name] = _treatment(coding, text)
        return name

    def _powers(self, node: ast.expr, text: str) -> tuple[str, ...]:
        """a, a**2, a*b, (a*b)**2: the factors, repeated as often as they are multiplied."""
        if isinstance(node, ast.Name):
            if not self._known(node.id):
                raise self._unknown(node.id)
            return (node.id,)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Q", "I"):
            return self._call(node.func.id, node, text)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._powers(node.left, text) + self._powers(node.right, text)
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Pow | ast.BitXor)
            and isinstance(node.right, ast.Constant)
            and isinstance(node.right.value, int)
            and 1 <= node.right.value <= 12
        ):
            return self._powers(node.left, text) * node.right.value
        raise AnalysisError(
            f"this release has no column {text!r}: values are transformed before they are published",
            remedy='The curator would add it to the table and declare it: numeric("its name", low, high).',
        )

    def _interaction(self, group: str, names: list[str]) -> str:
        """The declared product of a categorical column with another one."""
        for column in self.schema.columns_derived:
            if len(names) == 2 and Counter(column.factors) == Counter(names):
                return column.name
        raise _categorical_product(group, names)

    def _monomial(self, names: list[str]) -> str:
        wanted = Counter(names)
        encoded = self.schema.encoded
        for i, column in enumerate(original_columns(self.schema)):
            if column.monomial and Counter(column.monomial) == wanted:
                return encoded[i].name
        told = ":".join(name if power == 1 else f"{name}^{power}" for name, power in wanted.items())
        if len(wanted) == 1:
            (name,) = wanted
            below = ", ".join(f'legendre("{name}", {degree})' for degree in range(2, len(names) + 1))
            remedy = f"The curator would declare it: {below}."
        elif len(names) == 2:
            remedy = f'The curator would declare it: product("{names[0]}", "{names[1]}").'
        else:
            remedy = "Products of two columns can be declared; the curator would put this one into the table."
        raise AnalysisError(f"this release has no product {told}: it was not declared", remedy=remedy)

    def _known(self, name: str) -> bool:
        return name in self.schema.names or any(column.name == name for column in self.schema.columns)

    def _is_group(self, name: str) -> bool:
        declared = {column.name: column for column in self.schema.columns}
        return name in declared and bool(declared[name].group_levels)

    def _unknown(self, name: str) -> AnalysisError:
        from difflib import get_close_matches

        declared = [column.name for column in self.schema.columns]
        near = get_close_matches(name, [*declared, *self.schema.names], n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        return AnalysisError(
            f"this release has no column {name!r}",
            limit=", ".join(declared[:20]),
            remedy=f'{hint}The curator would declare it: numeric("{name}", low, high). Names that are no '
            "words go between backticks.",
        )


def _treatment(coding: ast.expr, text: str) -> str:
    """The level of Treatment('south') or Treatment(reference='south')."""
    if (
        isinstance(coding, ast.Call)
        and ast.unparse(coding.func).rpartition(".")[2].lower() == "treatment"
        and len(values := [*coding.args, *(keyword.value for keyword in coding.keywords)]) == 1
        and isinstance(values[0], ast.Constant)
    ):
        value = values[0].value
        return str(value).lower() if isinstance(value, bool) else str(value)
    raise AnalysisError(
        f"only Treatment('level') says how levels are compared in a formula, not {ast.unparse(coding)}",
        got=repr(text),
        remedy='Other contrasts are tests of the fit: t_test("region=north - region=south = 0").',
    )


def _categorical_product(group: str, names: list[str]) -> AnalysisError:
    others = [name for name in names if name != group]
    if len(others) != 1:
        return AnalysisError(
            f"this release has no product {':'.join(names)}",
            remedy="Products of two columns can be declared; the curator would put this one into the table.",
        )
    return AnalysisError(
        f"this release has no product of the categorical column {group!r} with {others[0]!r}: it was not "
        "declared",
        remedy=f'The curator would declare it: product("{names[0]}", "{names[1]}").',
    )
