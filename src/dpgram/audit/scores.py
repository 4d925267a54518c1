"""Many runs of two neighbours → one row of scores for each run: in parallel, and resumable from a file.

Runs are made in chunks, each with its own source of entropy, so that neither the number of workers nor an
interruption can change what chunk k draws. Finished chunks are appended to the file; a second call with the
same experiments makes only those that are missing, so it also continues with more runs. The bounds hold for a
number of runs that was fixed beforehand, not for one at which somebody stopped because of what they saw.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, final

import numpy as np
import numpy.typing as npt

from dpgram.audit.bounds import Input, Scores
from dpgram.core.noise import Entropy
from dpgram.errors import GuaranteeError, SourceError

Output = TypeVar("Output")
Run: TypeAlias = Callable[[Entropy], Output]
Statistic: TypeAlias = Callable[[Sequence[Output]], npt.ArrayLike]
Tell: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished runs and of all."""

CHUNK: Final = 500
"""Runs that share one source of entropy: fixed, so that the number of workers cannot change the outcome."""
_FORMAT: Final = "dpgram audit scores, 1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Generic[Output]):
    """Two neighbours to run, and the numbers by which to tell them apart. Picklable, for several workers."""

    name: str
    run_a: Run[Output]
    run_b: Run[Output]
    statistic: Statistic[Output]
    """Maps a list of outputs to one number each, or to one row of numbers each."""
    names: tuple[str, ...] | None = None
    """What the numbers are, for the reader of the result."""
    chunk: int = CHUNK


class Key(NamedTuple):
    """Which chunk of runs."""

    experiment: str
    side: Input
    number: int


@final
class ScoreFile:
    """Scores on disk: a line that says of what, then finished chunks, each checked by its own sum."""

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        self._path, self._what = Path(path), what
        self.found: dict[Key, Scores] = {}
        """What the file held when it was opened."""
        if self._path.exists() and self._path.stat().st_size:
            self._read()
        else:
            head = json.dumps({"format": _FORMAT, "of": what}, ensure_ascii=False)
            self._path.write_bytes(head.encode() + b"\n")

    def append(self, key: Key, scores: Scores) -> None:
        """Add one chunk in a single write: an interruption leaves at most an unfinished end."""
        body = np.ascontiguousarray(scores, dtype="<f8").tobytes()
        place = {"pair": key.experiment, "side": key.side, "chunk": key.number, "shape": scores.shape}
        head = json.dumps(place | {"crc": zlib.crc32(body)}, ensure_ascii=False)
        with self._path.open("ab", buffering=0) as file:
            file.write(head.encode() + b"\n" + body)

    def _read(self) -> None:
        data = self._path.read_bytes()
        line, _, rest = data.partition(b"\n")
        try:
            head = json.loads(line)
            known = head["format"] == _FORMAT
        except (ValueError, TypeError, KeyError):
            known = False
        if not known:
            raise SourceError(
                f"{self._path} holds no scores of an audit",
                remedy="Name another file; this one is left as it is",
            )
        if head["of"] != self._what:
            raise SourceError(
                f"{self._path} holds the scores of another audit",
                got=head["of"],
                limit=self._what,
                remedy="Name another file, or ask for the same audit",
            )
        good = len(line) + 1
        while rest:
            read = _chunk_at(rest)
            if read is None:
                break
            key, scores, length = read
            self.found[key] = scores
            good, rest = good + length, rest[length:]
        if good < len(data):
            # The end of a run that was interrupted while it wrote: that chunk is made again.
            with self._path.open("r+b") as file:
                file.truncate(good)


def _chunk_at(data: bytes) -> tuple[Key, Scores, int] | None:
    """The chunk at the start of `data` and its length in bytes; None where it is cut or damaged."""
    line, end, body = data.partition(b"\n")
    try:
        head = json.loads(line)
        key, (rows, columns) = Key(head["pair"], head["side"], head["chunk"]), head["shape"]
        length = 8 * rows * columns
    except (ValueError, TypeError, KeyError):
        return None
    if not end or len(body) < length or zlib.crc32(body[:length]) != head["crc"]:
        return None
    scores = np.frombuffer(body[:length], "<f8").reshape(rows, columns).astype(np.float64)
    return key, scores, len(line) + 1 + length


