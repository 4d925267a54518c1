"""A publication as one file: what is read, who is protected, what it may cost, what comes out."""

from __future__ import annotations

from dpgram.job._difference import differences
from dpgram.job._outputs import Outputs
from dpgram.job.job import Job, Outcome, Review

__all__ = ["Job", "Outcome", "Outputs", "Review", "differences"]
