"""What is asked of a file that was loaded: an answer, or a refusal of one line, within the limits."""

from __future__ import annotations

import random
import warnings
import zlib
from collections.abc import Callable, Mapping
from typing import TypeVar

from assurance.fuzz_targets.limits import limited
from dpgram.errors import DpgramError, DpgramWarning

T = TypeVar("T")


def require_one_line(refusal: DpgramError) -> None:
    """A refusal is fine if it is told in one line."""
    if "\n" in str(refusal):
        raise AssertionError("a refusal of several lines") from refusal


def some_of(questions: Mapping[str, Callable[[T], object]], data: bytes, count: int) -> list[str]:
    """So many of them, by the bytes of the input."""
    return random.Random(zlib.crc32(data)).sample(sorted(questions), count)


def asked(subject: T, questions: Mapping[str, Callable[[T], object]], names: list[str]) -> None:
    """Ask these questions of it."""
    with warnings.catch_warnings():
        # A silent overflow is a wrong answer; a caution of ours is none.
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", DpgramWarning)
        for name in names:
            with limited(name):
                try:
                    questions[name](subject)
                except DpgramError as refusal:
                    require_one_line(refusal)
