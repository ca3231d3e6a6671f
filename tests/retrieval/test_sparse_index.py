"""An index in sparse form: searches, later changes, and what it says about itself."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import expit

from surelabel.errors import DataError, InputError
from surelabel.records import Predictions
from surelabel.retrieval import Index, ShardedIndex, hnsw_building, index_manifest
from surelabel.retrieval.index_rescoring import IndexScoring
from surelabel.retrieval.search_approximation import SearchApproximation
from surelabel.retrieval.sparse_labels import SPARSE_LABEL_SCHEMA

NAMES, LIMIT = ["a", "b", "c", "d"], 0.05
QUERIES = [
    *("a", "!a", "a & b", "a & !b", "!a & !b", "a | b | !c", "a & a>0.2", "d", "!d", "d | a"),
    *("(a & b) | (a & c) | (b & c)", "path:*3.jpg & a", "a<0.04 & !b", "a & !a | c"),
    *("like:/nowhere/0005.jpg#40 & !a", "like:/nowhere/0005.jpg#9"),
]


def made(n, start=0, *, features=True):
    random = np.random.default_rng(start)
    logits = random.normal(-4, 2.5, (n, 4)).astype(np.float32)
    logits[:, 3] = -8 - np.abs(logits[:, 3])  # no probability of d is stored
    vectors = random.standard_normal((n, 3)).astype(np.float16) if features else None
    paths = [f"/nowhere/{start + row:04}.jpg" for row in range(n)]
    scores = np.round(logits, 1)
    return Predictions(paths, NAMES, scores, logits, "platt on 9 images", "model", vectors)


def replaced(predictions, limit=LIMIT):
    """Predictions with the mean of small probabilities, and without raw scores."""
    logits = predictions.logits.copy()
    for line in logits.T:
        is_small = expit(line.astype(float)) < limit
        mean = expit(line[is_small].astype(float)).mean()
        line[is_small] = np.log(mean / (1 - mean))
    return replace(predictions, logits=logits, scores=logits)


def check_equal_searches(index, expected):
    for query in QUERIES:
        for k in (1, 10, 50, 1000):
            assert index.search(query, k) == expected.search(query, k), query
        if "like:" not in query and isinstance(index, Index):
            assert np.array_equal(index.probabilities(query), expected.probabilities(query))


def test_searches_are_those_of_a_dense_index_of_the_same_values(tmp_path):
    index = Index.create(tmp_path / "sparse", made(300))
    size, sums = index.n_bytes, [index.probabilities(name).sum() for name in NAMES]
    assert index.drop_below is None
    assert index.stored_share == 1
    index.compact(drop_below=LIMIT)
    dense = Index.create(tmp_path / "dense", replaced(made(300)))
    for opened in (index, Index.open(tmp_path / "sparse")):
        check_equal_searches(opened, dense)
        assert opened.drop_below == LIMIT
        stored = (expit(made(300).logits.astype(float)) >= LIMIT).mean()
        assert opened.stored_share == pytest.approx(stored)
        assert "no probabilities below 0.05 are stored" in repr(opened)
    assert index.n_bytes < size / 2
    after = [index.probabilities(name).sum() for name in NAMES]
    assert after == pytest.approx(sums, rel=1e-6)
    assert "approximate" not in repr(dense)
    files = {file.name.split("-")[0] for file in (tmp_path / "sparse").glob("*-*")}
    assert files == {"rows", "sparse", "features"}


def test_removed_and_added_images_are_found_as_in_a_dense_index(tmp_path):
    index = Index.create(tmp_path / "sparse", made(300))
    index.compact(drop_below=LIMIT)
    dense = Index.create(tmp_path / "dense", replaced(made(300)))
    for each in (index, dense):
        each.remove([f"/nowhere/{row:04}.jpg" for row in range(0, 90, 3)])
        each.add(made(20, 400))  # exact values, in another shard
    check_equal_searches(Index.open(tmp_path / "sparse"), dense)
    assert index.drop_below == LIMIT
    assert 0.1 < index.stored_share < 0.5
    check_equal_searches(ShardedIndex([index]), dense)
    for each in (index, dense):  # both shards become one with all values
        each.add(replace(made(400, 1000)))
    check_equal_searches(Index.open(tmp_path / "sparse"), dense)
    assert (index.drop_below, index.stored_share) == (LIMIT, 1)
    index.compact()
    assert (index.drop_below, index.stored_share) == (LIMIT, 1)
    index.compact(drop_below=0.1)
    assert index.drop_below == 0.1
    index.remove(index.paths)
    assert (index.drop_below, index.stored_share) == (None, None)


def test_compaction_of_a_sparse_index_keeps_its_form_and_values(tmp_path):
    index = Index.create(tmp_path / "sparse", made(300))
    index.compact(drop_below=LIMIT)
    content = sorted(file.name for file in tmp_path.glob("sparse/*.parquet"))
    for drop_below in (None, LIMIT):  # nothing to do
        index.compact(drop_below=drop_below)
        assert sorted(file.name for file in tmp_path.glob("sparse/*.parquet")) == content
    expected = {hit.path: hit.probability for hit in index.search("a", 300)}
    removed = index.paths[:200]
    index.remove(removed)  # most rows of the shard, so it is written again
    assert index.stored_share < 0.5
    index.remove(index.paths[:3])
    index.compact()
    assert index.stored_share < 0.5
    assert index.description.n_rows == len(index) == 97
    assert {hit.path: hit.probability for hit in index.search("a", 97)} == {
        path: expected[path] for path in index.paths
    }
    with pytest.raises(InputError, match=r"at least that of the index, 0\.05, .* got 0\.01\."):
        index.compact(drop_below=0.01)
    for invalid in (0, 0.6, float("nan")):
        with pytest.raises(InputError, match=r"drop_below must be in \(0, 0\.5\]; got"):
            index.compact(drop_below=invalid)


def test_rescoring_from_vectors_restores_exact_results(tmp_path):
    index = Index.create(tmp_path, made(60))
    index.compact(drop_below=LIMIT)
    index.rescore(IndexScoring(["x"], "other", "new", lambda v: (v[:, :1] * 1.0, v[:, :1] * 1.0)))
    assert index.drop_below is None
    vectors = np.concatenate([*index.image_vectors()]).astype(np.float32)
    np.testing.assert_allclose(index.probabilities("x"), expit(vectors[:, 0]), rtol=1e-6)


@pytest.mark.parametrize("is_merged", [False, True])
def test_rescoring_without_vectors_is_refused_with_the_reason(tmp_path, is_merged):
    index = Index.create(tmp_path, made(60, features=False))
    index.compact(drop_below=LIMIT)
    if is_merged:
        index.add(made(60, 100, features=False))
    scoring = IndexScoring(NAMES, "other", "new", lambda v: (v, v), lambda scores: scores)
    with pytest.raises(InputError, match=r"in sparse form \(--drop-below 0\.05\).* no raw scores"):
        index.rescore(scoring)
    assert Index.open(tmp_path).drop_below == LIMIT


def test_the_approximation_depends_on_the_query(tmp_path):
    index = Index.create(tmp_path, made(60))
    assert index.approximation("a & !b") == SearchApproximation()
    index.compact(drop_below=LIMIT)
    for searched in (index, ShardedIndex([index])):
        for query in ("a", "path:* & a<0.5", "a | like:/nowhere/0001.jpg"):
            if "|" not in query:
                assert searched.approximation(query).drop_below == LIMIT
        assert searched.approximation("path:*").sentences == []
        assert searched.approximation('~"two dogs"').sentences == []
        assert searched.approximation("a").sentences == [
            "The index stores only probabilities of at least 0.05; smaller probabilities are "
            "replaced by their mean for each label. Search results are approximate."
        ]


def test_a_sparse_index_can_have_graphs(tmp_path, monkeypatch):
    monkeypatch.setattr(hnsw_building, "EXACT_ROWS", 10)
    index = Index.create(tmp_path / "index", made(300))
    index.compact(drop_below=LIMIT)
    query = "like:/nowhere/0005.jpg#9 & a"
    expected = dict(zip(index.paths, index.probabilities("a").tolist(), strict=True))
    recall = index.build_ann()
    for searched in (Index.open(tmp_path / "index"), ShardedIndex([index])):
        hits = searched.search(query)
        assert [hit.probability for hit in hits] == [expected[hit.path] for hit in hits]
        assert len(hits) == 9
        assert searched.approximation(query) == SearchApproximation(LIMIT, recall)
        assert len(searched.approximation(query).sentences) == 2
        assert searched.approximation("like:/nowhere/0005.jpg#290").ann_recall is None
        assert "no probabilities below 0.05 are stored" in repr(searched)


@pytest.fixture
def sparse(tmp_path):
    index = Index.create(tmp_path, made(60, features=False))
    index.compact(drop_below=LIMIT)
    return tmp_path


def test_other_programs_read_the_file(sparse):
    file = next(sparse.glob("sparse-*.parquet"))
    table = pq.read_table(file).to_pandas()
    logits = made(60).logits
    expected = np.argwhere(expit(logits.T.astype(float)) >= LIMIT)
    assert table[["column", "row"]].to_numpy().tolist() == expected.tolist()
    assert np.array_equal(table["logit"], logits.T[tuple(expected.T)])
    assert pq.ParquetFile(file).metadata.num_row_groups == len(NAMES)


def change_entry(folder, change):
    """Change the entry of the shard in ``index.json``, with a new checksum."""
    file = folder / "index.json"
    fields = json.loads(file.read_text())
    change(fields["shards"][0])
    fields.pop("checksum")
    fields["checksum"] = index_manifest._index_manifest_checksum(fields)
    file.write_text(json.dumps(fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"drop_below": None}, "must have drop_below"),
        ({"drop_below": 0.7}, r"drop_below must be in \(0, 0\.5\]"),
        ({"drop_below": float("nan")}, r"drop_below must be in \(0, 0\.5\]"),
        ({"sparse_defaults": None}, "sparse_defaults must be"),
        ({"sparse_defaults": [-9.0, -9.0, -9.0, float("nan")]}, "sparse_defaults must be"),
        ({"sparse_defaults": [-9.0, -9.0, -9.0, "x"]}, "sparse_defaults must be"),
        ({"sparse_defaults": [-9.0] * 3}, "one number for each label"),
        ({"sparse_counts": None}, "sparse_counts must be"),
        ({"sparse_counts": [1, 1, 1, 61]}, "sparse_counts must be"),
        ({"sparse_counts": [1, 1, 1, True]}, "sparse_counts must be"),
        ({"step_columns": [1]}, "must not have step tables"),
        ({"unscored_columns": [1]}, "unscored_columns .* must be all columns"),
        ({"sparse_counts": None, "sparse_defaults": None}, "the files of shard 1 must be"),
        (
            {
                "sparse_counts": [0] * 3,
                "sparse_defaults": [-9.0] * 3,
                "unscored_columns": [0, 1, 2],
            },
            "one number for each of 4 labels",
        ),
    ],
)
def test_impossible_fields_are_damage(sparse, fields, message):
    change_entry(sparse, lambda entry: entry.update(fields))
    with pytest.raises(DataError, match=rf"index\.json is damaged: .*{message}"):
        Index.open(sparse)


def write_labels(folder, columns, groups=4):
    """Replace the sparse labels: the given values for label 0, and none for others."""
    file = next(folder.glob("sparse-*.parquet"))
    with pq.ParquetWriter(file, SPARSE_LABEL_SCHEMA) as writer:
        writer.write_table(pa.table(columns, schema=SPARSE_LABEL_SCHEMA))
        for _ in range(groups - 1):
            writer.write_table(SPARSE_LABEL_SCHEMA.empty_table())
    sizes = {"files": {file.name: file.stat().st_size}}

    def change(entry):
        entry["files"] |= sizes["files"]
        entry["sparse_counts"] = [2, 0, 0, 0]

    change_entry(folder, change)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([[0], [1], [2.0]], "expected 2 log-odds of label 0, got 1"),
        ([[0, 1], [1, 2], [2.0, 2.0]], "expected the table of label 0"),
        ([[0, None], [1, 2], [2.0, 2.0]], "the table of label 0 has empty cells"),
        ([[0, 0], [1, 2], [2.0, None]], "the table of label 0 has empty cells"),
        ([[0, 0], [1, 60], [2.0, 2.0]], r"label 0: row numbers must be in \[0, 60\)"),
        ([[0, 0], [2, 1], [2.0, 2.0]], "label 0: row numbers must be increasing"),
        ([[0, 0], [1, 2], [2.0, np.inf]], "label 0: the log-odds must be finite"),
        ([[0, 0], [1, 2], [2.0, -30.0]], "label 0: the stored log-odds must be above"),
    ],
)
def test_impossible_values_are_damage(sparse, columns, message):
    write_labels(sparse, columns)
    index = Index.open(sparse)
    with pytest.raises(DataError, match=rf"sparse-001\.parquet is damaged: {message}.*Restore"):
        index.search("a")
    assert len(index.search("b", 100)) == 60


def test_another_number_of_row_groups_or_other_columns_are_damage(sparse):
    write_labels(sparse, [[0, 0], [1, 2], [2.0, 2.0]], groups=3)
    with pytest.raises(DataError, match=r"sparse-001\.parquet is damaged: expected 4 row groups"):
        Index.open(sparse)
    file = next(sparse.glob("sparse-*.parquet"))
    pq.write_table(pa.table({"column": [1]}), file)
    change_entry(sparse, lambda entry: entry["files"].update({file.name: file.stat().st_size}))
    with pytest.raises(DataError, match=r"damaged: expected the columns \['column', 'row', 'logit"):
        Index.open(sparse)


def test_a_changed_byte_among_the_values_is_found(sparse):
    file = next(sparse.glob("sparse-*.parquet"))
    start = pq.ParquetFile(file).metadata.row_group(1).column(2)
    data = bytearray(file.read_bytes())
    data[start.data_page_offset + start.total_compressed_size - 3] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError, match=r"sparse-001\.parquet is damaged: the file cannot be read"):
        Index.open(sparse).search("b")


def test_a_missing_file_is_named(sparse):
    next(sparse.glob("sparse-*.parquet")).unlink()
    with pytest.raises(DataError, match=r"sparse-001\.parquet is damaged: expected .* no file"):
        Index.open(sparse)
