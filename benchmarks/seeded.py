"""Seeded releases for simulations: the public way of publishing, without what only a user at a desk needs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from unittest.mock import patch

import threadpoolctl

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import LocalEngine
from dpgram.publishing import publish_with

NOT_BUILT = "`adaptive=True` learns nothing within public bounds in this version: its lines are left out."


def adaptive_is_built() -> bool:
    """The adaptive release is there as soon as it is the default."""
    return inspect.signature(dg.publish).parameters["adaptive"].default is not False


@contextmanager
def many_releases() -> Iterator[None]:
    """Limits BLAS to one thread once instead of in each pass."""
    with ExitStack() as stack:
        stack.enter_context(threadpoolctl.threadpool_limits(limits=1, user_api="blas"))
        stack.enter_context(patch.object(threadpoolctl, "threadpool_limits", lambda **_: nullcontext()))
        yield


def seeded_release(
    data: object, schema: dg.Schema, *, epsilon: float, delta: float, seed: int, adaptive: bool
) -> dg.Release:
    """In memory, one thread, no ledger. Warnings are for users: the callers count refusals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (release,) = publish_with(
            data,
            schema,
            epsilon=epsilon,
            delta=delta,
            entropy=SeededEntropy(seed),
            adaptive=adaptive,
            engine=LocalEngine(threads=1),
            progress=False,
        )
    return release
