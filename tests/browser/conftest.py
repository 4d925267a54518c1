"""A real Chromium without a window and without a network; screenshots go to test-artefacts/browser."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.errors import DpgramWarning
from dpgram.privacy.sampling.entropy import SeededEntropy
from dpgram.release import Release

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

ARTEFACTS = Path(__file__).resolve().parents[2] / "test-artefacts" / "browser"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip

Driver = webdriver.Chrome
Opener = Callable[..., Driver]
Camera = Callable[[Driver, str], None]


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    control = shutil.which("chromedriver")
    if browser is None or control is None:
        pytest.skip("Chromium and its driver are not installed (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    downloads = tmp_path_factory.mktemp("downloads")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(control))
    made.set_script_timeout(60)
    made.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    made.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    allow = {"behavior": "allow", "downloadPath": str(downloads)}
    made.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
    made.downloads = downloads
    yield made
    made.quit()


@pytest.fixture
def opened(driver: Driver) -> Iterator[Opener]:
    """Opens a file from disk at a screen size; afterwards the console must have stayed silent."""

    def open_page(path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> Driver:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        driver.get(path.resolve().as_uri())
        return driver

    driver.get_log("browser")
    yield open_page
    assert driver.get_log("browser") == []


@pytest.fixture(scope="session")
def photograph() -> Camera:
    """The whole page as a picture, for people to look at."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)

    def take(driver: Driver, name: str) -> None:
        width, height = driver.execute_script("return [innerWidth, document.documentElement.scrollHeight]")
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        driver.save_screenshot(str(ARTEFACTS / f"{name}.png"))

    return take


def seeded(table: object, schema: dg.Schema, **options: object) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return publish(table, schema, entropy=SeededEntropy(3), **options)
