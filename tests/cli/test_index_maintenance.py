import json

import pytest

from surelabel.retrieval import Index, hnsw_building, hnsw_graph


def test_an_index_is_rescored_with_another_label_and_compacted(indexed, run):
    before = Index.open("index")
    names, hits = before.names, before.search(before.names[0], 24)
    before.remove(before.paths[:1])
    labels = ", ".join([*names, "piano"])
    done = run(
        "index", "index", "--rescore", "--compact", "--labels", labels, "--model", "tiny-vit"
    )
    assert done.code == 0
    assert (
        done.out == "index was rescored and compacted. The index contains 23 images and 5 labels.\n"
    )
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
        (["index", "images", "--compact"], "got IMAGES too. Remove IMAGES."),
        (["index", "images", "--rescore"], "got IMAGES too. Remove IMAGES."),
        (["index", "images", "--ann"], "got IMAGES too. Remove IMAGES."),
        (
            ["index", "--ann"],
            "must contain more than 1,000,000 images; index contains 24",
        ),
        (
            ["index", "--ann", "--model", "tiny-vit"],
            "--model can be given only with --rescore or IMAGES.",
        ),
        (
            ["index", "--compact", "--model", "tiny-vit"],
            "--model can be given only with --rescore or IMAGES.",
        ),
        (["index", "--compact", "--labels", ""], "only with --rescore or IMAGES. Remove --labels."),
        (["nowhere", "--compact"], "must be the folder of an index"),
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
    assert first == (
        "index was prepared for approximate search. The index contains 24 images and 4 labels."
    )
    assert second.endswith("the mean recall@100 is 1.000.")
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
    message = f"Error: {option[0]} cannot be combined with {flag}. Remove {option[0]}."
    assert done.err.splitlines()[-1] == message


@pytest.mark.parametrize("flags", [["--rescore"], ["--rescore", "--compact"]])
def test_rescoring_stores_the_new_root_of_moved_images(indexed, run, flags):
    (indexed / "images").rename(indexed / "elsewhere")
    assert run("index", "index", *flags, "--root", "elsewhere").code == 0
    assert Index.open("index").root == str(indexed / "elsewhere")
    status = json.loads(run("status", "index", "elsewhere", "--json").out)
    assert (status["deleted"], status["not_indexed"]) == ({}, {})


def test_a_sparse_form_is_stated_by_all_commands(indexed, run):
    size, names = Index.open("index").n_bytes, Index.open("index").names
    done = run("index", "index", "--compact", "--drop-below", "0.1")
    assert done.code == 0
    first, second = done.out.splitlines()
    assert first == "index was compacted. The index contains 24 images and 4 labels."
    index = Index.open("index")
    form = (
        "The index stores only probabilities of at least 0.1; smaller probabilities are replaced "
        "by their mean for each label."
    )
    stored = f"{form} {100 * index.stored_share:.3g} % of the probabilities are stored."
    sizes = f"Size of the index: {size:,} bytes before, {index.n_bytes:,} bytes after."
    assert second == f"{stored} {sizes}"
    assert run("status", "index").out.splitlines()[1] == stored
    assert json.loads(run("status", "index", "--json").out)["drop_below"] == 0.1
    note = f"{form} Search results are approximate."
    assert run("search", "index", "lion", "-k", "2").out.splitlines()[3:] == [note]
    assert run("search", "index", "lion", "--explain").out.splitlines()[-1] == note
    assert json.loads(run("search", "index", "lion", "--explain", "--json").out)["notes"] == [note]
    hits = run("search", "index", "lion", "-k", "2", "--json")
    assert [hit["is_approximate"] for hit in json.loads(hits.out)] == [True, True]
    assert hits.err.splitlines() == [note]
    assert note not in run("search", "index", "path:*").out
    values = json.loads(run("index", "index", "--compact", "--drop-below", "0.2", "--json").out)
    assert (values["drop_below"], values["bytes_before"]) == (0.2, index.n_bytes)
    assert values["bytes"] == Index.open("index").n_bytes
    done = run("index", "index", "--compact", "--drop-below", "0.1")
    assert done.code == 1
    assert "--drop-below must be at least that of the index, 0.2, because" in done.err
    options = ["--calibration", "labels.csv", "--max-wrong", "0.3"]
    refused = run("search", "index", names[0], *options)
    assert refused.code == 1
    assert "--max-wrong requires an index with all probabilities" in refused.err
    assert run("index", "index", "--rescore", "--compact", "--drop-below", "0.1").code == 0
    assert Index.open("index").drop_below == 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--drop-below", "0.1"], "--drop-below requires --compact"),
        (["--rescore", "--drop-below", "0.1"], "--drop-below requires --compact"),
        (["--compact", "--drop-below", "0"], "0.0 is not in the range 0<x<=0.5"),
        (["--compact", "--drop-below", "1"], "1.0 is not in the range 0<x<=0.5"),
        (["--compact", "--drop-below", "nan"], "expected a finite number; got nan"),
    ],
)
def test_a_limit_that_cannot_work_is_one_line(run, options, message):
    done = run("index", "index", *options)
    assert done.code == 2
    assert message in done.err.splitlines()[-1]


def test_without_usearch_nothing_is_changed_or_imported(indexed, run, monkeypatch):
    monkeypatch.setattr(hnsw_graph, "is_usearch_installed", lambda: False)
    content = (indexed / "index" / "index.json").read_bytes()
    done = run("index", "index", "--rescore", "--ann")
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.startswith("Error: An index for approximate search (--ann) needs")
    assert (indexed / "index" / "index.json").read_bytes() == content


def test_an_approximate_search_of_similar_images_is_stated(indexed, run, monkeypatch):
    monkeypatch.setattr(hnsw_building, "EXACT_ROWS", 10)
    image = sorted((indexed / "images").iterdir())[5]
    note = "The nearest images of like: are approximate; the measured recall@100 is 1.000."
    assert note not in run("search", "index", f"like:{image}#4").out
    assert run("index", "index", "--ann").code == 0
    assert run("search", "index", f"like:{image}#4").out.splitlines()[-1] == note
    assert run("search", "index", f"like:{image}#4", "--explain").out.splitlines()[-1] == note
    assert note not in run("search", "index", f"like:{image}#23").out  # all vectors are compared
    assert note not in run("search", "index", "lion").out
