import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.encoders import load_encoder
from surelabel.errors import InputError
from surelabel.features import FeatureCache
from surelabel.methods import Linear
from surelabel.recognizer.fitting_data import encode_fitting_data, encode_text_fitting_data
from surelabel.records import LabelledFeatures, LabelledImages, LabelledTexts

NAMES = ["lion", "sofa"]
ALIASES = {"lion": ("lion",), "sofa": ("sofa", "couch")}


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def texts(names=("couch", "lion"), targets=((1, 0), (1, 1))):
    return LabelledTexts(["a sofa.", "a lion on a sofa."], list(names), np.array(targets))


def test_texts_have_the_columns_of_the_recognizer_and_are_followed_by_templates(encoder):
    data = encode_text_fitting_data(texts(), NAMES, ALIASES, encoder)
    assert data.paths[:3] == ["a sofa.", "a lion on a sofa.", "a photo of a lion."]
    assert data.targets[:2].tolist() == [[0, 1], [1, 1]]
    n_templates = len(data.paths[2:]) // 2
    assert n_templates == 81
    assert torch.equal(data.targets[2:], torch.eye(2).repeat_interleave(n_templates, dim=0))
    assert data.known.all()
    assert len(data.features) == len(data.paths) == len(data.targets)
    first = encoder.encode_sentences(data.paths[:3])
    torch.testing.assert_close(data.features.pooled[:3].float(), first, atol=1e-3, rtol=0)


def test_a_label_of_no_text_is_named_in_one_warning(encoder):
    given = texts(targets=((1, 0), (1, 0)))
    with pytest.warns(
        UserWarning, match=r"1 of 2 labels \(lion\) is not mentioned in any text"
    ) as all_:
        encode_text_fitting_data(given, NAMES, ALIASES, encoder)
    assert len(all_) == 1


def test_unknown_targets_of_texts_stay_unknown(encoder):
    data = encode_text_fitting_data(texts(targets=((1, np.nan), (1, 1))), NAMES, ALIASES, encoder)
    assert data.known[:2].tolist() == [[False, True], [True, True]]


def test_texts_without_a_label_of_the_recognizer_are_refused(encoder):
    with pytest.raises(InputError, match=r"\(lion, sofa.*got 2 texts with the labels cow, sky"):
        encode_text_fitting_data(texts(("cow", "sky")), NAMES, ALIASES, encoder)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([[1, np.nan], [np.nan, 1]], "All known targets of 2 training images are positive"),
        ([[1, 0], [np.nan, np.nan]], "Only 1 training image has known targets"),
        ([[1, np.nan], [0.4, 1]], None),
    ],
)
def test_targets_that_separate_no_images_are_named_in_one_warning(tmp_path, targets, message):
    source = LabelledFeatures(np.eye(2, 16), NAMES, np.array(targets))
    labelled = LabelledImages(source.paths, source.names, source.targets, source.known)
    vectors = load_encoder("features:16", normalize="unit")
    with warnings.catch_warnings(record=True) as all_:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", ".* no positive image")
        encode_fitting_data(
            source, labelled, Linear(vectors, NAMES), vectors, FeatureCache(tmp_path)
        )
    messages = [str(warning.message) for warning in all_]
    assert [text[: len(message or "")] for text in messages] == ([message] if message else [])


def test_labels_without_a_positive_image_are_named_in_one_warning(tmp_path):
    targets = np.array([[1, 0, np.nan, 0], [0, 0, np.nan, 0.4]])
    names = ["lion", "sofa", "bus", "cow"]
    source = LabelledFeatures(features=np.eye(2, 16), targets=targets, names=names)
    labelled = LabelledImages(source.paths, source.names, source.targets, source.known)
    vectors = load_encoder("features:16", normalize="unit")
    method = Linear(vectors, source.names)
    with pytest.warns(UserWarning, match=r"2 of 4 labels \(sofa, cow\) have no positive") as all_:
        encode_fitting_data(source, labelled, method, vectors, FeatureCache(tmp_path))
    assert len(all_) == 1


@pytest.mark.parametrize("known_target", [np.nan, 1])
def test_readable_images_without_a_known_target_are_refused(tmp_path, encoder, known_target):
    paths = [str(tmp_path / "unannotated.png"), str(tmp_path / "unreadable.png")]
    Image.new("RGB", (32, 32)).save(paths[0])
    labelled = LabelledImages(paths, NAMES, np.array([[np.nan, np.nan], [known_target, np.nan]]))
    method, cache = Linear(encoder, NAMES), FeatureCache(tmp_path / "cache")
    n_targets = 4 if np.isnan(known_target) else 2  # of all images, or of the readable image
    with warnings.catch_warnings(record=True) as all_:
        warnings.simplefilter("always")
        with pytest.raises(InputError, match=f"one known target; all {n_targets} targets are"):
            encode_fitting_data(labelled, labelled, method, encoder, cache)
    assert ["unreadable" in str(warning.message) for warning in all_] == [True] * (n_targets == 2)