def collect(
    experiments: Sequence[Experiment[Any]],
    *,
    runs: int,
    sources: Sequence[Entropy],
    workers: int = 1,
    store: ScoreFile | None = None,
    tell: Tell | None = None,
) -> list[tuple[Scores, Scores]]:
    """The scores of `runs` runs of both sides of every experiment; `sources` has one entropy for each."""
    wanted, jobs = _split(experiments, runs, sources)
    done: dict[Key, Scores] = {}
    for key, size in wanted.items():
        stored = None if store is None else store.found.get(key)
        if stored is not None and len(stored) >= size:
            done[key] = stored[:size]
            del jobs[key]
    finished, total = sum(len(scores) for scores in done.values()), 2 * runs * len(experiments)

    def keep(key: Key, scores: Scores) -> None:
        nonlocal finished
        done[key] = scores
        finished += len(scores)
        if store is not None:
            store.append(key, scores)
        if tell is not None:
            tell(finished, total)

    if tell is not None:
        tell(finished, total)
    if workers == 1 or len(jobs) <= 1:
        for key, job in jobs.items():
            keep(key, _chunk(*job))
    else:
        _in_parallel(jobs, workers, keep)
    return [
        (_joined(done, wanted, experiment.name, "a"), _joined(done, wanted, experiment.name, "b"))
        for experiment in experiments
    ]


_Job: TypeAlias = tuple[Run[Any], Statistic[Any], int, Entropy]


def _split(
    experiments: Sequence[Experiment[Any]], runs: int, sources: Sequence[Entropy]
) -> tuple[dict[Key, int], dict[Key, _Job]]:
    wanted: dict[Key, int] = {}
    jobs: dict[Key, _Job] = {}
    if len({experiment.name for experiment in experiments}) < len(experiments):
        raise GuaranteeError("two experiments have the same name", remedy="Give each a name of its own")
    for experiment, source in zip(experiments, sources, strict=True):
        sizes = [min(experiment.chunk, runs - start) for start in range(0, runs, experiment.chunk)]
        split = source.split(2 * len(sizes))
        for number, size in enumerate(sizes):
            for side, run, own in (
                ("a", experiment.run_a, split[2 * number]),
                ("b", experiment.run_b, split[2 * number + 1]),
            ):
                key = Key(experiment.name, "a" if side == "a" else "b", number)
                wanted[key] = size
                jobs[key] = (run, experiment.statistic, size, own)
    return wanted, jobs


def _in_parallel(jobs: dict[Key, _Job], workers: int, keep: Callable[[Key, Scores], None]) -> None:
    # A fresh interpreter, not a fork: a copied process would share the state of its random generators.
    pool = ProcessPoolExecutor(
        min(workers, len(jobs)), mp_context=get_context("spawn"), initializer=_one_thread_each
    )
    try:
        pending: dict[Future[Scores], Key] = {pool.submit(_chunk, *job): key for key, job in jobs.items()}
        for future in as_completed(pending):
            keep(pending[future], future.result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _one_thread_each() -> None:
    """Workers that each start a BLAS thread for every core wait for one another most of the time."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1, user_api="blas")


def _joined(done: dict[Key, Scores], wanted: dict[Key, int], name: str, side: Input) -> Scores:
    return np.concatenate([done[key] for key in wanted if key.experiment == name and key.side == side])


def _chunk(run: Run[Any], statistic: Statistic[Any], runs: int, entropy: Entropy) -> Scores:
    scores: Scores = np.asarray(statistic([run(entropy) for _ in range(runs)]), dtype=np.float64)
    if not np.isfinite(scores).all():
        raise GuaranteeError(
            "a statistic is not a finite number", remedy="Replace infinite values by a large finite one."
        )
    return scores.reshape(runs, -1)
