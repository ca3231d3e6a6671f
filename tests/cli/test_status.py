import json
import shutil


def test_status_says_what_is_missing_changed_and_gone(indexed, run):
    first, second, third = sorted((indexed / "images").iterdir())[:3]
    first.unlink()
    shutil.copy(third, second)
    shutil.copy(third, indexed / "images" / "new.jpg")
    done = run("status", "index", "images")
    assert "index contains 24 images and 4 labels. Recognizer: " in done.out
    assert (
        f"1 not indexed\n  {indexed}/images/new.jpg: the image was never added to the index"
        in done.out
    )
    assert f"1 changed\n  {indexed}/images/{second.name}: the file content changed" in done.out
    assert f"1 deleted\n  {indexed}/images/{first.name}: the file no longer exists" in done.out


def test_the_text_of_status_is_bounded_and_json_is_complete(indexed, run):
    for path in (indexed / "images").iterdir():
        path.rename(indexed / f"moved-{path.name}")
    lines = run("status", "index").out.splitlines()
    assert sum(line.endswith(": the file no longer exists") for line in lines) == 20
    assert lines[-1] == "  … and 4 more"
    assert len(json.loads(run("status", "index", "--json").out)["deleted"]) == 24


def test_status_without_images_looks_at_what_the_index_holds(indexed, run):
    (indexed / "images" / "new.jpg").write_bytes(b"")
    found = json.loads(run("status", "index", "--json").out)
    assert (found["n_images"], found["not_indexed"], found["changed"], found["deleted"]) == (
        24,
        {},
        {},
        {},
    )
    assert found["names"] == ["lion", "coffee", "guitar", "rocket"]


def test_status_of_predictions_counts_images_by_shard(home, run):
    line = ("tag", "images", "--model", "recognizer", "--shard", "1/2", "--out", "out")
    assert run(*line).code == 0
    done = run("status", "out")
    assert done.out.startswith(
        "out contains predictions of 12 of 24 images, 0 failed, 12 missing. "
    )
    assert done.out.splitlines()[1:] == [
        "  shard 1/2: predictions of 12 of 12 images, 0 failed, 0 missing",
        "  shard 2/2: predictions of 0 of 12 images, 0 failed, 12 missing",
    ]
    assert json.loads(run("status", "out", "--json").out)["missing"] == 12
    refused = run("status", "out", "images")
    assert refused.code == 2
    assert (
        "IMAGES and --root can be given only for an index; got a folder of predictions"
        in refused.err
    )
