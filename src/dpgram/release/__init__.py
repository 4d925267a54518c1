"""What analysts hold: a release and the questions to ask it, its report, its signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used
from dpgram.release.release import Release, load

if TYPE_CHECKING:
    from dpgram.release.signing import SigningKey

__all__ = [
    "Release",
    "SigningKey",
    "load",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.release.signing": "SigningKey",
    },
)
