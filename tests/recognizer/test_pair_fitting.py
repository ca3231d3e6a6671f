import shutil

import numpy as np
import pytest
import torch

import surelabel as sl
from surelabel.config import load_run
from surelabel.data.bundled_collections import bundled_collection_folder
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.recognizer.pair_fitting import encode_pair_data
from surelabel.recognizer.pair_scoring import score_pair_data, score_pairs
from surelabel.recognizer.sentence_log_odds import sentence_scorer
from surelabel.records import LabelledFeatures, PairFeatures, Pairs

CAPTIONS = ["a lion.", "a guitar", "a lion.", "a pizza on a bus"]
IMAGE_ROWS = [0, 1, 1, 2]


@pytest.fixture(scope="module")
def images():
    folder = bundled_collection_folder("scenes-80", split="validation")
    return [str(path) for path in sorted((folder / "images").iterdir())[:3]]


def recognizer(*settings, names=()):
    overrides = ["encoder.name=tiny-vit", "method.name=cosine_projection", "epochs=2", *settings]
    return sl.Recognizer(load_run(None, overrides), list(names))


def vectors(n=6, width=5, text_width=7, seed=0):
    random = np.random.default_rng(seed)
    return PairFeatures(
        random.normal(size=(n, width)),
        random.normal(size=(2 * n, text_width)),
        np.arange(2 * n) // 2,
    )


def of_vectors(*settings):
    return recognizer("encoder.name=features:5", "method.text_width=7", *settings)


def test_equal_captions_are_encoded_once(images):
    it = recognizer()
    data = encode_pair_data(Pairs(images, CAPTIONS, IMAGE_ROWS), it.method, it.encoder, it.cache)
    assert len(data.texts.pooled) == 3
    assert data.text_rows.tolist() == [0, 1, 0, 2]
    assert data.image_rows.tolist() == IMAGE_ROWS
    expected = it.encoder.encode_sentences(["a guitar"])[0]
    torch.testing.assert_close(data.texts.pooled[1], expected, atol=1e-4, rtol=0)


