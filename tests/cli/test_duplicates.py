import json
import shutil

import numpy as np
import pytest
from PIL import Image

from surelabel.cli.duplicates import (
    N_PRINTED_GROUPS,
    describe_duplicate_limit,
    describe_duplicate_search,
)
from surelabel.records import Predictions
from surelabel.retrieval import Index
from surelabel.retrieval.near_duplicates import DuplicateSearch


@pytest.fixture
def duplicated(home, run):
    """Index the images with a copy of the first and an edited copy of the second one."""
    first, second = sorted((home / "images").iterdir())[:2]
    shutil.copy(first, home / "images" / "z-copy.jpg")
    with Image.open(second) as image:
        image.save(home / "images" / "z-edited.jpg", quality=90)
    shutil.rmtree(home / "index")
    assert run("index", "index", "images", "--model", "recognizer").code == 0
    return first, second


def test_groups_are_printed_with_the_rate_of_the_limit(duplicated, home, run):
    first, second = duplicated
    done = run("duplicates", "index", "--quiet")
    assert (done.code, done.err) == (0, "")
    header, *lines = done.out.splitlines()
    assert header.split() == ["group", "match", "path"]
    assert lines[0].split() == ["1", "equal", "content", str(first)]
    assert lines[1].split() == ["1", "equal", "content", str(home / "images" / "z-copy.jpg")]
    assert lines[2].split()[::2] == ["2", str(second)]
    assert 0.98 < float(lines[2].split()[1]) < 1
    assert lines[4] == (
        "Found 2 groups with 4 of 26 images; 1 image repeats the content of another file."
    )
    assert lines[5].startswith(
        "1 of 300 pairs with different content have a cosine of at least 0.9"
    )
    assert lines[5].endswith(" (share 3.3e-03).")
    assert lines[6].startswith("False-positive rate: ")
    assert ". With tiny-vit, " in lines[6]
    assert (
        "of 49,995,000 pairs of different generated scenes have a cosine of at least 0.9"
        in lines[6]
    )
    assert lines[6].endswith("the rate can be thousands of times higher.")
    assert lines[7].startswith("In this index, the false-positive rate is at most the share")
    assert len(lines) == 8


def test_json_has_all_groups_and_the_measured_limit(duplicated, home, run):
    first, second = duplicated
    done = run("duplicates", "index", "--json")
    value = json.loads(done.out)
    exact, near = value["groups"]
    assert exact == {
        "paths": [str(first), str(home / "images" / "z-copy.jpg")],
        "exact": [[str(first), str(home / "images" / "z-copy.jpg")]],
        "pairs": [],
    }
    (pair,) = near["pairs"]
    assert (pair["first"], pair["second"]) == (
        str(second),
        str(home / "images" / "z-edited.jpg"),
    )
    limit = value["measured_limit"]
    assert (value["encoder"], limit["target_rate"]) == ("tiny-vit", 1e-6)
    assert limit["min_cosine"] == value["min_cosine"] <= pair["cosine"] < 1
    assert limit["low"] <= limit["false_positive_rate"] <= limit["high"]
    assert (value["images"], value["compared_pairs"]) == (26, 300)
    assert "False-positive rate: " in done.err


def test_a_given_cosine_states_a_bound_or_that_there_is_none(duplicated, run):
    high = run("duplicates", "index", "--min-cosine", "0.9999").out
    assert "False-positive rate: at most " in high
    assert "pairs of different generated scenes have a cosine of at least 0.9" in high
    low = run("duplicates", "index", "--min-cosine", "0.5").out
    assert "rate of tiny-vit was not measured for a minimum cosine as low as 0.5." in low


def test_a_higher_rate_selects_a_lower_cosine(duplicated, run):
    def min_cosine(rate):
        return json.loads(run("duplicates", "index", "--json", "--false-positive-rate", rate).out)[
            "min_cosine"
        ]

    assert min_cosine("1e-3") < min_cosine("1e-5") < min_cosine("1e-6")


def test_another_encoder_is_not_measured():
    result = DuplicateSearch((), 0.9, None, None, 3, 3, 0, 0)
    assert describe_duplicate_limit(result) == (
        "The false-positive rate was not measured for this encoder."
    )


@pytest.mark.parametrize(("n_pairs", "is_noted"), [(20, False), (21, True)])
def test_more_pairs_than_images_and_zero_vectors_are_noted(n_pairs, is_noted):
    result = DuplicateSearch((), 0.5, None, None, 25, 20, 2, n_pairs)
    *_, last = notes = describe_duplicate_search(result)
    assert any("There are more reported pairs than images" in note for note in notes) == is_noted
    assert last == "2 image vectors are zero and cannot be compared."


