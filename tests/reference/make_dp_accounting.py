"""Writes dp_accounting.json: composed δ(ε) by an independent implementation, rounded up by its grid of 1e-5.

Run by hand in an environment of its own, `pip install dp-accounting==0.6.0` (it pins an old attrs), then
`python tests/reference/make_dp_accounting.py`.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

CASES = [
    {"mu": [0.25], "pure": [0.3], "approximate": [], "epsilon": [0.1, 0.5, 1.0, 1.5]},
    {"mu": [0.1, 0.2, 0.2], "pure": [0.1] * 10, "approximate": [], "epsilon": [0.5, 1.0, 2.0]},
    {"mu": [], "pure": [0.1] * 30, "approximate": [], "epsilon": [0.5, 1.5, 2.5]},
    {"mu": [], "pure": [0.05, 0.1, 0.2, 0.4, 0.8], "approximate": [], "epsilon": [0.3, 1.0, 1.4]},
    {"mu": [1.0], "pure": [1.0, 1.0], "approximate": [[0.5, 1e-5]], "epsilon": [1.0, 3.0, 6.0]},
    {
        "mu": [],
        "pure": [],
        "approximate": [[0.2, 1e-6], [0.2, 1e-6], [0.3, 1e-7]],
        "epsilon": [0.1, 0.5, 0.69],
    },
]
STEP = 1e-5


def response(epsilon: float, delta: float) -> pld.PrivacyLossDistribution:
    parameters = common.DifferentialPrivacyParameters(epsilon, delta)
    return pld.from_privacy_parameters(parameters, value_discretization_interval=STEP)


def composed(case: dict[str, list]) -> pld.PrivacyLossDistribution:
    parts = [
        pld.from_gaussian_mechanism(
            1.0 / mu, value_discretization_interval=STEP, log_mass_truncation_bound=-60
        )
        for mu in case["mu"]
    ]
    parts += [response(epsilon, 0.0) for epsilon in case["pure"]]
    parts += [response(epsilon, delta) for epsilon, delta in case["approximate"]]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return whole


def main() -> None:
    results = []
    for case in CASES:
        whole = composed(case)
        deltas = [float(whole.get_delta_for_epsilon(epsilon)) for epsilon in case["epsilon"]]
        results.append({**case, "delta": deltas})
    made = {
        "tool": "dp-accounting",
        "version": version("dp-accounting"),
        "script": "tests/reference/make_dp_accounting.py",
        "cases": results,
    }
    text = json.dumps(made, indent=1) + "\n"
    Path(__file__).with_name("dp_accounting.json").write_text(text)


if __name__ == "__main__":
    main()
