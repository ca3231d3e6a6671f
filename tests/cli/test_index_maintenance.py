import json

import pytest

from surelabel.retrieval import Index, hnsw_building


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
        (["index", "images", "--ann"], "need no IMAGES"),
        (
            ["index", "--ann"],
            "is for more than 1,000,000 images; index has 24, which like:",
        ),
        (["index", "--ann", "--model", "tiny-vit"], "--model needs --rescore or IMAGES."),
        (["index", "--compact", "--model", "tiny-vit"], "--model needs --rescore or IMAGES."),
        (["index", "--compact", "--labels", ""], "--labels needs --rescore or IMAGES. Leave out"),
        (["nowhere", "--compact"], "must be an index"),
        (["index", "--rescore", "--model", "tiny-rn"], "come from the encoder of"),
    ],
)
def test_options_that_cannot_work_are_one_line(indexed, run, arguments, message):
    done = run("index", *arguments)
    assert done.code in (1, 2)
    assert message in " ".join(done.err.split())


def test_files_for_approximate_search_are_built_and_their_recall_is_printed(
    indexed, run, monkeypatch
):
    monkeypatch.setattr(hnsw_building, "EXACT_ROWS", 10)
    done = run("index", "index", "--ann")
    assert done.code == 0
    first, second = done.out.splitlines()
    assert first == ("index is prepared for approximate search; it has 24 images and 4 labels.")
    assert second.startswith("like: is approximate: recall@100 is 1.000, the mean share of the 100")
    assert run("status", "index").out.splitlines()[1] == second
    assert json.loads(run("status", "index", "--json").out)["ann_recall"] == 1.0
    image = sorted((indexed / "images").iterdir())[5]
    assert run("search", "index", f"like:{image}#4").out.splitlines()[1].split()[1] == str(image)
    done = run("index", "index", "--rescore", "--ann", "--json")
    assert json.loads(done.out)["ann_recall"] == 1.0
    assert run("index", "index", "--rescore").code == 0
    assert Index.open("index").ann_recall is None


@pytest.mark.parametrize("flag", ["--compact", "--rescore", "--ann"])
@pytest.mark.parametrize(
    "option",
    [
        ["--calibrate-unlabelled"],
        ["--image-column", "file"],
        ["--ignore", "file"],
        ["--cluster", "local"],
        ["--cluster-workers", "2"],
        ["--max-image-memory", "100"],
    ],
)
def test_an_option_without_effect_is_named_in_one_line(home, run, flag, option):
    done = run("index", "index", flag, *option)
    assert done.code == 2
    message = f"Error: {option[0]} has no effect with {flag}. Leave out this option."
    assert done.err.splitlines()[-1] == message


@pytest.mark.parametrize("flags", [["--rescore"], ["--rescore", "--compact"]])
def test_rescoring_stores_the_new_root_of_moved_images(indexed, run, flags):
    (indexed / "images").rename(indexed / "elsewhere")
    assert run("index", "index", *flags, "--root", "elsewhere").code == 0
    assert Index.open("index").root == str(indexed / "elsewhere")
    status = json.loads(run("status", "index", "elsewhere", "--json").out)
    assert (status["deleted"], status["not_indexed"]) == ({}, {})
