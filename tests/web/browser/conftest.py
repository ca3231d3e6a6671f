"""Fixtures: a browser, and servers of an index of scenes and of a large simulated index."""

import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from surelabel.data import collection
from surelabel.recognizer import Recognizer
from surelabel.recognizer.index_calibration import recognizer_record_of_index
from surelabel.records import Predictions
from surelabel.retrieval import Index
from surelabel.web.request_limits import RequestLimits

CHROMIUM = "/usr/bin/chromium"
N_SCENES = 60
N_ROWS = 100_000
HOSTILE_LABEL = '<img src=x onerror="alert(1)">'
HOSTILE_FILE = "<img src=x onerror=alert(2)>.jpg"
TIMEOUT = 30_000  # milliseconds; the machine can be slow
REQUIRED = "SURELABEL_REQUIRE_BROWSER"  # environment variable with which no test is skipped


@pytest.fixture(scope="module")
def chromium():
    """Start a browser.

    Its scope is a module, because an event loop runs in this thread until Playwright is stopped,
    and tests of other modules start event loops.
    """
    if not os.path.exists(CHROMIUM):
        reason = f"the tests of the page need {CHROMIUM}"
        if os.environ.get(REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Return a function that opens an address in a new window.

    At the end, no script may have failed or opened a dialog, and no policy may be violated.
    """
    contexts, problems = [], []

    def note_message(message):
        if "Content Security Policy" in message.text:
            problems.append(message.text)

    def note_dialog(dialog):
        problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open_address(address, *, size=(1200, 800), scheme="light", touch=False):
        context = chromium.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            has_touch=touch,
            reduced_motion="reduce",
        )
        context.set_default_timeout(TIMEOUT)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", note_message)
        page.on("dialog", note_dialog)
        page.goto(address)
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert not problems


@pytest.fixture(scope="session")
def scenes(tmp_path_factory):
    """Return a folder with scenes, of which one has markup in its name, and their recognizer."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "images").mkdir()
    scenes = collection("scenes-80", split="test")
    for path in scenes.paths[:N_SCENES]:
        shutil.copy(path, folder / "images")
    shutil.copy(scenes.paths[0], folder / "images" / HOSTILE_FILE)
    names = [*scenes.names, "salt and pepper", "sunset (red)", HOSTILE_LABEL]
    with pytest.warns(UserWarning, match="3 of 83 labels .* contain tokens"):
        recognizer = Recognizer.zero_shot("tiny-vit", names)
    predictions = recognizer.predict(sorted((folder / "images").iterdir()))
    record = recognizer_record_of_index(recognizer, "tiny-vit")
    return SimpleNamespace(folder=folder, predictions=predictions, record=record)


@pytest.fixture(scope="session")
def create_scene_index(scenes):
    """Return a function that writes an index of the scenes to a folder."""

    def create(folder, *, has_recognizer=True):
        record = scenes.record if has_recognizer else None
        root = scenes.folder / "images"
        return Index.create(folder, scenes.predictions, root=root, recognizer=record)

    return create


@pytest.fixture(scope="session")
def scene_server(scenes, create_scene_index, running_server):
    """Start a server of the scenes with their recognizer."""
    create_scene_index(scenes.folder / "index")
    with running_server(scenes.folder / "index", limits=RequestLimits()) as served:
        yield served


@pytest.fixture(scope="session")
def large_server(tmp_path_factory, running_server):
    """Start a server of simulated probabilities of 100,000 images without files."""
    folder = tmp_path_factory.mktemp("large")
    names = ["lion", "guitar"]
    logits = np.random.default_rng(0).normal(-2, 2, size=(N_ROWS, 2)).astype(np.float32)
    paths = [f"{folder}/images/{row:06}.jpg" for row in range(N_ROWS)]
    predictions = Predictions(paths, names, logits, logits, "simulated", "m")
    Index.create(folder / "index", predictions, root=folder / "images")
    with running_server(folder / "index", limits=RequestLimits()) as served:
        order = np.argsort(-logits[:, 0], kind="stable")
        yield SimpleNamespace(url=served.url, ranked=[f"{row:06}.jpg" for row in order])


@pytest.fixture
def tiles():
    """Return a function that returns the names on the tiles of a page, after the first is shown."""

    def read(page):
        page.locator(".tile-name").first.wait_for()
        return page.locator("#grid .tile-name").all_text_contents()

    return read
