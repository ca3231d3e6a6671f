import json
import shutil
import sys
from pathlib import Path

import pytest

from surelabel.cli.search import format_search_hits
from surelabel.retrieval import Hit, Index, Query


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


def test_a_search_by_sentence_is_short_for_a_query(indexed, run):
    done = run("search", "index", "--text", "a lion", "-k", "24")
    header, *lines = done.out.splitlines()
    assert header.split() == ["all", '~"a', 'lion"', "path"]
    assert len(lines) == 24
    assert run("search", "index", '~"a lion"', "-k", "24").out == done.out
    hits = json.loads(run("search", "index", "--text", "a lion", "-k", "9", "--json").out)
    best = json.loads(run("search", "index", "lion", "-k", "3", "--json").out)
    assert {hit["path"] for hit in best} <= {hit["path"] for hit in hits}
    assert all(list(hit["terms"]) == ['~"a lion"'] for hit in hits)
    both = json.loads(run("search", "index", 'lion & !~"a rocket"', "-k", "3", "--json").out)
    for hit in both:
        lion, rocket = hit["terms"].values()
        assert hit["probability"] == pytest.approx(lion * (1 - rocket))
    limited = run("search", "index", "--text", "a lion", "--min-probability", "0.5", "--json")
    values = json.loads(limited.out)
    assert all(value["probability"] >= 0.5 for value in values)
    assert 0 < len(values) < 24


def test_an_error_in_a_query_points_at_the_character(home, run):
    done = run("search", "index", "lion & (rocket | )")
    assert (done.code, done.out) == (1, "")
    message, query, mark = done.err.splitlines()[-3:]
    assert message.endswith("got ) (character 18). Add a term.")
    assert query[mark.index("^")] == ")"


def test_filters_limit_the_result(home, run):
    images = sorted(path.name for path in (home / "images").iterdir())
    hits = json.loads(run("search", "index", f"path:{images[3]} & lion", "--json").out)
    assert [Path(hit["path"]).name for hit in hits] == [images[3]]
    for query in ("path:nothing/* & lion", "date<1990", "width>99999 | height>99999"):
        assert run("search", "index", query).out == "No image matches the filters of the query.\n"
    done = run("search", "index", "path:*", "-k", "100")
    assert done.out.splitlines()[0] == "path"
    assert len(done.out.splitlines()) == 25


def test_a_search_like_an_image_begins_with_the_image(home, run):
    image = sorted((home / "images").iterdir())[5]
    done = run("search", "index", f"like:{image}#4")
    header, *lines = done.out.splitlines()
    assert (header.split(), len(lines)) == (["similarity", "path"], 4)
    assert lines[0].split()[0] == "1.000"
    assert Path(lines[0].split()[1]).name == image.name
    shutil.copy(image, home / "copy.jpg")
    hits = json.loads(run("search", "index", "like:copy.jpg#4 & lion", "--json").out)
    assert sorted(hit["path"] for hit in hits) == sorted(line.split()[1] for line in lines)
    assert max(hit["similarity"] for hit in hits) == pytest.approx(1, abs=1e-3)
    (home / "no.jpg").write_text("no image")
    refused = run("search", "index", "like:no.jpg")
    assert refused.code == 1
    assert "no.jpg: not an image of a supported format" in refused.err


def test_an_indexed_example_needs_no_recognizer(indexed, run, monkeypatch):
    image = sorted((indexed / "images").iterdir())[5]
    loads, search_command = [], sys.modules["surelabel.cli.search"]
    load = search_command.load_query_encoder

    def recorded(*arguments):
        loads.append(arguments)
        return load(*arguments)

    monkeypatch.setattr(search_command, "load_query_encoder", recorded)
    assert run("search", "index", f"like:{image}#4 & lion").code == 0
    assert loads == []
    shutil.copy(image, indexed / "copy.jpg")
    assert run("search", "index", "like:copy.jpg#4").code == 0
    assert run("search", "index", f'like:{image}#4 & ~"a lion"').code == 0
    assert len(loads) == 2


