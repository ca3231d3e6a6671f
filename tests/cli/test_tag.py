import json
import os
import re
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from surelabel.cli.tag import tag
from surelabel.cli.tag_blocks import TagCounts
from surelabel.cli.tag_output import format_tags, print_tag_summary
from surelabel.cli.terminal import Terminal
from surelabel.config import load_run
from surelabel.data import read_predictions
from surelabel.errors import DataError
from surelabel.recognizer import Recognizer
from surelabel.recognizer.label_free_methods import DEFAULT_MAX_PASSES, MIN_CALIBRATION_IMAGES
from surelabel.records import (
    UNCERTAINTY_KINDS,
    EncodingStats,
    LabelledFeatures,
    Predictions,
    SkippedImage,
)


def test_a_line_a_image_with_what_is_likelier_than_not(home, run):
    done = run("tag", "images", "--model", "recognizer")
    found = Recognizer.load("recognizer").predict(sorted(map(str, (home / "images").iterdir())))
    lines = done.out.splitlines()
    assert done.code == 0
    assert len(lines) == len(found)
    for line, probabilities in zip(lines, found.probabilities, strict=True):
        path, _, tags = line.partition(": ")
        assert (home / path).exists()
        expected = {n for n, p in zip(found.names, probabilities, strict=True) if p >= 0.5}
        assert set(re.findall(r"([a-z]+) \d\.\d\d", tags)) == expected
        assert tags == "-" or expected


def test_the_closing_line_says_how_fast_and_how_many_came_from_the_cache(home, run):
    said = run("tag", "images", "--model", "recognizer").err
    assert re.fullmatch(
        r"Predicted 24 images in \d+\.\d s \(\d+ per second; 24 cached\)\. Decoding took \d+\.\d s "
        r"and the encoder 0\.0 s\.\n",
        said,
    )


def test_the_closing_line_has_each_time_and_the_images_that_were_skipped(capsys):
    stats = EncodingStats(n_cached=2, decode_seconds=1.23, model_seconds=4.56, encoder_passes=7)
    scores = np.zeros((8, 1), dtype=np.float32)
    skipped = [SkippedImage(f"{i}.png", "empty file") for i in range(2)]
    counts = TagCounts()
    counts.add(Predictions("abcdefgh", ["lion"], scores, skipped=skipped, encoding_stats=stats))
    print_tag_summary(Terminal(), counts, 5.0)
    assert capsys.readouterr().err.splitlines() == [
        "Predicted 10 images in 5.0 s (2 per second; 2 cached). Decoding took 1.2 s and the "
        "encoder 4.6 s.",
        "Skipped 2 images that cannot be read:",
        "  0.png: empty file",
        "  1.png: empty file",
    ]


def test_quiet_leaves_the_closing_line_out_but_names_what_was_skipped(home, run):
    (home / "images" / "broken.jpg").write_bytes(b"")
    done = run("tag", "images", "--model", "recognizer", "--quiet")
    assert done.code == 0
    assert done.err == "Skipped 1 image that cannot be read:\n  images/broken.jpg: empty file\n"
    assert len(done.out.splitlines()) == 24


def test_json_has_the_path_and_every_tag(home, run):
    done = run("tag", "images", "--model", "recognizer", "--top-k", "2", "--json", "--quiet")
    found = json.loads(done.out)
    assert len(found) == 24
    assert [sorted(tag) for tag in found[0]["tags"]] == [["label", "probability", "score"]] * 2
    assert found[0]["tags"][0]["probability"] >= found[0]["tags"][1]["probability"]


def test_a_threshold_keeps_only_what_reaches_it(home, run):
    done = run("tag", "images", "--model", "recognizer", "--threshold", "0.9", "--json")
    values = [tag["probability"] for image in json.loads(done.out) for tag in image["tags"]]
    assert all(value >= 0.9 for value in values)


