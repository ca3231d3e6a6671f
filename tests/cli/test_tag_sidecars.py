import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from surelabel.data import read_predictions
from surelabel.data.xmp_packets import HIERARCHICAL_SUBJECT, SUBJECT, SURELABEL
from surelabel.data.xmp_sidecar_paths import read_sidecar

LIGHTROOM = Path(__file__).parents[1] / "data" / "sidecars" / "lightroom.xmp"
TAG = ["tag", "images", "--model", "recognizer", "--sidecar", "xmp"]
needs_exiftool = pytest.mark.skipif(
    shutil.which("exiftool") is None,
    reason="exiftool is not installed (on Debian: apt-get install libimage-exiftool-perl)",
)


@pytest.fixture
def album(home):
    """A folder of 4 images, of which the first has a sidecar of Lightroom."""
    first, *others = sorted((home / "images").iterdir())
    for image in others[3:]:
        image.unlink()
    shutil.copy(LIGHTROOM, first.with_suffix(".xmp"))
    return home / "images"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def subjects(folder):
    """Return the keywords of each sidecar by its name."""
    paths = sorted(folder.glob("*.xmp"))
    return {path.name: set(read_sidecar(str(path)).texts(SUBJECT)) for path in paths}


def exiftool(*arguments):
    done = subprocess.run(
        ["exiftool", *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("selection", ["", "--top-k 2 --out tags.csv", "--best-f1 --out a.jsonl"])
def test_the_labels_that_are_printed_are_the_keywords(album, run, selection):
    next(album.glob("*.xmp")).unlink()
    images = contents(album)
    done = run(*TAG, *selection.split(), "--json", "--quiet")
    assert (done.code, done.err.count("Error")) == (0, 0)
    printed = json.loads(done.out)
    expected = {
        Path(image["path"]).with_suffix(".xmp").name: {tag["label"] for tag in image["tags"]}
        for image in printed
        if image["tags"]
    }
    assert subjects(album) == expected
    assert {n: data for n, data in contents(album).items() if n in images} == images


def test_keywords_of_the_user_stay_and_removal_restores_the_folder(album, run):
    before = contents(album)
    times = {path: path.stat().st_mtime_ns for path in album.iterdir()}
    assert run(*TAG, "--top-k", "1").code == 0
    first = min(subjects(album))
    assert {"Animals", "Dog", "Müller & Söhne"} < subjects(album)[first]
    done = run("tag", "images", "--sidecar", "xmp", "--remove")
    assert done.out == "Removed the tags of surelabel from 4 sidecars of 4 images.\n"
    assert contents(album) == before
    times.pop(album / first)
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_both_namings_are_removed_unless_one_is_given(album, run):
    before = contents(album)
    for naming in ("stem", "full"):
        assert run(*TAG, "--top-k", "1", "--sidecar-name", naming).code == 0
    assert len(contents(album)) == 4 * 3
    line = ["tag", "images", "--sidecar", "xmp", "--remove", "--json"]
    assert json.loads(run(*line, "--sidecar-name", "full").out) == {"removed": 4, "refused": []}
    assert json.loads(run(*line).out) == {"removed": 4, "refused": []}
    assert contents(album) == before


def test_a_second_run_replaces_the_tags_and_changes_nothing_else(album, run):
    assert run(*TAG, "--top-k", "2").code == 0
    first = contents(album)
    again = run(*TAG, "--top-k", "2")
    assert "Written: 0 XMP sidecars; images that needed no change: 4." in again.err
    assert contents(album) == first
    assert run(*TAG, "--top-k", "1").code == 0
    added = [read_sidecar(str(p)).texts((SURELABEL, "addedKeywords")) for p in album.glob("*.xmp")]
    assert [len(keywords) for keywords in added] == [1] * 4


def test_a_refused_sidecar_is_named_and_all_others_are_written(album, run):
    first = min(album.glob("*.xmp"))
    data = b"<!DOCTYPE a>" + first.read_bytes()
    first.write_bytes(data)
    commands = [*TAG, "--top-k", "1", "--quiet"], ["tag", "images", *TAG[4:], "--remove"]
    for command, n_sidecars in zip(commands, (4, 1), strict=True):
        done = run(*command)
        assert done.code == 1
        assert done.err == (
            f"  images/{first.name}: expected a writable XMP packet in UTF-8; got a document type "
            "or an entity, which is unsafe\n"
            "Error: 1 XMP sidecar could not be changed, for the reasons above. All other sidecars "
            "were written. Correct or move the listed sidecars, and run the command again.\n"
        )
        assert first.read_bytes() == data
        assert len(list(album.glob("*.xmp"))) == n_sidecars


def test_raw_and_jpeg_of_one_name_are_refused_with_both_readings(album, run):
    image = sorted(album.glob("*.jpg"))[1]
    raw = image.with_suffix(".CR2")
    raw.touch()
    listed = album.parent / "list.txt"
    listed.write_text(str(image))
    before = contents(album)
    done = run("tag", "list.txt", *TAG[2:], "--top-k", "1")
    assert done.code == 1
    assert re.search(
        rf"{image.stem}\.xmp can belong to {raw.name} or {image.name}\. Give --sidecar-name full, "
        rf"which uses {raw.name}\.xmp and {image.name}\.xmp",
        done.err,
    )
    assert contents(album) == before
    assert run("tag", "list.txt", *TAG[2:], "--top-k", "1", "--sidecar-name", "full").code == 0
    assert contents(album).keys() - before.keys() == {f"{image.name}.xmp"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sidecar-name", "full"], "--sidecar-name needs --sidecar xmp."),
        (["--remove"], "--remove needs --sidecar xmp."),
        (
            ["--sidecar", "xmp", "--remove", "--out", "a.csv", "--top-k", "1"],
            "--remove predicts no labels, so it cannot be combined with --out, --top-k.",
        ),
        (
            ["--sidecar", "xmp", "--remove", "--calibrate-unlabelled"],
            "it cannot be combined with --calibrate-unlabelled.",
        ),
        (["--sidecar", "exif"], "'exif' is not 'xmp'"),
    ],
)
def test_options_that_do_not_belong_together_are_a_usage_error(home, run, options, message):
    done = run("tag", "nowhere", "--model", "recognizer", *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_labels_of_a_model_without_calibration_are_no_keywords_unless_selected(
    album, run, random_checkpoint
):
    next(album.glob("*.xmp")).unlink()
    model = f"local-dir:{random_checkpoint}"
    line = ["tag", "images", "--model", model, "--labels", "dog, car, cup", "--sidecar", "xmp"]
    refused = run(*line, "--out", "tags.csv")
    assert (refused.code, refused.out) == (1, "")
    assert "--sidecar xmp requires probabilities" in refused.err
    assert "these images without labels (--calibrate-unlabelled)" in refused.err
    assert "Tagging" not in refused.err
    assert not subjects(album)
    assert not Path("tags.csv").exists()
    assert run(*line, "--top-k", "1").code == 0
    assert [len(keywords) for keywords in subjects(album).values()] == [1] * 4
    done = run(*line, "--calibrate-unlabelled", "--json")
    shown = [{tag["label"] for tag in image["tags"]} for image in json.loads(done.out)]
    assert list(subjects(album).values()) == [labels for labels in shown if labels]


def test_an_interrupted_run_resumes_and_nothing_is_lost(album, run, monkeypatch):
    monkeypatch.setattr("surelabel.recognizer.prediction_blocks.IMAGES_PER_BLOCK", 1)
    line = [*TAG, "--top-k", "1", "--strict", "--out", "tags.parquet"]
    last = max(album.glob("*.jpg"))
    data = last.read_bytes()
    last.write_bytes(b"")
    assert run(*line).code == 1
    assert len(subjects(album)) == 3  # of the finished blocks
    last.write_bytes(data)
    done = run(*line)
    assert "3 images were predicted before an interruption." in done.err
    assert "Written: 1 XMP sidecar; images that needed no change: 3." in done.err
    assert len(subjects(album)) == len(read_predictions("tags.parquet")) == 4
    assert {"Animals", "Dog", "Müller & Söhne"} < subjects(album)[min(subjects(album))]


@needs_exiftool
def test_exiftool_reads_the_keywords_and_our_run_keeps_its_edits(album, run):
    assert run(*TAG, "--top-k", "2").code == 0
    sidecars = sorted(album.glob("*.xmp"))
    assert "Warning" not in exiftool("-validate", "-warning", "-a", *sidecars)
    found = json.loads(exiftool("-json", "-G1", *sidecars))
    for path, tags in zip(sidecars, found, strict=True):
        packet = read_sidecar(str(path))
        as_list = tags["XMP-dc:Subject"], tags["XMP-lr:HierarchicalSubject"]
        assert as_list == (packet.texts(SUBJECT), packet.texts(HIERARCHICAL_SUBJECT))
        assert list(map(str, tags["XMP-surelabel:Labels"])) == packet.texts((SURELABEL, "labels"))
    edits = ["-XMP-dc:Subject+=Holiday", "-XMP-xmp:Rating=5", "-XMP-dc:Subject-=Dog"]
    exiftool("-overwrite_original", *edits, sidecars[0], sidecars[1])
    edited = [set(read_sidecar(str(path)).texts(SUBJECT)) for path in sidecars]
    assert run(*TAG, "--top-k", "1").code == 0
    for path, keywords in zip(sidecars[:2], edited, strict=False):
        tags = json.loads(exiftool("-json", "-G1", path))[0]
        assert tags["XMP-xmp:Rating"] == 5
        assert "Holiday" in tags["XMP-dc:Subject"]
        assert set(tags["XMP-dc:Subject"]) < keywords
    assert run("tag", "images", "--sidecar", "xmp", "--remove").code == 0
    left = json.loads(exiftool("-json", "-G1", *sidecars[:2]))
    assert set(left[0]["XMP-dc:Subject"]) == {"Animals", "Müller & Söhne", "Holiday"}
    assert left[1]["XMP-dc:Subject"] == "Holiday"
    assert "XMP-surelabel:Labels" not in left[0].keys() | left[1].keys()
    assert not any(path.exists() for path in sidecars[2:])


@needs_exiftool
def test_a_sidecar_that_exiftool_wrote_is_read_and_restored(home, run):
    image = sorted((home / "images").iterdir())[0]
    sidecar = image.with_suffix(".xmp")
    exiftool("-XMP-dc:Subject=wolf", "-XMP-dc:Subject=Ice, Bär", "-XMP-dc:Title=T", "-o", sidecar)
    data = sidecar.read_bytes()
    assert run("tag", str(image), *TAG[2:], "--top-k", "1").code == 0
    assert read_sidecar(str(sidecar)).texts(SUBJECT)[:2] == ["wolf", "Ice, Bär"]
    assert sidecar.read_bytes() != data
    assert run("tag", str(image), "--sidecar", "xmp", "--remove").code == 0
    assert sidecar.read_bytes() == data
