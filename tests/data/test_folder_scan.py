import os
import sys

import pytest

from surelabel.data.folder_scan import is_complete_image_name, scan_image_folder
from surelabel.data.image_sources import find_images


@pytest.fixture
def folder(tmp_path):
    """A folder with four images, temporary files of copy programs, and other files."""
    (tmp_path / "2026" / "trap-1").mkdir(parents=True)
    (tmp_path / ".thumbnails").mkdir()
    names = ("a.jpg", "b.PNG", "2026/c.jpeg", "2026/trap-1/d.tif")
    others = ("a.xmp", "notes.txt", ".a.jpg.kX91z", ".b.jpg", ".thumbnails/a.jpg", "shard.tar")
    unfinished = ("e.jpg.part", "e.jpg.tmp", "e.jpg~", "e.jpg.crdownload", "e.part.jpg", "~e.jpg")
    for name in (*names, *others, *unfinished):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def images_of(folder, **options):
    """Return the status of each image, and all errors."""
    images, errors = {}, {}
    for scanned in scan_image_folder(str(folder), **options):
        images |= {os.path.join(scanned.path, n): s for n, s in scanned.images.items()}
        errors |= scanned.errors
    return images, errors


def test_images_are_found_with_size_and_time_and_without_unfinished_copies(folder):
    images, errors = images_of(folder)
    expected = {str(folder / n) for n in ("a.jpg", "b.PNG", "2026/c.jpeg", "2026/trap-1/d.tif")}
    assert (set(images), errors) == (expected, {})
    for path, status in images.items():
        assert status == (os.stat(path).st_size, os.stat(path).st_mtime_ns)


def test_images_of_a_scan_are_images_of_a_folder(folder):
    found = {path for path in find_images([str(folder / "2026")])}
    assert set(images_of(folder / "2026")[0]) == found


def test_a_folder_can_be_left_out(folder):
    images, _ = images_of(folder, excluded=str(folder / "2026"))
    assert {os.path.basename(path) for path in images} == {"a.jpg", "b.PNG"}


def test_a_link_is_an_image_if_its_target_is_a_file(folder):
    (folder / "link.jpg").symlink_to(folder / "a.jpg")
    (folder / "broken.jpg").symlink_to(folder / "nothing.jpg")
    (folder / "2026" / "loop").symlink_to(folder)
    if sys.platform != "win32":
        os.mkfifo(folder / "pipe.jpg")
    images, errors = images_of(folder)
    assert errors == {}
    assert len(images) == 5
    assert images[str(folder / "link.jpg")] == images[str(folder / "a.jpg")]


def test_a_link_to_itself_is_an_error_and_all_other_images_are_found(folder):
    (folder / "loop.jpg").symlink_to(folder / "loop.jpg")
    images, errors = images_of(folder)
    assert (len(images), set(errors)) == (4, {str(folder / "loop.jpg")})


def test_a_missing_folder_is_an_error_and_not_empty(tmp_path):
    missing = str(tmp_path / "missing")
    [scanned] = scan_image_folder(missing)
    assert (scanned.images, scanned.errors) == ({}, {missing: "No such file or directory"})


@pytest.mark.parametrize(
    ("name", "is_complete"),
    [("IMG.JPG", True), ("parttime.jpg", True), ("IMG.tmp.JPG", False), ("jpg", False)],
)
def test_names_of_copies_in_progress_are_no_images(name, is_complete):
    assert is_complete_image_name(name, frozenset({".jpg"})) is is_complete