@pytest.mark.parametrize(
    ("options", "threshold"),
    [
        ("--threshold 0.9999999", "the threshold 1"),
        ("--threshold 0.9999999 --out tags.csv", "the threshold 1"),
        ("--precision 0.999", "the thresholds of the labels"),
        ("--sidecar xmp --out tags.csv --labels baker", "the threshold 0.5"),
    ],
)
def test_a_run_without_a_shown_label_says_so_and_names_the_options(home, run, options, threshold):
    done = run("tag", "images", "--model", "recognizer", *options.split())
    assert done.code == 0
    assert set(re.findall(": (.*)", done.out)) <= {"-"}
    remedy = "Give --top-k K"
    if threshold.startswith("the threshold "):
        remedy = "Give a lower --threshold, or give --top-k K"
    assert (
        f"No label is shown, because all probabilities are below {threshold}. {remedy} without a "
        "threshold to show the K most probable labels" in done.err
    )
    assert ("Written: 0 XMP sidecars" in done.err) is ("--sidecar" in options)


@pytest.mark.parametrize("options", ["--top-k 1", "--out tags.csv --labels baker"])
def test_labels_that_are_shown_or_only_written_need_no_line_on_the_threshold(home, run, options):
    done = run("tag", "images", "--model", "recognizer", *options.split())
    assert done.code == 0
    assert "No label is shown" not in done.err


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_file_holds_all_labels_of_all_images(suffix, home, run):
    done = run("tag", "images", "--model", "recognizer", "--out", f"tags.{suffix}")
    assert (done.code, done.out) == (0, "")
    assert read_predictions(f"tags.{suffix}").scores.shape == (24, 4)


def test_json_is_printed_beside_the_file(home, run):
    line = ["tag", "images", "--model", "recognizer", "--json"]
    beside, alone = run(*line, "--out", "tags.csv"), run(*line)
    assert len(json.loads(beside.out)) == len(read_predictions("tags.csv")) == 24
    assert beside.out == alone.out


@pytest.fixture
def small_blocks(monkeypatch):
    """Predict the 24 images in three blocks."""
    monkeypatch.setattr("surelabel.recognizer.prediction_blocks.IMAGES_PER_BLOCK", 8)


def test_blocks_are_printed_and_written_like_one_block(home, run, monkeypatch):
    line = ["tag", "images", "--model", "recognizer", "--top-k", "2"]
    text, values = run(*line), run(*line, "--json")
    run(*line[:4], "--out", "once.csv")
    monkeypatch.setattr("surelabel.recognizer.prediction_blocks.IMAGES_PER_BLOCK", 8)
    assert run(*line).out == text.out
    assert [image["path"] for image in json.loads(run(*line, "--json").out)] == [
        image["path"] for image in json.loads(values.out)
    ]
    for suffix in ("csv", "jsonl", "parquet"):
        assert run(*line[:4], "--out", f"blocks.{suffix}").code == 0
        once, blocks = read_predictions("once.csv"), read_predictions(f"blocks.{suffix}")
        assert blocks.paths == once.paths
        np.testing.assert_allclose(blocks.scores, once.scores, atol=1e-5)
    assert not list(home.glob("*.partial"))


def test_an_interrupted_run_resumes_after_its_last_finished_block(home, run, small_blocks):
    line = ["tag", "images", "--model", "recognizer", "--strict", "--out", "tags.csv"]
    last = sorted((home / "images").iterdir())[-1]
    content = last.read_bytes()
    last.write_bytes(b"")
    assert run(*line).code == 1
    assert len(list((home / "tags.csv.partial").glob("block-*.parquet"))) == 2
    assert not (home / "tags.csv").exists()
    last.write_bytes(content)
    done = run(*line)
    assert done.code == 0
    assert "24 images in" in done.err
    assert "16 images were predicted before an interruption." in done.err
    assert len(read_predictions("tags.csv")) == 24
    assert not (home / "tags.csv.partial").exists()


