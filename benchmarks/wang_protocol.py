"""Wang's protocol, for the benchmarks beside this file; it lives in dpgram_papers.experiments."""

from dpgram_papers.experiments.wang_protocol import (
    DELTA,
    FAILURE,
    SETS,
    Fold,
    Task,
    adassp,
    agreement,
    check,
    compared,
    load_task,
    make_task,
    prepared,
    published,
    random_folds,
    symmetric_noise,
)

__all__ = [
    "DELTA",
    "FAILURE",
    "SETS",
    "Fold",
    "Task",
    "adassp",
    "agreement",
    "check",
    "compared",
    "load_task",
    "make_task",
    "prepared",
    "published",
    "random_folds",
    "symmetric_noise",
]
