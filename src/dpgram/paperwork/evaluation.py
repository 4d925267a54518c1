"""An evaluation of one release after NIST SP 800-226, item by item, with evidence or an open point.

NIST's Guidelines for Evaluating Differential Privacy Guarantees (Special Publication 800-226, March 2025)
order what there is to ask as a pyramid: the guarantee at its top, then algorithms, utility and bias, and at
the bottom trust, security and how the data were collected, with hazards on every level. `ITEMS` are our own
questions after it, in our own words, written down on `WRITTEN`; the publication itself is the authority.
Every item has an answer with its evidence (the release, the ledger, the proofs, the assurance page), or
says what the curator must still attest, or both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from dpgram import pages
from dpgram.analysis.display import guarantee_in_words
from dpgram.analysis.moments import Moments
from dpgram.document.terminal import escaped
from dpgram.paperwork.facts import (
    charges_of,
    exactness_of,
    learnt_from_the_table,
    measured_before,
    mechanism_of,
    proof_of,
    relation_of,
    unit_of,
    units_of,
)

if TYPE_CHECKING:
    from dpgram.document.document import Document
    from dpgram.document.fields import StatedGuarantee

WRITTEN: Final = "2026-11-17"
PUBLICATION: Final = "https://doi.org/10.6028/NIST.SP.800-226"
LARGE_EPSILON: Final = 10.0
"""From here on a guarantee is said to be weak: e^10 is 22,026."""
MOST_DELTA: Final = 1.0
"""δ times the number of units: from here on whole rows could be given away within the guarantee."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question of the evaluation."""

    area: str
    question: str
    answer: str = ""
    """What the release says; empty where only the curator can know."""
    evidence: tuple[str, ...] = ()
    attest: str = ""
    """What the curator must still attest; empty where nothing is open."""
    hazard: str = ""
    """A warning, where the answer is one that the guidelines warn of."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What is asked about."""

    release: Document
    ledger: tuple[str, ...] = ()
    """What a ledger says: its limit, what is left, that it holds this release."""


Answer = Callable[[_Subject], Item]


def evaluation(release: Document, ledger: Path | None = None) -> tuple[Item, ...]:
    """Every item, answered as far as the release, and the ledger where one is given, can answer it."""
    subject = _Subject(release=release, ledger=() if ledger is None else _told_by(ledger, release))
    return tuple(item(subject) for item in ITEMS)


def evaluation_page(release: Document, ledger: Path | None = None) -> str:
    """The evaluation as one HTML page, to be printed and signed."""
    items = evaluation(release, ledger)
    open_points = [item for item in items if item.attest]
    parts = [
        "<main>\n<h1>Evaluation after NIST SP 800-226</h1>\n",
        f'<p class="quiet">Of the release with SHA-256 {escaped(release.digest)}</p>\n',
        (
            f"<p>{len(items)} items; {len(items) - len(open_points)} need nothing more, {len(open_points)} "
            "ask the curator to attest something. The questions are ours, after "
            f'<a href="{PUBLICATION}">NIST Special Publication 800-226</a> (March 2025); written down on '
            f"{WRITTEN}.</p>\n"
        ),
    ]
    if release.entropy != "system":
        parts.append(
            '<p class="warning"><strong>This release protects nobody:</strong> its noise was drawn from a '
            "known seed, for a test.</p>\n"
        )
    for area in dict.fromkeys(item.area for item in items):
        parts.append(f"<h2>{escaped(area)}</h2>\n")
        parts += [_as_markup(item) for item in items if item.area == area]
    parts.append(
        "<h2>Signed</h2>\n<p>For the points to attest:</p>\n<p>Name, office, date: "
        "______________________________________</p>\n</main>\n"
    )
    return pages.page("Evaluation after NIST SP 800-226", "".join(parts))


def _as_markup(item: Item) -> str:
    lines = [f"<h3>{escaped(item.question)}</h3>\n"]
    if item.hazard:
        lines.append(f'<p class="warning">{escaped(item.hazard)}</p>\n')
    if item.answer:
        lines.append(f"<p>{escaped(item.answer)}</p>\n")
    if item.evidence:
        lines.append(f'<p class="quiet">Evidence: {escaped("; ".join(item.evidence))}</p>\n')
    if item.attest:
        lines.append(f"<p>☐ <strong>To attest:</strong> {escaped(item.attest)}</p>\n")
    return "".join(lines)