def test_a_block_with_a_changed_image_is_predicted_again(home, run, small_blocks):
    line = ["tag", "images", "--model", "recognizer", "--strict", "--out", "tags.csv"]
    images = sorted((home / "images").iterdir())
    last = images[-1].read_bytes()
    images[-1].write_bytes(b"")
    assert run(*line).code == 1
    images[-1].write_bytes(last)
    images[9].write_bytes(images[0].read_bytes())
    done = run(*line)
    assert "8 images were predicted before an interruption." in done.err
    scores = read_predictions("tags.csv").scores
    np.testing.assert_allclose(scores[9], scores[0], atol=1e-5)


def test_the_finished_part_of_another_run_is_refused(home, run, small_blocks):
    line = ["tag", "images", "--strict", "--out", "tags.csv", "--model"]
    last = sorted((home / "images").iterdir())[-1]
    content = last.read_bytes()
    last.write_bytes(b"")
    assert run(*line, "recognizer").code == 1
    last.write_bytes(content)
    other = run(*line, "tiny-vit", "--labels", "lion")
    assert (other.code, other.out) == (1, "")
    message = r"tags.csv.partial must contain .*; got .* a run with another value of recognizer\. "
    assert re.search(message, other.err)
    fewer = run("tag", str(last), *line[2:], "recognizer")
    assert "a run with another value of n_images and images. Delete " in fewer.err
    assert run(*line, "recognizer").code == 0


def test_without_a_readable_image_a_run_fails_every_time(home, run):
    for path in (home / "images").iterdir():
        path.write_bytes(b"")
    for _ in range(2):
        done = run("tag", "images", "--model", "recognizer", "--out", "tags.csv")
        assert done.code == 1
        assert "At least one image must be readable; got 24 unreadable images" in done.err


def test_a_last_block_without_a_readable_image_is_skipped(home, run, small_blocks):
    for path in sorted((home / "images").iterdir())[16:]:
        path.write_bytes(b"")
    done = run("tag", "images", "--model", "recognizer", "--out", "tags.parquet")
    assert done.code == 0
    assert "Skipped 8 images that cannot be read:" in done.err
    found = read_predictions("tags.parquet")
    assert (len(found), len(found.skipped)) == (16, 8)


def test_the_uncertainty_follows_the_probability_in_brackets_and_is_a_key_of_json(home, run):
    line = ["tag", "images", "--model", "recognizer", "--top-k", "2"]
    uncertain = [*line, "--uncertainty", "bernoulli_variance"]
    text, plain = run(*uncertain), run(*line)
    assert re.sub(r" \(\S+\)", "", text.out) == plain.out
    tags = [item for image in json.loads(run(*uncertain, "--json").out) for item in image["tags"]]
    assert len(re.findall(r" \d\.\d\d \(\S+\)", text.out)) == len(tags) == 48
    for item in tags:
        p = item["probability"]
        assert item["uncertainty"] == pytest.approx(4 * p * (1 - p), abs=1e-5)
    assert "uncertainty" not in run(*line, "--json").out


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_file_has_the_uncertainty_of_all_blocks(suffix, home, run, small_blocks):
    line = ["tag", "images", "--model", "recognizer", "--uncertainty", "bernoulli_variance"]
    assert run(*line, "--out", f"tags.{suffix}").code == 0
    found = read_predictions(f"tags.{suffix}")
    p = found.probabilities
    np.testing.assert_allclose(found.uncertainty, 4 * p * (1 - p), atol=1e-5)
    assert found.uncertainty_kind == "bernoulli_variance"


def test_a_run_resumes_with_the_same_uncertainty_only(home, run, small_blocks):
    line = ["tag", "images", "--model", "recognizer", "--strict", "--out", "tags.parquet"]
    uncertain = [*line, "--uncertainty", "bernoulli_variance"]
    last = sorted((home / "images").iterdir())[-1]
    content = last.read_bytes()
    last.write_bytes(b"")
    assert run(*uncertain).code == 1
    last.write_bytes(content)
    refused = run(*line)
    assert refused.code == 1
    assert "a run with another value of options. Delete " in refused.err
    done = run(*uncertain)
    assert "16 images were predicted before an interruption." in done.err
    assert read_predictions("tags.parquet").uncertainty.shape == (24, 4)


