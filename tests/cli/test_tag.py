import json
import re
import sys

import pytest

from surelabel.cli.tag import words
from surelabel.data import read_predictions
from surelabel.recognizer import Recognizer


def test_a_line_a_picture_with_what_is_likelier_than_not(home, run):
    done = run("tag", "pictures", "--model", "recognizer")
    found = Recognizer.load("recognizer").predict(sorted(map(str, (home / "pictures").iterdir())))
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
    said = run("tag", "pictures", "--model", "recognizer").err
    assert re.fullmatch(
        r"24 pictures in \d+\.\d s, \d+ a second: decoding \d+\.\d s, encoder 0\.0 s; 24 came from "
        r"the cache\.\n",
        said,
    )


def test_quiet_leaves_the_closing_line_out_but_names_what_was_skipped(home, run):
    (home / "pictures" / "broken.jpg").write_bytes(b"")
    done = run("tag", "pictures", "--model", "recognizer", "--quiet")
    assert done.code == 0
    assert done.err == "Skipped 1 that cannot be read:\n  pictures/broken.jpg: empty file\n"
    assert len(done.out.splitlines()) == 24


def test_json_has_the_path_and_every_tag(home, run):
    done = run("tag", "pictures", "--model", "recognizer", "--top-k", "2", "--json", "--quiet")
    found = json.loads(done.out)
    assert len(found) == 24
    assert [sorted(tag) for tag in found[0]["tags"]] == [["label", "probability", "score"]] * 2
    assert found[0]["tags"][0]["probability"] >= found[0]["tags"][1]["probability"]


def test_a_threshold_keeps_only_what_reaches_it(home, run):
    done = run("tag", "pictures", "--model", "recognizer", "--threshold", "0.9", "--json")
    values = [tag["probability"] for picture in json.loads(done.out) for tag in picture["tags"]]
    assert all(value >= 0.9 for value in values)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_file_holds_all_labels_of_all_pictures(suffix, home, run):
    done = run("tag", "pictures", "--model", "recognizer", "--out", f"tags.{suffix}")
    assert (done.code, done.out) == (0, "")
    assert read_predictions(f"tags.{suffix}").scores.shape == (24, 4)


def test_json_is_printed_beside_the_file(home, run):
    line = ["tag", "pictures", "--model", "recognizer", "--json"]
    beside, alone = run(*line, "--out", "tags.csv"), run(*line)
    assert len(json.loads(beside.out)) == len(read_predictions("tags.csv")) == 24
    assert beside.out == alone.out


@pytest.mark.parametrize("choice", [("--threshold", "0.9"), ("--top-k", "0"), ("--threshold", "0")])
def test_a_file_of_all_labels_and_a_choice_of_labels_are_not_asked_for_together(choice, home, run):
    done = run("tag", "nowhere", "--model", "recognizer", "--out", "tags.csv", *choice)
    assert (done.code, done.out) == (2, "")
    assert "--out writes all labels, so it goes with neither --threshold nor --top-k" in done.err
    assert not (home / "tags.csv").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all file names are Unicode")
def test_a_file_name_that_is_not_unicode_is_tagged_and_written_with_escapes(home, run):
    whole, broken = (home / "pictures" / name for name in ("caf\udce9.jpg", "b\udce9.jpg"))
    sorted((home / "pictures").iterdir())[0].rename(whole)
    broken.write_bytes(b"")
    done = run("tag", "pictures", "--model", "recognizer")
    assert (done.code, done.exception) == (0, None)
    assert r"pictures/caf\udce9.jpg: " in done.out
    assert r"pictures/b\udce9.jpg: empty file" in done.err
    found = json.loads(run("tag", "pictures", "--model", "recognizer", "--json").out)
    assert "pictures/caf\udce9.jpg" in [picture["path"] for picture in found]


def test_names_come_from_standard_input_and_pictures_from_a_list(home, run):
    (home / "list.txt").write_text("\n".join(sorted(map(str, (home / "pictures").iterdir()))[:3]))
    done = run("tag", "list.txt", "--labels", "-", "--top-k", "1", stdin="lion\nrocket\n")
    assert done.code == 0
    assert re.findall(r": (lion|rocket) ", done.out)
    assert len(done.out.splitlines()) == 3


def test_pictures_come_from_standard_input(home, run):
    paths = "\n".join(sorted(map(str, (home / "pictures").iterdir()))[:2])
    done = run("tag", "-", "--labels", "lion", "--top-k", "1", stdin=paths)
    assert len(done.out.splitlines()) == 2


def test_without_calibration_five_scores_are_shown_and_it_is_said(home, run):
    names = "lion,coffee,guitar,rocket,apple,bear"
    line = ["tag", "pictures", "--labels", names, "--template", "a drawing of a {}", "--json"]
    done = run(*line)
    tags = [picture["tags"] for picture in json.loads(done.out)]
    assert {len(found) for found in tags} == {5}
    assert {tag["probability"] for found in tags for tag in found} == {None}
    assert "only their order means something" in done.err