def _told_by(path: Path, release: Document) -> tuple[str, ...]:
    from dpgram.privacy.ledger import Ledger

    book = Ledger.open(path)
    held: tuple[str, ...] = ()
    if release.receipts:
        book.verify(list(release.receipts))
        held = ("it holds the charge of this release and every entry before it, unchanged",)
    return (f"ledger {book.name!r}: {book.guarantee} for everything together", str(book.left()), *held)


GUARANTEE, ALGORITHM, UTILITY, GROUND = (
    "The guarantee",
    "Algorithms and their implementation",
    "Utility and bias",
    "Trust, security and collection",
)


def _epsilon(subject: _Subject) -> Item:
    stated = _whole(subject.release)
    weak = stated.epsilon >= LARGE_EPSILON
    return Item(
        area=GUARANTEE,
        question="How large is ε, and what does it mean?",
        answer=f"ε = {stated.epsilon:g}. {guarantee_in_words(subject.release, stated)}",
        evidence=("guarantee in the release file", "the report's table of what an attacker can learn"),
        hazard="An ε of ten and more promises little: a factor of e^ε on any probability." if weak else "",
        attest="That this ε was approved for this table, by whom and why.",
    )


def _delta(subject: _Subject) -> Item:
    release = subject.release
    stated, rows = _whole(release), units_of(release)
    delta = stated.delta + stated.numerical_delta
    if delta == 0.0:
        answer = "δ = 0: the guarantee is pure, without exceptions."
    elif rows is None:
        answer = f"δ = {delta:g}; the number of {_counted(release)} is not known from the release."
    else:
        answer = f"δ = {delta:g}; times about {rows:,.0f} {_counted(release)} that is {delta * rows:.2g}."
    risky = rows is not None and delta * rows >= MOST_DELTA
    return Item(
        area=GUARANTEE,
        question="How large is δ, beside the number of people?",
        answer=answer,
        evidence=("guarantee in the release file", proof_of(release)),
        hazard="With such a δ whole rows could be given away within the guarantee." if risky else "",
        attest=""
        if rows is not None or delta == 0.0
        else "That δ is far below one over the number of people.",
    )


def _variant(subject: _Subject) -> Item:
    stated = _whole(subject.release)
    exact = [] if stated.mu is None else [f"μ = {stated.mu:.6g} of Gaussian differential privacy"]
    if stated.rho is not None:
        exact.append(f"ρ = {stated.rho:.6g} of zero-concentrated differential privacy")
    variant = "pure" if stated.delta == 0.0 else "approximate"
    return Item(
        area=GUARANTEE,
        question="Which variant is promised, and is anything lost by converting between variants?",
        answer=f"{variant.capitalize()} differential privacy"
        + (f"; the exact statement is {' and '.join(exact)}." if exact else ".")
        + " Conversions round towards less privacy than there is, never more.",
        evidence=(
            (
                "loading a release computes the price of its stated noise again and refuses one that "
                "promises more"
            ),
        ),
    )


def _unit(subject: _Subject) -> Item:
    release = subject.release
    return Item(
        area=GUARANTEE,
        question="What is the unit of privacy?",
        answer=f"{unit_of(release)}. {relation_of(release)}",
        evidence=("unit and adjacency in the release file", "proofs/adjacency.md", "proofs/units.md"),
        attest="That one row is one person: who has several rows is not protected as a whole."
        if release.unit is None
        else f"That {release.unit!r} tells persons apart: one person under two ids is two.",
    )


def _unprotected(subject: _Subject) -> Item:
    release = subject.release
    public = (
        "None: the number of rows is protected too."
        if release.public_rows is None
        else f"The number of rows or units, {release.public_rows:,}, is public."
    )
    return Item(
        area=GUARANTEE,
        question="Which quantities are published without protection?",
        answer=f"{public} Columns, bounds, levels and rules for reading are public facts in the file.",
        evidence=(
            (
                "docs/reference/release-format.md: a closed list of fields, of which only noisy ones depend "
                "on rows"
            ),
        ),
        attest="That declared bounds, levels and missing codes are public knowledge and were not copied "
        "from the table.",
    )


def _mechanism(subject: _Subject) -> Item:
    release = subject.release
    return Item(
        area=ALGORITHM,
        question="Which mechanism is used, and is its price proved?",
        answer=mechanism_of(release),
        evidence=(
            proof_of(release),
            "tests/contracts/test_mechanisms.py",
            "docs/assurance.md: privacy audits",
        ),
    )