def test_an_uncertainty_that_the_method_does_not_estimate_is_refused_at_once(home, run):
    line = ["tag", "images", "--model", "recognizer", "--out", "tags.csv", "--uncertainty"]
    refused = run(*line, "match_variance")
    assert (refused.code, refused.out) == (1, "")
    assert "match_variance needs a method that estimates the uncertainty of labels" in refused.err
    assert not list(home.glob("*.partial"))
    assert run(*line, "entropy").code == 2


def test_the_choices_are_all_kinds_of_uncertainty():
    (option,) = (parameter for parameter in tag.params if parameter.name == "uncertainty")
    assert tuple(option.type.choices) == UNCERTAINTY_KINDS


SELECTIONS = {
    "--threshold 0.9": "csv",
    "--top-k 2": "parquet",
    "--precision 0.9": "jsonl",
    "--expected-count": "csv",
    "--cost-of-miss 5": "parquet",
    "--at-most-missed 0.9": "jsonl",
}


@pytest.mark.parametrize(("selection", "suffix"), SELECTIONS.items())
def test_a_file_has_every_number_and_the_labels_that_are_shown(selection, suffix, home, run):
    line = ["tag", "images", "--model", "recognizer"]
    printed = json.loads(run(*line, *selection.split(), "--json", "--quiet").out)
    done = run(*line, *selection.split(), "--out", f"tags.{suffix}")
    assert (done.code, done.out) == (0, "")
    run(*line, "--out", f"all.{suffix}")
    found, everything = (read_predictions(f"{name}.{suffix}") for name in ("tags", "all"))
    np.testing.assert_array_equal(found.scores, everything.scores)
    np.testing.assert_array_equal(found.logits, everything.logits)
    assert everything.shown is None
    names = np.array(found.names)
    assert [set(names[flags]) for flags in found.shown] == [
        {tag["label"] for tag in image["tags"]} for image in printed
    ]


def test_a_run_resumes_with_another_selection(home, run, small_blocks):
    line = ["tag", "images", "--model", "recognizer", "--strict", "--out", "tags.csv"]
    last = sorted((home / "images").iterdir())[-1]
    content = last.read_bytes()
    last.write_bytes(b"")
    assert run(*line, "--top-k", "2").code == 1
    last.write_bytes(content)
    done = run(*line, "--top-k", "1")
    assert "16 images were predicted before an interruption." in done.err
    assert (read_predictions("tags.csv").shown.sum(axis=1) == 1).all()


@pytest.mark.parametrize("choice", [("--threshold", "1.5"), ("--top-k", "0")])
def test_a_selection_out_of_range_is_refused_before_the_images_are_searched(choice, home, run):
    done = run("tag", "nowhere", "--model", "recognizer", "--out", "tags.csv", *choice)
    assert (done.code, done.out) == (2, "")
    assert f"Invalid value for '{choice[0]}'" in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all file names are Unicode")
def test_a_file_name_that_is_not_unicode_is_tagged_and_written_with_escapes(home, run):
    whole, broken = (home / "images" / name for name in ("caf\udce9.jpg", "b\udce9.jpg"))
    sorted((home / "images").iterdir())[0].rename(whole)
    broken.write_bytes(b"")
    done = run("tag", "images", "--model", "recognizer")
    assert (done.code, done.exception) == (0, None)
    assert r"images/caf\udce9.jpg: " in done.out
    assert r"images/b\udce9.jpg: empty file" in done.err
    found = json.loads(run("tag", "images", "--model", "recognizer", "--json").out)
    assert "images/caf\udce9.jpg" in [image["path"] for image in found]


def test_names_come_from_standard_input_and_images_from_a_list(home, run):
    (home / "list.txt").write_text("\n".join(sorted(map(str, (home / "images").iterdir()))[:3]))
    done = run("tag", "list.txt", "--labels", "-", "--top-k", "1", stdin="lion\nrocket\n")
    assert done.code == 0
    assert re.findall(r": (lion|rocket) ", done.out)
    assert len(done.out.splitlines()) == 3