def test_a_search_is_continued_at_an_offset(home, run):
    every = json.loads(run("search", "index", "lion", "--limit", "24", "--json").out)
    page = json.loads(run("search", "index", "lion", "--limit", "5", "--offset", "7", "--json").out)
    assert page == every[7:12]
    assert run("search", "index", "lion", "--offset", "24").out == (
        "--offset 24 omits all images of the result. Give a smaller --offset.\n"
    )


def test_an_offset_is_named_before_a_minimum(home, run):
    done = run("search", "index", "lion", "--min-probability", "0.01", "--offset", "24")
    assert done.out == "--offset 24 omits all images of the result. Give a smaller --offset.\n"
    done = run("search", "index", "lion", "--precision", "0.2", "--offset", "2")
    assert done.out.splitlines()[-1] == (
        "The expected precision of at least 0.2 applies to the list that includes the 2 images "
        "omitted by --offset."
    )
    done = run("search", "index", "lion", "--explain", "--link-to", "links")
    assert (
        "--explain returns no images, so it cannot be combined with --gallery or --link-to."
        in done.err
    )
    assert not (home / "links").exists()


def test_the_plan_of_a_search_is_printed(home, run):
    done = run("search", "index", "(lion | rocket) & path:*", "--explain")
    first, step = done.out.splitlines()
    assert first == "Query: (lion | rocket) & path:*"
    assert step.startswith("index, shard 0: lion | rocket: 24 images, ")
    value = json.loads(run("search", "index", "lion & width>99999", "--explain", "--json").out)
    assert value == {"query": "lion & width>99999", "steps": [], "notes": []}


def test_links_to_the_hits_have_their_order(home, run):
    hits = json.loads(run("search", "index", "lion", "-k", "3", "--json").out)
    done = run("search", "index", "lion", "-k", "3", "--link-to", "links")
    assert done.out.splitlines()[-1] == "3 links written to links."
    links = sorted((home / "links").iterdir())
    assert [str(link.resolve()) for link in links] == [hit["path"] for hit in hits]
    assert links[0].name.startswith(f"0001-{hits[0]['probability']:.3f}-")
    refused = run("search", "index", "lion", "--link-to", "links")
    assert refused.code == 1
    assert "The folder of links must be new or empty" in refused.err


def test_a_recognizer_that_was_moved_is_given_with_model(indexed, run):
    expected = run("search", "index", "--text", "a photo of a lion").out
    (indexed / "recognizer").rename(indexed / "moved")
    refused = run("search", "index", "--text", "a photo of a lion")
    assert refused.code == 1
    assert "recognizer; the folder does not exist. Give the new folder of" in refused.err
    assert run("search", "index", "--text", "a photo of a lion", "--model", "moved").out == expected
    other = run("search", "index", "--text", "a photo of a lion", "--model", "tiny-vit")
    assert other.code == 1
    assert "Give the recognizer of the index with --model" in other.err


