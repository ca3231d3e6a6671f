import json
import shutil


def test_status_says_what_is_missing_changed_and_gone(indexed, run):
    first, second, third = sorted((indexed / "pictures").iterdir())[:3]
    first.unlink()
    shutil.copy(third, second)
    shutil.copy(third, indexed / "pictures" / "new.jpg")
    done = run("status", "index", "pictures")
    assert "index has 24 pictures and 4 labels" in done.out
    assert (
        f"1 missing\n  {indexed}/pictures/new.jpg: it was never predicted and indexed" in done.out
    )
    assert f"1 changed\n  {indexed}/pictures/{second.name}: its content changed" in done.out
    assert f"1 gone\n  {indexed}/pictures/{first.name}: its file is not there any more" in done.out


def test_status_without_pictures_looks_at_what_the_index_holds(indexed, run):
    (indexed / "pictures" / "new.jpg").write_bytes(b"")
    found = json.loads(run("status", "index", "--json").out)
    assert (found["rows"], found["missing"], found["changed"], found["gone"]) == (24, {}, {}, {})
    assert found["names"] == ["lion", "coffee", "guitar", "rocket"]
