"""A person before the wizard: a real server in a process of its own, a real browser, and what hands do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

SECONDS = 300


class Served:
    """`dpgram wizard` as a person starts it, with the address that it prints.

    `before` is Python that its process runs first.
    """

    def __init__(self, folder: Path, *arguments: str, before: str = "") -> None:
        program = before + "from dpgram.cli import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, "wizard", *arguments, "--no-browser", "--json"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"NUMBA_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read() if self.process.stderr else ""
            told += line
        self.address: str = json.loads(told)["address"]

    def kill(self) -> None:
        """As a power cut does."""
        self.process.send_signal(signal.SIGKILL)
        self.finish()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.finish()

    def finish(self) -> tuple[str, str]:
        """What it has printed, once it has ended."""
        try:
            return self.process.communicate(timeout=SECONDS)
        finally:
            self.process.kill()  # one that hangs stays nobody's


class Person:
    """Clicks and types, and counts both."""

    def __init__(self, driver: Chrome, address: str) -> None:
        self.driver, self.address = driver, address
        self.clicks = self.fields = 0
        driver.get(address)
        self.until("data")

    def until(self, step: str) -> None:
        """Wait for the page of a step."""
        self._wait(lambda: self.driver.current_url == self.address + step and self._page()[1])

    def _wait(self, condition: Callable[[], object]) -> None:
        """What is asked while one page makes way for another may fail: it is asked again."""
        patient = WebDriverWait(self.driver, SECONDS, 0.05, ignored_exceptions=[WebDriverException])
        patient.until(lambda _: condition())

    def _page(self) -> tuple[float, bool]:
        """When this document began, which no other has done, and whether all of it is there."""
        began, state = self.driver.execute_script("return [performance.timeOrigin, document.readyState]")
        return began, state == "complete"

    def go(self, step: str) -> None:
        self.driver.get(self.address + step)
        self.until(step)

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        element = self.find(selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        self.clicks += 1

    def press(self, text: str) -> None:
        """The first button or link that says this."""
        found = [
            each
            for each in self.driver.find_elements(By.CSS_SELECTOR, "button, a, summary")
            if each.is_displayed() and each.text.strip().startswith(text)
        ]
        assert found, f"nothing says {text!r} on {self.driver.current_url}"
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", found[0])
        (began, _), leads_on = self._page(), found[0].tag_name != "summary"
        found[0].click()
        self.clicks += 1
        if leads_on:  # perhaps to the same address
            self._wait(lambda: (now := self._page())[0] != began and now[1])

    def tick(self, name: str, value: str) -> None:
        self.click(f'input[name="{name}"][value="{value}"]')

    def type(self, name: str, text: str) -> None:
        field = self.driver.find_element(By.ID, name)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", field)
        field.clear()
        field.send_keys(text)
        self.fields += 1

    def choose(self, name: str, value: str) -> None:
        Select(self.driver.find_element(By.ID, name)).select_by_value(value)
        self.fields += 1

    def value(self, name: str) -> str:
        return self.driver.find_element(By.ID, name).get_attribute("value") or ""

    @property
    def errors(self) -> dict[str, str]:
        found = self.driver.find_elements(By.CSS_SELECTOR, ".error")
        return {each.get_attribute("id").removesuffix("-error"): each.text for each in found}

    @property
    def page(self) -> str:
        return self.find("main").text
