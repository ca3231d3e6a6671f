import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import reference_names
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.recognizer import (
    Recognizer,
    index_images_with_recognizer,
    recognizer_of_index,
    sentence_log_odds,
)
from surelabel.recognizer.sentence_log_odds import sentence_scorer
from surelabel.records import Features, Images, PairFeatures
from surelabel.retrieval import Index

NAMES = ["lion", "guitar"]
SENTENCES = ["a lion beside a guitar", "a photo of a lion.", "a|b"]


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
    return Index.create(tmp_path_factory.mktemp("sentences") / "index", predictions)


def index_of(recognizer, images, folder):
    return Index.create(folder / "index", recognizer.predict(images))


def frequent_names(images, count=4):
    """Return the labels with the most positive images."""
    return [images.names[i] for i in images.targets.sum(axis=0).argsort()[-count:]]


def labelled(images, names):
    """Return the images with some of their labels."""
    columns = [images.names.index(name) for name in names]
    targets, known = images.targets[:, columns], images.known[:, columns]
    return replace(images, names=names, targets=targets, known=known)


def zero_shot_scores_by_hand(encoder, vectors, sentences, template="a photo of a {}."):
    """Return tau * (cos(x, t) - r(x)) in double precision, one pair at a time, ``(n, s)``."""
    x = vectors.astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    texts = encoder.encode_sentences(sentences).double().numpy()
    reference = encoder.encode_sentences([template.replace("{}", r) for r in reference_names()])
    reference = reference.double().numpy()
    scores = np.empty((len(x), len(sentences)))
    for i in range(len(x)):
        level = np.log(np.mean(np.exp(encoder.scale * (reference @ x[i]))))
        for j in range(len(sentences)):
            scores[i, j] = encoder.scale * (texts[j] @ x[i]) - level
    return scores


def beta_by_hand(scores, slopes, shift):
    p = expit(scores)
    return slopes[0] * np.log(p) - slopes[1] * np.log1p(-p) + shift


def test_the_log_odds_are_the_calibrated_zero_shot_scores(index, recognizer, predictions):
    scorer = sentence_scorer(index, recognizer, SENTENCES)
    logits = scorer.logits(predictions.features)
    scores = zero_shot_scores_by_hand(recognizer.encoder, predictions.features, SENTENCES)
    state = recognizer.calibration.calibrator.state()  # that of the package, for any label
    expected = beta_by_hand(scores, state["slopes"], state["shift"])
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, expected, atol=2e-4)
    assert scorer.sentences == tuple(SENTENCES)
    assert scorer.calibration == recognizer.calibrated_on
    assert scorer.variances(predictions.features) is None


def test_the_text_of_a_label_has_the_log_odds_of_the_label(index, recognizer, predictions):
    logits = sentence_scorer(index, recognizer, SENTENCES).logits(predictions.features)
    np.testing.assert_allclose(logits[:, 1], predictions.logits[:, 0], atol=0.02)  # vectors: fp16
    assert (logits[:, 0] != predictions.logits[:, 0]).all()


def test_a_higher_cosine_relative_to_the_reference_list_has_higher_log_odds(
    index, recognizer, predictions
):
    vectors = predictions.features
    logits = sentence_scorer(index, recognizer, SENTENCES).logits(vectors)
    scores = zero_shot_scores_by_hand(recognizer.encoder, vectors, SENTENCES)
    for column in range(len(SENTENCES)):
        order = np.argsort(scores[:, column])
        assert (np.diff(logits[order, column]) > -1e-4).all()


@pytest.mark.parametrize("block", [1, 7])
def test_the_log_odds_do_not_depend_on_the_blocks(
    monkeypatch, index, recognizer, predictions, block
):
    scorer = sentence_scorer(index, recognizer, SENTENCES)
    whole = scorer.logits(predictions.features)
    parts = [scorer.logits(predictions.features[part]) for part in (slice(0, 9), slice(9, 40))]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-5)
    monkeypatch.setattr(sentence_log_odds, "SENTENCE_BLOCK_ROWS", block)
    np.testing.assert_allclose(scorer.logits(predictions.features), whole, atol=1e-5)
    assert scorer.logits(predictions.features[:0]).shape == (0, 3)


