from io import BytesIO

import pytest
from PIL import Image

from surelabel.errors import DataError
from surelabel.web import image_tasks
from surelabel.web.image_tasks import TASKS


@pytest.fixture(autouse=True)
def _no_memory_limit(monkeypatch):
    """Do not limit the memory of the process that runs the tests."""
    monkeypatch.setattr(image_tasks, "limit_decoding_memory", lambda: None)
    image_tasks._limit_memory_once.cache_clear()
    yield
    image_tasks._limit_memory_once.cache_clear()


def encoded(kind):
    file = BytesIO()
    Image.new("RGB", (8, 4)).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp"), ("BMP", "image/bmp")],
)
def test_the_content_and_not_the_name_determines_the_type(tmp_path, kind, content_type):
    (tmp_path / "a.html").write_bytes(encoded(kind))
    assert TASKS["read_content_type"](str(tmp_path / "a.html")) == (content_type, b"")


@pytest.mark.parametrize("content", [b"", b"<html>", b"<svg xmlns='http://www.w3.org/2000/svg'/>"])
def test_what_is_not_an_image_has_no_type(tmp_path, content):
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(DataError, match="not an image of a supported format"):
        TASKS["read_content_type"](str(tmp_path / "a.jpg"))


def test_a_member_of_an_archive_is_read(tmp_path, tar_archive):
    tar_archive(tmp_path / "a.tar", [("x.jpg", encoded("PNG"))])
    path = str(tmp_path / "a.tar" / "x.jpg")
    assert TASKS["read_content"](path) == ("image/png", encoded("PNG"))


def test_the_content_of_a_member_is_limited(tmp_path, tar_archive, monkeypatch):
    tar_archive(tmp_path / "a.tar", [("x.jpg", encoded("PNG"))])
    monkeypatch.setattr(image_tasks, "MAX_CONTENT_BYTES", 10)
    with pytest.raises(DataError, match="must have at most 10 bytes"):
        TASKS["read_content"](str(tmp_path / "a.tar" / "x.jpg"))
