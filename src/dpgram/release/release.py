"""What an analyst holds: one private matrix with all that is needed to use it, and the questions to ask it.

The file itself, its fields and its checks, is `document`; here is what can be done with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, final, overload

import msgspec

from dpgram.analysis import descriptive
from dpgram.analysis.display import as_html, as_text
from dpgram.document.document import Document, Matrix, Units
from dpgram.document.fields import About
from dpgram.document.original_units import in_original_units
from dpgram.document.signature import SCHEME, Signature, check, parsed_public_key, signed_bytes
from dpgram.errors import AnalysisError, ReleaseError, shown
from dpgram.files import LARGEST_FILE, read_whole, written

if TYPE_CHECKING:
    from dpgram.analysis.association import Correlation, Correlations
    from dpgram.analysis.description import Description
    from dpgram.analysis.discriminant import Discriminant, Link
    from dpgram.analysis.effects import Effects
    from dpgram.analysis.estimand import Kind
    from dpgram.analysis.glm import Curve
    from dpgram.analysis.glm_results import GeneralizedLinear
    from dpgram.analysis.histograms import Histogram
    from dpgram.analysis.iv_results import InstrumentalVariables, IVMethod
    from dpgram.analysis.labelled import LabelledMatrix
    from dpgram.analysis.pca import Components
    from dpgram.analysis.regress import Method
    from dpgram.analysis.repair import Policy as RepairPolicy
    from dpgram.analysis.results import Regression
    from dpgram.analysis.sparse import LassoPath
    from dpgram.models import Family
    from dpgram.paperwork.registry import CuratorType, Sector
    from dpgram.release.signing import SigningKey


@final
class Release(Document, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One private second-moment matrix, the public facts around it, and the analyses of it."""

    def second_moments(self, units: Units = "encoded") -> Matrix:
        """The exact matrix as this release tells of it: `matrix`, its noise taken out by the published law.

        Positive semidefinite and of least expected squared error, so drawn towards zero where noise is large.

        >>> release.second_moments()[0].round()
        array([ 20016.,  -2322.,  16516.,   3499., -14828.])
        """
        encoded = descriptive.second_moments(self)
        if units == "encoded":
            return encoded
        if units == "original":
            return in_original_units(self.schema, encoded)
        raise ReleaseError("unknown units", got=repr(units), limit='"encoded" or "original"')

    def count(self) -> float:
        """The noisy number of rows; of units, where each counts as one; the sum of survey weights.

        An adaptive release counts all rows that were read, others those without a missing cell, which alone
        are in the matrix: `fit.nobs` is the number of these, and `describe()` cautions where they are fewer.

        >>> round(release.count())
        20016
        """
        return descriptive.count(self)

    def histogram(self, column: str) -> Histogram:
        """The noisy histogram of one column, with its noise: counts, shares, its mean, what was lost.

        Adaptive releases have one of every column that was read from the table: of all rows, those with gaps
        in other columns included, and of one row of each person where persons are protected.

        >>> wide = dg.publish(table, schema, epsilon=1, delta=1e-6, ledger=None)
        >>> wide.histogram("smoker").values
        ('no', 'yes')
        """
        from dpgram.analysis.histograms import histograms

        found = histograms(self)
        if column not in found:
            raise AnalysisError(
                f"there is no histogram of {column!r}",
                limit=", ".join(list(found)[:20]) or "none: this release was not adaptive",
                remedy=None if found else "Ask the curator for an adaptive release",
            )
        return found[column]

    def mean(self) -> dict[str, float]:
        """The noisy mean of each column, in original units: of all its readable cells in an adaptive release.

        >>> {name: round(value, 2) for name, value in release.mean().items()}
        {'age': 49.82, 'smoker=no': 0.83, 'smoker=yes': 0.17, 'charges': 6479.98}
        """
        return descriptive.mean(self)

    def covariance(self, on: Sequence[str] | None = None, *, psd: bool = True) -> LabelledMatrix:
        """The covariance of all columns (of those in `on`), in original units.

        Positive semidefinite, the noise taken out as far as its law allows: for factor analysis, structural
        equations and simulation. Least expected squared error, not unbiased: see `second_moments`. With
        `psd=False` the unbiased one, whose eigenvalues noise can make negative.

        >>> release.covariance(["age", "charges"])
                    age    charges
        age      284.57      29973
        charges   29973  3.093e+07
        """
        return descriptive.labelled_covariance(self, on, psd=psd)

    def correlation(self, on: Sequence[str] | None = None, *, kind: Kind = "population") -> Correlations:
        """The correlations of all pairs of columns (of those in `on`), with intervals; NaN where noise hides.

        By default products and powers are left out; those in `on`, `age:bmi` or `age^2`, are of the values.

        >>> release.correlation().estimate.round(2)
        array([[ 1.  ,  0.08, -0.08,  0.32],
               [ 0.08,  1.  , -1.  , -0.72],
               [-0.08, -1.  ,  1.  ,  0.72],
               [ 0.32, -0.72,  0.72,  1.  ]])
        """
        from dpgram.analysis.association import correlations

        return correlations(self, on, kind=kind)

    @overload
    def regress(
        self,
        target: str,
        on: Sequence[str] | None = None,
        *,
        family: Literal["linear"] = "linear",
        method: Method = "auto",
        alpha: float | None = None,
        l1_ratio: float = 0.5,
        intercept: bool = True,
        repair: RepairPolicy | None = None,
        reference: Mapping[str, str] | None = None,
        kind: Kind = "population",
    ) -> Regression: ...

    @overload
    def regress(
        self,
        target: str,
        on: Sequence[str] | None = None,
        *,
        family: Curve,
        reference: Mapping[str, str] | None = None,
    ) -> GeneralizedLinear: ...

    def regress(
        self,
        target: str,
        on: Sequence[str] | None = None,
        *,
        family: Family = "linear",
        method: Method = "auto",
        alpha: float | None = None,
        l1_ratio: float = 0.5,
        intercept: bool = True,
        repair: RepairPolicy | None = None,
        reference: Mapping[str, str] | None = None,
        kind: Kind = "population",
        **others: object,
    ) -> Regression | GeneralizedLinear:
        """Fit `target` on the columns `on` (all others by default); results in original units.

        A categorical column is compared with its most frequent level, by the noisy counts, or with the one
        in `reference`. Errors and intervals are for the population, or with `kind="table"` for the rows of
        this very table. With the extra `formula`, `target` may be a whole formula. Errors of a linear model
        that the curator declared allow for unequal variances; `family="logistic"`, `"probit"` and
        `"poisson"` are for models that were declared.

        >>> release.regress("charges ~ age + C(smoker, Treatment('yes'))").names
        ('(intercept)', 'age', 'smoker=no')
        >>> fit = release.regress("charges", ["age", "smoker"])
        >>> {name: round(value, 1) for name, value in fit.params.items()}
        {'(intercept)': -1694.6, 'age': 125.4, 'smoker=yes': 11026.9}
        """
        if others:
            _refuse_others(others, target, self.models)
        if family != "linear":
            from dpgram.analysis.glm_results import declared_model

            asked = (method, alpha, l1_ratio, intercept, repair, kind)
            if asked != ("auto", None, 0.5, True, None, "population"):
                raise AnalysisError(
                    f"a declared {family} model takes no method, penalty, repair or kind",
                    remedy="Leave all but target, on, family and reference out",
                )
            return declared_model(self, target, on, family=family, reference=reference)
        from dpgram.analysis.regress import regress

        return regress(
            self,
            target,
            on,
            method=method,
            alpha=alpha,
            l1_ratio=l1_ratio,
            intercept=intercept,
            repair=repair,
            reference=reference,
            kind=kind,
        )

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were declared and measured, in words.

        >>> release.models
        ()
        """
        from dpgram.document.fields import MeasuredStep

        steps = [each for each in self.measured if isinstance(each, MeasuredStep)]
        return tuple(dict.fromkeys(f"{each.family}: {each.target} on {', '.join(each.on)}" for each in steps))

    def lasso_path(
        self,
        target: str,
        on: Sequence[str] | None = None,
        *,
        alphas: Sequence[float] | None = None,
        count: int = 50,
        l1_ratio: float = 1.0,
        intercept: bool = True,
        reference: Mapping[str, str] | None = None,
    ) -> LassoPath:
        """Coefficients of the lasso for falling penalties, from the least that leaves nothing.

        >>> active = release.lasso_path("charges").active()
        >>> active[0], active[-1]
        ((), ('age', 'smoker=yes'))
        """
        from dpgram.analysis.regress import lasso_path

        return lasso_path(
            self,
            target,
            on,
            alphas=alphas,
            count=count,
            l1_ratio=l1_ratio,
            intercept=intercept,
            reference=reference,
        )

    def pca(
        self, k: int | None = None, on: Sequence[str] | None = None, *, standardise: bool = False
    ) -> Components:
        """The `k` leading principal components of the columns `on`, with their stability.

        By default of all columns but products and powers.

        >>> release.pca(2).explained.round(2)
        array([0.57, 0.4 ])
        """
        from dpgram.analysis.pca import pca

        return pca(self, k, on, standardise=standardise)

    def partial_correlation(
        self, left: str, right: str, given: Sequence[str] | None = None, *, kind: Kind = "population"
    ) -> Correlation:
        """Correlation of two columns once the columns `given` (all others by default) are accounted for.

        >>> print(release.partial_correlation("age", "charges", ["smoker"]))
        correlation of age and charges given smoker: 0.548 (95% interval 0.516 to 0.581)
        """
        from dpgram.analysis.association import partial_correlation

        return partial_correlation(self, left, right, given, kind=kind)

    def describe(
        self, on: Sequence[str] | None = None, *, level: float = 0.95, kind: Kind = "population"
    ) -> Description:
        """The number of rows, and the mean, deviation and count of every column, with intervals.

        >>> found = release.describe()
        >>> print(found.rows, found["age"].mean, sep="; ")
        20016 (19994 to 20038); 49.823 (49.587 to 50.06)
        """
        from dpgram.analysis.description import describe

        return describe(self, on, level=level, kind=kind)

    def discriminant(
        self,
        target: str,
        on: Sequence[str] | None = None,
        *,
        link: Link = "logit",
        kind: Kind = "population",
        reference: Mapping[str, str] | None = None,
    ) -> Discriminant:
        """Approximate logit or probit coefficients of a level or a yes/no column, by discriminant analysis.

        >>> found = release.discriminant("smoker=yes", ["age", "charges"])
        >>> {name: round(ratio[0], 2) for name, ratio in found.odds_ratios().items()}
        {'age': 0.86, 'charges': 1.0}
        """
        from dpgram.analysis.discriminant import discriminant

        return discriminant(self, target, on, link=link, kind=kind, reference=reference)

    def within(
        self, target: str, on: Sequence[str], group: str | Sequence[str], *, kind: Kind = "population"
    ) -> Effects:
        """Slopes of `target` on the columns `on` within the groups of categorical columns (fixed effects).

        >>> round(release.within("charges", ["age"], "smoker").params["age"], 1)
        125.4
        """
        from dpgram.analysis.effects import within

        return within(self, target, on, group, kind=kind)

    def did(
        self,
        target: str,
        treated: str,
        after: str,
        controls: Sequence[str] = (),
        *,
        kind: Kind = "population",
    ) -> Effects:
        """Difference-in-differences: how much more `target` changed `after` for the `treated`.

        >>> columns = [dg.boolean("treated"), dg.boolean("after"), dg.numeric("y", 0, 10)]
        >>> schema = dg.Schema(*columns, dg.product("treated", "after"))
        >>> rows = [(t, a, 3.0 + t - a + 2.0 * t * a) for t in (0, 1) for a in (0, 1)] * 2_000
        >>> visits = dict(zip(["treated", "after", "y"], map(list, zip(*rows)), strict=True))
        >>> release = dg.publish(visits, schema, epsilon=8, delta=1e-6, ledger=None)
        >>> found = release.did("y", "treated", "after")
        >>> print(found.summary().splitlines()[0])
        Difference-in-differences of y: treated × after, from a private release
        """
        from dpgram.analysis.effects import did

        return did(self, target, treated, after, controls, kind=kind)

    def iv(
        self,
        target: str,
        endogenous: str | Sequence[str],
        instruments: str | Sequence[str],
        controls: Sequence[str] = (),
        *,
        method: IVMethod = "2sls",
        kind: Kind = "population",
        reference: Mapping[str, str] | None = None,
    ) -> InstrumentalVariables:
        """`target` on `endogenous` columns and `controls` by instrumental variables: 2SLS or LIML.

        >>> found = release.iv("charges", "age", "smoker")
        >>> found.names
        ('(intercept)', 'age')
        """
        from dpgram.analysis.iv import iv

        return iv(
            self, target, endogenous, instruments, controls, method=method, kind=kind, reference=reference
        )

    def explore(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write one HTML file in which anybody can ask this release questions; no server, no network.

        Another file that is there is not replaced unless `overwrite` says so: here, and wherever one is
        written.

        >>> release.explore("people.html").name
        'people.html'
        """
        from dpgram.explorer import page

        return written(path, page(self).encode("utf-8"), overwrite=overwrite)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        ledger: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write a static HTML report for those who answer for the data; `ledger` adds the budget's history.

        A ledger stays with the curator, so a report with one is for the curator's house, not for analysts.

        >>> release.report("report.html").name
        'report.html'
        """
        from dpgram.release.report import page

        found = page(self, None if ledger is None else Path(ledger))
        return written(path, found.encode("utf-8"), overwrite=overwrite)

    def registry(
        self,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        curator: str | None = None,
        curator_type: CuratorType | None = None,
        region: str | None = None,
        sector: Sector | None = None,
        intended_use: str | None = None,
        published: date | str | None = None,
        authors: Sequence[str] = (),
        overwrite: bool = False,
    ) -> Path:
        """Write an entry for the public registry of differential-privacy deployments, as YAML.

        All that the release says is filled in; names, region and what only the curator knows are marked where
        they were not given. The day is today unless `published` says otherwise.

        >>> written = release.registry("entry.yaml", curator="An office", curator_type="Government")
        >>> written.read_text().splitlines()[2]
        '# TO BE FILLED IN: deployment.basic.name'
        """
        from dpgram.paperwork import registry_entry, registry_yaml

        entry = registry_entry(
            self,
            name=name,
            curator=curator,
            curator_type=curator_type,
            region=region,
            sector=sector,
            intended_use=intended_use,
            published=published,
            authors=authors,
        )
        return written(path, registry_yaml(entry).encode("utf-8"), overwrite=overwrite)

    def evaluation(
        self,
        path: str | os.PathLike[str],
        *,
        ledger: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write an evaluation after NIST SP 800-226 as a page: every item answered, or left to be attested.

        >>> release.evaluation("evaluation.html").name
        'evaluation.html'
        """
        from dpgram.paperwork import evaluation_page

        found = evaluation_page(self, None if ledger is None else Path(ledger))
        return written(path, found.encode("utf-8"), overwrite=overwrite)

    def to_csv(
        self,
        path: str | os.PathLike[str],
        on: Sequence[str] | None = None,
        *,
        reference: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write N, means and denoised covariances in original units as text, for any program.

        Positive semidefinite, of the columns `on` (all by default); of a categorical column the most frequent
        level is left out, or the one in `reference`. All are of the rows that regressions have, as these
        count there (`mean()` is of all that were read). Lines of comment say so, and what the errors of a
        program that takes these numbers for exact leave out: the privacy noise.

        >>> print(release.to_csv("people.csv").read_text().splitlines()[-4])
        MEAN,,49.8...
        """
        from dpgram.exports import as_csv, summary_statistics

        return written(path, as_csv(summary_statistics(self, on, reference=reference)), overwrite=overwrite)

    def to_xport(
        self,
        path: str | os.PathLike[str],
        on: Sequence[str] | None = None,
        *,
        reference: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write a SAS transport file with sums of squares and products, TYPE=SSCP, for PROC REG.

        Options and limits are those of `to_csv`. Names have eight letters; labels have the whole ones.

        >>> release.to_xport("people.xpt").name
        'people.xpt'
        """
        from dpgram.exports import as_xport, summary_statistics

        return written(path, as_xport(summary_statistics(self, on, reference=reference)), overwrite=overwrite)

    def to_stata(
        self,
        path: str | os.PathLike[str],
        on: Sequence[str] | None = None,
        *,
        reference: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write a Stata data set with N, means and covariances, for `ssd` and `sem`; see `to_csv`.

        >>> release.to_stata("people.dta", ["age", "charges"]).name
        'people.dta'
        """
        from dpgram.exports import as_stata, summary_statistics

        return written(path, as_stata(summary_statistics(self, on, reference=reference)), overwrite=overwrite)

    def to_lavaan(
        self,
        path: str | os.PathLike[str],
        on: Sequence[str] | None = None,
        *,
        reference: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write an R script with the number of rows, means and covariances for lavaan; see `to_csv`.

        >>> release.to_lavaan("people.R").name
        'people.R'
        """
        from dpgram.exports import as_lavaan, summary_statistics

        return written(
            path, as_lavaan(summary_statistics(self, on, reference=reference)), overwrite=overwrite
        )

    def to_javascript(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write what the JavaScript module reads, as JSON: the release, and what Python knows of it.

        >>> release.to_javascript("people.json").name
        'people.json'
        """
        from dpgram.canonical_json import canonical_bytes
        from dpgram.explorer.facts import page_facts

        return written(path, canonical_bytes(page_facts(self)) + b"\n", overwrite=overwrite)

    def described(
        self, *, title: str = "", description: str = "", contact: str = "", licence: str = ""
    ) -> Self:
        """The same release with these words about it, in place of any it had; a signature is taken off.

        They are part of the file and of its digest, so describe first and sign afterwards.

        >>> release.described(title="Insured people, 2025", licence="CC BY 4.0").about.title
        'Insured people, 2025'
        """
        given = {"title": title, "description": description, "contact": contact, "licence": licence}
        try:
            about = msgspec.convert({name: text for name, text in given.items() if text != ""}, About)
        except msgspec.ValidationError as problem:
            raise ReleaseError(
                "a release is described in words",
                got=problem,
                limit="texts: 4,000 characters of description, 400 of the others",
            ) from None
        return msgspec.structs.replace(self, about=about if about != About() else None, signature=None)

    def sign(self, key: SigningKey) -> Self:
        """The same release with a signature of all its content, in place of any it had.

        >>> from dpgram.release import SigningKey
        >>> key = SigningKey.create("curator.pem")
        >>> release.sign(key).signature.public_key == key.public
        True
        """
        value = key.sign(signed_bytes(self._content())).hex()
        signature = Signature(scheme=SCHEME, public_key=key.public, value=value)
        return msgspec.structs.replace(self, signature=signature)

    def verify(self, public_key: str) -> None:
        """SignatureError unless this very content was signed with the private key of `public_key`.

        >>> from dpgram.release import SigningKey
        >>> key = SigningKey.create("curator.pem")
        >>> release.sign(key).verify(key.public)
        >>> release.verify(key.public)
        Traceback (most recent call last):
            ...
        dpgram.errors.SignatureError: the release is not signed, but a public key was given ...
        """
        check(self.signature, signed_bytes(self._content()), public_key)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the file whole or not at all: a temporary file beside it, flushed, then renamed.

        A file that is there is not replaced unless `overwrite` says so: it may be a release that was paid
        for. Saving the same release again is no mistake.

        >>> path = release.save("people.dpgram.json")
        >>> dg.load(path) == release
        True
        """
        return written(
            path,
            self.to_json(),
            overwrite=overwrite,
            what="release",
            comfort=". This release is whole: nothing need be published again",
        )

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        stated, seeded = self.guarantee, ", SEEDED" if self.entropy == "seeded" else ""
        return (
            f"<Release: {self.schema.width} columns, {self.mechanism.name}, "
            f"epsilon={stated.epsilon:g}, delta={stated.delta:g}, {self.adjacency}{seeded}>"
        )

    def _repr_html_(self) -> str:
        return as_html(self)


def _refuse_others(others: Mapping[str, object], target: str, models: Sequence[str]) -> None:
    """What `regress` does not take; of errors as statsmodels asks for them, where they come from instead."""
    name = next(iter(others))
    if name not in ("cov_type", "cov_kwds"):
        raise TypeError(f"Release.regress() got an unexpected keyword argument {name!r}")
    declared = [each for each in models if each.startswith("linear: ")]
    known = f"Leave it out: of {', '.join(declared)} they are robust; for others a" if declared else "A"
    raise AnalysisError(
        f"regress takes no {name}: robust errors come with models that the curator declared",
        got=shown(others[name]),
        remedy=f"{known}sk the curator for models=[dg.linear({target!r})]",
    )


def load(path: str | os.PathLike[str], *, public_key: str | None = None) -> Release:
    """Read and check a release file. Nothing in it is executed; nothing it names is imported.

    With the curator's `public_key` (64 hexadecimal digits) the release must carry a valid signature of that
    key. Without one a signed release loads as well, and nothing says that its signature is true.

    >>> path = release.save("people.dpgram.json")
    >>> dg.load(path) == release
    True
    """
    if public_key is not None:
        public_key = parsed_public_key(public_key)  # a mistyped key is found before a large file is read
    try:
        source = Path(path)
    except TypeError:
        raise ReleaseError(
            "a release is read from a file", got=shown(path), remedy='Give its path: "people.dpgram.json"'
        ) from None
    try:
        raw = read_whole(source, LARGEST_FILE)
    except OSError as problem:
        raise ReleaseError(
            f"the release {source} cannot be read", got=problem.strerror or type(problem).__name__
        ) from problem
    try:
        release = Release.from_json(raw)
    except ReleaseError as problem:
        problem.reword(str, before=f"{source}: ")
        raise
    if public_key is not None:
        release.verify(public_key)
    return release