@pytest.mark.parametrize(
    "settings",
    [
        ["method.name=linear", "epochs=1"],
        ['method.templates=["a {}", "one {}"]', "calibrator.name=platt"],
        ["method.domain=cosine", "method.scale=3", "calibrator.name=platt"],
    ],
)
def test_the_log_odds_depend_only_on_the_encoder(
    index, recognizer, predictions, images, tmp_path, settings
):
    part = labelled(images, frequent_names(images))
    other = Recognizer(load_run(overrides=["method.name=zero_shot", *settings]), part.names)
    if not other.is_fitted:
        other.fit(part)
    elif other.calibration is None:
        other.calibrate(part)
    other_index = index_of(other, images, tmp_path)
    logits = sentence_scorer(other_index, other, SENTENCES).logits(predictions.features)
    expected = sentence_scorer(index, recognizer, SENTENCES).logits(predictions.features)
    np.testing.assert_array_equal(logits, expected)


# --- calibration of the index, for an encoder without a calibration --------------------------


@pytest.fixture
def indexed(images, random_checkpoint, tmp_path):
    """Return a function that indexes images with a zero-shot recognizer of a checkpoint."""

    def make(*settings, source=None, checkpoint=random_checkpoint):
        overrides = [f"encoder.name=local-dir:{checkpoint}", "method.name=zero_shot", *settings]
        recognizer = Recognizer(load_run(overrides=overrides), frequent_names(images))
        if source is not None:
            recognizer.calibrate(source)
        return index_of(recognizer, images, tmp_path), recognizer

    return make


@pytest.fixture
def unlabelled(images):
    return Images(images.paths)


def test_the_calibration_without_labels_of_the_index_is_used(indexed, images, unlabelled):
    index, recognizer = indexed("calibrator.name=platt", source=unlabelled)
    (vectors,) = index.image_vectors()
    sentence = f"a photo of a {recognizer.names[0]}."
    scorer = sentence_scorer(index, recognizer, [sentence, "two dogs"])
    scores = zero_shot_scores_by_hand(recognizer.encoder, vectors, scorer.sentences)
    state = recognizer.calibration.calibrator.state()
    expected = state["slope"] * scores + state["shift"]
    np.testing.assert_allclose(scorer.logits(vectors), expected, atol=1e-3)
    np.testing.assert_allclose(
        scorer.logits(vectors)[:, 0], recognizer.predict(images).logits[:, 0], atol=0.02
    )
    assert scorer.calibration == recognizer.calibrated_on


def test_the_recorded_calibration_of_an_index_is_found_again(images, random_checkpoint, tmp_path):
    model = f"local-dir:{random_checkpoint}"
    recognizer = Recognizer.zero_shot(model, NAMES).calibrate(Images(images.paths[:8]))
    index_images_with_recognizer(tmp_path / "index", recognizer, images.paths[:8], model=model)
    index = Index.open(tmp_path / "index")
    (vectors,) = index.image_vectors()
    first = sentence_scorer(index, recognizer, SENTENCES).logits(vectors)
    loaded = recognizer_of_index(index)
    assert np.array_equal(sentence_scorer(index, loaded, SENTENCES).logits(vectors), first)


@pytest.mark.parametrize(
    ("settings", "obstacle"),
    [
        (["calibrator.name=hierarchical"], r"has parameters per label \(hierarchical\)"),
        (["method.domain=softmax"], "scores that depend on the other labels"),
        (['method.templates=["a {}", "one {}"]'], "was fitted with 2 prompt templates"),
    ],
)
def test_a_calibration_that_does_not_apply_to_sentences_is_refused(
    indexed, unlabelled, settings, obstacle
):
    index, recognizer = indexed(*settings, source=unlabelled)
    wanted = (
        rf"has no such calibration, and the calibration of the index .*{obstacle}\. "
        r".*--calibrate-unlabelled"
    )
    with pytest.raises(NotFitted, match=wanted):
        sentence_scorer(index, recognizer, SENTENCES)


