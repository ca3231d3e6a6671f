import json
import re
import sys

import numpy as np
import pytest

from surelabel.cli.tag import format_tags, print_tag_summary
from surelabel.cli.terminal import Terminal
from surelabel.data import read_predictions
from surelabel.recognizer import Recognizer
from surelabel.records import EncodingStats, Predictions, SkippedImage


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
        r"24 images in \d+\.\d s, \d+ per second: decoding \d+\.\d s, encoder 0\.0 s; "
        r"24 were cached\.\n",
        said,
    )


def test_the_closing_line_has_each_time_and_the_images_that_were_skipped(capsys):
    stats = EncodingStats(n_cached=2, decode_seconds=1.23, model_seconds=4.56, encoder_passes=7)
    scores = np.zeros((8, 1), dtype=np.float32)
    skipped = [SkippedImage(f"{i}.png", "empty file") for i in range(2)]
    found = Predictions("abcdefgh", ["lion"], scores, skipped=skipped, encoding_stats=stats)
    print_tag_summary(Terminal(), found, 5.0)
    assert capsys.readouterr().err.splitlines() == [
        "10 images in 5.0 s, 2 per second: decoding 1.2 s, encoder 4.6 s; 2 were cached.",
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


@pytest.mark.parametrize("choice", [("--threshold", "0.9"), ("--top-k", "0"), ("--threshold", "0")])
def test_a_file_of_all_labels_and_a_choice_of_labels_are_not_asked_for_together(choice, home, run):
    done = run("tag", "nowhere", "--model", "recognizer", "--out", "tags.csv", *choice)
    assert (done.code, done.out) == (2, "")
    assert (
        "--out writes all labels, so it cannot be combined with --threshold, --top-k or" in done.err
    )
    assert not (home / "tags.csv").exists()


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
    assert "only rank labels, so the first 5 labels are printed" in done.err


def test_an_untrained_name_is_one_note(home, run):
    done = run("tag", "images", "--labels", "lion, archaeopteryx", "--quiet")
    assert done.err.startswith(
        "Note: 1 of 2 labels (archaeopteryx) contain tokens that tiny-vit was not"
    )
    assert done.err.count("\n") == 1


def test_other_names_for_a_saved_recognizer(home, run):
    done = run(
        "tag", "images", "--model", "recognizer", "--labels", "bear", "--json", "--top-k", "1"
    )
    assert {image["tags"][0]["label"] for image in json.loads(done.out)} == {"bear"}


def test_a_saved_recognizer_keeps_its_template(home, run):
    done = run("tag", "images", "--model", "recognizer", "--template", "ensemble")
    assert (done.code, done.out) == (1, "")
    assert "which keeps its template. Remove --template" in done.err


def test_a_method_without_labels_ranks_and_says_that_it_does_no_more(home, run):
    line = ["tag", "images", "--labels", "names.txt", "--top-k", "2", "--json"]
    tiled = run(*line, "--method", "tiles", "--set", "method.rows=2", "--set", "method.columns=2")
    plain = run(*line, "--method", "zero_shot", "--set", "method.domain=centred")
    for done in (tiled, plain):
        assert done.code == 0
        assert "only rank labels, so the first 2 labels are printed" in done.err
        assert {t["probability"] for p in json.loads(done.out) for t in p["tags"]} == {None}
    assert tiled.out != plain.out


def test_a_method_that_learns_from_images_learns_from_these_first_and_says_so(home, run):
    first = ["--labels", "names.txt", "--method", "standardized"]
    assert run("fit", "images", *first, "--out", "learnt").code == 0
    scores = []
    for line in (first, ["--model", "learnt"]):
        done = run("tag", "images", *line, "--top-k", "4", "--json")
        assert ("standardized is first fitted on these 24 images" in done.err) == (line is first)
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
    expect = r"^Expected precision \d+ % and recall \d+ %, as means over \d+ labels\."
    assert re.search(expect, done.err, re.MULTILINE)
    quiet = run("tag", "images", "--model", "recognizer", *point.split(), "--json", "--quiet")
    assert "Expected" not in quiet.err
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