def test_images_come_from_standard_input(home, run):
    paths = "\n".join(sorted(map(str, (home / "images").iterdir()))[:2])
    done = run("tag", "-", "--labels", "lion", "--top-k", "1", stdin=paths)
    assert len(done.out.splitlines()) == 2


def test_without_calibration_five_scores_are_shown_and_it_is_said(home, run):
    names = "lion,coffee,guitar,rocket,apple,bear"
    line = ["tag", "images", "--labels", names, "--template", "a drawing of a {}", "--json"]
    done = run(*line)
    tags = [image["tags"] for image in json.loads(done.out)]
    assert {len(found) for found in tags} == {5}
    assert {tag["probability"] for found in tags for tag in found} == {None}
    assert "only rank labels: the first 5 labels of each image are shown" in done.err


def test_an_untrained_name_is_one_note(home, run):
    line = ["tag", "images", "--labels", "lion, archaeopteryx"]
    (note,) = [text for text in run(*line).err.splitlines() if text.startswith("Note: ")]
    assert note.startswith(
        "Note: 1 of 2 labels (archaeopteryx) contain tokens that tiny-vit was not"
    )
    assert run(*line, "--quiet").err == ""


def test_other_names_for_a_saved_recognizer(home, run):
    done = run(
        "tag", "images", "--model", "recognizer", "--labels", "bear", "--json", "--top-k", "1"
    )
    assert {image["tags"][0]["label"] for image in json.loads(done.out)} == {"bear"}


def test_a_saved_recognizer_keeps_its_template(home, run):
    done = run("tag", "images", "--model", "recognizer", "--template", "ensemble")
    assert (done.code, done.out) == (1, "")
    assert "whose template cannot be changed. Remove --template" in done.err


def test_a_method_without_labels_ranks_and_says_that_it_does_no_more(home, run):
    line = ["tag", "images", "--labels", "names.txt", "--top-k", "2", "--json"]
    tiled = run(*line, "--method", "tiles", "--set", "method.rows=2", "--set", "method.columns=2")
    plain = run(*line, "--method", "zero_shot", "--set", "method.domain=centred")
    for done in (tiled, plain):
        assert done.code == 0
        assert "only rank labels: the first 2 labels of each image are shown" in done.err
        assert {t["probability"] for p in json.loads(done.out) for t in p["tags"]} == {None}
    assert tiled.out != plain.out


def test_a_method_that_learns_from_images_learns_from_these_first_and_says_so(home, run):
    first = ["--labels", "names.txt", "--method", "standardized"]
    assert run("fit", "images", *first, "--out", "learnt").code == 0
    scores = []
    for line in (first, ["--model", "learnt"]):
        done = run("tag", "images", *line, "--top-k", "4", "--json")
        assert ("standardized is first fitted on 24 images" in done.err) == (line is first)
        found = [tag for image in json.loads(done.out) for tag in image["tags"]]
        scores.append(sorted((tag["label"], tag["score"]) for tag in found))
    assert scores[0] == scores[1]


def test_tags_in_words():
    found = [
        {"label": "lion", "score": 3.0, "probability": 0.972},
        {"label": "hot dog", "score": 1.0, "probability": 0.5},
    ]
    assert format_tags(found) == "lion 0.97, hot dog 0.50"
    assert format_tags([{"label": "lion", "score": -1.239, "probability": None}]) == "lion -1.24"
    assert format_tags([]) == "-"


OPERATING_POINTS = [
    "--precision 0.9",
    "--recall 0.8",
    "--best-f1",
    "--expected-count",
    "--cost-of-miss 5",
]


@pytest.mark.parametrize("point", OPERATING_POINTS)
def test_an_operating_point_prints_expected_precision_and_recall_on_stderr(point, home, run):
    done = run("tag", "images", "--model", "recognizer", *point.split(), "--json")
    assert len(json.loads(done.out)) == 24
    expect = r"^The expected precision is \d+ % and the expected recall is \d+ %, as means over"
    assert re.search(expect, done.err, re.MULTILINE)
    quiet = run("tag", "images", "--model", "recognizer", *point.split(), "--json", "--quiet")
    assert "The expected precision is" not in quiet.err
    assert quiet.out == done.out


