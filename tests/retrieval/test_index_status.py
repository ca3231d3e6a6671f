"""Rows against files."""

from pathlib import Path

import numpy as np

from surelabel.retrieval.file_state import file_state_table, read_file_state
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.index_status import compute_index_status, recorded_file_states
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard


def shard_of(folder, paths):
    lines = np.zeros((1, len(paths)), np.float32)
    rows = ShardRows.from_arrays(file_state_table(paths), lines, lines, None)
    return write_shard(folder, 0, [rows])


def test_each_image_is_in_one_table_and_removed_rows_in_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [tmp_path / f"{name}.jpg" for name in ("same", "changed", "gone", "removed")]
    for file in files:
        file.write_text("first")
    same, changed, gone, removed = map(str, files)
    shard = shard_of(tmp_path / "index", [same, changed, gone, removed]).with_removed_rows([3])
    files[1].write_text("second")
    files[2].unlink()
    (tmp_path / "odd.jpg").write_text("")
    skipped = {str(tmp_path / "odd.jpg"): "empty", str(tmp_path / "was.jpg"): "truncated"}
    status = compute_index_status(
        [shard], skipped, ["same.jpg", "odd.jpg", "./new.jpg"], IndexRoot.at("/")
    )
    assert status.n_images == 3
    assert status.changed == {changed: "the file content changed after the prediction"}
    assert status.deleted == {gone: "the file no longer exists"}
    assert status.not_indexed == {
        str(tmp_path / "odd.jpg"): "empty",
        str(tmp_path / "new.jpg"): "the image was never added to the index",
    }


def test_an_index_without_rows_lacks_every_image(tmp_path):
    status = compute_index_status([], {}, [str(tmp_path / "a.jpg")], IndexRoot.at("/"))
    assert (status.n_images, list(status.not_indexed)) == (0, [str(tmp_path / "a.jpg")])


def test_the_recorded_states_are_those_of_the_files_and_removed_rows_have_none(tmp_path):
    paths = [str(tmp_path / f"{name}.jpg") for name in ("a", "b", "removed", "missing")]
    for path in paths[:3]:
        Path(path).write_text(path)
    states = {path: read_file_state(path) for path in paths}
    shard = shard_of(tmp_path / "index", paths).with_removed_rows([2])
    del states[paths[2]]
    root = IndexRoot.at("/")
    assert recorded_file_states([shard], root) == states
    assert states[paths[3]] is None
    assert recorded_file_states([shard], root, paths[1:3]) == {paths[1]: states[paths[1]]}
    assert recorded_file_states([shard], root, ["/other.jpg"]) == {}
    assert recorded_file_states([shard], root, []) == {}
