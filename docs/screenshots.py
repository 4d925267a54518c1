"""The pictures of the explorer and the report in docs/how-to/, taken in a real browser.

python docs/screenshots.py     # takes them anew; needs Chromium and its driver
"""

from __future__ import annotations

import shutil
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image
from selenium import webdriver

import dpgram as dg
from dpgram.demo import insurance

FOLDER: Final = Path(__file__).resolve().parent / "how-to" / "figures"
VIEWS: Final = {
    "explorer": ("", 1200, 980, False),
    "explorer-person": ("view=person&y=charges&x=age&x=bmi&x=smoker&x=region", 1200, 620, False),
    "explorer-column": ("view=columns&column=bmi", 1200, 760, False),
    "explorer-correlations": ("view=correlations", 1200, 1000, True),
    "explorer-instruments": (
        "view=instruments&x=age&x=smoker&endogenous=bmi&instrument=exercise", 1200, 900, False
    ),
    "explorer-phone": ("x=age&x=bmi&x=smoker&x=exercise", 390, 844, False),
}  # fmt: skip


def chromium(folder: str) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder}",
    ):
        options.add_argument(flag)
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver")
    )


def take(driver: webdriver.Chrome, address: str, name: str, width: int, height: int, *, dark: bool) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    driver.get("about:blank")
    driver.get(address)
    time.sleep(1.0)
    picture = Image.open(BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    picture.quantize(96).save(FOLDER / f"{name}.png", optimize=True)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    schema = dg.Schema(*insurance.schema().columns, dg.product("smoker", "age"))
    book = Path(tempfile.mkdtemp()) / "insurance.ledger"
    ledger = dg.Ledger.create(book, name="insurance", epsilon=4.0, delta=1e-5)
    release = dg.publish(
        insurance.table(50_000), schema, epsilon=2.0, delta=1e-6, ledger=ledger,
        note="first release; approved by: data protection office",
    )  # fmt: skip
    release = release.described(
        title="Insured people, 2025",
        description="Members of a health insurance and their yearly charges (a made-up table).",
        contact="data protection office",
        licence="CC BY 4.0",
    )
    with tempfile.TemporaryDirectory() as folder:
        page = release.explore(Path(folder) / "insurance.html").as_uri()
        report = release.report(Path(folder) / "report.html", ledger=book).as_uri()
        driver = chromium(f"{folder}/profile")
        try:
            for name, (view, width, height, dark) in VIEWS.items():
                take(driver, f"{page}#{view}", name, width, height, dark=dark)
            take(driver, report, "report", 1000, 1000, dark=False)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
