import json
import shutil

import pytest

from surelabel.cli.search import format_search_hits
from surelabel.retrieval import Hit, Index


def test_a_search_shows_the_probability_of_all_and_of_each_term(home, run):
    done = run("search", "index", "lion & !rocket", "-k", "3")
    header, *lines = done.out.splitlines()
    assert header.split() == ["all", "lion", "!rocket", "path"]
    assert len(lines) == 3
    whole, lion, no_rocket = map(float, lines[0].split()[:3])
    assert abs(whole - lion * no_rocket) < 2e-3


def test_an_unwanted_label_in_another_case_is_shown_as_unwanted(home, run):
    header = run("search", "index", "LION & !ROCKET", "-k", "3").out.splitlines()[0]
    assert header.split() == ["all", "lion", "!rocket", "path"]


def test_a_search_as_json_is_sorted(home, run):
    hits = json.loads(run("search", "index", "lion", "-k", "100", "--json").out)
    assert len(hits) == 24
    assert [h["probability"] for h in hits] == sorted(
        (h["probability"] for h in hits), reverse=True
    )
    assert list(hits[0]["terms"]) == ["lion"]


def test_a_search_by_sentence_ranks_the_images_by_similarity(indexed, run):
    done = run("search", "index", "--text", "a photo of a lion", "-k", "24")
    header, *lines, note = done.out.splitlines()
    assert (header.split(), len(lines)) == (["similarity", "path"], 24)
    assert note.startswith("The similarity is a cosine between -1 and 1. It ranks the images")
    values = [float(line.split()[0]) for line in lines]
    assert values == sorted(values, reverse=True)
    best = json.loads(run("search", "index", "lion", "-k", "3", "--json").out)
    hits = json.loads(
        run("search", "index", "--text", "a photo of a lion", "-k", "9", "--json").out
    )
    assert {hit["path"] for hit in best} <= {hit["path"] for hit in hits}
    assert [sorted(hit) for hit in hits[:1]] == [["path", "similarity", "uncertainty"]]
    assert {hit["uncertainty"] for hit in hits} == {None}


def test_a_recognizer_that_was_moved_is_given_with_model(indexed, run):
    expected = run("search", "index", "--text", "a photo of a lion").out
    (indexed / "recognizer").rename(indexed / "moved")
    refused = run("search", "index", "--text", "a photo of a lion")
    assert refused.code == 1
    assert "recognizer; the folder does not exist. Give its new folder with --model." in refused.err
    assert run("search", "index", "--text", "a photo of a lion", "--model", "moved").out == expected
    other = run("search", "index", "--text", "a photo of a lion", "--model", "tiny-vit")
    assert other.code == 1
    assert "Give the recognizer of the index with --model" in other.err


