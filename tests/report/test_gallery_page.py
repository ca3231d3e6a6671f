import os
import re
from html.parser import HTMLParser

import pytest
from PIL import Image

from surelabel.errors import DataError
from surelabel.report import GalleryImage, GalleryLabel, write_gallery_page
from surelabel.report.gallery_page import render_gallery_page
from surelabel.report.page_layout import CONTENT_SECURITY_POLICY

EVIL = "<script>alert(1)</script> & \"'"


@pytest.fixture
def images(tmp_path):
    (tmp_path / "a").mkdir()
    paths = [tmp_path / "a" / "wide.jpg", tmp_path / "tall.png"]
    Image.new("RGB", (400, 100), "red").save(paths[0])
    Image.new("RGB", (30, 90), "blue").save(paths[1])
    return [str(path) for path in paths]


class Elements(HTMLParser):
    """Elements of a page as tag and attributes."""

    def __init__(self, page):
        super().__init__()
        self.elements = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def test_a_page_has_a_thumbnail_and_the_labels_of_each_image(images, tmp_path):
    labels = [GalleryLabel("lion", "93 %", 0.93), GalleryLabel("similarity", "0.25")]
    page = tmp_path / "page.html"
    write_gallery_page(
        page,
        "lion & !bear",
        ["Not verified."],
        [GalleryImage(images[0], labels, title="93 %"), GalleryImage(images[1])],
    )
    text = page.read_text(encoding="utf-8")
    elements = Elements(text)
    assert [link["href"] for link in elements.of("a")] == [
        (tmp_path / "a" / "wide.jpg").as_uri(),
        (tmp_path / "tall.png").as_uri(),
    ]
    assert all(image["src"].startswith("data:image/jpeg;base64,") for image in elements.of("img"))
    texts = [image["alt"] for image in elements.of("img")]
    assert texts == ["lion 93 %, similarity 0.25", f"image {images[1]}"]
    assert [item.get("style") for item in elements.of("li")] == ["--share:93", None]
    assert f"2 images in <code>{tmp_path}</code>" in text
    assert "<h1>lion &amp; !bear</h1>" in text
    assert "<p>Not verified.</p>" in text
    assert "<bdi>a/wide.jpg</bdi>" in text
    assert text.count("no label") == 1


def test_a_page_has_no_script_and_no_external_resource(images):
    label = GalleryLabel(EVIL, EVIL, 0.5)
    image = GalleryImage(images[0], [label], title=EVIL)
    skipped = GalleryImage(f"/{EVIL}.jpg", reason=EVIL)
    elements = Elements(render_gallery_page(EVIL, [EVIL], [image, skipped]))
    assert not elements.of("script")
    policies = [meta.get("content") for meta in elements.of("meta")]
    assert CONTENT_SECURITY_POLICY in policies
    sources = [a.get("src") for _, a in elements.elements if "src" in a]
    assert all(source.startswith("data:") for source in sources)


def test_an_image_that_cannot_be_read_has_a_frame(images, tmp_path):
    missing = GalleryImage(str(tmp_path / "gone.jpg"), [GalleryLabel("lion", "93 %", 0.93)])
    skipped = GalleryImage(str(tmp_path / "empty.jpg"), reason="empty file")
    page = render_gallery_page("x", [], [GalleryImage(images[0]), missing, skipped])
    assert page.count("<img") == 1
    assert page.count('class="unreadable"') == 2
    assert "This image cannot be read: empty file." in page
    assert "<bdi>gone.jpg</bdi>" in page
    assert page.count("no label") == 1


def test_a_large_result_is_cut_and_the_page_says_so(images):
    done = []
    many = [GalleryImage("/nowhere/a.jpg", reason="x")] * 1001
    page = render_gallery_page(
        "x", [], many, n_images=10_000, progress=lambda *counts: done.append(counts)
    )
    assert page.count('class="card"') == 1000
    assert "The first 1,000 of 10,000 images" in page
    assert done[-1] == (1000, 1000)
    labels = [GalleryLabel(f"label {i}", "50 %", 0.5) for i in range(12)]
    page = render_gallery_page("x", [], [GalleryImage(images[0], labels)])
    assert page.count("--share:50") == 10
    assert "and 2 more labels" in page
    assert "1 image in" in page


def test_a_page_without_images_says_so():
    page = render_gallery_page("lion", ["The index is empty."], [])
    assert "No images were found." in page
    assert "<nav" not in page


def test_a_path_that_is_no_unicode_is_written_with_escapes(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jpg")
    page = tmp_path / "page.html"
    write_gallery_page(page, "x", [], [GalleryImage(path)])
    assert re.search(r"<bdi>caf\\udce9\.jpg</bdi>", page.read_text(encoding="utf-8"))


def test_a_page_in_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        write_gallery_page(tmp_path / "file" / "page.html", "x", [], [])
