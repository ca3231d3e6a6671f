import re

import pytest
from playwright.sync_api import expect

from surelabel.data import collection


@pytest.fixture
def photographs():
    return [str(path) for path in collection("scenes-80", split="test").paths[100:103]]


def test_uploaded_images_are_tagged_with_their_errors(
    open_page, scene_server, photographs, tmp_path
):
    broken = tmp_path / "<b>broken.jpg"
    broken.write_bytes(b"no image")
    page = open_page(f"{scene_server.url}/#tag")
    page.locator("#upload-files").set_input_files([*photographs, str(broken)])
    cards = page.locator(".upload")
    expect(cards).to_have_count(4)
    expect(page.locator("#upload-status")).to_have_text(
        "The labels of 3 of 4 files were predicted. 1 file failed.", timeout=60_000
    )
    expect(cards.last.locator("h3")).to_have_text("<b>broken.jpg")
    expect(cards.last.locator(".error")).to_have_text(re.compile("^not an image of a supported"))
    expect(cards.last.locator(".no-preview")).to_be_visible()
    expect(cards.first.locator("img.preview")).to_have_js_property("naturalWidth", 128)
    with open(photographs[0], "rb") as stream:
        response = scene_server.client.post("/api/tag?threshold=0.02", files={"images": stream})
    labels = response.json()["images"][0]["labels"]
    page.locator("#upload-threshold").fill("0.02")
    shown = cards.first.locator(".bars li:not([hidden])")
    expect(shown).to_have_count(len(labels))
    expect(shown.locator(".row-name").first).to_have_text(labels[0]["label"])
    page.locator("#upload-threshold").fill("1")
    expect(cards.first.locator(".no-labels")).to_be_visible()


def test_more_files_than_a_request_accepts_are_sent_in_several_requests(
    open_page, scene_server, photographs, tmp_path
):
    page = open_page(f"{scene_server.url}/#tag")
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    large = tmp_path / "large.tif"
    with open(large, "wb") as stream:
        stream.truncate(61 * 2**20)
    page.locator("#upload-files").set_input_files([*photographs * 6, str(large)])
    expect(page.locator("#upload-status")).to_contain_text("18 of 19 files", timeout=60_000)
    expect(page.locator(".upload .bars")).to_have_count(18)
    expect(page.locator(".upload .error")).to_contain_text("must have at most 60 MiB")
    assert sum("/api/tag" in url for url in requests) == 2


def test_a_server_without_a_recognizer_says_what_is_missing(open_page, large_server, photographs):
    page = open_page(f"{large_server.url}/#tag")
    expect(page.locator("#upload-note")).to_contain_text("Start the server with --model")
    page.locator("#upload-files").set_input_files(photographs[:1])
    expect(page.locator("#messages")).to_contain_text("Start the server with --model")
    expect(page.locator(".upload .error")).to_contain_text("Start the server with --model")
