"""A real Chromium without a window and without a network; screenshots go to test-artefacts/browser."""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.errors import DpgramWarning
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
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(control))
    made.set_script_timeout(110)  # selenium itself waits two minutes for an answer
    made.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    made.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    made.downloads = tmp_path_factory.mktemp("downloads")
    yield made
    made.quit()


@pytest.fixture
def opened(driver: Driver) -> Iterator[Opener]:
    """Opens a file from disk at a screen size; afterwards the console must have stayed silent."""

    def open_page(
        path: Path,
        view: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        media: str = "",
    ) -> Driver:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme, "media": media})
        driver.get("about:blank")  # another view of the same file would not load it again
        driver.get(path.resolve().as_uri() + (f"#{view}" if view else ""))
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


def until(condition: Callable[[], object], what: str) -> None:
    """Five minutes are for ever, on the busiest machine."""
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, f"never true: {what}"
        time.sleep(0.02)


def wait(driver: Driver, condition: str) -> None:
    until(lambda: driver.execute_script(f"return {condition}"), condition)


def ready(driver: Driver) -> Driver:
    wait(driver, "document.documentElement.dataset.ready === 'true'")
    return driver


def after(driver: Driver, action: str, *arguments: object) -> None:
    """Do something in the page and wait for the next answer."""
    before = int(driver.execute_script("return document.documentElement.dataset.answers"))
    driver.execute_script(action, *arguments)
    wait(driver, f"Number(document.documentElement.dataset.answers) > {before}")


def choice(identity: str) -> str:
    """An action: choose the value of a list, as `arguments[0]`."""
    return (
        f"const list = document.getElementById('{identity}'); list.value = arguments[0];"
        "list.dispatchEvent(new Event('change'))"
    )


def value(driver: Driver, identity: str, key: str = "value") -> float:
    """A number that an element holds."""
    return float(driver.execute_script(f"return document.getElementById('{identity}').dataset.{key}"))


def downloaded(driver: Driver, identity: str, name: str) -> Path:
    """The file of this name that a button saves, once it holds as many bytes as the page gave the browser.

    A browser may make an empty file of that name first: a file that is there need not be whole. Each has a
    folder of its own, so that no file of the same name is in the way.
    """
    path = Path(mkdtemp(dir=driver.downloads)) / name
    allow = {"behavior": "allow", "downloadPath": str(path.parent)}
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
    script = """
      const address = URL.createObjectURL;
      let size = null;
      URL.createObjectURL = (blob) => { size = blob.size; return address.call(URL, blob); };
      try { document.getElementById(arguments[0]).click(); } finally { URL.createObjectURL = address; }
      return size;
    """
    size = driver.execute_script(script, identity)
    assert size, f"{identity} gave the browser nothing to save"
    until(lambda: path.exists() and path.stat().st_size == size, f"{name} is saved, {size} bytes")
    return path


def numbers(driver: Driver, name: str) -> dict[str, object]:
    """What the view saves as JSON, under this name."""
    return json.loads(downloaded(driver, "save-view", name).read_text(encoding="utf-8"))


def table(driver: Driver, identity: str) -> dict[str, list[float | None]]:
    """Rows by their heading: the numbers that the cells stand for, and show."""
    script = """
      return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].map((line) => [
        line.cells[0].textContent,
        [...line.cells].slice(1).map((cell) => (cell.dataset.value ? Number(cell.dataset.value) : null)),
        [...line.cells].slice(1).map((cell) => cell.textContent),
      ]);
    """
    rows = driver.execute_script(script, identity)
    for _, values, texts in rows:
        for number, text in zip(values, texts, strict=True):
            if number is not None and "=" not in text and "<" not in text:  # what is shown is what is meant
                shown = float(text.replace("−", "-").replace(",", "").replace("%", "e-2"))
                assert shown == pytest.approx(number, rel=5e-2, abs=0.6 if "," in text else 0.0)
    return {name: values for name, values, _ in rows}


def seeded(table: object, schema: dg.Schema, **options: object) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return publish(table, schema, entropy=SeededEntropy(3), **options)
