"""The graph returns near rows, and a damaged file gives one line."""

import numpy as np
import pytest

from surelabel.errors import DataError, MissingPart
from surelabel.retrieval import hnsw_graph
from surelabel.retrieval.hnsw_graph import (
    HnswGraph,
    HnswRecord,
    check_usearch_is_installed,
    checksum_of_graph,
    write_hnsw_graph,
)


@pytest.fixture(scope="module")
def vectors():
    """Vectors of 3,000 images, of very different lengths."""
    random = np.random.default_rng(0)
    lengths = 10 ** random.uniform(-3, 3, (3000, 1))
    return (lengths * random.standard_normal((3000, 24))).astype(np.float16)


@pytest.fixture
def graph(tmp_path, vectors):
    """Graph of the even rows, as if the odd ones had been removed."""
    file, rows = tmp_path / "ann-000.usearch", np.arange(0, 3000, 2)
    blocks = [(part, vectors[part]) for part in np.array_split(rows, 3)]
    done = []
    checksum = write_hnsw_graph(file, 24, blocks, done.append)
    assert done == [500, 1000, 1500]
    return HnswGraph(file, file.stat().st_size, checksum, 3000)


def test_most_of_the_nearest_rows_are_returned(graph, vectors):
    unit = vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    shares = []
    for row in range(0, 100, 2):
        cosines = unit @ unit[row]
        cosines[1::2] = -2
        nearest = set(np.argsort(-cosines)[:50].tolist())
        rows = graph.nearest_rows(vectors[row], 100)
        assert len(rows) == 100
        assert (rows % 2 == 0).all()
        shares.append(len(nearest & set(rows.tolist())) / 50)
    assert np.mean(shares) > 0.97


def test_a_graph_returns_at_most_its_rows(graph, vectors):
    rows = graph.nearest_rows(vectors[1], 9999).tolist()
    assert set(rows) <= set(range(0, 3000, 2))
    assert 1450 < len(rows) == len(set(rows))  # a few rows can have no edge to them


@pytest.mark.parametrize("position", [0, 40, 5000, -1])
def test_a_changed_byte_is_found_before_the_file_is_opened(graph, vectors, position):
    content = bytearray(graph.file.read_bytes())
    content[position] ^= 1
    graph.file.write_bytes(content)
    assert graph.is_damaged()
    message = r"ann-000\.usearch is damaged: the checksum does not match\. Build the file again \("
    with pytest.raises(DataError, match=message):
        graph.nearest_rows(vectors[0], 5)


def test_a_missing_file_is_damage(graph, vectors):
    graph.file.unlink()
    assert graph.is_damaged()
    with pytest.raises(DataError, match=r"ann-000\.usearch"):
        graph.nearest_rows(vectors[0], 5)


def test_a_file_that_is_truncated_after_it_was_opened_is_not_read(graph, vectors):
    assert not graph.is_damaged()
    graph.nearest_rows(vectors[0], 5)
    with graph.file.open("r+b") as stream:
        stream.truncate(1000)
    assert graph.is_damaged()
    with pytest.raises(DataError, match="is damaged: the file size does not match"):
        graph.nearest_rows(vectors[0], 5)


def test_another_file_with_a_valid_checksum_is_damage(graph, vectors, tmp_path):
    noise = np.random.default_rng(0).bytes(5000)
    for content, message in (
        (b"", "version of usearch cannot read the file|the graph must"),
        (noise, "version of usearch cannot read the file"),
    ):
        file = tmp_path / "other.usearch"
        file.write_bytes(content)
        other = HnswGraph(file, len(content), checksum_of_graph(file), 3000)
        with pytest.raises(DataError, match=message):
            other.nearest_rows(vectors[0], 5)
    few = HnswGraph(graph.file, graph.size, graph.checksum, 10)
    with pytest.raises(DataError, match="must have at most 10 vectors"):
        few.nearest_rows(vectors[0], 5)
    with pytest.raises(DataError, match="the vectors must have 7 values"):
        graph.nearest_rows(vectors[0, :7], 5)


def test_zero_vectors_have_a_place_in_the_graph(tmp_path):
    file = tmp_path / "ann-000.usearch"
    blocks = [(np.arange(4), np.zeros((4, 3), np.float16))]
    checksum = write_hnsw_graph(file, 3, blocks, lambda n: None)
    graph = HnswGraph(file, file.stat().st_size, checksum, 4)
    assert set(graph.nearest_rows(np.ones(3), 2).tolist()) <= set(range(4))


@pytest.mark.parametrize(
    "entry",
    [
        {"checksum": 1.0, "recall": 0.5},
        {"checksum": 1, "recall": 2.0},
        {"checksum": 1, "recall": 1},
    ],
)
def test_an_invalid_record_is_refused(entry):
    with pytest.raises(ValueError, match=r"ann must have a checksum and a recall in \[0, 1\]"):
        HnswRecord.from_entry(entry)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(hnsw_graph, "find_spec", lambda name: None)
    with pytest.raises(MissingPart, match=r"needs the package usearch.*'surelabel\[ann\]'\.$"):
        check_usearch_is_installed()