def test_a_long_sentence_is_cut_with_a_note(indexed, run):
    done = run("search", "index", "--text", "lion " * 99, "-k", "1")
    assert done.code == 0
    assert "is longer than the context of tiny-vit. The text encoder ignores the last" in done.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ((), "either QUERY or --text; got neither"),
        (("lion", "--text", "a lion"), "either QUERY or --text; got both"),
        (("lion", "--model", "recognizer"), "--model applies only to sentences, like: and"),
        (("--text", " "), "--text must be a sentence; got an empty text"),
        (
            ("lion", "--max-wrong", "0.1"),
            "--max-wrong requires an annotated sample; got none. Add --calibration DATASET",
        ),
        (("lion", "--calibration", "labels.csv"), "--calibration requires --max-wrong"),
        (
            ("lion", "--max-wrong", "0.1", "--calibration", "labels.csv", "-k", "3"),
            "the complete list of accepted images. Remove --limit.",
        ),
        (("lion", "--precision", "1"), "'--precision': 1.0 is not in the range 0<x<1"),
        (("lion", "--min-probability", "2"), "'--min-probability': 2.0 is not in the range"),
        (("lion", "--open"), "--open requires --gallery; got only --open. Add --gallery FILE.html"),
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
        "of their probabilities. This estimate is as reliable as the calibration, and it is not a "
        "guarantee."
    )
    as_json = run("search", "index", "lion", "--precision", "0.6", "--json")
    assert json.loads(as_json.out) == every[:length]
    assert "This estimate is" in as_json.err
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
        "No image satisfies the minimum probability 0.99; the highest probability is "
        f"{best[0]['probability']:.3g}.\n"
    )
    both = run(
        "search", "index", "rocket & lion", "--precision", "0.98", "--min-probability", "0.97"
    )
    minima = "the minimum probability 0.97 and the minimum expected precision 0.98;"
    assert f"No image satisfies {minima}" in both.out


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
    assert "have another source: by its loss alone (spa)" in done.err
    assert run("search", "new", "lion", "--min-probability", "0").code == 0


def test_a_gallery_has_the_hits_with_their_probabilities(home, run):
    done = run("search", "index", "lion & !rocket", "-k", "3", "--gallery", "hits.html")
    page = (home / "hits.html").read_text()
    assert done.code == 0
    assert "Written: hits.html" in done.err
    assert "<h1>lion &amp; !rocket</h1>" in page
    assert page.count("<img") == 3
    assert page.count("<bdi>!rocket</bdi>") == page.count("<bdi>lion</bdi>") == 3


def test_a_gallery_has_sentences_and_similarities(indexed, run):
    image = sorted((indexed / "images").iterdir())[5]
    query = f'like:"{image}"#2 & ~"a lion"'
    done = run("search", "index", query, "--gallery", "hits.html")
    page = (indexed / "hits.html").read_text()
    assert done.code == 0
    assert page.count("<bdi>similarity</bdi>") == page.count("<img") == 2
    assert page.count("a lion") >= 3


def test_the_table_has_the_probability_of_each_term_also_if_it_is_small():
    hits = [Hit("a.jpg", 0.000383, {"lion": 0.00042, "rocket": 0.088})]
    lines = format_search_hits(hits, Query.of_labels(["lion"], ["rocket"])).splitlines()
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
    assert "for the fit or the calibration; got no new image among 24 images" in refused.err
    lines = (home / "labels.csv").read_text().splitlines()
    (home / "some.csv").write_text("\n".join(lines[:15]) + "\n")
    done = run(
        "search", "index", "!lion & !rocket", "--calibration", "some.csv", "--max-wrong", "0.9"
    )
    assert done.code == 0, done.err
    *hits, numbers, promise, left_out = done.out.splitlines()
    assert hits[0].split() == ["all", "!lion", "!rocket", "path"]
    assert "of 10 images are accepted. " in numbers
    assert left_out.endswith("used for fitting or calibration: 14.")
    assert promise.startswith(
        "The expected share of hits that do not match the query is at most 90 %"
    )
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
    assert "the calibration images do not support the bound of --max-wrong" in none.out


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
    assert "Each index must be given only once" in twice.err
    missing = run("search", "part-0", "part-1")
    assert "either QUERY or --text; got neither" in missing.err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ("index", "index", "lion", "--max-wrong", "0.1", "--calibration", "labels.csv"),
            "--max-wrong requires one index; got 2 indexes",
        ),
        (("index", "lion", "--cluster", "nowhere"), "--cluster must be local, auto or HOST:PORT"),
    ],
)
def test_options_that_several_indexes_or_a_cluster_exclude_are_refused(home, run, options, text):
    refused = run("search", *options)
    assert refused.code
    assert text in " ".join(refused.err.split())