def test_an_unreadable_image_is_left_out_with_its_captions(images, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    it = recognizer()
    pairs = Pairs([images[0], str(broken), images[2]], CAPTIONS, IMAGE_ROWS)
    with pytest.warns(UserWarning, match="1 of 3 images cannot be read"):
        data = encode_pair_data(pairs, it.method, it.encoder, it.cache)
    assert data.source_images.tolist() == [0, 2]
    assert data.image_rows.tolist() == [0, 1]
    assert len(data.texts.pooled) == 2


def test_captions_beyond_the_context_are_counted_in_one_warning(images):
    it = recognizer()
    pairs = Pairs(images[:2], ["a lion " * 30, "a guitar"], [0, 1])
    with pytest.warns(UserWarning, match="1 of 2 captions is longer.*up to 30 tokens"):
        encode_pair_data(pairs, it.method, it.encoder, it.cache)


def test_a_fit_on_images_with_captions_scores_labels_like_sentences_and_is_saved(images, tmp_path):
    it = recognizer(names=["lion", "guitar"]).fit(Pairs(images, CAPTIONS, IMAGE_ROWS))
    assert it.calibrated_on == "by its loss alone (binary on pairs)"
    predictions = it.predict(images)
    it.save(tmp_path / "saved")
    loaded = sl.Recognizer.load(tmp_path / "saved")
    assert np.array_equal(loaded.predict(images).scores, predictions.scores)
    assert np.array_equal(
        loaded.with_names(["guitar"]).predict(images).scores[:, 0], predictions.scores[:, 1]
    )


def test_a_fit_without_labels_is_saved_and_takes_labels_later(images, tmp_path):
    it = recognizer().fit(Pairs(images, CAPTIONS, IMAGE_ROWS))
    with pytest.raises(
        InputError, match="Predictions require labels; cosine_projection was fitted"
    ):
        it.predict(images)
    it.save(tmp_path / "saved")
    loaded = sl.Recognizer.load(tmp_path / "saved")
    assert loaded.names == []
    assert loaded.with_names(["lion"]).predict(images).scores.shape == (3, 1)


def test_vectors_of_two_widths_are_fitted_and_repeat_with_the_seed():
    first, second = (of_vectors().fit(vectors()) for _ in range(2))
    assert (
        first.fingerprint == second.fingerprint != of_vectors("seed=1").fit(vectors()).fingerprint
    )
    assert not np.array_equal(of_vectors().method.bias.item(), first.method.bias.item())


def test_an_interrupted_fit_resumes_and_refuses_other_captions(tmp_path):
    checkpoint = tmp_path / "fit.unfinished"
    whole = of_vectors("epochs=4").fit(vectors())
    calls = []

    def stop_after_two_epochs(done, total):
        calls.append(done)
        if len(calls) == 2:
            raise KeyboardInterrupt("stopped here")

    with pytest.raises(KeyboardInterrupt, match="stopped here"):
        of_vectors("epochs=4").fit(vectors(), checkpoint=checkpoint, progress=stop_after_two_epochs)
    with pytest.raises(DataError, match="another run"):
        of_vectors("epochs=4").fit(vectors(seed=1), checkpoint=checkpoint)
    resumed = of_vectors("epochs=4").fit(vectors(), checkpoint=checkpoint)
    assert resumed.fingerprint == whole.fingerprint


@pytest.mark.parametrize("loss", ["contrastive", "binary"])
def test_regularizers_compare_the_captions_of_a_batch(loss):
    settings = [f"loss.name={loss}", "regularizer.name=class_covariance_of_softmax"]
    plain = of_vectors(f"loss.name={loss}").fit(vectors(20))
    regularized = of_vectors(*settings, "regularizer_weight=1.0").fit(vectors(20))
    assert plain.fingerprint != regularized.fingerprint


def test_other_data_and_folds_are_refused(images):
    pairs = Pairs(images, CAPTIONS, IMAGE_ROWS)
    with pytest.raises(
        ConfigError, match="linear is not fitted on images with captions; got Pairs"
    ):
        sl.Recognizer(load_run(None, ["method.name=linear"]), ["lion"]).fit(pairs)
    with pytest.raises(ConfigError, match="is fitted on images with captions; got Labelled"):
        of_vectors().fit(LabelledFeatures(np.ones((2, 5)), ["lion"], np.ones((2, 1))))
    with pytest.raises(ConfigError, match="Remove folds"):
        recognizer().fit(pairs, folds=2)
    with pytest.raises(InputError, match="must be given without targets; got targets"):
        recognizer().fit(pairs, np.ones((3, 1)))
    with pytest.raises(InputError, match="captions of at least 2 images"):
        recognizer().fit(Pairs(images[:1], ["a lion"], [0]))
    with pytest.raises(InputError, match="must have 5 columns"):
        of_vectors().fit(vectors(width=6))


def test_the_captions_of_missing_images_are_named(images, tmp_path):
    copy = tmp_path / "copy.png"
    shutil.copy(images[0], copy)
    pairs = Pairs([str(copy), images[1]], ["a lion", "a guitar"], [0, 1])
    copy.unlink()
    with (
        pytest.warns(UserWarning, match="1 of 2 images cannot be read"),
        pytest.raises(InputError, match="captions of at least 2 images"),
    ):
        recognizer().fit(pairs)


def test_a_fit_with_trained_blocks_is_saved_with_their_weights(images, tmp_path):
    settings = ("method.name=variational", "method.trained_blocks=1", "learning_rate=0.01")
    it, pairs = recognizer(*settings, names=["lion"]), Pairs(images, CAPTIONS, IMAGE_ROWS)
    frozen = recognizer("method.name=variational", names=["lion"])
    for method in (it.method, frozen.method):
        method.eval()
    start = score_pair_data(it.method, encode_pair_data(pairs, it.method, it.encoder, it.cache))
    expected = score_pair_data(
        frozen.method, encode_pair_data(pairs, frozen.method, it.encoder, it.cache)
    )
    np.testing.assert_allclose(start[0], expected[0], atol=0.05)  # tokens in half precision
    it.fit(pairs)
    scores = score_pairs(it, pairs).scores
    assert np.abs(scores - start[0]).max() > 0.1
    it.save(tmp_path / "saved")
    loaded = sl.Recognizer.load(tmp_path / "saved")
    assert np.array_equal(score_pairs(loaded, pairs).scores, scores)
    predictions = it.predict(images)
    assert np.array_equal(loaded.predict(images).scores, predictions.scores)
    index = sl.Index.create(tmp_path / "index", predictions)
    with pytest.raises(ConfigError, match="variational also needs ladder"):
        sentence_scorer(index, it, ["a lion"])


def test_vectors_are_refused_with_trained_blocks():
    it = recognizer("method.name=variational", "method.trained_blocks=1")
    with pytest.raises(ConfigError, match="The method needs ladder of images and tokens"):
        it.fit(vectors(width=it.encoder.width, text_width=it.encoder.width))


def test_trained_blocks_and_another_width_of_texts_are_refused():
    with pytest.raises(ConfigError, match="Remove text_width, or set trained_blocks=0"):
        recognizer("method.name=variational", "method.trained_blocks=1", "method.text_width=7")
