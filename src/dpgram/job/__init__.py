"""A publication as one file: what is read, who is protected, what it may cost, what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.job._difference import differences
    from dpgram.job._outputs import Outputs
    from dpgram.job.job import Job, Outcome, Review

__all__ = ["Job", "Outcome", "Outputs", "Review", "differences"]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.job._difference": "differences",
        "dpgram.job._outputs": "Outputs",
        "dpgram.job.job": "Job Outcome Review",
    },
)
