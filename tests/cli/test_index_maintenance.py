import json

import pytest

from surelabel.retrieval import Index


def test_an_index_is_rescored_with_another_label_and_compacted(indexed, run):
    before = Index.open("index")
    names, hits = before.names, before.search(before.names[0], 24)
    before.remove(before.paths[:1])
    labels = ", ".join([*names, "piano"])
    done = run(
        "index", "index", "--rescore", "--compact", "--labels", labels, "--model", "tiny-vit"
    )
    assert done.code == 0
    assert done.out == "index is rescored and compacted; it has 23 images and 5 labels.\n"
    index = Index.open("index")
    assert index.names == [*names, "piano"]
    assert len(index.search("piano & !" + names[0], 30)) == 23
    assert index.description.n_rows == 23
    done = run("index", "index", "--rescore", "--model", "recognizer", "--json")
    assert json.loads(done.out)["labels"] == names
    again = {hit.path: hit.probability for hit in Index.open("index").search(names[0], 24)}
    expected = {hit.path: hit.probability for hit in hits if hit.path in again}
    assert again == pytest.approx(expected, abs=5e-3)
    assert len(again) == 23


def test_an_index_is_rescored_by_its_own_recognizer(indexed, run):
    before = Index.open("index").search("lion", 24)
    done = run("index", "index", "--rescore")
    assert done.code == 0
    after = Index.open("index")
    assert {hit.path: hit.probability for hit in after.search("lion", 24)} == pytest.approx(
        {hit.path: hit.probability for hit in before}, abs=5e-3
    )
    status = json.loads(run("index", "index", "images", "--model", "recognizer", "--json").out)
    assert (status["added"], status["changed"], status["removed"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index"], "Missing argument 'IMAGES...'"),
        (["index", "images", "--compact"], "need no IMAGES"),
        (["index", "images", "--rescore"], "need no IMAGES"),
        (["index", "--compact", "--model", "tiny-vit"], "--model and --labels need --rescore"),
        (["index", "--compact", "--labels", "a"], "--model and --labels need --rescore"),
        (["nowhere", "--compact"], "must be an index"),
        (["index", "--rescore", "--model", "tiny-rn"], "come from the encoder of"),
    ],
)
def test_options_that_cannot_work_are_one_line(indexed, run, arguments, message):
    done = run("index", *arguments)
    assert done.code in (1, 2)
    assert message in " ".join(done.err.split())