def test_a_higher_cost_of_misses_predicts_more_labels(home, run):
    def shown(cost):
        line = ["tag", "images", "--model", "recognizer", "--cost-of-miss", cost, "--json"]
        return sum(len(image["tags"]) for image in json.loads(run(*line).out))

    assert shown("0.1") < shown("1") < shown("100")


def test_a_guarantee_is_said_in_one_sentence(home, run):
    done = run("tag", "images", "--model", "recognizer", "--at-most-missed", "0.9")
    assert re.match(
        r"Predict labels with probability .* 90 % confidence, at most 90 % of the positive",
        done.err,
    )


@pytest.mark.parametrize(
    "options",
    [
        ("--precision", "0.9", "--recall", "0.8"),
        ("--best-f1", "--threshold", "0.4"),
        ("--cost-of-miss", "2", "--at-most-wrong", "0.1"),
    ],
)
def test_two_operating_points_are_a_usage_error(options, home, run):
    done = run("tag", "nowhere", "--model", "recognizer", *options)
    assert (done.code, done.out) == (2, "")
    options = ", ".join(option for option in options if option.startswith("--"))
    assert f"got {options}." in done.err


@pytest.mark.parametrize("value", ["0", "1", "90", "nan", "inf", "-0.5"])
def test_a_share_lies_between_0_and_1(value, home, run):
    done = run("tag", "nowhere", "--model", "recognizer", "--precision", value)
    assert (done.code, done.out) == (2, "")
    assert "Invalid value for '--precision'" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows forbids these file names")
def test_a_file_name_with_control_characters_is_printed_on_one_line_with_escapes(home, run):
    names = ("a\x1b[31m\n.jpg", "b\x1b[31m\nimages/fake.jpg: lion 0.99.jpg".replace("/", "\x9b"))
    sorted((home / "images").iterdir())[0].rename(home / "images" / names[0])
    (home / "images" / names[1]).write_bytes(b"")
    done = run("tag", "images", "--model", "recognizer")
    assert (done.code, done.exception) == (0, None)
    assert r"images/a\u001b[31m\u000a.jpg: " in done.out
    assert r"images/b\u001b[31m\u000aimages\u009bfake.jpg: lion 0.99.jpg: empty file" in done.err
    assert not {"\x1b", "\x9b"} & {*done.out, *done.err}
    assert len(done.out.splitlines()) == 24


def test_a_csv_file_for_spreadsheets_has_no_formula(home, run):
    sorted((home / "images").iterdir())[0].rename(home / "=1+1.jpg")
    line = ["tag", "=1+1.jpg", "--model", "recognizer", "--out"]
    done = run(*line, "tags.csv", "--spreadsheet-safe")
    assert (done.code, done.exception) == (0, None)
    assert read_predictions("tags.csv").paths == ["'=1+1.jpg"]
    done = run(*line, "tags.parquet", "--spreadsheet-safe")
    assert done.code == 2
    assert "--spreadsheet-safe requires --out FILE.csv; got tags.parquet." in done.err


@pytest.mark.usefixtures("deadline")
def test_special_files_and_large_images_are_skipped_and_named(home, run):
    os.mkfifo(home / "images" / "pipe.jpg")
    (home / "images" / "zero.jpg").symlink_to("/dev/zero")
    (home / "loop.jpg").symlink_to("loop.jpg")
    Image.new("RGBA", (600, 500)).save(home / "images" / "large.png")
    options = ["--model", "recognizer", "--quiet", "--max-image-memory", "2"]
    done = run("tag", "images", "loop.jpg", *options)
    assert done.code == 0
    assert len(done.out.splitlines()) == 24
    assert done.err.splitlines() == [
        "Skipped 4 images that cannot be read:",
        "  images/large.png: decoding 600 × 500 pixels (PNG, RGBA) takes 3 MB of memory; "
        "--max-image-memory is 2 MB",
        "  images/pipe.jpg: expected a regular file; got a named pipe",
        "  images/zero.jpg: expected a regular file; got a device",
        "  loop.jpg: too many levels of symbolic links",
    ]


