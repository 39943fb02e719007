"""The page of a service, driven in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.served import served
from tests.waiting import LONG

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no chromium with chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=driver)
    found = webdriver.Chrome(options=options, service=service)
    found.command_executor.client_config.timeout = LONG  # a busy machine takes its time
    found.set_page_load_timeout(LONG)
    found.set_script_timeout(LONG)
    yield found
    found.quit()


def _until(browser: Any, condition: Any) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, LONG).until(condition)


@pytest.mark.parametrize("width", [1280, 390])
def test_an_id_is_typed_and_an_edge_changes_its_prediction(
    papers: Path, tmp_path: Path, browser: Any, width: int
) -> None:
    with served(papers, "--state", str(tmp_path / "state")) as address:
        browser.set_window_size(width, 900)
        browser.get(address)
        assert not browser.find_element("id", "found").is_displayed()
        assert not browser.find_element("id", "token").is_displayed()
        field = browser.find_element("id", "id")
        field.send_keys("p1")
        field.submit()
        label = _until(browser, lambda b: b.find_element("id", "label"))
        assert label.text in ("art", "law")
        _until(browser, lambda b: b.find_elements("css selector", "#effects table"))
        assert browser.find_elements("css selector", "#picture svg a")
        before = browser.find_element("id", "prediction").text
        # A page that is wider than the window would be scrolled sideways.
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        weight = browser.find_element("id", "weight")
        weight.clear()
        weight.send_keys("9")
        browser.find_element("id", "target").send_keys("p0")
        browser.execute_script("document.querySelector('[name=add]').click()")
        _until(browser, lambda b: "Change 1" in b.find_element("id", "changed").text)
        _until(browser, lambda b: b.find_element("id", "prediction").text not in ("", before))
        field.clear()
        field.send_keys("nobody")
        field.submit()
        _until(browser, lambda b: "no node 'nobody'" in b.find_element("id", "problem").text)


def test_the_page_opens_with_the_kind_that_has_predictions_and_neighbours_have_kinds(
    shop: Path, tmp_path: Path, browser: Any
) -> None:
    with served(shop, "--state", str(tmp_path / "state")) as address:
        browser.get(address)
        icon = browser.find_element("css selector", "link[rel=icon]").get_attribute("href")
        assert icon == f"{address}/favicon.ico"
        kind = browser.find_element("id", "kind")
        _until(browser, lambda b: kind.is_displayed())
        assert kind.get_attribute("value") == "user"
        field = browser.find_element("id", "id")
        field.send_keys("1")
        field.submit()
        _until(browser, lambda b: b.find_elements("css selector", "#effects table"))
        links = "#picture a text"
        names = {each.text for each in browser.find_elements("css selector", links)}
        assert names == {"item i1", "item i3"}
        browser.find_element("css selector", "#picture a").click()
        _until(browser, lambda b: b.find_element("id", "title").text.startswith("item i"))
        _until(browser, lambda b: "no prediction" in b.find_element("id", "explained").text)
        assert "user" in browser.find_element("css selector", links).text
        assert not browser.find_element("id", "problem").is_displayed()
        assert kind.get_attribute("value") == "item"
        title = browser.find_element("id", "title").text
        assert browser.find_element("id", "target").get_attribute("value") == title[5:]
        assert browser.find_element("id", "computed").text == ""
