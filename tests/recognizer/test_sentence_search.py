import shutil
from dataclasses import replace

import numpy as np
import pytest

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.methods import METHODS, Linear
from surelabel.recognizer import (
    Recognizer,
    index_images_with_recognizer,
    recognizer_of_index,
    search_by_sentence,
)
from surelabel.retrieval import Index, shards

TEXT = "a photo of a lion beside a guitar"
NAMES = ["lion", "guitar|violin"]


class LinearWithPairs(Linear):
    """Linear head that also scores pairs, by the negative squared cosine."""

    def pair_scores(self, images, texts):
        return -((images.pooled @ texts.pooled.T) ** 2)

    training_pair_scores = pair_scores

    def pair_variances(self, images, texts):
        return 2 + images.pooled @ texts.pooled.T


@pytest.fixture(scope="module")
def images():
    return collection("scenes-80", split="test").take(range(40))


@pytest.fixture(scope="module")
def recognizer():
    return Recognizer.zero_shot("tiny-vit", NAMES)


@pytest.fixture(scope="module")
def predictions(images, recognizer):
    return recognizer.predict(images)


@pytest.fixture(scope="module")
def index(tmp_path_factory, predictions):
    """An index with removed rows in two shards, which no test changes."""
    parts = [range(25), range(25, 40)]
    first, second = (
        replace(
            predictions,
            paths=[predictions.paths[i] for i in part],
            scores=predictions.scores[part],
            logits=predictions.logits[part],
            features=predictions.features[part],
            hashes=None,
        )
        for part in parts
    )
    it = Index.create(tmp_path_factory.mktemp("search") / "index", first)
    it.add(second)
    it.remove([predictions.paths[i] for i in (0, 7, 30)])
    return it


def cosines(predictions, recognizer, text=TEXT):
    """Return the cosine of each image that was not removed, by path."""
    vectors = predictions.features.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values = vectors @ recognizer.encoder.encode_sentences([text])[0].double().numpy()
    pairs = enumerate(zip(predictions.paths, values, strict=True))
    return {path: value for i, (path, value) in pairs if i not in (0, 7, 30)}


@pytest.mark.parametrize("k", [1, 5, 100])
@pytest.mark.parametrize("block", [4, 1 << 14])
def test_the_hits_are_the_images_with_the_highest_cosine(
    monkeypatch, index, predictions, recognizer, k, block
):
    monkeypatch.setattr(shards, "FEATURE_BLOCK_ROWS", block)
    hits = search_by_sentence(index, recognizer, TEXT, k=k)
    expected = cosines(predictions, recognizer)
    order = sorted(expected, key=lambda path: -expected[path])[:k]
    assert [hit.path for hit in hits] == order
    np.testing.assert_allclose([h.similarity for h in hits], [expected[p] for p in order], 1e-5)
    assert {hit.uncertainty for hit in hits} == {None}


@pytest.fixture
def pair_recognizer(monkeypatch, images):
    """A recognizer whose method scores pairs."""
    monkeypatch.setitem(METHODS, "linear_with_pairs", LinearWithPairs)
    run = load_run(overrides=["method.name=linear_with_pairs", "epochs=1"])
    counts = images.targets.sum(axis=0)
    return Recognizer(run, [images.names[i] for i in counts.argsort()[-2:]]).fit(images)


def test_a_method_for_pairs_scores_the_images_and_estimates_the_uncertainty(
    pair_recognizer, images, tmp_path
):
    predictions = pair_recognizer.predict(images)
    index = Index.create(tmp_path / "index", predictions)
    hits = search_by_sentence(index, pair_recognizer, TEXT, k=40)
    vectors = predictions.features.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = vectors @ pair_recognizer.encoder.encode_sentences([TEXT])[0].double().numpy()
    order = np.argsort(cosine**2)
    np.testing.assert_allclose([hit.similarity for hit in hits], -(cosine[order] ** 2), atol=1e-5)
    of_path = dict(zip(predictions.paths, cosine, strict=True))
    for hit in hits:
        assert hit.uncertainty == pytest.approx(2 + of_path[hit.path], abs=1e-4)


def test_a_method_that_needs_more_than_the_vectors_is_refused(pair_recognizer, images, tmp_path):
    index = Index.create(tmp_path / "index", pair_recognizer.predict(images))
    pair_recognizer.method.needs = ("self_aware",)
    with pytest.raises(ConfigError, match="linear_with_pairs also needs self_aware"):
        search_by_sentence(index, pair_recognizer, TEXT)


def test_text_vectors_of_another_width_are_refused(pair_recognizer, images, tmp_path):
    choice = replace(pair_recognizer.run.method, settings={"text_width": 17})
    pair_recognizer.run = replace(pair_recognizer.run, method=choice)
    index = Index.create(tmp_path / "index", pair_recognizer.predict(images))
    wanted = f"of width 17; tiny-vit .* of width {pair_recognizer.encoder.width}"
    with pytest.raises(ConfigError, match=wanted):
        search_by_sentence(index, pair_recognizer, TEXT)