def test_without_a_calibration_of_the_encoder_the_sentence_is_refused(indexed, images):
    index, recognizer = indexed(source=labelled(images, frequent_names(images)))
    with pytest.raises(
        NotFitted, match=r"checkpoint has no such calibration\. .*--calibrate-unlabelled"
    ) as error:
        sentence_scorer(index, recognizer, SENTENCES)
    assert "\n" not in str(error.value)


def test_the_bias_of_an_encoder_of_the_sigmoid_loss_gives_log_odds(indexed, sigmoid_checkpoint):
    index, recognizer = indexed(checkpoint=sigmoid_checkpoint)
    (vectors,) = index.image_vectors()
    scorer = sentence_scorer(index, recognizer, SENTENCES)
    x = vectors.astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    texts = recognizer.encoder.encode_sentences(SENTENCES).double().numpy()
    np.testing.assert_allclose(scorer.logits(vectors), 20 * x @ texts.T - 2, atol=1e-4)
    assert scorer.calibration == "model"


# --- methods that score pairs ----------------------------------------------------------------


@pytest.fixture(scope="module")
def make_pair_recognizer(predictions, recognizer):
    """Return a function that fits a method on the vectors of images and captions."""
    captions = [f"a scene with a {name}" for name in reference_names()[:40]]
    texts = recognizer.encoder.encode_sentences(captions).numpy()
    pairs = PairFeatures(predictions.features.astype(np.float32), texts, np.arange(40))

    def make(method, *settings):
        overrides = ["encoder.name=tiny-vit", f"method.name={method}", "epochs=1", *settings]
        return Recognizer(load_run(overrides=overrides), NAMES).fit(pairs)

    return make


def test_a_method_for_pairs_computes_log_odds_and_variances(
    make_pair_recognizer, index, recognizer, images, tmp_path
):
    it = make_pair_recognizer("variational")
    pair_index = index_of(it, images, tmp_path)
    (vectors,) = pair_index.image_vectors()
    scorer = sentence_scorer(pair_index, it, SENTENCES)
    logits, variances = scorer.logits(vectors), scorer.variances(vectors)
    np.testing.assert_allclose(logits[:, 1], it.predict(images).logits[:, 0], atol=0.02)
    zero_shot = sentence_scorer(index, recognizer, SENTENCES).logits(vectors)
    assert np.abs(logits - zero_shot).max() > 0.1
    assert scorer.calibration == "by its loss alone (binary on pairs)"
    x = torch.nn.functional.normalize(torch.tensor(vectors.astype(np.float32)), dim=-1)
    texts = Features(recognizer.encoder.encode_sentences(SENTENCES))
    expected = [it.method.pair_variances(Features(row[None]), texts)[0].numpy() for row in x]
    np.testing.assert_allclose(variances, expected, rtol=1e-4)


@pytest.mark.parametrize("calibrator", ["platt", "hierarchical"])
def test_the_calibration_of_pairs_is_that_of_the_method(
    make_pair_recognizer, images, tmp_path, calibrator
):
    it = make_pair_recognizer("variational", f"calibrator.name={calibrator}")
    index = index_of(it, images, tmp_path / "raw")
    (vectors,) = index.image_vectors()
    raw = sentence_scorer(index, it, SENTENCES).logits(vectors)
    it.calibrate(labelled(images, NAMES))
    logits = sentence_scorer(index_of(it, images, tmp_path), it, SENTENCES).logits(vectors)
    shared = it.calibration.calibrator.shared_calibrator()
    np.testing.assert_allclose(logits, shared.logits(raw), atol=1e-4)
    assert np.abs(logits - raw).max() > 0.1


def test_a_method_for_pairs_without_calibration_is_refused(
    make_pair_recognizer, predictions, tmp_path
):
    it = make_pair_recognizer("cosine_projection", "loss.name=info_nce")
    index = Index.create(tmp_path / "index", replace(predictions, model=it.fingerprint))
    with pytest.raises(NotFitted, match="cosine_projection for sentences are not calibrated"):
        sentence_scorer(index, it, SENTENCES)


def test_a_method_for_pairs_that_is_not_fitted_is_refused(predictions, tmp_path):
    it = Recognizer(load_run(overrides=["method.name=variational"]), NAMES)
    unfitted = Index.create(tmp_path / "index", replace(predictions, model=it.fingerprint))
    with pytest.raises(NotFitted, match="must be fitted on pairs first"):
        sentence_scorer(unfitted, it, SENTENCES)