def _sensitivity(subject: _Subject) -> Item:
    release = subject.release
    return Item(
        area=ALGORITHM,
        question="Is the contribution of one unit bounded, whatever it contains?",
        answer=f"Every row is scaled to length at most {release.radius:g} and rounded to whole numbers, so "
        "that one unit "
        "changes the sums by a known amount, exactly."
        + (
            f" Of each {release.unit!r} at most {release.unit_rule.rows_at_most:,} rows count."
            if release.unit_rule is not None
            else ""
        ),
        evidence=("proofs/measurements.md", "proofs/units.md", "tests/unit/test_one_row.py"),
    )


def _composition_inside(subject: _Subject) -> Item:
    before = measured_before(subject.release)
    release = subject.release
    parts = f"In order: {'; '.join(before)}; then the matrix." if before else "One matrix, drawn once."
    if release.part is not None:
        parts += f" This file is {release.part} of several that were charged together."
    return Item(
        area=ALGORITHM,
        question="What was measured in all, and does the stated guarantee cover it together?",
        answer=f"{parts} The guarantee is that of all of it.",
        evidence=(
            "measurements in the release file, each with its noise and share",
            "proofs/measurements.md",
        ),
    )


def _composition_over_time(subject: _Subject) -> Item:
    charged = charges_of(subject.release)
    if subject.ledger:
        answer = "; ".join(subject.ledger) + "."
    elif charged:
        answer = f"Charged before the noise was drawn: {charged}. The ledger refuses beyond its budget."
    else:
        answer = ""
    return Item(
        area=ALGORITHM,
        question="How is the loss of all releases from this table added up?",
        answer=answer,
        evidence=("receipt in the release file", "dpgram ledger verify", "proofs/filters.md")
        if charged
        else (),
        hazard="" if charged else "No ledger was charged: nothing in the file says what else was published.",
        attest="That every release from this table, by whatever software, is in this ledger."
        if charged
        else "What else was, and will be, published from this table, and what all of it promises together.",
    )


def _preprocessing(subject: _Subject) -> Item:
    release = subject.release
    learnt = learnt_from_the_table(release)
    told = (
        f"Learnt from the table inside the guarantee: {learnt}. "
        if learnt
        else "Nothing was learnt outside the noise. "
    )
    if release.policy.stop_if_check_fails:
        told += "An exact check came first: had much of the table been unusable, nothing would be published. "
    return Item(
        area=ALGORITHM,
        question="Did cleaning, bounds or tuning look at the table outside the guarantee?",
        answer=f"{told}A row with a missing cell is "
        f"{'dropped' if release.policy.missing == 'drop' else 'filled with midpoints'}"
        ", row by row: no row can change how another is read.",
        evidence=("policy and schema in the release file", "proofs/bounds.md", "proofs/levels.md"),
        attest="That the table was not cleaned, filtered or recoded, nor ε and columns chosen, by looking "
        "at it in ways "
        "that the release now tells of.",
    )


def _postprocessing(subject: _Subject) -> Item:
    del subject
    return Item(
        area=ALGORITHM,
        question="Does anything done after the noise look at the table again?",
        answer="No. The file holds what was drawn; analyses read the file alone, and cannot read rows.",
        evidence=("tests/unit/test_wall.py: the analyst's side loads nothing that reads a table",),
    )


def _floating_point(subject: _Subject) -> Item:
    return Item(
        area=ALGORITHM,
        question="Could floating-point arithmetic break the guarantee?",
        answer=exactness_of(subject.release),
        evidence=(
            "docs/assurance.md: floating point",
            "proofs/entropy.md",
            "docs/adr/0017-exact-samplers.md",
        ),
    )


def _randomness(subject: _Subject) -> Item:
    seeded = subject.release.entropy != "system"
    return Item(
        area=ALGORITHM,
        question="Where does the randomness come from?",
        answer="From a known seed." if seeded else "From the operating system's cryptographic generator.",
        evidence=("entropy in the release file", "src/dpgram/core/noise.py"),
        hazard="Whoever knows the seed can take the noise off: this release protects nobody."
        if seeded
        else "",
    )


def _correctness(subject: _Subject) -> Item:
    return Item(
        area=ALGORITHM,
        question="How was the software examined?",
        answer=f"dpgram {subject.release.library}: proofs, contract tests, privacy audits with power both "
        "ways, faults, "
        "fuzzing and mechanisms broken on purpose, which the audits must find.",
        evidence=("docs/assurance.md", "proofs/", "make assurance runs it again"),
        attest="That this version was installed from a source you trust, and by whom it was reviewed.",
    )