def test_an_untrained_name_is_one_note(home, run):
    done = run("tag", "pictures", "--labels", "lion, archaeopteryx", "--quiet")
    assert done.err.startswith("Note: tiny-vit has never met 1 of 2 names (archaeopteryx)")
    assert done.err.count("\n") == 1


def test_other_names_for_a_saved_recognizer(home, run):
    done = run(
        "tag", "pictures", "--model", "recognizer", "--labels", "bear", "--json", "--top-k", "1"
    )
    assert {picture["tags"][0]["label"] for picture in json.loads(done.out)} == {"bear"}


def test_a_saved_recognizer_keeps_its_template(home, run):
    done = run("tag", "pictures", "--model", "recognizer", "--template", "ensemble")
    assert (done.code, done.out) == (1, "")
    assert "keeps the template it was saved with" in done.err


def test_a_method_without_labels_ranks_and_says_that_it_does_no_more(home, run):
    line = ["tag", "pictures", "--labels", "names.txt", "--top-k", "2", "--json"]
    tiled = run(*line, "--method", "tiles", "--set", "method.down=2", "--set", "method.across=2")
    plain = run(*line, "--method", "zero_shot", "--set", "method.domain=centred")
    for done in (tiled, plain):
        assert done.code == 0
        assert "only their order means something, so the first 2 labels are shown" in done.err
        assert {t["probability"] for p in json.loads(done.out) for t in p["tags"]} == {None}
    assert tiled.out != plain.out


def test_a_method_that_learns_from_pictures_learns_from_these_first_and_says_so(home, run):
    first = ["--labels", "names.txt", "--method", "standardised"]
    assert run("fit", "pictures", *first, "--out", "learnt").code == 0
    scores = []
    for line in (first, ["--model", "learnt"]):
        done = run("tag", "pictures", *line, "--top-k", "4", "--json")
        assert ("standardised learns from these 24 pictures first" in done.err) == (line is first)
        found = [tag for picture in json.loads(done.out) for tag in picture["tags"]]
        scores.append(sorted((tag["label"], tag["score"]) for tag in found))
    assert scores[0] == scores[1]


def test_tags_in_words():
    found = [
        {"label": "lion", "score": 3.0, "probability": 0.972},
        {"label": "hot dog", "score": 1.0, "probability": 0.5},
    ]
    assert words(found) == "lion 0.97, hot dog 0.50"
    assert words([{"label": "lion", "score": -1.239, "probability": None}]) == "lion -1.24"
    assert words([]) == "-"


GOALS = ["--precision 0.9", "--recall 0.8", "--best-f1", "--as-many", "--cost-of-miss 5"]


@pytest.mark.parametrize("goal", GOALS)
def test_a_goal_says_on_stderr_what_to_expect_and_never_in_the_json(goal, home, run):
    done = run("tag", "pictures", "--model", "recognizer", *goal.split(), "--json")
    assert len(json.loads(done.out)) == 24
    expect = r"^To expect, as a mean over \d+ labels: \d+ % of what is shown is right, \d+ % of"
    assert re.search(expect, done.err, re.MULTILINE)
    quiet = run("tag", "pictures", "--model", "recognizer", *goal.split(), "--json", "--quiet")
    assert "To expect" not in quiet.err
    assert quiet.out == done.out


def test_a_dearer_miss_shows_more(home, run):
    def shown(cost):
        line = ["tag", "pictures", "--model", "recognizer", "--cost-of-miss", cost, "--json"]
        return sum(len(picture["tags"]) for picture in json.loads(run(*line).out))

    assert shown("0.1") < shown("1") < shown("100")


def test_a_guarantee_is_said_in_one_sentence(home, run):
    done = run("tag", "pictures", "--model", "recognizer", "--at-most-missed", "0.9")
    assert re.match(r"Show .*: at most 90 % of the labels .* 90 % confidence", done.err)


@pytest.mark.parametrize(
    "goals",
    [
        ("--precision", "0.9", "--recall", "0.8"),
        ("--best-f1", "--threshold", "0.4"),
        ("--cost-of-miss", "2", "--at-most-wrong", "0.1"),
    ],
)
def test_two_goals_at_once_are_refused(goals, home, run):
    done = run("tag", "nowhere", "--model", "recognizer", *goals)
    assert (done.code, done.out) == (2, "")
    options = ", ".join(goal for goal in goals if goal.startswith("--"))
    assert f"Got several: {options}." in done.err


@pytest.mark.parametrize("value", ["0", "1", "90", "nan", "inf", "-0.5"])
def test_a_share_lies_between_0_and_1(value, home, run):
    done = run("tag", "nowhere", "--model", "recognizer", "--precision", value)
    assert (done.code, done.out) == (2, "")
    assert "Invalid value for '--precision'" in done.err