# --- inputs ----------------------------------------------------------------------------------


def test_a_method_that_encodes_images_at_another_size_is_refused(images, tmp_path):
    few = images.take(range(6))
    part = labelled(few, frequent_names(few))
    run = load_run(overrides=["method.name=multiple_instance_patches", "epochs=1"])
    it = Recognizer(run, part.names).fit(part)
    index = index_of(it, few, tmp_path)
    with pytest.raises(NotFitted, match=r"image size 96 pixels; multiple_instance_patches .* 192"):
        sentence_scorer(index, it, SENTENCES)


def test_an_index_without_vectors_is_refused(predictions, recognizer, tmp_path):
    index = Index.create(tmp_path / "index", replace(predictions, features=None))
    with pytest.raises(
        InputError, match=r"needs image vectors; .*index contains no image vectors\. Build"
    ):
        sentence_scorer(index, recognizer, SENTENCES)


def test_vectors_of_another_width_are_refused(predictions, recognizer, index, tmp_path):
    narrow = replace(predictions, features=predictions.features[:, :5])
    other = Index.create(tmp_path / "index", narrow)
    with pytest.raises(InputError, match=r"width of tiny-vit, \d+; got 5\. Build"):
        sentence_scorer(other, recognizer, SENTENCES)
    with pytest.raises(InputError, match="vectors must have axes"):
        sentence_scorer(index, recognizer, SENTENCES).logits(narrow.features)


def test_an_index_without_images_needs_no_vectors(index, recognizer, predictions, tmp_path):
    empty = Index.open(shutil.copytree(index.folder, tmp_path / "index"))
    empty.remove(empty.paths)
    scorer = sentence_scorer(empty, recognizer, SENTENCES)
    assert scorer.logits(predictions.features[:0]).shape == (0, 3)


def test_another_recognizer_is_refused(index):
    with pytest.raises(InputError, match="got the recognizer"):
        sentence_scorer(index, Recognizer.zero_shot("tiny-vit", ["lion"]), SENTENCES)


@pytest.mark.parametrize(
    ("sentences", "message"), [(["a lion", " \n"], "at least one word"), ("a lion", "a list of")]
)
def test_an_empty_sentence_and_a_text_alone_are_refused(index, recognizer, sentences, message):
    with pytest.raises(InputError, match=message):
        sentence_scorer(index, recognizer, sentences)


def test_an_encoder_without_texts_is_refused(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    run = load_run(overrides=["encoder.name=features:6", "method.name=linear", "epochs=1"])
    it = Recognizer(run, ["a", "b"]).fit(vectors, np.eye(2)[np.arange(40) % 2])
    index = Index.create(tmp_path / "index", it.predict(vectors))
    with pytest.raises(ConfigError, match="features:6 has no text tower"):
        sentence_scorer(index, it, SENTENCES)


@pytest.mark.parametrize("setting", ["needs", "text_width"])
def test_a_method_for_pairs_with_other_inputs_is_refused(
    make_pair_recognizer, images, tmp_path, setting
):
    it = make_pair_recognizer("variational")
    index = index_of(it, images, tmp_path)
    if setting == "needs":
        it.method.needs = ("patches",)
        message = "variational also needs patches"
    else:
        it.run = replace(it.run, method=replace(it.run.method, settings={"text_width": 17}))
        index = index_of(it, images, tmp_path / "other")
        message = "text vectors of width 17"
    with pytest.raises(ConfigError, match=message):
        sentence_scorer(index, it, SENTENCES)


def test_a_sentence_longer_than_the_context_is_cut_with_a_warning(index, recognizer, predictions):
    context = recognizer.encoder.tokenizer.context_length
    long, same = (" ".join(["lion"] * (context + more)) for more in (3, -2))
    with pytest.warns(
        UserWarning, match="is longer than the context of tiny-vit.*the last 5 tokens"
    ):
        scorer = sentence_scorer(index, recognizer, ["a lion", long])
    logits = sentence_scorer(index, recognizer, ["a lion", same]).logits(predictions.features)
    np.testing.assert_array_equal(scorer.logits(predictions.features), logits)