@pytest.mark.usefixtures("deadline")
@pytest.mark.parametrize("command", ["evaluate recognizer {}", "calibrate tiny-vit {} --out new"])
def test_special_files_of_an_annotation_file_are_skipped_and_named(home, run, command):
    os.mkfifo(home / "images" / "pipe.jpg")
    (home / "loop.jpg").symlink_to("loop.jpg")
    with (home / "labels.csv").open("a") as file:
        file.write("images/pipe.jpg,1,0,0,0\nloop.jpg,0,1,0,0\n")
    done = run(*command.format("labels.csv").split())
    assert done.code == 0, done.err
    assert "pipe.jpg: expected a regular file; got a named pipe" in done.err
    assert "loop.jpg: too many levels of symbolic links" in done.err


def test_ignored_files_are_a_note_that_quiet_omits(home, run, monkeypatch):
    for name in ("a.heic", "b.HEIC", "c.mov"):
        (home / "images" / name).touch()
    monkeypatch.setattr(
        "surelabel.data.image_extras.find_spec", lambda name: None if name == "pillow_heif" else 1
    )
    done = run("tag", "images", "--model", "recognizer")
    assert (
        "Note: 2 HEIC images are ignored; to read HEIC, run pip install 'surelabel[heic]'. 1 file "
        "without an image suffix is ignored: 1 .mov.\n"
    ) in done.err
    assert len(done.out.splitlines()) == 24
    assert run("tag", "images", "--model", "recognizer", "--quiet").err == ""


@pytest.fixture(scope="module")
def fitted_on_vectors(tmp_path_factory):
    """A folder with a recognizer of vectors, and its training and test vectors."""
    folder = tmp_path_factory.mktemp("vectors")
    features = np.random.default_rng(0).normal(2, 3, (60, 8)).astype(np.float32)
    targets = (features[:, :2] > 2).astype(float)
    part = np.repeat(["train", "test"], 30)
    np.savez(folder / "all.npz", features=features, targets=targets, names=["a", "b"], part=part)
    np.savez(folder / "rows.npz", features=features[30:])
    run_of_fit = load_run(overrides=["method.name=linear", "encoder.name=features:8", "epochs=2"])
    recognizer = Recognizer(run_of_fit, ["a", "b"])
    recognizer.fit(LabelledFeatures(features[:30], ["a", "b"], targets[:30]), folds=2)
    recognizer.save(folder / "fitted")
    return folder


@pytest.fixture
def vectors(fitted_on_vectors, home):
    """The test vectors; their files and their recognizer are in the working directory."""
    shutil.copytree(fitted_on_vectors, home, dirs_exist_ok=True)
    return np.load("rows.npz")["features"]


def test_the_rows_of_vectors_are_tagged_as_they_are_predicted(run, vectors):
    recognizer = Recognizer.load("fitted")
    expected = recognizer.predict(vectors)
    about = "beta (selected by log loss) on 30 labelled rows"
    assert recognizer.calibrated_on == f"{about} (2-fold cross-validation)"
    done = run("tag", "rows.npz", "--model", "fitted", "--out", "tags.parquet")
    assert re.match(r"Predicted 30 rows in \d", done.err.splitlines()[-1])
    written = read_predictions("tags.parquet")
    assert written.paths == [f"rows.npz, row {row}" for row in range(30)]
    np.testing.assert_array_equal(written.probabilities, expected.probabilities)
    split = run("tag", "all.npz:test", "--model", "fitted", "--top-k", "2", "--json").out
    first = json.loads(split)[0]
    assert first["path"] == "all.npz, row 30"
    assert {tag["label"]: tag["probability"] for tag in first["tags"]} == pytest.approx(
        dict(zip("ab", expected.probabilities[0], strict=True)), abs=1e-6
    )
    found = run("evaluate", "fitted", "all.npz:test").out
    assert found.startswith(f"30 rows, 2 labels; calibration: {about}")