def test_a_long_sentence_is_cut_with_a_note(indexed, run):
    done = run("search", "index", "--text", "lion " * 99, "-k", "1")
    assert done.code == 0
    assert "Note: The sentence is longer than the context of tiny-vit; the last" in done.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ((), "either QUERY or --text; got none"),
        (("lion", "--text", "a lion"), "either QUERY or --text; got both"),
        (("lion", "--model", "recognizer"), "--model applies to --text and --max-wrong only"),
        (("--text", "a lion", "--max-wrong", "0.1"), "--max-wrong needs probabilities; --text"),
        (("lion", "--max-wrong", "0.1"), "--max-wrong needs --calibration DATASET"),
        (("lion", "--calibration", "labels.csv"), "--calibration applies to --max-wrong only"),
        (
            ("lion", "--max-wrong", "0.1", "--calibration", "labels.csv", "-k", "3"),
            "its bound would not hold for the images of -k. Remove -k.",
        ),
        (("--text", "a lion", "--precision", "0.5"), "--precision needs probabilities; --text"),
        (("--text", "a lion", "--min-probability", "0"), "--min-probability needs probabilities"),
        (("lion", "--precision", "1"), "'--precision': 1.0 is not in the range 0<x<1"),
        (("lion", "--min-probability", "2"), "'--min-probability': 2.0 is not in the range"),
        (("lion", "--open"), "--open shows the page of --gallery; add --gallery FILE.html"),
        (("lion", "--gallery", "hits.jpg"), "a file name that ends in .html; got hits.jpg"),
    ],
)
def test_a_query_and_a_sentence_exclude_each_other(home, run, line, message):
    done = run("search", "index", *line)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_precision_is_the_mean_probability_of_the_longest_list(home, run):
    every = json.loads(run("search", "index", "lion", "-k", "24", "--json").out)
    values = [hit["probability"] for hit in every]
    means = [sum(values[: n + 1]) / (n + 1) for n in range(len(values))]
    assert means[-1] < 0.6 < means[0]
    length = max(n for n, mean in enumerate(means, start=1) if mean >= 0.6)
    done = run("search", "index", "lion", "--precision", "0.6")
    assert len(done.out.splitlines()) == 1 + length + 1
    assert done.out.splitlines()[-1] == (
        f"The expected precision of {length} images is {means[length - 1]:.3f}, the mean "
        "probability. It is an estimate, which is as reliable as the calibration, and no guarantee."
    )
    as_json = run("search", "index", "lion", "--precision", "0.6", "--json")
    assert json.loads(as_json.out) == every[:length]
    assert "It is an estimate" in as_json.err
    shorter = run("search", "index", "lion", "--precision", "0.6", "-k", "2", "--json")
    assert json.loads(shorter.out) == every[:2]


def test_a_minimum_probability_limits_the_result_instead_of_a_number(home, run):
    every = json.loads(run("search", "index", "!rocket", "-k", "24", "--json").out)
    minimum = every[21]["probability"]
    found = json.loads(
        run("search", "index", "!rocket", "--min-probability", minimum, "--json").out
    )
    assert found == every[:22]
    done = run("search", "index", "rocket & lion", "--min-probability", "0.99")
    best = json.loads(run("search", "index", "rocket & lion", "-k", "1", "--json").out)
    assert done.out == (
        "No image reaches the minimum probability 0.99; the highest probability is "
        f"{best[0]['probability']:.3g}.\n"
    )
    both = run(
        "search", "index", "rocket & lion", "--precision", "0.98", "--min-probability", "0.97"
    )
    minima = "the minimum probability 0.97 and the minimum expected precision 0.98;"
    assert f"No image reaches {minima}" in both.out


def test_a_search_of_an_index_without_verified_calibration_says_so(home, run):
    calibrate = "calibrate recognizer images --unlabelled --out adapted"
    assert run(*calibrate.split()).code == 0
    assert run("index", "new", "images", "--model", "adapted").code == 0
    text = "adapted to 24 other images. Not verified: no labels were available."
    for options in ((), ("--precision", "0.1")):
        assert text in run("search", "new", "lion", *options).out
    assert text in run("search", "new", "lion", "--precision", "0.1", "--json").err


def test_a_precision_is_refused_if_the_loss_alone_gives_the_probabilities(home, run):
    fit = "fit labels.csv --method linear --loss spa --model tiny-vit --out fitted"
    assert run(*fit.split()).code == 0
    assert run("index", "new", "images", "--model", "fitted").code == 0
    done = run("search", "new", "lion", "--precision", "0.1")
    assert done.code == 1
    assert "not calibrated on images: by its loss alone (spa)" in done.err
    assert run("search", "new", "lion", "--min-probability", "0").code == 0


def test_a_gallery_has_the_hits_with_their_probabilities(home, run):
    done = run("search", "index", "lion & !rocket", "-k", "3", "--gallery", "hits.html")
    page = (home / "hits.html").read_text()
    assert done.code == 0
    assert "Written: hits.html" in done.err
    assert "<h1>lion &amp; !rocket</h1>" in page
    assert page.count("<img") == 3
    assert page.count("<bdi>!rocket</bdi>") == page.count("<bdi>lion</bdi>") == 3


