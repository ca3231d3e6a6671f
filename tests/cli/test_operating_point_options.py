import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from surelabel.cli import main
from surelabel.cli.operating_point_options import describe_operating_point_options_unreached
from surelabel.data import collection, read_predictions
from surelabel.decisions import Thresholds
from surelabel.recognizer import Recognizer, operating_point

POINTS = [
    ("--precision 0.9", "precision", {"at_least": 0.9}),
    ("--recall 0.8", "recall", {"at_least": 0.8}),
    ("--best-f1", "f1", {}),
    ("--expected-count", "expected_count", {}),
    ("--cost-of-miss 5", "cost", {"miss_cost": 5.0}),
]
NOTE = re.compile(
    r"^Warning: (\d+) of (\d+) labels are (?:never|excluded) .*?: (.*?)(?: and (\d+) more)?\.$",
    re.M,
)


@pytest.fixture(scope="module")
def rare_folder(template, cache_folder, tmp_path_factory):
    """Calibrate on 24 images with all labels of the collection; many labels have no positive."""
    home = shutil.copytree(template, tmp_path_factory.mktemp("rare"), dirs_exist_ok=True)
    test = collection("scenes-80", split="test")
    targets = {Path(p).name: row for p, row in zip(test.paths, test.targets, strict=True)}
    with (home / "all.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["path", *test.names])
        for image in sorted((home / "images").iterdir()):
            rows.writerow([f"images/{image.name}", *targets[image.name].astype(int)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURELABEL_CACHE", str(cache_folder))
        patch.chdir(home)
        done = CliRunner().invoke(main, ["calibrate", "tiny-vit", "all.csv", "--out", "rare"])
    assert done.exit_code == 0, done.output
    return home / "rare"


@pytest.fixture
def rare(rare_folder, home):
    """Load a copy of the recognizer with rare labels; the copy is in the current folder."""
    shutil.copytree(rare_folder, home / "rare")
    return Recognizer.load("rare")


def unreached_labels(recognizer, name, settings):
    thresholds = operating_point(recognizer, name, **settings)
    return [n for n, flag in zip(recognizer.names, thresholds.is_reached, strict=True) if not flag]


@pytest.mark.parametrize(("options", "name", "settings"), POINTS)
def test_ten_labels_that_miss_the_goal_are_named_and_all_with_json(
    options, name, settings, rare, run
):
    line = ["tag", "images", "--model", "rare", *options.split()]
    unreached = unreached_labels(rare, name, settings)
    assert len(unreached) > 10
    text, as_json = run(*line), run(*line, "--json")
    assert text.code == as_json.code == 0
    n_unreached, n_labels, labels, n_more = NOTE.search(text.err).groups()
    assert (int(n_unreached), int(n_labels)) == (len(unreached), len(rare.names))
    assert labels.split(", ") == unreached[:10]
    assert int(n_more) == len(unreached) - 10
    *_, labels, n_more = NOTE.search(as_json.err).groups()
    assert labels.split(", ") == unreached
    assert n_more is None
    assert len(json.loads(as_json.out)) == 24


def test_quiet_warns_of_labels_that_miss_the_goal_and_prints_no_other_line(rare, run):
    done = run("tag", "images", "--model", "rare", "--precision", "0.9", "--quiet")
    assert done.code == 0
    assert re.fullmatch(r"Warning: \d+ of 80 labels are never predicted, .*\.\n", done.err)


def test_a_parquet_file_has_the_thresholds_of_the_operating_point(rare, run):
    line = ["tag", "images", "--model", "rare", "--out", "tags.parquet"]
    assert run(*line, "--precision", "0.9").code == 0
    expected = operating_point(rare, "precision", at_least=0.9).values
    assert read_predictions("tags.parquet").thresholds == pytest.approx(expected)
    assert run(*line, "--threshold", "0.25").code == 0
    assert (read_predictions("tags.parquet").thresholds == 0.25).all()
    assert run(*line, "--top-k", "2").code == 0
    assert read_predictions("tags.parquet").thresholds is None


@pytest.mark.parametrize(("options", "name", "settings"), POINTS[:3])
def test_labels_that_miss_the_goal_are_in_no_image(options, name, settings, rare, run):
    done = run("tag", "images", "--model", "rare", *options.split(), "--json")
    assert (
        " labels are never predicted, because no threshold satisfies the operating point: "
        in done.err
    )
    tags = {tag["label"] for image in json.loads(done.out) for tag in image["tags"]}
    assert tags
    assert not tags & set(unreached_labels(rare, name, settings))


@pytest.mark.parametrize(("options", "name", "settings"), POINTS)
def test_the_expected_precision_is_a_mean_over_the_labels_that_reach_the_goal(
    options, name, settings, rare, run
):
    done = run("tag", "images", "--model", "rare", *options.split())
    n_reached = len(rare.names) - len(unreached_labels(rare, name, settings))
    assert f"as means over {n_reached} labels." in done.err


@pytest.mark.parametrize("options", ["--recall 0.8", "--best-f1", "--cost-of-miss 5"])
def test_where_every_label_reaches_the_goal_none_is_named(options, home, run):
    done = run("tag", "images", "--model", "recognizer", *options.split())
    assert done.code == 0
    assert not NOTE.search(done.err)


def test_a_cost_without_a_validation_record_names_no_label(home, run):
    done = run("tag", "images", "--labels", "lion, guitar", "--cost-of-miss", "5")
    assert done.code == 0
    assert not NOTE.search(done.err)
    assert "The expected precision and recall are undefined for all labels." in done.err


def thresholds(values, is_reached):
    nan = np.full(len(values), np.nan)
    return Thresholds(np.array(values), nan, nan, np.array(is_reached), nan)


@pytest.mark.parametrize(
    ("values", "is_reached", "limit", "text"),
    [
        ([0.5, 0.4], [True, True], 1, ""),
        (
            [0.5, 1.0],
            [True, False],
            1,
            "1 of 2 labels is never predicted, because no threshold satisfies the operating "
            "point: b.",
        ),
        (
            [1.0, 1.0],
            [False, False],
            1,
            "2 of 2 labels are never predicted, because no threshold satisfies the operating "
            "point: a and 1 more.",
        ),
        (
            [1.0, 1.0],
            [False, False],
            None,
            "2 of 2 labels are never predicted, because no threshold satisfies the operating "
            "point: a, b.",
        ),
        (
            [0.2, 0.2],
            [True, False],
            1,
            "1 of 2 labels is excluded from the expected precision and recall, for lack of a "
            "positive or a predicted calibration image: b.",
        ),
        ([0.2, 0.2], [False, False], 1, ""),
    ],
)
def test_the_sentence_names_the_labels_that_are_not_reached(values, is_reached, limit, text):
    found = thresholds(values, is_reached)
    assert describe_operating_point_options_unreached(found, ["a", "b"], limit) == text
