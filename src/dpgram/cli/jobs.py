"""`dpgram run` and `dpgram diff`: a publication as one file."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dpgram.cli.console import JsonFlag, comma_separated, print_facts, print_json, say, say_folded
from dpgram.cli.curate import MUCH_IS_LOST, print_check, telling_of_a_charge
from dpgram.errors import JobError, require_publish

if TYPE_CHECKING:
    from dpgram.job import Job, Outcome, Review

JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="A job file, in TOML.")]


def run(
    job: JobFile,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and plan only: nothing is spent or written.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Publish without asking: the decision has been made.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Carry out a job file: check, plan, publish, pages.

    Shows first what the check of the table finds and what the publication would cost, and asks before
    anything is spent. A job that is finished does nothing; one that was interrupted is continued and pays
    nothing twice.

    With --dry-run the exit code is that of dpgram check: 3 where much of the table would be lost. A job that
    says stop_if_check_fails = true leaves with it too, and publishes nothing then.

    \b
    Examples:
      dpgram run clinic.toml --dry-run
      dpgram run clinic.toml
    """
    require_publish()
    from dpgram.job import Job

    asked = Job.from_file(job)
    progress: Literal[False] | None = False if as_json else None
    if dry_run:
        review = asked.review(progress=progress)
        if as_json:
            print_json(_review_as_json(review))
        else:
            _print_review(asked, review)
            say("\nDry run: nothing was spent and nothing was written")
        if review.check.much_is_lost:
            raise typer.Exit(MUCH_IS_LOST)
        return
    if not yes and (as_json or not sys.stdin.isatty()):
        raise JobError(
            "a person must agree before anything is spent, and there is nobody to ask here",
            remedy="Look at dpgram run --dry-run first, then add --yes",
        )

    def decide(review: Review) -> bool:
        if not as_json:
            _print_review(asked, review)
        return yes or typer.confirm("\nPublish?", default=False, err=True)

    with telling_of_a_charge(asked.ledger):
        outcome = asked.run(
            accept=decide,
            announce=None if as_json else lambda text: say(text, err=True),
            progress=progress,
        )
    if as_json:
        print_json(
            {
                "state": outcome.state,
                "published_before": outcome.published_before,
                "written": [str(path) for path in outcome.written],
                "digests": [release.digest for release in outcome.releases],
            }
        )
    else:
        _print_outcome(asked, outcome)


def diff(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="A job file.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Another one.")],
    as_json: JsonFlag = False,
) -> None:
    """Say in words what differs between two job files.

    \b
    Example:
      dpgram diff spring.toml autumn.toml
    """
    from dpgram.job import Job, differences

    found = differences(Job.from_file(first), Job.from_file(second))
    if as_json:
        print_json({"differences": list(found)})
    elif found:
        for line in found:
            say(line)
    else:
        say("the two jobs ask for the same")


def _print_review(job: Job, review: Review) -> None:
    from dpgram.job.terms import terms
    from dpgram.job.words import as_key

    print_check(review.check)
    if review.plan is not None:
        say(f"\n{review.plan.text(as_key)}")
        if job.rows.unit is not None:
            say_folded(
                f"A row of this forecast is one value of {job.rows.unit!r}, with all its rows: `expected` is "
                "their number"
            )
    else:
        counted = "rows" if job.rows.unit is None else f"values of {job.rows.unit!r}"
        say(
            f"\nNo forecast: give a public guess of the number of {counted}, `expected` below [rows]"
            if job.rows.expected is None
            else "\nNo forecast for several releases at once"
        )
    say("\nThis publication:")
    print_facts(terms(job))
    if review.continued:
        say("\nIt goes on with an earlier run: what was paid is not paid again")
    if review.published_before and job.series is not None:
        say(
            f"\nPeriod {job.series.period!r} of {job.series.file.name} was published before: the run would "
            "not read this table, and would write the release as it was. If the table is of a new period, "
            "write another `period` below [series]"
        )


def _print_outcome(job: Job, outcome: Outcome) -> None:
    if outcome.state == "declined":
        say("not published. Nothing was spent")
        return
    if outcome.state == "finished":
        also = f"; wrote {comma_separated(outcome.written)}" if outcome.written else ": nothing to do"
        say(f"this job was finished before, and nothing was spent{also}")
        say(
            "Whether the table is still the same cannot be compared. For another release, name another "
            "`release` below [outputs]"
        )
        return
    if job.ledger is not None:
        from dpgram.privacy.ledger import Ledger

        book = Ledger.open(job.ledger)
        say_folded(f"{book.name}: {book.left_after(outcome.releases[0].receipts)}")


def _review_as_json(review: Review) -> dict[str, object]:
    check = review.check
    return {
        "price": None if check.price is None else asdict(check.price),
        "curator_only": {
            "counts": {name: asdict(each) for name, each in check.counts.items()},
            "much_is_lost": check.much_is_lost,
        },
        "plan": None if review.plan is None else review.plan.to_json(),
        "published_before": review.published_before,
    }
