"""A headless Chromium of this machine with an empty profile, driven by its own chromedriver."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_PATIENCE = 300.0  # timeout of a page in seconds


def lacking() -> str:
    """Return what is missing to run a browser, "" if nothing is."""
    if not any(map(shutil.which, _BROWSERS)):
        return f"no Chromium found ({', '.join(_BROWSERS)}); on Debian: apt-get install chromium chromium-driver"
    if not shutil.which("chromedriver"):
        return "no chromedriver found; on Debian: apt-get install chromium-driver"
    return ""


@contextmanager
def opened(profile: Path) -> Iterator[Chrome]:
    """Start a browser with its own ``profile``, an empty directory. Raises LookupError if there is none."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    if missing := lacking():
        raise LookupError(missing)
    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, _BROWSERS)))
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def look(driver: Chrome, width: int, height: int, scheme: str = "light") -> None:
    """Set the window's size in CSS pixels, and the preferred color scheme, ``light`` or ``dark``."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def visit(driver: Chrome, site: Path, route: str = "#/overview") -> None:
    """Load a page of a report, and wait until it is drawn."""
    driver.get("about:blank")
    driver.get(f"{(site / 'index.html').as_uri()}{route}")
    wait(driver, "return Boolean(document.documentElement.dataset.drawn)")


def requests(driver: Chrome) -> list[str]:
    """Return the URLs that were requested since the last call, including those of files."""
    told = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [m["params"]["request"]["url"] for m in told if m["method"] == "Network.requestWillBeSent"]


def wait(driver: Chrome, condition: str) -> Any:
    """Wait until a script returns a true value, and return it. Raises TimeoutError."""
    ends = time.monotonic() + _PATIENCE
    while not (found := driver.execute_script(condition)):
        if time.monotonic() > ends:
            raise TimeoutError(f"{driver.current_url}: not within {_PATIENCE:.0f} s: {condition}")
        time.sleep(0.02)
    return found
