"""What a release file says: its fields, what they mean, and the checks that they pass on loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.document.coordinates import Coordinates
    from dpgram.document.document import Document
    from dpgram.document.fields import (
        Block,
        Group,
        Measurements,
        MechanismUsed,
        Policy,
        PublishedMatrix,
        StatedGuarantee,
        SurveyWeight,
        UnitRule,
    )
    from dpgram.document.measurements import learnt_bounds, learnt_levels, learnt_radius
    from dpgram.document.original_units import in_original_units
    from dpgram.document.signature import Signature
    from dpgram.document.statement import in_words
    from dpgram.document.terminal import printable

__all__ = [
    "Block",
    "Coordinates",
    "Document",
    "Group",
    "Measurements",
    "MechanismUsed",
    "Policy",
    "PublishedMatrix",
    "Signature",
    "StatedGuarantee",
    "SurveyWeight",
    "UnitRule",
    "in_original_units",
    "in_words",
    "learnt_bounds",
    "learnt_levels",
    "learnt_radius",
    "printable",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.document.coordinates": "Coordinates",
        "dpgram.document.document": "Document",
        "dpgram.document.fields": (
            "Block Group Measurements MechanismUsed Policy PublishedMatrix StatedGuarantee "
            "SurveyWeight UnitRule"
        ),
        "dpgram.document.measurements": "learnt_bounds learnt_levels learnt_radius",
        "dpgram.document.original_units": "in_original_units",
        "dpgram.document.signature": "Signature",
        "dpgram.document.statement": "in_words",
        "dpgram.document.terminal": "printable",
    },
)