def test_an_unmeasured_encoder_needs_a_cosine(random_checkpoint, home, run):
    encoder = f"local-dir:{random_checkpoint}"
    index = ("index", "other", "images", "--model", encoder, "--labels", "lion, guitar, coffee")
    assert run(*index, "--calibrate-unlabelled").code == 0
    done = run("duplicates", "other")
    assert done.code == 1
    assert "No false-positive rate was measured" in done.err
    assert "Give a cosine limit as --min-cosine" in done.err
    assert done.err.count("\n") == 1
    done = run("duplicates", "other", "--min-cosine", "0.9999")
    assert done.code == 0
    assert "The false-positive rate was not measured for this encoder." in done.out
    assert "In this index, the false-positive rate is at most the share" in done.out


def test_a_gallery_shows_the_groups(duplicated, home, run, browser):
    done = run("duplicates", "index", "--gallery", "page.html", "--open")
    assert done.code == 0
    page = (home / "page.html").read_text()
    assert page.count("<img") == 4
    assert page.count("Group 1") == page.count("Group 2") == 2
    assert "Duplicates in index" in page
    assert browser.read_text().strip() == (home / "page.html").as_uri()


def test_moved_images_have_their_new_root(duplicated, home, run):
    (home / "images").rename(home / "moved")
    done = run("duplicates", "index", "--root", "moved", "--json")
    assert json.loads(done.out)["groups"][0]["paths"][0].startswith(str(home / "moved"))


def test_many_groups_are_cut_without_json(home, run):
    for number in range(N_PRINTED_GROUPS + 2):
        for copy in "ab":
            color = (number, 100, 50)
            Image.new("RGB", (8, 8), color).save(home / "images" / f"{number:03}{copy}.png")
    shutil.rmtree(home / "index")
    assert run("index", "index", "images", "--model", "recognizer").code == 0
    done = run("duplicates", "index", "--min-cosine", "1")
    assert "… and 2 more groups; --json prints all groups." in done.out
    printed = [line.split()[0] for line in done.out.splitlines() if ".png" in line]
    assert printed[-1] == str(N_PRINTED_GROUPS)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--min-cosine", "0"], "'--min-cosine'"),
        (["--min-cosine", "1.2"], "'--min-cosine'"),
        (["--min-cosine", "nan"], "'--min-cosine'"),
        (["--false-positive-rate", "0"], "'--false-positive-rate'"),
        (["--max-pairs", "0"], "'--max-pairs'"),
        (["--open"], "Add --gallery FILE.html"),
        (["--gallery", "page.png"], "ends in .html"),
        (
            ["--min-cosine", "0.9", "--false-positive-rate", "0.1"],
            "Expected either --min-cosine or",
        ),
    ],
)
def test_an_option_out_of_range_is_a_usage_error(home, run, options, line):
    done = run("duplicates", "index", *options)
    assert done.code == 2
    assert line in done.err.splitlines()[-1]


def test_a_rate_below_the_measured_ones_is_one_line(home, run):
    done = run("duplicates", "index", "--false-positive-rate", "1e-9")
    assert done.code == 1
    assert done.err.startswith("Error: --false-positive-rate must be at least 1e-06, the lowest")
    assert done.err.count("\n") == 1


def test_too_many_pairs_are_one_line(home, run):
    done = run("duplicates", "index", "--min-cosine", "0.001", "--max-pairs", "2", "--quiet")
    assert done.code == 1
    assert "More than 2 pairs have a cosine of at least 0.001. Give a higher --min-cosine" in (
        done.err
    )
    assert done.err.count("\n") == 1


def test_one_image_is_one_line(home, run):
    index = Index.open(home / "index")
    index.remove(index.paths[1:])
    done = run("duplicates", "index", "--quiet")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "an index of at least 2 images; index has 1." in done.err


def test_an_index_without_vectors_is_one_line(home, run):
    logits = np.zeros((2, 1), np.float32)
    paths = [str(home / "a.jpg"), str(home / "b.jpg")]
    predictions = Predictions(paths, ["label"], logits, logits, "simulated", "model")
    Index.create(home / "no-vectors", predictions)
    done = run("duplicates", "no-vectors", "--min-cosine", "0.9", "--quiet")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "an index with image vectors; no-vectors has none." in done.err


def test_damaged_vectors_are_one_line(home, run):
    (file,) = (home / "index").glob("features-*.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    done = run("duplicates", "index", "--quiet")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "features-000.npy is damaged" in done.err


def test_a_folder_that_is_no_index_is_one_line(home, run):
    done = run("duplicates", "images", "--quiet")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "must be the folder of an index" in done.err