def test_an_interrupted_run_on_vectors_resumes_only_with_the_same_vectors(
    run, vectors, monkeypatch
):
    def fail(*_):
        raise DataError("the disk is full")

    line = ["tag", "rows.npz", "--model", "fitted", "--out", "tags.csv"]
    module = sys.modules["surelabel.cli.tag"]
    for changed in (0, 1):
        with monkeypatch.context() as patch:
            patch.setattr(module, "write_tags", fail)
            assert "the disk is full" in run(*line).err
        np.savez("rows.npz", features=vectors + changed)
        done = run(*line)
        if changed:
            assert "tags.csv.partial" in done.err
        else:
            assert "30 rows in" in done.err
            assert "30 rows were predicted before an interruption." in done.err


def test_vectors_are_refused_where_images_are_needed(run, vectors):
    for line, message in (
        (
            ["rows.npz"],
            r"rows\.npz contains vectors, .* got a model with the image encoder tiny-vit",
        ),
        (["images", "--model", "fitted"], r"features:8 needs .* got image files\. Give an \.npz"),
        (
            ["rows.npz", "images", "--model", "fitted"],
            r"Vectors must be given as one \.npz or \.arff file; got 2 ",
        ),
        (
            ["rows.npz:test", "--model", "fitted"],
            r"contains no split 'test'\. Give the file without a split\.",
        ),
        (
            ["rows.npz", "--model", "fitted", "--gallery", "g.html", "--sidecar", "xmp"],
            r"--sidecar, --gallery can be given only for image files; got the vectors of rows\.npz",
        ),
    ):
        done = run("tag", *line, "--labels", "a, b") if "fitted" not in line else run("tag", *line)
        assert done.code
        assert re.search(message, done.err), done.err


def test_the_best_method_within_the_passes_is_used_and_calibrated_without_labels(
    home, run, monkeypatch
):
    monkeypatch.setattr("surelabel.cli.tag_options.MIN_AUTOMATIC_IMAGES", 3)
    images = [f"images/{image.name}" for image in sorted((home / "images").iterdir())[:3]]
    line = ["--labels", "names.txt", "--max-passes", "5"]
    done = run("tag", *images, *line, "--json")
    assert "The method tiles uses at most 5 encoder passes for an image." in done.err
    assert "Calibrated: beta on pseudo-labels of 3 images without labels.\nNot ver" in done.err
    assert all(tag["probability"] >= 0.5 for image in json.loads(done.out) for tag in image["tags"])
    few = run("tag", images[0], *line)
    assert few.out.startswith(f"{images[0]}: ")
    assert "The model is not calibrated, so the scores only rank labels" in few.err
    one = run("tag", images[0], "--labels", "names.txt", "--max-passes", "1")
    assert "The method" not in one.err
    assert one.out == run("tag", images[0], "--labels", "names.txt").out
    monkeypatch.setattr("surelabel.recognizer.label_free_methods.MIN_CALIBRATION_IMAGES", 3)
    default = run("tag", *images, "--labels", "names.txt")
    assert "The method dense_regions uses at most 6 encoder passes for an image." in default.err
    assert "on pseudo-labels of 3 images" in default.err
    assert "Method" not in run("tag", *images[:2], "--labels", "names.txt").err
    help = " ".join(run("tag", "--help").out.split())
    assert f"[{DEFAULT_MAX_PASSES}; 1 for fewer than {MIN_CALIBRATION_IMAGES} IMAGES" in help


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-passes", "0"], "0 is not in the range x>=1"),
        (["--max-passes", "2", "--method", "tiles"], "--max-passes selects a method with its def"),
        (
            ["--max-passes", "2", "--model", "recognizer"],
            "method cannot be changed. Remove --max-passes",
        ),
    ],
)
def test_passes_that_select_no_method_are_refused(home, run, options, message):
    done = run("tag", "images", "--labels", "names.txt", *options)
    assert done.code in (1, 2)
    assert message in done.err.splitlines()[-1]
