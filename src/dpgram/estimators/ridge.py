"""Ridge regression of one target: the joint release of (XᵀX, Xᵀy), and a fit shrunk by its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, final

import numpy as np
from msgspec.structs import replace

from dpgram.analysis.design import build_design
from dpgram.analysis.moments import Moments
from dpgram.analysis.noise_aware import noise_aware
from dpgram.analysis.normal_equations import isotropic
from dpgram.analysis.quality import SIGNAL_TO_NOISE
from dpgram.analysis.regress import Method, check_alpha
from dpgram.analysis.results import Regression
from dpgram.analysis.unshrunken import unshrunken
from dpgram.errors import MechanismError
from dpgram.estimators._fit_publication import published_fit
from dpgram.estimators._table import Table
from dpgram.estimators.base import refuse_learnt_units, refuse_units
from dpgram.estimators.linear import Matrix, RegressionEstimator, penalised
from dpgram.estimators.noisy_sums import TARGET_LENGTH, NoisySums, reweighted
from dpgram.mechanisms import Auto, MatrixLaplace, MechanismLike, PublicFacts
from dpgram.mechanisms.choice import PURE_LEDGER
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.guarantee import GaussianDP, Guarantee, as_number
from dpgram.publishing.measurements.target import SLOPE, Target, TargetedGaussian
from dpgram.publishing.publication import Program, Stage
from dpgram.publishing.request import open_ledger
from dpgram.release import Release
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules
from dpgram.sums.target import TargetBounds

JOINT: Final = "joint-gaussian"


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRidge(RegressionEstimator):
    """(ε, δ)-private ridge regression of one target.

    `alpha=None` shrinks each direction by what the noise demands; a number is scikit-learn's penalty with
    every column scaled to [-1, 1]; where noise hides the number of rows, which it needs, the fit is that of
    None, and `refusal_` says why. `mechanism` is "joint-gaussian", a release that serves this target alone,
    any mechanism of `publish`, or "auto": an adaptive release or, with `adaptive=False` or a `radius`,
    "matrix-laplace" where it is forecast to have less noise (small tables; then the guarantee is pure) or
    where delta is 0, else "joint-gaussian". With a ledger in μ² or ρ "auto" takes the Gaussian, which is
    cheaper there. `radius` is a public bound on the length of the scaled features, the constant included.

    `conf_int_` are 95% intervals for the un-shrunken population coefficients; None, with the reason in
    `conf_int_refusal_`, where none would hold; `conf_int_cautions_` says what they do not include. `sums_`
    holds the private sums of the joint release, `release_` the release of another mechanism; the one that was
    not made is None. `receipt_` is the ledger's, if one paid;
    `entropy_` is "seeded" where whoever knows the seed can remove the noise. The other parameters are those
    of `PrivateLinearRegression`.
    """

    alpha: float | None = None

    mechanism_: str = field(init=False)
    sums_: NoisySums | None = field(init=False)
    release_: Release | None = field(init=False)
    refusal_: str | None = field(init=False)
    """Why noise leaves no fit of the kind that was asked for; None where it does not."""

    def fit(self, X: Any, y: Any) -> Self:
        """Release once and regress; sets `coef_`, `intercept_`, `conf_int_` and `guarantee_`."""
        check_alpha(self.alpha)
        table = self._table(X, y)
        self._count_fit()
        self.sums_, self.release_, self.refusal_ = None, None, None
        if table.schema.unbounded or self._adapts:
            return self._take(self._from_any_target(table), table)
        row_bounds = TargetBounds.of(table.schema, str(table.target), self.radius)
        asked = Guarantee.checked(as_number("epsilon", self.epsilon), as_number("delta", self.delta))
        chosen, reason = self._chosen(asked, row_bounds)
        if chosen == JOINT:
            self.mechanism_ = JOINT
            return self._take(self._from_joint(table, row_bounds, asked), table)
        return self._take(self._from_release(table, row_bounds, chosen, reason), table)

    @property
    def _adapts(self) -> bool:
        """Whether a release for any target, measured in better coordinates, is left to be chosen."""
        return self.adaptive is not False and self.radius is None and self.mechanism in (Auto.name, Auto())

    def _chosen(self, asked: Guarantee, row_bounds: TargetBounds) -> tuple[MechanismLike, str]:
        """By public facts alone; with the reason that a release gives, where it was not asked for by name."""
        if self.mechanism not in (Auto.name, Auto()):
            return self.mechanism, ""
        book = open_ledger(self.ledger)
        if asked.pure:
            return MatrixLaplace.name, f"auto: delta = 0 was asked for, and {JOINT} cannot give it"
        if book is not None and book.currency == "epsilon":
            return MatrixLaplace.name, PURE_LEDGER
        if book is not None:
            return JOINT, ""
        joint = TargetedGaussian.calibrated(asked, row_bounds, adjacency_named(self.adjacency))
        if self._laplace_forecast(asked, row_bounds) < joint.forecast:
            return MatrixLaplace.name, f"auto: less forecast error than {JOINT}, and no delta"
        return JOINT, ""

    def _laplace_forecast(self, asked: Guarantee, row_bounds: TargetBounds) -> float:
        """E|n − Nβ|² of matrix Laplace noise, the target at its best length: against the joint `forecast`."""
        width = len(row_bounds.features)
        facts = PublicFacts(width=width + 1, adjacency=adjacency_named(self.adjacency))
        # The law is for rows of full lattice length; here that length covers features and target.
        unit = (1.0 + TARGET_LENGTH**2) * row_bounds.x_encoded**2 / 2.0**30
        off = MatrixLaplace().calibrated(Guarantee(asked.epsilon), facts).law(width + 1).offdiagonal_sd * unit
        stretch = TARGET_LENGTH * row_bounds.x / row_bounds.y
        slope = SLOPE * row_bounds.y / row_bounds.x
        return off**2 * (width / stretch**2 + (width + 1.0) * slope**2)

    def _from_joint(self, table: Table, row_bounds: TargetBounds, asked: Guarantee) -> Regression:
        refuse_units(table.schema)
        target = str(table.target)
        relation = adjacency_named(self.adjacency)
        law = TargetedGaussian.calibrated(asked, row_bounds, relation)
        source = self._noise_source()
        found = published_fit(
            self._program(table, law, source.label),
            model=self,
            data=table.data,
            adjacency=relation,
            price=law.event,
            entropy=source,
            facts={"schema": table.schema.to_dict(), "target": target},
            delta=float(self.delta),
        )
        (self.sums_, public_rows), self.receipt_ = found.result, found.receipt
        self.entropy_ = source.label
        gaussian = GaussianDP(law.mu)
        self.guarantee_ = self._stated(
            epsilon=asked.epsilon, delta=asked.delta, mu=gaussian.mu, rho=gaussian.rho_at_least()
        )
        moments = self.sums_.moments(
            table.schema,
            target,
            public_rows=public_rows,
            complete_groups=self.missing == "drop",
        )
        if self.alpha is not None:
            return self._penalised(moments, target)
        return _noise_aware_regression(moments, target, self.sums_, intercept=self.fit_intercept)

    def _program(
        self, table: Table, law: TargetedGaussian, entropy: Literal["system", "seeded"]
    ) -> Program[tuple[NoisySums, int | None]]:
        """One stage: the sums of the target, and the number of rows where it is public."""
        measurement = Target(encoder=Encoder(table.schema, missing=self.missing), law=law)
        rules = RowRules(schema=table.schema, missing=self.missing)
        answer = yield Stage(rules=rules, measurements=(measurement,))
        return NoisySums.of(answer.published[0], law, entropy), answer.public_rows

    def _from_release(
        self, table: Table, row_bounds: TargetBounds, mechanism: MechanismLike, reason: str
    ) -> Regression:
        """Another mechanism: one symmetric noise, the target at the length that serves it best."""
        target = str(table.target)
        old = table.schema.column(target).weight
        length = TARGET_LENGTH * row_bounds.x_encoded
        schema = reweighted(table.schema, target, length / old)
        weighted = Table(data=table.data, schema=schema, features=table.features, target=target)
        radius = None if self.radius is None else math.hypot(row_bounds.x_encoded, length)
        release = self._published(weighted, mechanism=mechanism, radius=radius)
        used = replace(release.mechanism, choice=reason or release.mechanism.choice)
        self.release_ = replace(release, mechanism=used)
        self.mechanism_ = used.name
        return self._penalised(self.release_, target)

    def _from_any_target(self, table: Table) -> Regression:
        """An adaptive release. The bounds of its rows are not known beforehand, so it cannot be joint."""
        if self.mechanism == JOINT:
            raise MechanismError(
                "the joint release needs bounds that are known beforehand",
                got="bounds to be learnt",
                remedy="Give public bounds, or leave the mechanism to 'auto'",
            )
        self.release_ = self._published(table)
        refuse_learnt_units(self.release_)
        self.mechanism_ = self.release_.mechanism.name
        return self._penalised(self.release_, str(table.target))

    def _penalised(self, release: Release | Moments, target: str) -> Regression:
        method: Method = "auto" if self.alpha is None else "ridge"
        found, self.refusal_ = penalised(release, target, method, self.alpha, intercept=self.fit_intercept)
        return found

    def _intervals(self, slopes: list[int]) -> tuple[Matrix | None, str | None]:
        """The joint release knows yᵀy less well than the rest: refuse where the error variance drowns.

        Under a clip it scales the features of long rows down but not their target. Such rows follow another
        line than the others, so that the error of the fit is neither of one size nor free of the features.
        """
        if self.sums_ is not None:
            self.conf_int_cautions_ = ()
            if self.sums_.law.row_bounds.clipped:
                return None, (
                    "the clip scales the features of long rows down and leaves their target, which no "
                    "interval allows for: use mechanism='gaussian', which scales whole rows, or no radius"
                )
            solution = unshrunken(self._regression.moments, self._regression.design)
            own = self.sums_.square_sd * float(np.sum(self._regression.design.target_vector**2))
            if solution.residual_sum <= SIGNAL_TO_NOISE * own:
                return None, (
                    "the error variance does not stand clear of the noise on yᵀy, to which the joint release "
                    "gives a small share only: use mechanism='gaussian', more rows or a larger epsilon"
                )
        return super()._intervals(slopes)


def _noise_aware_regression(moments: Moments, target: str, sums: NoisySums, *, intercept: bool) -> Regression:
    """`regress(method="auto")` with the law of yᵀy's own noise."""
    design = build_design(moments, target, intercept=intercept)
    problem = isotropic(moments, design)
    own = float(np.sum(design.target_vector**2))
    mean = float(np.sum(problem.free**2))
    noise = problem.noise
    square_sd = math.sqrt(
        (sums.square_sd * own) ** 2
        + 4.0 * own * mean * noise.offdiagonal_sd**2
        + (mean * noise.diagonal_sd) ** 2
    )
    fit = noise_aware(
        problem.gram_xx,
        problem.gram_xy,
        problem.gram_yy,
        noise=noise,
        target_norm=problem.target_norm,
        square_sd=square_sd,
    )
    function = problem.function(fit.theta)
    return Regression(
        design=design,
        moments=moments,
        method="auto",
        penalty=0.0,
        repair="subtract-mean",
        effective_parameters=fit.effective_parameters + float(problem.centred),
        values=design.coefficients(design.from_measured(function, moments)),
        function=function,
    )
