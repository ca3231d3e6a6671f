"""Rows against files."""

import numpy as np

from surelabel.retrieval.shards import Batch, write
from surelabel.retrieval.stamps import stamped
from surelabel.retrieval.status import compare


def shard_of(folder, paths):
    lines = np.zeros((1, len(paths)), np.float32)
    return write(folder, 0, [Batch(stamped(paths), lines, lines, None)])


def test_each_picture_is_in_one_table_and_removed_rows_in_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [tmp_path / f"{name}.jpg" for name in ("same", "changed", "gone", "removed")]
    for file in files:
        file.write_text("first")
    same, changed, gone, removed = map(str, files)
    shard = shard_of(tmp_path / "index", [same, changed, gone, removed]).without([3])
    files[1].write_text("second")
    files[2].unlink()
    (tmp_path / "odd.jpg").write_text("")
    skipped = {str(tmp_path / "odd.jpg"): "empty", str(tmp_path / "was.jpg"): "truncated"}
    status = compare([shard], skipped, ["same.jpg", "odd.jpg", "./new.jpg"])
    assert status.rows == 3
    assert status.changed == {changed: "its content changed after it was predicted"}
    assert status.gone == {gone: "its file is not there any more"}
    assert status.missing == {
        str(tmp_path / "odd.jpg"): "empty",
        str(tmp_path / "new.jpg"): "it was never predicted and indexed",
    }


def test_an_index_without_rows_lacks_every_picture(tmp_path):
    status = compare([], {}, [str(tmp_path / "a.jpg")])
    assert (status.rows, list(status.missing)) == (0, [str(tmp_path / "a.jpg")])