def _side_channels(subject: _Subject) -> Item:
    del subject
    return Item(
        area=ALGORITHM,
        question="What could time, memory, messages or files tell?",
        answer="Nobody but the curator sees a computation: a release is not interactive. Time and memory "
        "are not "
        "defended; messages name no values.",
        evidence=("docs/limits.md: side channels", "docs/assurance.md: system calls"),
        attest="That only trusted people can watch the machine, its logs and temporary files, and that "
        "exact counts of "
        "dpgram check are not passed on.",
    )


def _accuracy(subject: _Subject) -> Item:
    noise = Moments.of(subject.release).noise
    return Item(
        area=UTILITY,
        question="How accurate is what is published, and do users learn it?",
        answer=f"The noise has standard deviation {noise.diagonal_sd:.3g} on a diagonal cell of the matrix "
        "and "
        f"{noise.offdiagonal_sd:.3g} on others, in the units of its rows. Every estimate comes with an "
        "error that holds "
        "it, and is refused where the noise hides the answer.",
        evidence=(
            "noise in the release file",
            "docs/explanation/intervals.md",
            "benchmarks/results/coverage.md",
        ),
        attest="That this accuracy serves the intended use.",
    )


def _small_groups(subject: _Subject) -> Item:
    release = subject.release
    moments = Moments.of(release)
    clip = ""
    if moments.clip is not None:
        clip = f" Rows far from the others count less: about {moments.clip.lost:.2%} of all weight was taken."
    return Item(
        area=UTILITY,
        question="Who is described worse: small groups, extreme values?",
        answer="Noise is the same for all, so small groups are described worse; levels that noise hides get "
        "no interval." + clip,
        evidence=("docs/limits.md", "docs/explanation/adaptive.md"),
        attest="That decisions about small groups are not made from this release alone.",
    )


def _bias(subject: _Subject) -> Item:
    del subject
    return Item(
        area=UTILITY,
        question="Which systemic and human biases are in the table itself?",
        answer="Differential privacy neither removes nor shows them.",
        attest="What is known about who is missing from the table, or measured differently, and that users "
        "are told.",
    )


def _trust_model(subject: _Subject) -> Item:
    del subject
    return Item(
        area=GROUND,
        question="Who must be trusted with what?",
        answer="Central model. The curator and the machines that read the table see rows and are trusted "
        "with them; "
        "analysts are not, whatever they know and however many work together.",
        evidence=("docs/explanation/guarantees.md",),
        attest="Who the curator is, and whether sites or clusters that added up rows are trusted with them.",
    )


def _queries(subject: _Subject) -> Item:
    del subject
    return Item(
        area=GROUND,
        question="Can questions of analysts, also malicious ones, cost privacy?",
        answer="No: they ask the file, which does not change. There is no server that answers.",
        evidence=("post-processing",),
    )


def _security(subject: _Subject) -> Item:
    del subject
    return Item(
        area=GROUND,
        question="How is the table itself protected: access, storage, deletion?",
        attest="Access controls, encryption, logging and retention of the table, the ledger and its "
        "unfinished files.",
    )


def _collection(subject: _Subject) -> Item:
    del subject
    return Item(
        area=GROUND,
        question="Was the data collected lawfully, and no more of it than needed?",
        attest="Legal basis, purpose, minimisation, and what the people in the table were told.",
    )


def _integrity(subject: _Subject) -> Item:
    signed = subject.release.signature is not None
    return Item(
        area=GROUND,
        question="Can users tell the true file from another?",
        answer=f"Its digest is SHA-256 {subject.release.digest}."
        + (" It is signed with Ed25519." if signed else " It is not signed."),
        evidence=("dpgram verify",) if signed else (),
        attest="That users got the public key by another way."
        if signed
        else "How users learn the digest, or why no signature.",
    )


ITEMS: Final[tuple[Answer, ...]] = (
    _epsilon,
    _delta,
    _variant,
    _unit,
    _unprotected,
    _mechanism,
    _sensitivity,
    _composition_inside,
    _composition_over_time,
    _preprocessing,
    _postprocessing,
    _floating_point,
    _randomness,
    _correctness,
    _side_channels,
    _accuracy,
    _small_groups,
    _bias,
    _trust_model,
    _queries,
    _security,
    _collection,
    _integrity,
)
"""In the order of the pyramid, from its top."""


def _whole(release: Document) -> StatedGuarantee:
    """What all releases of the event promise together."""
    return release.guarantee if release.block is None else release.block.joint


def _counted(release: Document) -> str:
    return "rows" if release.unit is None else "units"
