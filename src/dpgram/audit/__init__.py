"""Black-box privacy audits: what repeated runs on two neighbours prove about ε, δ and μ.

`audit` is for anything that can be run again; `dpgram.audit.gram` brings the worst neighbours of a Gram
mechanism, `dpgram.audit.publication` those of the whole path from tables to a release. `dpgram.audit.checks`
finds what statistics show badly: noise used twice, facts that leak beside the cells, draws not paid for.
"""

from __future__ import annotations

from dpgram.errors import require_publish

require_publish()

from dpgram.audit.bounds import (
    AuditResult,
    Claim,
    JointAudit,
    Scores,
    Separation,
    clopper_pearson_lower,
    clopper_pearson_upper,
)
from dpgram.audit.scores import Experiment, ScoreFile, Tell
from dpgram.audit.two_inputs import audit, audit_all, judged

__all__ = [
    "AuditResult",
    "Claim",
    "Experiment",
    "JointAudit",
    "ScoreFile",
    "Scores",
    "Separation",
    "Tell",
    "audit",
    "audit_all",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "judged",
]
