"""The steps, one module each: what its fields show (`values`, `view`), and what becomes of them (`take`)."""

from __future__ import annotations

from typing import Final

from dpgram.wizard.steps import budget, columns, data, outputs, people, review
from dpgram.wizard.steps.base import Step

__all__ = ["STEPS", "Step"]


STEPS: Final = (
    Step("data", "The data", data, "columns"),
    Step("columns", "The columns", columns, "people"),
    Step("people", "Who is protected", people, "budget"),
    Step("budget", "The budget", budget, "outputs"),
    Step("outputs", "Models and files", outputs, "review"),
    Step("review", "Review", review, "review"),
)
