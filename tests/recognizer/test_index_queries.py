"""Sentences and examples of queries, with the recognizer of an index."""

import shutil

import numpy as np
import pytest

import surelabel as sl
from surelabel.errors import DataError, InputError
from surelabel.retrieval import Index


@pytest.fixture(scope="module")
def images():
    return sl.collection("scenes-80", split="test").take(range(30))


@pytest.fixture(scope="module")
def predictions(images):
    return sl.Recognizer.zero_shot("tiny-vit", ["lion", "guitar"]).predict(images)


@pytest.fixture(scope="module")
def index(tmp_path_factory, predictions):
    return Index.create(tmp_path_factory.mktemp("index") / "index", predictions)


def test_a_search_by_sentence_has_the_log_odds_of_the_scorer(index, predictions):
    encoder = sl.query_encoder(index, "tiny-vit")
    scorer = encoder.score_sentences(["a lion"])
    logits = scorer.logits(predictions.features)[:, 0].astype(float)
    expected = dict(zip(predictions.paths, 1 / (1 + np.exp(-logits)), strict=True))
    hits = index.search('~"a lion"', None, encoder=encoder)
    assert [hit.path for hit in hits] == sorted(expected, key=lambda path: -expected[path])
    for hit in hits:
        assert hit.probability == pytest.approx(expected[hit.path], rel=1e-5)
        assert hit.terms == {'~"a lion"': pytest.approx(expected[hit.path], rel=1e-5)}
        assert hit.uncertainties == {}


def test_an_example_has_the_vector_that_an_index_stores(index, predictions, tmp_path):
    shutil.copy(predictions.paths[4], tmp_path / "copy.jpg")
    encoder = sl.query_encoder(index, "tiny-vit")
    vector = encoder.encode_example(str(tmp_path / "copy.jpg"))
    np.testing.assert_allclose(vector, predictions.features[4].astype(np.float32), atol=2e-3)
    found = index.search(f"like:{tmp_path}/copy.jpg#5", encoder=encoder)
    same = index.search(f"like:{predictions.paths[4]}#5")
    assert [hit.path for hit in found] == [hit.path for hit in same]
    assert found[0].path == predictions.paths[4]


def test_an_example_that_is_no_image_is_refused(index, tmp_path):
    encoder = sl.query_encoder(index, "tiny-vit")
    (tmp_path / "no.jpg").write_text("no image")
    for name in ("no.jpg", "missing.jpg"):
        with pytest.raises(DataError, match=rf"{name}"):
            encoder.encode_example(str(tmp_path / name))


def test_the_recognizer_is_loaded_when_it_is_needed(index):
    encoder = sl.query_encoder(index, "tiny-rn")
    assert len(index.search("lion", 3, encoder=encoder)) == 3
    with pytest.raises(InputError, match="got the recognizer"):
        index.search('~"a lion"', encoder=encoder)


def test_damaged_vectors_are_refused(index, tmp_path):
    folder = shutil.copytree(index.folder, tmp_path / "index")
    file = min(folder.glob("features-*.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    damaged = Index.open(folder)
    encoder = sl.query_encoder(damaged, "tiny-vit")
    for query in ('~"a lion"', f"like:{damaged.paths[0]}"):
        with pytest.raises(DataError, match=r"features-\d+\.npy is damaged: the checksum"):
            damaged.search(query, encoder=encoder)


def test_an_index_without_images_has_no_hits(index, tmp_path):
    empty = Index.open(shutil.copytree(index.folder, tmp_path / "index"))
    empty.remove(empty.paths)
    assert empty.search('~"a lion"', encoder=sl.query_encoder(empty, "tiny-vit")) == []
