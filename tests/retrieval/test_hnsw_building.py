"""Graphs of an index: built, measured, dropped and built again."""

import json

import numpy as np
import pytest

from surelabel.errors import DataError, InputError
from surelabel.records import Predictions
from surelabel.retrieval import Index, hnsw_building, nearest_rows
from surelabel.retrieval.hnsw_building import graph_recall
from surelabel.retrieval.index_manifest import load_index_manifest

N, WIDTH = 900, 16


def predictions_of(first, n, seed=0):
    random = np.random.default_rng([seed, first])
    logits = random.standard_normal((n, 2)).astype(np.float32)
    vectors = random.standard_normal((n, WIDTH)).astype(np.float16)
    paths = [f"/images/{first + row:05}.jpg" for row in range(n)]
    return Predictions(paths, ["x", "y"], logits, logits, "by hand", "none", features=vectors)


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Index with a graph of 900 images."""
    monkeypatch.setattr(hnsw_building, "EXACT_ROWS", 100)
    index = Index.create(tmp_path / "index", predictions_of(0, N), root="/images")
    index.build_ann()
    return index


def exact_hits(index, text, monkeypatch):
    """Hits of a search without graphs."""
    with monkeypatch.context() as patch:
        patch.setattr(nearest_rows, "is_usearch_installed", lambda: False)
        return index.search(text, 30)


def graph_files(index):
    return sorted(file.name for file in index.folder.glob("ann-*"))


def test_the_nearest_images_are_those_of_an_exact_search(index, monkeypatch):
    assert index.ann_recall > 0.98
    assert Index.open(index.folder).ann_recall == index.ann_recall
    calls = []
    read_blocks = nearest_rows.row_blocks_for_search

    def recorded(shard):
        calls.append(shard)
        return read_blocks(shard)

    monkeypatch.setattr(nearest_rows, "row_blocks_for_search", recorded)
    for text in ('like:"/images/00007.jpg"#30', 'like:"/images/00007.jpg"#60 & x'):
        approximate = index.search(text, 30)
        assert not calls
        exact = exact_hits(index, text, monkeypatch)
        assert len(calls) == 1
        assert len({hit.path for hit in exact} - {hit.path for hit in approximate}) <= 1
        values = {hit.path: hit.similarity for hit in exact}
        assert all(values.get(hit.path, hit.similarity) == hit.similarity for hit in approximate)
        calls.clear()
    index.search('like:"/images/00007.jpg"#1000', 30)  # more rows than a graph is asked for
    assert len(calls) == 1


def test_removed_images_are_not_found_in_the_graph(index, monkeypatch):
    nearest = [hit.path for hit in index.search('like:"/images/00007.jpg"#40', 40)]
    index.remove(nearest[1:20])
    assert graph_files(index) == ["ann-000.usearch"]
    hits = [hit.path for hit in index.search('like:"/images/00007.jpg"#21', 40)]
    assert len(hits) == 21
    assert not set(nearest[1:20]) & set(hits)
    assert len(set(hits) & {nearest[0], *nearest[20:]}) >= 20
    assert graph_recall(index._manifest.shards[0]) > 0.95


def test_new_images_are_found_without_a_graph(index):
    index.add(predictions_of(N, 30))
    assert graph_files(index) == ["ann-000.usearch"]
    hits = index.search(f'like:"/images/{N + 3:05}.jpg"#5', 5)
    assert hits[0].path == f"/images/{N + 3:05}.jpg"
    index.build_ann()
    assert len(graph_files(index)) == 2


@pytest.mark.parametrize("change", ["compact", "replace"])
def test_a_rewritten_index_has_no_graph(index, change):
    if change == "compact":
        index.remove(["/images/00001.jpg"])
        index.compact()
    else:
        Index.create(index.folder, predictions_of(0, N, seed=1), root="/images")
        index = Index.open(index.folder)
    assert graph_files(index) == []
    assert index.ann_recall is None
    assert len(index.search('like:"/images/00007.jpg"#5')) == 5


def test_a_second_build_keeps_a_valid_graph_and_replaces_a_damaged_one(index):
    file = index.folder / "ann-000.usearch"
    content, written = file.read_bytes(), file.stat().st_mtime_ns
    Index.open(index.folder).build_ann()
    assert file.stat().st_mtime_ns == written
    file.write_bytes(content[:-1] + b"x" * (content[-1:] != b"x") + b"y" * (content[-1:] == b"x"))
    opened = Index.open(index.folder)
    with pytest.raises(DataError, match=r"ann-000\.usearch is damaged: the checksum"):
        opened.search('like:"/images/00007.jpg"#5')
    assert len(opened.search("x & !y")) == 20
    opened.build_ann()
    assert len(Index.open(index.folder).search('like:"/images/00007.jpg"#5')) == 5


def test_a_damaged_graph_is_unlisted_before_its_file_is_replaced(index, monkeypatch):
    file = index.folder / "ann-000.usearch"
    file.write_bytes(file.read_bytes()[::-1])

    def fail(*arguments):
        raise KeyboardInterrupt("killed")

    monkeypatch.setattr(hnsw_building, "write_hnsw_graph", fail)
    with pytest.raises(KeyboardInterrupt, match="killed"):
        Index.open(index.folder).build_ann()
    assert load_index_manifest(index.folder).shards[0].hnsw is None
    assert len(Index.open(index.folder).search('like:"/images/00007.jpg"#5')) == 5


def test_a_small_index_or_one_without_vectors_is_refused(tmp_path, monkeypatch):
    index = Index.create(tmp_path / "index", predictions_of(0, 5))
    with pytest.raises(
        InputError, match=r"must contain more than 1,000,000 images; .* contains 5\."
    ):
        index.build_ann()
    monkeypatch.setattr(hnsw_building, "EXACT_ROWS", 2)
    logits = np.zeros((5, 1), np.float32)
    paths = [f"/images/{row}.jpg" for row in range(5)]
    made = Predictions(paths, ["x"], logits, logits, "by hand", "none")
    without = Index.create(tmp_path / "other", made)
    with pytest.raises(InputError, match="need image vectors"):
        without.build_ann()
    assert graph_files(without) == []


def test_progress_counts_the_images_of_new_graphs(index):
    index.add(predictions_of(N, 30))
    steps = []
    index.build_ann(lambda done, total: steps.append((done, total)))
    assert steps[-1] == (30, 30)


def test_a_record_without_its_file_is_refused(index):
    manifest = index.folder / "index.json"
    fields = json.loads(manifest.read_text())
    del fields["shards"][0]["files"]["ann-000.usearch"]
    manifest.write_text(json.dumps(fields))
    with pytest.raises(DataError, match="ann and an ANN file must be given together"):
        Index.open(index.folder)
