"""Write the screenshots of the page that the documentation shows.

    python benchmarks/page_screenshots.py DEMO [--out docs/figures]

DEMO is the folder that `surelabel demo` wrote. The server is a separate process on a loopback port,
and the browser is Chromium, which Playwright controls. The script writes JPEG files of at most
150 kB: a search, an image with a heat map, the check of a sample, and a search in a narrow window
with dark colours. The query is the first query of the demo.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from surelabel.cli.demo import QUERIES

ROOT = Path(__file__).parents[1]
CHROMIUM = "/usr/bin/chromium"
MAX_BYTES = 150_000
QUALITIES = (90, 85, 80, 75, 70, 60, 50)
QUERY = f"#search?{urlencode({'q': QUERIES[0]})}"
LABEL = QUERIES[0].partition(" &")[0]
N_CHECKED = 7


def write_screenshot(page: Page, path: Path) -> None:
    """Write the visible part of a page as a JPEG file of at most 150 kB."""
    page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement.blur()")
    image = Image.open(BytesIO(page.screenshot())).convert("RGB")
    for quality in QUALITIES:
        image.save(path, "JPEG", quality=quality, optimize=True, progressive=True)
        if path.stat().st_size <= MAX_BYTES:
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB, quality {quality}")
            return
    sys.exit(f"{path} has more than {MAX_BYTES} bytes at the lowest quality.")


def write_search(browser: Browser, url: str, out: Path) -> None:
    """Write the search and the image view."""
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    page.goto(f"{url}/{QUERY}")
    page.locator(".tile img").first.wait_for()
    write_screenshot(page, out / "page_search.jpg")
    page.locator(".tile-image").first.click()
    page.get_by_role("button", name=f"Heat map of {LABEL}").click()
    page.locator("#view-plain").wait_for(timeout=120_000)
    write_screenshot(page, out / "page_image.jpg")
    page.close()


def write_check(browser: Browser, url: str, out: Path) -> None:
    """Write the check of a sample."""
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    page.goto(f"{url}/#check")
    page.get_by_role("button", name="Check 30 images").click()
    for number in range(N_CHECKED):
        page.get_by_text(f"{number} of 30 checked").wait_for()
        page.get_by_role("button", name="All labels are correct").click()
    page.get_by_text(f"{N_CHECKED} of 30 checked").wait_for()
    write_screenshot(page, out / "page_check.jpg")
    page.close()


def write_narrow_search(browser: Browser, url: str, out: Path) -> None:
    """Write the search in a narrow window with dark colours."""
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto(f"{url}/{QUERY}")
    page.locator(".tile img").first.wait_for()
    write_screenshot(page, out / "page_narrow.jpg")
    page.close()


def main() -> None:
    """Start the server and the browser, and write all screenshots."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", default=ROOT / "docs" / "figures", type=Path)
    parser.add_argument("demo", help="folder that `surelabel demo` wrote", type=Path)
    arguments = parser.parse_args()
    out = arguments.out
    with tempfile.TemporaryDirectory() as folder:
        index, corrections = arguments.demo / "index", f"{folder}/corrections.csv"
        command = [sys.executable, "-m", "surelabel", "serve", str(index), "--port", "0", "--json"]
        command += ["--corrections", corrections]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                url = json.loads(server.stdout.readline())["url"]
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(
                        executable_path=CHROMIUM, args=["--no-sandbox"]
                    )
                    write_search(browser, url, out)
                    write_check(browser, url, out)
                    write_narrow_search(browser, url, out)
                    browser.close()
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
