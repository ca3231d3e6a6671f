import pytest

from surelabel.data.folder_scan import ScannedFolder
from surelabel.recognizer.watched_images import WatchedImages
from surelabel.storage.stored_images import StoredImageStatus

SECOND = 10**9
OLD, NEW = StoredImageStatus(10, 100 * SECOND), StoredImageStatus(20, 100 * SECOND)
NOW = 200 * SECOND


def compare(images, folders, *, now=NOW, errors=()):
    scan = [ScannedFolder(path, files, dict(errors)) for path, files in folders.items()]
    return images.compare(scan, now_ns=now, min_age_ns=5 * SECOND)


def test_an_image_is_complete_if_two_scans_find_it_unchanged():
    images = WatchedImages()
    assert compare(images, {"/a": {"x.jpg": OLD}}).complete == {}
    assert compare(images, {"/a": {"x.jpg": NEW}}).complete == {}
    assert compare(images, {"/a": {"x.jpg": NEW}}).complete == {"/a/x.jpg": NEW}
    assert compare(images, {"/a": {"x.jpg": NEW}}).complete == {"/a/x.jpg": NEW}  # not tagged yet
    images.add("/a/x.jpg", NEW)
    assert compare(images, {"/a": {"x.jpg": NEW}}).complete == {}


@pytest.mark.parametrize(("age", "is_complete"), [(0, False), (4, False), (5, True), (-60, True)])
def test_a_file_is_complete_after_the_minimum_age_and_a_time_in_the_future_is_ignored(
    age, is_complete
):
    images, files = WatchedImages(), {"/a": {"x.jpg": OLD}}
    now = OLD.mtime_ns + age * SECOND
    compare(images, files, now=now)
    assert bool(compare(images, files, now=now).complete) is is_complete


def test_a_changed_image_is_complete_again_and_the_version_before_is_forgotten():
    images = WatchedImages()
    images.add("/a/x.jpg", OLD)
    assert [compare(images, {"/a": {"x.jpg": NEW}}).complete for _ in range(2)] == [
        {},
        {"/a/x.jpg": NEW},
    ]
    images.add("/a/x.jpg", NEW)
    assert len(images) == 1


def test_images_that_a_scan_does_not_find_are_named_also_in_folders_that_are_gone():
    images = WatchedImages()
    for path in ("/a/x.jpg", "/a/y.jpg", "/a/b/z.jpg"):
        images.add(path, OLD)
    difference = compare(images, {"/a": {"x.jpg": OLD}})
    assert sorted(difference.unseen) == ["/a/b/z.jpg", "/a/y.jpg"]
    assert "/a/y.jpg" in images
    images.discard("/a/y.jpg")
    images.discard("/a/b/z.jpg")
    assert (len(images), compare(images, {"/a": {"x.jpg": OLD}}).unseen) == (1, [])
    assert "/a/y.jpg" not in images


def test_errors_of_all_folders_are_returned():
    difference = compare(WatchedImages(), {"/a": {}}, errors=[("/a/b", "Permission denied")])
    assert difference.errors == {"/a/b": "Permission denied"}
