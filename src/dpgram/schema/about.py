"""What a column means, in words: label, description, units, and where its bounds or levels come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict, final

from dpgram.errors import SchemaError

LONGEST_LABEL: Final = 500
LONGEST_DESCRIPTION: Final = 4_000

ABOUT_FORMS: Final[Mapping[str, Mapping[str, object]]] = {
    "label": {"type": "string", "minLength": 1, "maxLength": LONGEST_LABEL},
    "description": {"type": "string", "minLength": 1, "maxLength": LONGEST_DESCRIPTION},
    "units": {"type": "string", "minLength": 1, "maxLength": LONGEST_LABEL},
    "source": {"type": "string", "minLength": 1, "maxLength": LONGEST_DESCRIPTION},
}
LABELLED_FORMS: Final[Mapping[str, Mapping[str, object]]] = {
    **ABOUT_FORMS,
    "level_labels": {
        "type": "array",
        "items": {"type": "string", "maxLength": LONGEST_LABEL},
        "minItems": 1,
    },
}


class AboutEntries(TypedDict, total=False):
    """What may be said of any column that is read."""

    label: str
    description: str
    units: str
    source: str


class LabelledEntries(AboutEntries, total=False):
    """The same, with a label for each level."""

    level_labels: Iterable[str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Facts for people: they change no number that is published.

    >>> from dpgram.schema.about import About
    >>> About(label="Age", units="years", source="membership rules, §4").to_dict()
    {'label': 'Age', 'units': 'years', 'source': 'membership rules, §4'}
    """

    label: str | None = None
    description: str | None = None
    units: str | None = None
    """Units of measurement."""
    source: str | None = None
    """Where the bounds or levels come from: a codebook, a law, a register."""
    level_labels: tuple[str, ...] = ()
    """What each level means, in the order of the levels."""

    def to_dict(self) -> dict[str, object]:
        form: dict[str, object] = {
            "label": self.label,
            "description": self.description,
            "units": self.units,
            "source": self.source,
        }
        said = {name: value for name, value in form.items() if value is not None}
        return said | ({"level_labels": list(self.level_labels)} if self.level_labels else {})


UNDESCRIBED: Final = About()


def about(name: str, entries: Mapping[str, Any]) -> About:
    """What was said of the column of this name, checked."""
    said = {key: _text(name, key, value) for key, value in entries.items() if key in ABOUT_FORMS}
    labels = entries.get("level_labels", ())
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise SchemaError(f"column {name!r}: `level_labels` is a list of texts", got=repr(labels)[:100])
    for label in labels:
        _text(name, "level_labels", label or " ")
    return About(**said, level_labels=tuple(labels))


def check_level_labels(name: str, labels: tuple[str, ...], levels: tuple[str, ...]) -> None:
    if labels and len(labels) != len(levels):
        raise SchemaError(
            f"column {name!r} has another number of labels than of levels",
            got=f"{len(labels)} labels",
            limit=f"{len(levels)}, one for each level in their order",
        )


def _text(name: str, what: str, value: object) -> str:
    longest = int(str(ABOUT_FORMS.get(what, ABOUT_FORMS["label"])["maxLength"]))
    if not isinstance(value, str) or not value or len(value) > longest:
        raise SchemaError(
            f"column {name!r}: `{what}` must be text",
            got=repr(value)[:100],
            limit=f"1 to {longest:,} characters",
        )
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise SchemaError(f"column {name!r}: `{what}` must be valid Unicode text", got=ascii(value)[:100])
    return value
