import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from surelabel.data import collection
from surelabel.errors import DataError, InputError
from surelabel.recognizer import Recognizer, folder_watching, index_images_with_recognizer
from surelabel.recognizer.folder_watching import (
    FolderWatch,
    RemovedImages,
    WatchedBatch,
    WatchNotice,
)
from surelabel.recognizer.tagging import shown_label_mask
from surelabel.recognizer.watched_index import WatchedIndex
from surelabel.recognizer.watched_outputs import WatchedOutputs
from surelabel.retrieval import Index
from surelabel.retrieval.index_lock import lock_index

LATER = 10**12  # nanoseconds: all files are old enough


@pytest.fixture(scope="module")
def recognizer():
    return Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])


@pytest.fixture(scope="module")
def few():
    return collection("scenes-80", split="test").paths[:6]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "images").mkdir()
    return tmp_path / "images"


@pytest.fixture
def watch(recognizer, folder, tmp_path):
    """Return a function that starts to watch the folder, with an index unless it is None."""

    def start(index="index", naming=None):
        opened = None
        if index is not None:
            path = str(tmp_path / index)
            opened = WatchedIndex(path, recognizer, root=str(folder), model="tiny-vit")
        return FolderWatch(
            str(folder),
            recognizer,
            WatchedOutputs(recognizer.fingerprint, opened, naming),
            select=lambda p: folder_watching.replace(p, shown=shown_label_mask(p, top_k=1)),
            interval=0.5,
        )

    return start


def step(watched, n=1):
    """Return the events of several scans."""
    return [event for _ in range(n) for event in watched.step(time.time_ns() + LATER)]


def names(event):
    return [os.path.basename(path) for path in event.predictions.paths]


def test_a_slow_copy_is_tagged_when_it_is_complete(watch, folder, few):
    watched, data = watch(), Path(few[0]).read_bytes()
    for n_bytes in (0, 500, len(data)):
        (folder / "a.jpg").write_bytes(data[:n_bytes])
        assert step(watched) == []
    [batch] = step(watched)
    assert (names(batch), batch.unreadable, batch.n_indexed) == (["a.jpg"], (), 1)
    assert step(watched, 2) == []


def test_a_file_that_was_written_within_the_interval_waits(watch, folder, few):
    watched = watch()
    shutil.copyfile(few[0], folder / "a.jpg")
    assert [event for _ in range(3) for event in watched.step(time.time_ns())] == []
    assert len(step(watched)) == 1


def test_images_arrive_change_and_disappear(watch, folder, few, tmp_path):
    watched = watch()
    for n, path in enumerate(few[:4]):
        shutil.copyfile(path, folder / f"{n}.jpg")
    [batch] = step(watched, 2)
    assert (names(batch), batch.n_indexed) == (["0.jpg", "1.jpg", "2.jpg", "3.jpg"], 4)
    shutil.copyfile(few[4], folder / "1.jpg")
    (folder / "2.jpg").unlink()
    removed, batch = step(watched, 2)
    assert isinstance(removed, RemovedImages)
    assert (removed.paths, removed.n_indexed) == ([str(folder / "2.jpg")], 3)
    assert (names(batch), batch.n_indexed) == (["1.jpg"], 3)
    status = Index.open(tmp_path / "index").status()
    assert (status.n_images, status.changed, status.deleted) == (3, {}, {})


def test_an_image_that_is_replaced_by_a_deletion_and_a_copy_is_never_removed(watch, folder, few):
    watched = watch()
    for n in range(3):
        shutil.copyfile(few[n], folder / f"{n}.jpg")
    step(watched, 2)
    (folder / "0.jpg").unlink()
    assert step(watched) == []
    shutil.copyfile(few[3], folder / "0.jpg")
    assert [names(event) for event in step(watched, 2)] == [["0.jpg"]]


def test_an_unreadable_image_is_named_once_until_it_changes(watch, folder, few):
    watched = watch()
    (folder / "bad.jpg").write_bytes(b"no image")
    shutil.copyfile(few[0], folder / "good.jpg")
    [batch] = step(watched, 4)
    assert names(batch) == ["good.jpg"]
    assert [image.path for image in batch.unreadable] == [str(folder / "bad.jpg")]
    assert "not an image" in batch.unreadable[0].reason
    shutil.copyfile(few[1], folder / "bad.jpg")
    assert [names(event) for event in step(watched, 3)] == [["bad.jpg"]]


