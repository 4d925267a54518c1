"""Black-box privacy audits: what repeated runs on two neighbours prove about ε, δ and μ.

`audit` is for anything that can be run again; `audit_mechanism` brings the worst neighbours of a Gram
mechanism, `audit_pipeline` those of the whole path from tables to a release. `reused_noise`, `leaked_facts`
and `unpaid_draws` find what statistics show badly: noise used twice, facts that leak beside the cells, draws
not paid for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used
from dpgram.errors import require_publish

require_publish()

if TYPE_CHECKING:
    from dpgram.audit.bounds import (
        AuditResult,
        Claim,
        JointAudit,
        Scores,
        Separation,
        clopper_pearson_lower,
        clopper_pearson_upper,
    )
    from dpgram.audit.checks import leaked_facts, reused_noise, unpaid_draws
    from dpgram.audit.gram import audit_mechanism, worst_neighbours
    from dpgram.audit.publication import Pipeline, audit_pipeline, worst_tables
    from dpgram.audit.scores import Experiment, ScoreFile, Tell
    from dpgram.audit.two_inputs import audit, audit_all, audit_scores

__all__ = [
    "AuditResult",
    "Claim",
    "Experiment",
    "JointAudit",
    "Pipeline",
    "ScoreFile",
    "Scores",
    "Separation",
    "Tell",
    "audit",
    "audit_all",
    "audit_mechanism",
    "audit_pipeline",
    "audit_scores",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "leaked_facts",
    "reused_noise",
    "unpaid_draws",
    "worst_neighbours",
    "worst_tables",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.audit.bounds": (
            "AuditResult Claim JointAudit Scores Separation clopper_pearson_lower clopper_pearson_upper"
        ),
        "dpgram.audit.checks": "leaked_facts reused_noise unpaid_draws",
        "dpgram.audit.gram": "audit_mechanism worst_neighbours",
        "dpgram.audit.publication": "Pipeline audit_pipeline worst_tables",
        "dpgram.audit.scores": "Experiment ScoreFile Tell",
        "dpgram.audit.two_inputs": "audit audit_all audit_scores",
    },
)
