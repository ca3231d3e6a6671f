"""Data of another kind than the method needs are refused before anything is read."""

import numpy as np
import pytest

from surelabel.config import load_run
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.recognizer import Recognizer
from surelabel.records import Images, LabelledImages, LabelledTexts

NAMES = ["lion", "guitar", "bus"]
TEXTS = LabelledTexts(["a lion.", "a guitar.", "a bus."], NAMES, np.eye(3))
MISSING = ["no/such/image.jpg", "no/other.jpg", "no/third.jpg"]


def unfitted(method, *settings):
    return Recognizer(load_run(overrides=[f"method.name={method}", *settings]), NAMES)


@pytest.mark.parametrize("method", ["clip_adapter", "standardized", "zero_shot"])
def test_texts_are_refused_by_a_method_of_images(method):
    with pytest.raises(ConfigError, match=f"^{method} is not fitted on texts; got LabelledTexts"):
        unfitted(method).fit(TEXTS)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (Images(MISSING), "Images"),
        (LabelledImages(MISSING, NAMES, np.eye(3)), "LabelledImages"),
        ("no/such/folder", "str"),
        (MISSING, "list"),
    ],
)
def test_images_are_refused_by_a_method_of_texts(source, kind):
    expected = f"^tai is fitted on texts with labels; got {kind}.*label_captions.*method.name=coop"
    with pytest.raises(ConfigError, match=expected):
        unfitted("tai").fit(source)


def test_folds_need_images():
    with pytest.raises(
        ConfigError, match="folds requires annotated images; tai is fitted on texts"
    ):
        unfitted("tai").fit(TEXTS, folds=2)


def test_targets_beside_texts_are_refused():
    with pytest.raises(InputError, match="Targets must be given once; got LabelledTexts"):
        unfitted("tai").fit(TEXTS, np.eye(3))


def test_a_single_label_has_no_negative_texts():
    recognizer = Recognizer(load_run(overrides=["method.name=tai"]), ["lion|tiger"])
    with pytest.raises(ConfigError, match=r"tai requires at least 2 labels.*got lion\|tiger\."):
        recognizer.fit(LabelledTexts(["a lion."], ["lion"], np.ones((1, 1))))


def test_an_encoder_without_texts_is_refused_when_the_method_is_made():
    with pytest.raises(ConfigError, match="features:8 has no text tower"):
        unfitted("tai", "encoder.name=features:8")


def test_a_method_of_texts_predicts_only_after_its_fit():
    with pytest.raises(
        NotFitted, match=r"must be fitted on texts first.*Call fit\(labelled_texts\)"
    ):
        unfitted("tai").predict(MISSING)