def test_an_index_is_continued_after_a_restart(watch, folder, few, tmp_path):
    for n, path in enumerate(few[:3]):
        shutil.copyfile(path, folder / f"{n}.jpg")
    step(watch(), 2)
    shutil.copyfile(few[3], folder / "3.jpg")
    (folder / "0.jpg").unlink()
    watched = watch()
    events = step(watched, 3)
    assert [type(event) for event in events] == [RemovedImages, WatchedBatch]
    assert (events[0].n_indexed, names(events[1]), events[1].n_indexed) == (2, ["3.jpg"], 3)


def test_images_with_current_sidecars_are_not_tagged_again_after_a_restart(watch, folder, few):
    for n, path in enumerate(few[:2]):
        shutil.copyfile(path, folder / f"{n}.jpg")
    assert len(step(watch(None, "full"), 2)) == 1
    sidecars = {path.name: path.read_bytes() for path in folder.glob("*.xmp")}
    assert sorted(sidecars) == ["0.jpg.xmp", "1.jpg.xmp"]
    os.utime(folder / "1.jpg")
    [batch] = step(watch(None, "full"), 2)
    assert names(batch) == ["1.jpg"]
    assert {path.name: path.read_bytes() for path in folder.glob("*.xmp")} == sidecars


def test_images_that_another_process_indexed_are_not_tagged_again(
    watch, folder, few, recognizer, tmp_path
):
    watched = watch()
    shutil.copyfile(few[0], folder / "a.jpg")
    assert step(watched) == []
    index_images_with_recognizer(tmp_path / "index", recognizer, [str(folder / "a.jpg")])
    assert step(watched, 2) == []


def test_a_folder_that_disappears_keeps_the_index_and_is_found_again(watch, folder, few, tmp_path):
    watched = watch()
    shutil.copyfile(few[0], folder / "a.jpg")
    step(watched, 2)
    folder.rename(tmp_path / "away")
    [notice] = step(watched, 3)
    assert (type(notice), notice.kind) == (WatchNotice, "folder_missing")
    assert f"{folder} cannot be read: No such file or directory. No image is" in notice.message
    (tmp_path / "away").rename(folder)
    [notice] = step(watched, 3)
    assert (notice.kind, notice.message) == ("folder_found", f"{folder} can be read again.")
    assert len(Index.open(tmp_path / "index")) == 1


def test_an_empty_mount_point_removes_no_image_and_all_are_known_when_they_return(
    watch, folder, few, tmp_path
):
    watched = watch()
    for n, path in enumerate(few[:3]):
        shutil.copyfile(path, folder / f"{n}.jpg")
    step(watched, 2)
    folder.rename(tmp_path / "away")
    folder.mkdir()
    [notice] = step(watched, 3)
    assert notice.kind == "images_missing"
    assert notice.message.startswith(f"3 of 3 images of {folder} are missing at once, such as ")
    assert f"`surelabel index {tmp_path / 'index'} {folder}`" in notice.message
    folder.rmdir()
    (tmp_path / "away").rename(folder)
    assert step(watched, 3) == []
    assert len(Index.open(tmp_path / "index")) == 3


def test_a_single_image_that_disappears_stays_in_the_index(watch, folder, few, tmp_path):
    watched = watch()
    shutil.copyfile(few[0], folder / "a.jpg")
    step(watched, 2)
    (folder / "a.jpg").unlink()
    [notice] = step(watched, 3)
    assert notice.message.startswith(f"1 of 1 image of {folder} is missing at once, such as ")
    assert len(Index.open(tmp_path / "index")) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="links need permissions on Windows")
def test_a_file_that_cannot_be_examined_prevents_removals(watch, folder, few):
    watched = watch()
    for n, path in enumerate(few[:3]):
        shutil.copyfile(path, folder / f"{n}.jpg")
    step(watched, 2)
    (folder / "loop.jpg").symlink_to(folder / "loop.jpg")
    (folder / "0.jpg").unlink()
    [notice] = step(watched, 3)
    assert notice.kind == "folders_unreadable"
    assert f"1 subfolder or file cannot be read, such as {folder / 'loop.jpg'}" in notice.message
    (folder / "loop.jpg").unlink()
    [removed] = step(watched, 3)
    assert removed.paths == [str(folder / "0.jpg")]


