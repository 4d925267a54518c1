"""axe-core on the page that is open: which rules of accessibility it breaks, and how badly."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

PROJECT = Path(__file__).resolve().parents[2]
AXE = PROJECT / "test-artefacts" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


def serious_violations(driver: Chrome) -> list[str]:
    """Rule and places of each violation that is serious or worse; skips where axe-core is not installed."""
    return violations(driver, SERIOUS)


def violations(driver: Chrome, impacts: Collection[str] | None = None) -> list[str]:
    """Those of these impacts; all by default."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (npm install --prefix test-artefacts/npm axe-core@4.10)")
    driver.execute_script(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = driver.execute_async_script(
        "const done = arguments[arguments.length - 1]; axe.run(document).then(done);"
    )
    assert len(found["passes"]) > 5, "axe has looked at nothing"
    return [
        f"{each['id']}: {', '.join(node['html'][:120] for node in each['nodes'][:3])}"
        for each in found["violations"]
        if impacts is None or each["impact"] in impacts
    ]
