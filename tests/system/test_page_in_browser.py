"""The page of a study in a real browser: it opens in silence, sorts, shows evidence, prints, and fits a phone."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_study import STUDY, hostile_study
from made_studies import worked_study
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from reports.page import write_page

pytestmark = pytest.mark.system

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
DESKTOP, PHONE = (1280, 900), (390, 844)
SHEET_WIDTH = 1031
"""Pixels of CSS between the margins of the page's sheets: 297 mm less twice 12."""

NOTHING = "–"  # noqa: RUF001
UNSORTED = "0.460 0.400 0.400 0.460 0.469 0.475 0.100 0.340 0.370 0.280 97.438 97.437 90.000 65.000 70.000"
ASCENDING = "0.100 0.280 0.340 0.370 0.400 0.400 0.460 0.460 0.469 0.475 65.000 70.000 90.000 97.437 97.438"
DESCENDING = " ".join(reversed(ASCENDING.split()))
"""Test means of the worked study, but for a cell without one, which comes last in every order."""


class Browser:
    """A window on a page, which can say what the page asked the network for and what it complained of."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def resize(self, size: tuple[int, int], scheme: str = "light", media: str = "screen") -> None:
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE},
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def open(self, page: Path, place: str = "") -> None:
        self.driver.get(f"{page.as_uri()}{place}")

    def ask(self, expression: str) -> Any:
        return self.driver.execute_script(f"return {expression}")

    def one(self, selector: str) -> WebElement:
        (found,) = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found

    def texts(self, selector: str) -> list[str]:
        return [found.text for found in self.driver.find_elements(By.CSS_SELECTOR, selector)]

    def requests(self) -> list[str]:
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def is_too_wide(self) -> bool:
        return bool(self.ask("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


@pytest.fixture(scope="module")
def programs() -> tuple[str, str]:
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    driver = shutil.which(DRIVER)
    if browser is None or driver is None:
        needed = f"one of {', '.join(BROWSERS)}, and {DRIVER}"
        assert os.environ.get("CI") != "true", f"CI must have {needed}"
        pytest.skip(f"needs {needed}")
    return browser, driver


@pytest.fixture
def browser(programs: tuple[str, str], tmp_path: Path) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "no-first-run",
        "hide-scrollbars",
        "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"user-data-dir={tmp_path / 'profile'}",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(programs[1]))
    found = Browser(driver)
    found.resize(DESKTOP)
    driver.get("about:blank")
    driver.get_log("performance")  # which the browser's own first page has filled
    yield found
    driver.quit()


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page([worked_study(tmp_path_factory.mktemp("worked"))])


def test_it_opens_without_a_complaint_a_request_or_a_word_of_foreign_script(browser: Browser, tmp_path: Path) -> None:
    page = write_page([hostile_study(tmp_path / "hostile")])
    browser.open(page)
    for link in browser.driver.find_elements(By.CSS_SELECTOR, "#cells a.number"):
        link.click()
        browser.one("#evidence-dialog .close").click()
    assert browser.ask("document.title") == " ".join(STUDY.split())
    assert browser.ask("typeof window.hacked") == "undefined"
    assert browser.ask("document.scripts.length") == 1
    assert browser.ask("document.images.length") == 0
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def test_a_press_on_a_head_sorts_up_then_down_then_as_planned(browser: Browser, worked: Path) -> None:
    browser.open(worked)
    assert browser.texts("#cells td:nth-child(5)") == [*UNSORTED.split(), NOTHING]
    head = browser.one("#cells th:nth-child(5)")
    assert head.text.split() == ["Test", "mean"]
    for sort, order in [("ascending", ASCENDING), ("descending", DESCENDING), (None, UNSORTED)]:
        head.find_element(By.TAG_NAME, "button").click()
        assert head.get_attribute("aria-sort") == sort
        assert browser.texts("#cells td:nth-child(5)") == [*order.split(), NOTHING]


def test_the_keyboard_sorts_and_one_column_at_a_time_is_sorted(browser: Browser, worked: Path) -> None:
    browser.open(worked)
    browser.one("#cells th:nth-child(5) button").click()
    layers = browser.one("#cells th:nth-child(3)")
    layers.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert browser.texts("#cells td:nth-child(3)") == ["4"] * 14 + ["16"] * 2  # as numbers: 16 is no less than 4
    assert browser.one("#cells [aria-sort]") == layers
    layers.find_element(By.TAG_NAME, "button").send_keys(Keys.SPACE)
    # Of equal values, those that the plan names first stay first.
    assert browser.texts("#cells td:nth-child(2)")[:3] == ["GCN", "bi-GCN", "GCN"]


def test_a_press_on_a_number_shows_what_stands_behind_it(browser: Browser, worked: Path) -> None:
    browser.open(worked)
    cell = "cell-zinc-graphsage-none-L4-100000"
    number = browser.one(f"#results td:nth-child(4) a[href='#{cell}']")
    assert browser.one("#evidence-dialog").is_displayed() is False
    number.click()
    dialog = browser.one("#evidence-dialog")
    assert dialog.find_element(By.TAG_NAME, "h2").text == "ZINC, GraphSAGE, L 4: MAE 0.469 ± 0.002"
    assert browser.texts("#evidence-dialog .runs td:nth-child(2)") == ["0.46800", "0.46800", "0.46800", "0.47200"]
    assert browser.ask("location.hash") == f"#{cell}"
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not dialog.is_displayed()
    assert browser.ask("location.hash") == ""
    assert browser.driver.switch_to.active_element == number
    # The words are back in the appendix, for the reader who goes there.
    assert browser.ask(f"document.querySelectorAll('#{cell} .runs tbody tr').length") == 4


def test_evidence_is_reached_by_keyboard_and_by_address(browser: Browser, worked: Path) -> None:
    cell = "cell-zinc-gcn-boosting-bilateral-L16-500000"
    browser.open(worked, f"#{cell}")
    title = browser.one("#evidence-dialog h2")
    assert title.text == "ZINC, bi-GCN, L 16: MAE 0.280 ± 0.007"
    browser.one("#evidence-dialog .close").send_keys(Keys.ENTER)
    assert not title.is_displayed()
    browser.one("#cells a[href='#cell-zinc-gat-boosting-bilateral-L4-100000']").send_keys(Keys.ENTER)
    assert title.text == "ZINC, bi-GAT, L 4: MAE 0.100 ± 0.000 (3/4)"
    assert "Missing: seed 35: diverged: train loss is NaN in epoch 3" in browser.texts("#evidence-dialog .missing li")


def test_it_prints_whole_tables_and_all_evidence(browser: Browser, worked: Path) -> None:
    browser.open(worked, "#cell-zinc-gcn-none-L4-100000")
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
    content = base64.b64decode(printed["data"])
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) > 5
    assert not browser.one("#evidence-dialog").is_displayed()
    assert browser.ask("document.querySelectorAll('details.evidence[open]').length") == 0, "closed again on the screen"

    browser.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    browser.resize((SHEET_WIDTH, 700), media="print")
    assert not browser.is_too_wide()
    cut = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    assert browser.ask(cut) == 0
    hidden = "[...document.querySelectorAll('details.evidence .runs')].filter((e) => e.offsetHeight === 0).length"
    assert browser.ask(hidden) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_tables_and_not_the_page(browser: Browser, worked: Path, scheme: str) -> None:
    browser.resize(PHONE, scheme)
    browser.open(worked)
    assert not browser.is_too_wide()
    wide = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert browser.ask(wide) > 0
    paper = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 29)"}[scheme]
    browser.driver.execute_script("document.querySelector('#cells a.number').click()")
    assert not browser.is_too_wide()
    inside = "document.getElementById('evidence-dialog')"
    assert browser.ask(f"{inside}.scrollWidth <= {inside}.clientWidth")
    assert browser.ask(f"{inside}.getBoundingClientRect().right <= innerWidth")
