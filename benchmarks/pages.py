"""What a reader of the explorer waits for, beside earlier pages: size, first useful picture, a click.

Run: python benchmarks/pages.py COMMIT... [--with FOLDER]. Each commit is an earlier edition of the page, made
from the same release by the code of that commit; FOLDER holds packages that one of them needs (plotly). All
pages are opened in turn in one Chromium, so that what else the machine does hits all alike: what counts are
the ratios. Writes benchmarks/results/pages.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.product import wide_release
from selenium import webdriver

PROJECT = Path(__file__).resolve().parents[1]
RESULTS = PROJECT / "benchmarks" / "results" / "pages.md"
WIDTH = 101
LOADS = 7
ROUNDS, CLICKS = 6, 5
NOW = "this page"
INTRODUCTION = (
    f"Made by `benchmarks/pages.py`: one release of {WIDTH - 1} columns, all pages opened in turn in one "
    f"Chromium. Medians of {LOADS} loads and {ROUNDS * CLICKS} clicks on a feature with all chosen, "
    f"in {ROUNDS} rounds, each until the answer is drawn. "
    "Milliseconds are those of the machine and of what else ran on it; ratios are to "
    "this page. 51154ef is the last page that was drawn by plotly, d40a4cc the last one without views."
)

WATCH = """
  (function look() {
    if (document.querySelector("#coefficients tbody tr")) {
      requestAnimationFrame(() => setTimeout(() => { window.useful = performance.now(); }));
    } else requestAnimationFrame(look);
  })();
"""
CLICK = """
  const [place, done] = arguments;
  const answers = () => Number(document.documentElement.dataset.answers);
  const [before, started] = [answers(), performance.now()];
  document.querySelectorAll("#features input")[place].click();
  (function look() {
    if (answers() > before) requestAnimationFrame(() => setTimeout(() => done(performance.now() - started)));
    else requestAnimationFrame(look);
  })();
"""


def earlier_page(commit: str, release: Path, folder: Path, packages: str | None) -> Path:
    """The page that the code of a commit makes of the release."""
    source = folder / commit
    source.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=PROJECT, capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
    written = folder / f"{commit}.html"
    code = f"import dpgram; dpgram.load({str(release)!r}).explore({str(written)!r})"
    paths = os.pathsep.join([str(source / "src"), *([packages] if packages else [])])
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": paths}, check=True)
    return written


def chromium(folder: Path) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver")
    )
    driver.set_window_size(1280, 900)
    driver.set_script_timeout(120)
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    return driver


def opened(driver: webdriver.Chrome, page: Path) -> float:
    """Milliseconds from the beginning of the navigation until the coefficients are on the screen."""
    driver.get("about:blank")
    driver.get(page.as_uri())
    wait = (
        "const d = arguments[0]; (function f() { window.useful ? d(window.useful) : setTimeout(f, 5); })();"
    )
    return float(driver.execute_async_script(wait))


def clicks(driver: webdriver.Chrome, page: Path) -> list[float]:
    """Milliseconds of single clicks on features while all of them are chosen."""
    opened(driver, page)
    driver.execute_script("document.getElementById('all').click()")
    driver.execute_async_script("setTimeout(arguments[0], 1500)")
    return [float(driver.execute_async_script(CLICK, 1 + place)) for place in range(CLICKS)]


def measure(pages: dict[str, Path], folder: Path) -> dict[str, tuple[float, float]]:
    driver = chromium(folder)
    try:
        loads: dict[str, list[float]] = {name: [] for name in pages}
        for _ in range(LOADS):
            for name, page in pages.items():
                loads[name].append(opened(driver, page))
        taps: dict[str, list[float]] = {name: [] for name in pages}
        for _ in range(ROUNDS):
            for name, page in pages.items():
                taps[name] += clicks(driver, page)
    finally:
        driver.quit()
    return {name: (statistics.median(loads[name]), statistics.median(taps[name])) for name in pages}


def written(pages: dict[str, Path], found: dict[str, tuple[float, float]]) -> str:
    own_load, own_click = found[NOW]
    lines = [
        "# The explorer's page beside earlier ones",
        "",
        INTRODUCTION,
        "",
        "| page | size | first useful picture | ratio | click | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name, (load, click) in found.items():
        size = f"{pages[name].stat().st_size / 1e6:.2f} MB"
        lines.append(
            f"| {name} | {size} | {load:.0f} ms | {load / own_load:.2f} | {click:.0f} ms | "
            f"{click / own_click:.2f} |"
        )
    lines += ["", "Wanted on a quiet machine: under 1,500 ms and under 150 ms, and less than 2 MB.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commits", nargs="+")
    parser.add_argument("--with", dest="packages")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        release = wide_release(WIDTH)
        file = release.save(folder / "wide.dpgram.json")
        pages = {commit: earlier_page(commit, file, folder, asked.packages) for commit in asked.commits} | {
            NOW: release.explore(folder / "now.html")
        }
        text = written(pages, measure(pages, folder))
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