def test_a_locked_index_is_written_after_a_later_scan(watch, folder, few, tmp_path):
    watched = watch()
    for n in range(3):
        shutil.copyfile(few[n], folder / f"{n}.jpg")
    step(watched, 2)
    shutil.copyfile(few[3], folder / "3.jpg")
    (folder / "0.jpg").unlink()
    with lock_index(tmp_path / "index"):
        [notice] = step(watched, 4)
    assert notice.kind == "write_failed"
    assert notice.message == (
        f"Another process is writing to {tmp_path / 'index'}. Run the command again when that "
        "process has finished. Deleted images are removed, and new images are tagged, after the "
        "next scan."
    )
    removed, batch = step(watched, 2)
    assert (removed.n_indexed, names(batch), batch.n_indexed) == (2, ["3.jpg"], 3)


def test_images_that_cannot_be_written_are_tagged_again(watch, folder, few, tmp_path):
    watched = watch()
    shutil.copyfile(few[0], folder / "a.jpg")
    step(watched, 2)
    shutil.copyfile(few[1], folder / "b.jpg")
    with lock_index(tmp_path / "index"):
        [notice] = step(watched, 2)
    assert notice.message.endswith("finished. The images are tagged again after the next scan.")
    [batch] = step(watched)
    assert (names(batch), batch.n_indexed) == (["b.jpg"], 2)


def test_each_batch_is_in_the_index_when_it_is_reported(watch, folder, few, tmp_path, monkeypatch):
    monkeypatch.setattr(folder_watching, "MAX_BATCH_IMAGES", 2)
    for n, path in enumerate(few[:5]):
        shutil.copyfile(path, folder / f"{n}.jpg")
    watched, progress = watch(), []
    step(watched)

    def open_progress():
        return folder_watching.nullcontext(lambda *counts: progress.append(counts))

    events = watched.step(time.time_ns() + LATER, open_progress=open_progress)
    for n_reported, event in zip((2, 4, 5), events, strict=True):
        assert len(Index.open(tmp_path / "index")) == event.n_indexed == n_reported
    assert (progress[-1], max(progress)) == ((5, 5), (5, 5))


def test_files_of_the_index_inside_the_folder_are_no_images(watch, folder, few):
    watched = watch("images/index")
    shutil.copyfile(few[0], folder / "a.jpg")
    assert len(step(watched, 2)) == 1
    shutil.copyfile(few[1], folder / "index" / "b.jpg")
    assert step(watched, 3) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
def test_a_path_that_cannot_be_in_an_index_is_named_once(watch, folder, few):
    watched = watch()
    shutil.copyfile(few[0], os.fsencode(folder) + b"/\xff.jpg")
    shutil.copyfile(few[1], folder / "b.jpg")
    notice, batch = step(watched, 4)
    assert (notice.kind, names(batch)) == ("names_invalid", ["b.jpg"])


def test_without_outputs_each_image_is_tagged_once(watch, folder, few):
    watched = watch(None)
    shutil.copyfile(few[0], folder / "a.jpg")
    [batch] = step(watched, 4)
    assert (names(batch), batch.n_indexed, batch.predictions.shown.sum()) == (["a.jpg"], None, 1)


@pytest.mark.parametrize(("scan_seconds", "seconds"), [(0.1, 0.5), (7.0, 7.0)])
def test_the_time_between_two_scans_is_the_interval_or_the_duration_of_a_scan(
    watch, scan_seconds, seconds
):
    watched, waits = watch(), []

    def scan(*_, **__):
        watched.scan_seconds = scan_seconds
        yield from ()

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            raise RuntimeError("three scans")

    watched.step = scan
    with pytest.raises(RuntimeError, match="three scans"):
        list(watched.events(wait=wait))
    assert waits == [seconds] * 3


def test_a_folder_inside_the_index_and_a_missing_folder_are_refused(watch, folder, recognizer):
    with pytest.raises(InputError, match="must not contain the folder of the images"):
        watch("images")
    with pytest.raises(InputError, match="interval must be a number of at least"):
        FolderWatch(
            str(folder), recognizer, WatchedOutputs(""), select=lambda p: p, interval=float("nan")
        )
    folder.rmdir()
    with pytest.raises(DataError, match="images cannot be read: No such file or directory"):
        watch(None)
