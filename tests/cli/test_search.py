import json

import pytest


def test_a_search_shows_the_probability_of_all_and_of_each_label(home, run):
    done = run("search", "index", "lion & !rocket", "-k", "3")
    header, *lines = done.out.splitlines()
    assert header.split() == ["all", "lion", "rocket", "path"]
    assert len(lines) == 3
    whole, lion, rocket = map(float, lines[0].split()[:3])
    assert abs(whole - lion * (1 - rocket)) < 2e-3


def test_a_search_as_json_is_sorted(home, run):
    hits = json.loads(run("search", "index", "lion", "-k", "100", "--json").out)
    assert len(hits) == 24
    assert [h["probability"] for h in hits] == sorted(
        (h["probability"] for h in hits), reverse=True
    )
    assert list(hits[0]["terms"]) == ["lion"]


def test_a_search_by_sentence_ranks_the_images_by_similarity(indexed, run):
    done = run("search", "index", "--text", "a photo of a lion", "-k", "24")
    header, *lines = done.out.splitlines()
    assert (header.split(), len(lines)) == (["similarity", "path"], 24)
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
        (("lion", "--model", "recognizer"), "--model applies to --text only"),
    ],
)
def test_a_query_and_a_sentence_exclude_each_other(home, run, line, message):
    done = run("search", "index", *line)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
