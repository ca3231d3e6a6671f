import json
import shutil

from surelabel.retrieval.index_lock import lock_index


def test_a_new_index_has_all_images(home, run):
    done = run("index", "new", "images", "--model", "recognizer")
    assert done.code == 0
    assert done.out == (
        "new contains 24 images and 4 labels. Images: 24 added, 0 changed, 0 removed, 0 skipped.\n"
    )


def test_a_refresh_adds_changes_and_removes(indexed, run):
    first, second, third = sorted((indexed / "images").iterdir())[:3]
    first.unlink()
    shutil.copy(third, second)
    shutil.copy(third, indexed / "images" / "new.jpg")
    done = run("index", "index", "images", "--model", "recognizer", "--json")
    assert json.loads(done.out) == {
        "index": "index",
        "images": 24,
        "added": 1,
        "changed": 1,
        "removed": 1,
        "skipped": 0,
        "calibration": "beta (selected by log loss) on 24 labelled images",
        "is_verified": True,
    }
    again = json.loads(run("index", "index", "images", "--model", "recognizer", "--json").out)
    assert (again["added"], again["changed"], again["removed"]) == (0, 0, 0)


def test_a_broken_new_image_is_skipped_and_named_at_every_refresh(indexed, run):
    (indexed / "images" / "broken.jpg").write_bytes(b"")
    for _ in range(2):
        done = run("index", "index", "images", "--model", "recognizer")
        assert done.code == 0
        assert "24 images" in done.out
        assert "0 added, 0 changed, 0 removed, 1 skipped" in done.out
        assert "broken.jpg" in done.err


def test_an_index_whose_images_all_vanished_is_kept_and_the_remedy_told(indexed, run):
    (indexed / "images").rename(indexed / "elsewhere")
    done = run("index", "index", "elsewhere", "--model", "recognizer")
    assert done.code == 1
    assert (
        "At least one of the 24 image files of index must exist; all files are missing" in done.err
    )
    assert len(json.loads(run("search", "index", "lion", "-k", "99", "--json").out)) == 24


def test_moved_images_are_found_in_their_new_root_which_index_stores(indexed, run):
    (indexed / "images").rename(indexed / "elsewhere")
    moved = ("--root", "elsewhere")
    hits = json.loads(run("search", "index", "lion", "-k", "99", "--json", *moved).out)
    assert {hit["path"] for hit in hits} == {str(p) for p in (indexed / "elsewhere").iterdir()}
    found = json.loads(run("status", "index", "elsewhere", "--json", *moved).out)
    assert (found["deleted"], found["not_indexed"]) == ({}, {})
    error = run("index", "index", "elsewhere", "--model", "recognizer").err
    assert "give the new root folder (--root)" in error
    done = run("index", "index", "elsewhere", "--model", "recognizer", *moved)
    assert "24 images and 4 labels. Images: 0 added, 0 changed, 0 removed, 0 skipped" in done.out
    assert run("status", "index", "elsewhere").out.endswith("0 not indexed\n0 changed\n0 deleted\n")


def test_a_second_writer_is_refused_with_one_line_and_a_search_is_not(indexed, run):
    with lock_index(indexed / "index"):
        done = run("index", "index", "images", "--model", "recognizer")
        assert run("search", "index", "lion").code == 0
    assert (done.code, done.err.splitlines()[-1]) == (
        1,
        "Error: Another process is writing to index. Run the command again when that process has "
        "finished.",
    )


def test_the_folder_a_command_runs_in_changes_nothing(indexed, run, monkeypatch):
    monkeypatch.chdir(indexed / "images")
    done = run("index", "../index", ".", "--model", "../recognizer", "--json")
    assert json.loads(done.out) | {"index": ""} == {
        "index": "",
        "images": 24,
        "added": 0,
        "changed": 0,
        "removed": 0,
        "skipped": 0,
        "calibration": "beta (selected by log loss) on 24 labelled images",
        "is_verified": True,
    }


def test_a_folder_of_predictions_is_indexed_without_tagging(home, run):
    for number in (1, 2):
        shard = ("--shard", f"{number}/2", "--out", "out")
        assert run("tag", "images", "--model", "recognizer", *shard).code == 0
    done = run("index", "other", "out")
    assert done.code == 0
    assert "other contains 24 images and 4 labels. Images: 24 added, 0 changed" in done.out
    assert run("index", "tagged", "images", "--model", "recognizer").code == 0
    assert run("search", "other", "lion").out == run("search", "tagged", "lion").out
    refused = run("index", "other", "out", "--labels", "lion")
    assert refused.code == 2
    assert (
        "--labels can be given only for images; got the predictions out. Remove --labels."
        in refused.err
    )