def test_a_gallery_of_a_search_by_sentence_has_similarities(indexed, run):
    done = run("search", "index", "--text", "a lion", "-k", "2", "--gallery", "hits.html")
    page = (indexed / "hits.html").read_text()
    assert done.code == 0
    assert page.count("<bdi>similarity</bdi>") == page.count("<img") == 2
    assert "it is not a probability" in page
    assert "--share" not in page.partition("</style>")[2]


def test_the_table_has_the_probability_of_each_term_also_if_it_is_small():
    hits = [Hit("a.jpg", 0.000383, {"lion": 0.00042, "rocket": 0.088})]
    lines = format_search_hits(hits, 1).splitlines()
    assert lines[0].split() == ["all", "lion", "!rocket", "path"]
    assert lines[1].split() == ["3.8e-04", "4.2e-04", "0.912", "a.jpg"]


def test_a_search_with_a_bound_states_its_promise_and_the_numbers(home, run):
    shutil.rmtree("index")
    assert run("index", "index", "images", "--model", "tiny-vit", "--labels", "names.txt").code == 0
    command = ("search", "index", "!lion", "--calibration", "labels.csv")
    refused = run(*command, "--max-wrong", "0.01")
    assert (refused.code, refused.out) == (1, "")
    assert "requires at least 37 calibration images" in refused.err
    refused = run(*command, "--max-wrong", "0.1")
    assert "other images than calibration images and images of the fit; got 24" in refused.err
    lines = (home / "labels.csv").read_text().splitlines()
    (home / "some.csv").write_text("\n".join(lines[:15]) + "\n")
    done = run(
        "search", "index", "!lion & !rocket", "--calibration", "some.csv", "--max-wrong", "0.9"
    )
    assert done.code == 0, done.err
    *hits, numbers, promise = done.out.splitlines()
    assert hits[0].split() == ["all", "!lion", "!rocket", "path"]
    assert "of 10 images accepted, 14 left out with known targets; " in numbers
    assert promise.startswith("The expected share of images that do not match is at most 90 %")
    values = json.loads(
        run(
            "search", "index", "!lion", "--calibration", "some.csv", "--max-wrong", "0.9", "--json"
        ).out
    )
    assert {value["path"] for value in values} <= {
        str(home / "images" / path.name) for path in (home / "images").iterdir()
    }
    none = run(
        "search", "index", "lion & rocket", "--calibration", "some.csv", "--max-wrong", "0.1"
    )
    assert none.code == 0
    assert "No list of images has a sufficiently small share of wrong ones" in none.out


def test_several_indexes_are_searched_as_one(home, run):
    index = Index.open("index")
    images = index.paths
    for part, paths in enumerate((images[:5], images[5:])):
        shutil.copytree("index", f"part-{part}")
        Index.open(f"part-{part}").remove(set(images) - set(paths))
    for query in (("lion & !rocket", "-k", "7"), ("--text", "a lion", "-k", "7")):
        expected = run("search", "index", *query)
        several = run("search", "part-0", "part-1", *query)
        assert several.code == 0
        assert several.out == expected.out
    twice = run("search", "part-0", "part-0", "lion")
    assert twice.code == 1
    assert "Each index must be given once" in twice.err
    missing = run("search", "part-0", "part-1")
    assert "either QUERY or --text; got none" in missing.err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ("index", "index", "lion", "--max-wrong", "0.1", "--calibration", "labels.csv"),
            "--max-wrong compares all images of one index; got 2 indexes",
        ),
        (("index", "--text", "a lion", "--cluster", "local"), "--text runs on this machine"),
        (("index", "lion", "--cluster", "nowhere"), "--cluster must be local, auto or HOST:PORT"),
    ],
)
def test_options_that_several_indexes_or_a_cluster_exclude_are_refused(home, run, options, text):
    refused = run("search", *options)
    assert refused.code
    assert text in " ".join(refused.err.split())