def test_an_index_without_vectors_is_refused(tmp_path, predictions, recognizer):
    index = Index.create(tmp_path / "index", replace(predictions, features=None))
    with pytest.raises(InputError, match=r"needs image vectors; .*index has none\. Build"):
        search_by_sentence(index, recognizer, TEXT)


@pytest.mark.parametrize(("text", "k", "message"), [(" \n", 3, "text must"), (TEXT, 0, "k, the")])
def test_an_empty_text_and_no_image_are_refused(index, recognizer, text, k, message):
    with pytest.raises(InputError, match=message):
        search_by_sentence(index, recognizer, text, k=k)


def test_another_recognizer_is_refused(index, recognizer):
    other = Recognizer.zero_shot("tiny-vit", ["lion"])
    wanted = rf"recognizer {index.model}; got the recognizer {other.fingerprint}. Give"
    with pytest.raises(InputError, match=wanted):
        search_by_sentence(index, other, TEXT)


def test_an_encoder_without_texts_is_refused(images, tmp_path):
    vectors = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    run = load_run(overrides=["encoder.name=features:6", "method.name=linear", "epochs=1"])
    recognizer = Recognizer(run, ["a", "b"]).fit(vectors, np.eye(2)[np.arange(40) % 2])
    index = Index.create(tmp_path / "index", recognizer.predict(vectors))
    with pytest.raises(ConfigError, match="features:6 has no text tower"):
        search_by_sentence(index, recognizer, TEXT)


def test_a_sentence_longer_than_the_context_is_cut_with_a_warning(index, recognizer):
    context = recognizer.encoder.tokenizer.context_length
    long = " ".join(["lion"] * (context + 3))
    with pytest.warns(UserWarning, match="longer than the context of tiny-vit; the last 5 tokens"):
        hits = search_by_sentence(index, recognizer, long)
    same = " ".join(["lion"] * (context - 2))
    assert hits == search_by_sentence(index, recognizer, same)


def test_damaged_vectors_are_refused(index, recognizer, tmp_path):
    folder = shutil.copytree(index.folder, tmp_path / "index")
    file = min(folder.glob("features-*.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"features-\d+\.npy is damaged: the checksum"):
        search_by_sentence(Index.open(folder), recognizer, TEXT)


def test_an_index_without_images_has_no_hits(index, recognizer, tmp_path):
    empty = Index.open(shutil.copytree(index.folder, tmp_path / "index"))
    empty.remove(empty.paths)
    assert search_by_sentence(empty, recognizer, TEXT) == []


@pytest.fixture
def recorded(images, recognizer, tmp_path, monkeypatch):
    """An index that records a saved recognizer, by a relative path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    recognizer.save("recognizer")
    update = index_images_with_recognizer("index", recognizer, images.paths[:3], model="recognizer")
    return update.index


def test_the_recorded_recognizer_is_loaded_from_any_folder(recorded, tmp_path, monkeypatch):
    assert recorded.recognizer.model == str(tmp_path / "recognizer")
    assert list(recorded.recognizer.labels) == NAMES
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    loaded = recognizer_of_index(Index.open(tmp_path / "index"))
    assert loaded.fingerprint == recorded.model
    assert len(search_by_sentence(recorded, loaded, TEXT)) == 3


def test_a_recognizer_that_was_moved_is_named_again(recorded, recognizer, images, tmp_path):
    shutil.move("recognizer", "moved")
    with pytest.raises(InputError, match=rf"must be in {tmp_path}/recognizer; .* with --model"):
        recognizer_of_index(recorded)
    assert recognizer_of_index(recorded, "moved").fingerprint == recorded.model
    arguments = ("index", recognizer, images.paths[:3])
    assert index_images_with_recognizer(*arguments).index.recognizer == recorded.recognizer
    index_images_with_recognizer(*arguments, model="moved")
    assert recognizer_of_index(Index.open("index")).fingerprint == recorded.model


def test_an_encoder_as_model_gets_the_recorded_labels(recorded):
    assert recognizer_of_index(recorded, "tiny-vit").names_with_aliases == NAMES
    with pytest.raises(InputError, match="got the recognizer"):
        recognizer_of_index(recorded, "tiny-rn")


def test_an_index_that_records_no_recognizer_needs_a_model(index, recognizer, tmp_path):
    with pytest.raises(InputError, match=r"does not record\. Give --model"):
        recognizer_of_index(index)
    recognizer.save(tmp_path / "recognizer")
    assert recognizer_of_index(index, str(tmp_path / "recognizer")).fingerprint == index.model
