import os
import shutil
import signal
import time

import pytest

from surelabel.data.xmp_packets import SUBJECT
from surelabel.data.xmp_sidecar_paths import read_sidecar
from surelabel.recognizer import folder_watching
from surelabel.retrieval import Index

WATCH = ("tag", "--watch", "images", "--model", "recognizer")
PATIENCE = 60  # seconds


def wait_until(condition, process):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.is_alive(), "the command ended"
        assert time.monotonic() < deadline, "the condition is not reached"
        time.sleep(0.02)


def read_until(lines, text):
    """Return the lines up to the first one that contains a text."""
    read = []
    for line in lines:
        read.append(line)
        if text in line:
            return read
    raise AssertionError(f"{text!r} is not in {read}")


def n_indexed(folder):
    """Return the number of images in an index, also before it exists."""
    return len(Index.open(folder)) if (folder / "index.json").exists() else 0


def test_images_that_arrive_slowly_are_tagged_until_ctrl_c(home, start):
    new = home / "new"
    new.mkdir()
    images = sorted((home / "images").iterdir())[:3]
    outputs = ("--index", "new/index", "--sidecar", "xmp", "--top-k", "1", "--interval", "0.5")
    process, errors = start("tag", "--watch", "new", "--model", "recognizer", *outputs)
    read_until(errors, f"Watching {new}, with a scan every 0.5 s (stop with Ctrl-C); 0 images")
    first = images[0].read_bytes()
    for piece in (first[:400], first[400:]):
        with (new / "a.jpg").open("ab") as file:
            file.write(piece)
        time.sleep(0.1)
    for image in images[1:]:
        shutil.copyfile(image, new / image.name)
    (new / "bad.jpg").write_bytes(b"no image")
    wait_until(lambda: n_indexed(new / "index") == 3, process)
    read_until(errors, "3 images in the index")
    (new / "a.jpg").unlink()
    assert read_until(errors, "1 image removed; 2 images in the index")
    os.kill(process.pid, signal.SIGINT)
    process.join(PATIENCE)
    [summary] = errors.readlines()
    errors.close()
    assert process.exitcode == 0
    assert summary.endswith(": 3 images tagged, 1 unreadable, 1 removed.\n")
    sidecars = sorted(new.glob("*.xmp"))
    assert [path.stem for path in sidecars] == [*(image.stem for image in images[1:]), "a"]
    assert all(len(read_sidecar(str(path)).texts(SUBJECT)) == 1 for path in sidecars)
    assert Index.open(new / "index").status().deleted == {}


def test_a_killed_command_loses_no_reported_image_and_continues(home, start, monkeypatch):
    monkeypatch.setattr(folder_watching, "MAX_BATCH_IMAGES", 4)
    shutil.rmtree(home / "index")
    line = (*WATCH, "--index", "index", "--interval", "0.5")
    process, errors = start(*line)
    read_until(errors, "4 images tagged; 8 images in the index")
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)
    errors.close()
    before = set(Index.open(home / "index").paths)
    assert len(before) >= 8
    shutil.copyfile(min(before), home / "images" / "added.jpg")
    images = {str(path) for path in (home / "images").iterdir()}
    process, errors = start(*line)
    lines = read_until(errors, f"; {len(images)} images in the index")
    batches = [line for line in lines if "in the index" in line]  # without lines of progress
    os.kill(process.pid, signal.SIGINT)
    process.join(PATIENCE)
    [summary] = errors.readlines()
    errors.close()
    assert f"; {len(before)} images in the index" in batches[-1 - -(-len(images - before) // 4)]
    assert f": {len(images - before)} image" in summary
    assert set(Index.open(home / "index").paths) == images


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tag images --interval 1", "--interval requires --watch. Add --watch."),
        ("tag images --interval 1 --index i", "--interval and --index require --watch. Add"),
        ("tag images --index i", "--index requires --watch. Add --watch."),
        ("tag images names.txt --watch", "--watch requires one folder of images; got images"),
        ("tag names.txt --watch", "--watch requires one folder of images; got names.txt."),
        ("tag images --watch --out a.csv --strict", "--out, --strict cannot be combined with"),
        ("tag images --watch --shard 1/2", "--shard cannot be combined with --watch"),
        ("tag images --watch --cluster local", "--cluster cannot be combined with --watch"),
        ("tag images --watch --sidecar xmp --remove", "--remove cannot be combined with --watch"),
        ("tag images --watch --heat-maps h", "--heat-maps cannot be combined with --watch"),
        ("tag images --watch --calibrate-unlabelled", "each start would give other probabilities"),
        ("tag images --watch --index i --method tiles", "--method cannot be combined with --index"),
        ("tag images --watch --interval nan", "interval must be a number of at least 0.5 seconds"),
    ],
)
def test_options_without_a_meaning_for_a_watched_folder_are_refused(home, run, line, message):
    done = run(*line.split(), "--labels", "lion")
    assert done.code in (1, 2)
    assert message in done.err
    assert "Traceback" not in done.err


def test_recognizers_that_change_with_each_start_or_have_no_probabilities_are_refused(home, run):
    line = ("tag", "images", "--watch", "--labels", "lion, bear, cow")
    done = run(*line, "--method", "standardized")
    assert (done.code, "--watch requires a fitted model; standardized is" in done.err) == (1, True)
    other = run(*line, "--index", "index")
    assert "contains predictions of the recognizer" in other.err
    shutil.rmtree(home / "index")
    done = run(*line, "--method", "tiles", "--sidecar", "xmp")
    assert (done.code, "--sidecar xmp requires probabilities" in done.err) == (1, True)
