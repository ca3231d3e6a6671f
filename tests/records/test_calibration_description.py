import pytest

from surelabel.data import collection
from surelabel.recognizer import Recognizer
from surelabel.records import Images, calibration_provenance
from surelabel.records.calibration_description import calibration_image_count


@pytest.mark.parametrize(
    ("description", "provenance"),
    [
        ("platt on 24 labelled images", "labels"),
        ("beta, shared by all names, on 5,000 generated scenes of 80 words", "labels"),
        ("platt on pseudo-labels of 24 images without labels", "no labels"),
        ("beta without labels: from what parts of 24 pictures show", "no labels"),  # 0.1.0
        ("platt on 24 labelled images, adapted to 60 other images", "no labels"),
        ("platt on 120 labelled pictures, moved to 60 others", "no labels"),  # 0.1.0
        ("platt on 24 labelled images, recalibrated on 30 random images", "labels"),
        ("beta without labels, recalibrated on 30 random images", "labels"),
        ("platt on 24 images, adapted to 60 others, recalibrated on 30 random images", "labels"),
        ("platt, recalibrated on 30 random images, adapted to 60 other images", "no labels"),
        ("model, recalibrated on 30 random images", "labels"),
        ("model", "model"),
        ("model: scale and bias of the checkpoint", "model"),
        ("modelled by hand", "labels"),
        ("by its loss alone (spa)", "loss"),
        (None, None),
    ],
)
def test_the_provenance_of_a_description(description, provenance):
    assert calibration_provenance(description) == provenance


@pytest.mark.parametrize(
    ("description", "n_images"),
    [
        ("platt on 24 labelled images (5-fold cross-validation)", 24),
        ("platt on pseudo-labels of 9 images without labels", 9),
        ("platt on 24 labelled images, adapted to 60 other images", 24),
        ("beta without labels: from what parts of 24 pictures show", 24),  # 0.1.0
        ("platt on 120 labelled pictures, moved to 60 others", 120),  # 0.1.0
        ("beta, shared by all names, on 5,000 generated scenes of 80 words", None),
        ("by its loss alone (spa)", None),
    ],
)
def test_the_number_of_calibration_images_is_that_of_the_description(description, n_images):
    assert calibration_image_count(description) == n_images


def test_the_descriptions_that_recognizers_write_are_understood():
    images = collection("scenes-80", split="test").take(range(24))
    recognizer = Recognizer.zero_shot("tiny-vit", images.names)
    assert calibration_provenance(recognizer.calibrated_on) == "labels"
    recognizer.calibrate(images)
    assert calibration_provenance(recognizer.calibrated_on) == "labels"
    recognizer.adapt_to_shift(images.paths)
    assert calibration_provenance(recognizer.calibrated_on) == "no labels"
    recognizer.calibrate(Images(images.paths[:2]))
    assert calibration_provenance(recognizer.calibrated_on) == "no labels"
