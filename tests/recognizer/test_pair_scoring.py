import numpy as np
import pytest
import torch

import surelabel as sl
from surelabel.config import load_run
from surelabel.data.bundled_collections import bundled_collection_folder
from surelabel.errors import NotFitted
from surelabel.recognizer import score_pairs
from surelabel.records import Features, PairFeatures, Pairs

CAPTIONS = ["a lion.", "a guitar", "a lion.", "a pizza on a bus"]


@pytest.fixture(scope="module")
def pairs():
    folder = bundled_collection_folder("scenes-80", split="validation")
    paths = [str(path) for path in sorted((folder / "images").iterdir())[:3]]
    return Pairs(paths, CAPTIONS, [0, 1, 1, 2])


def vectors(n=5):
    random = np.random.default_rng(0)
    return PairFeatures(random.normal(size=(n, 5)), random.normal(size=(n, 5)), np.arange(n))


def of_vectors(method, *settings):
    settings = ["encoder.name=features:5", f"method.name={method}", "epochs=1", *settings]
    return sl.Recognizer(load_run(None, settings), [])


def test_labels_methods_score_pairs_by_the_cosine_of_the_encoder(pairs):
    it = sl.Recognizer.zero_shot("tiny-vit", ["lion"])
    found = score_pairs(it, pairs)
    images = torch.tensor(it.predict(pairs.paths).features.astype(np.float32))
    expected = images @ it.encoder.encode_sentences(CAPTIONS).T
    np.testing.assert_allclose(found.scores, expected, atol=1e-3)
    assert np.array_equal(found.scores[:, 0], found.scores[:, 2])
    assert found.variances is None
    assert found.pairs.paths == pairs.paths


def test_methods_of_pairs_score_pairs_in_blocks(monkeypatch):
    it = of_vectors("probabilistic_embedding", "encoder.normalize=unit").fit(vectors())
    whole = score_pairs(it, vectors())
    monkeypatch.setattr("surelabel.recognizer.pair_scoring.IMAGES_PER_BLOCK", 2)
    blocks = score_pairs(it, vectors())
    np.testing.assert_allclose(blocks.scores, whole.scores, atol=1e-6)
    np.testing.assert_allclose(blocks.variances, whole.variances, rtol=1e-6)
    images, texts = (
        torch.tensor(x, dtype=torch.float32)
        for x in (vectors().image_vectors, vectors().text_vectors)
    )
    unit = torch.nn.functional.normalize
    with torch.no_grad():
        expected = it.method.pair_scores(
            Features(unit(images, dim=1)), Features(unit(texts, dim=1))
        )
    np.testing.assert_allclose(whole.scores, expected, atol=1e-5)


def test_unreadable_images_are_left_out_of_the_pairs(pairs, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    mixed = Pairs([str(broken), *pairs.paths[1:]], CAPTIONS, pairs.image_rows)
    with pytest.warns(UserWarning, match="1 of 3 images cannot be read"):
        found = score_pairs(sl.Recognizer.zero_shot("tiny-vit", ["lion"]), mixed)
    assert found.scores.shape == (2, 3)
    assert list(found.pairs.captions) == CAPTIONS[1:]
    assert found.pairs.image_rows.tolist() == [0, 0, 1]


def test_a_method_that_is_not_fitted_is_refused():
    with pytest.raises(NotFitted, match="must be fitted on pairs first"):
        score_pairs(of_vectors("cosine_projection"), vectors())
