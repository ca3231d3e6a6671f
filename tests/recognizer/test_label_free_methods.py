import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.recognizer import Recognizer, resolve_model
from surelabel.recognizer.feature_extraction import max_encoder_passes
from surelabel.recognizer.label_free_methods import (
    LABEL_FREE_METHODS,
    best_label_free_recognizer,
    default_max_passes,
    select_calibration_images,
)

NAMES = ["lion", "guitar", "car"]


@pytest.mark.parametrize(
    ("max_passes", "n_images", "method", "encoder_passes"),
    [
        (1, 50, "zero_shot", 1),
        (2, 9, "zero_shot", 1),  # too few images to fit region_statistics
        (2, 10, "region_statistics", 2),
        (5, 10, "tiles", 5),
        (6, 10, "dense_regions", 6),
        (13, 0, "dense_regions", 6),
        (14, 0, "tiles", 14),
    ],
)
def test_the_method_with_the_highest_map_within_the_passes_is_used(
    max_passes, n_images, method, encoder_passes
):
    found = resolve_model("tiny-vit", NAMES, max_passes=max_passes, n_images=n_images)
    assert found.run.method.name == method
    assert max_encoder_passes(found.method) == encoder_passes


def test_all_other_methods_need_more_passes_than_zero_shot():
    passes = {
        measured.name: max_encoder_passes(
            resolve_model("tiny-vit", NAMES, settings=measured.overrides()).method
        )
        for measured in LABEL_FREE_METHODS
    }
    assert passes.pop("zero_shot") == 1
    assert min(passes.values()) == 2


def test_without_an_option_the_method_is_zero_shot():
    assert resolve_model("tiny-rn", NAMES).run.method.name == "zero_shot"


@pytest.mark.parametrize(
    ("model", "method"), [("tiny-vit", "dense_regions"), ("tiny-rn", "region_statistics")]
)
def test_the_default_number_of_passes_selects_the_method_of_many_images(model, method):
    found = resolve_model(model, NAMES, max_passes=default_max_passes(100), n_images=100)
    assert found.run.method.name == method


@pytest.mark.parametrize(("n", "step"), [(1, 1), (500, 1), (501, 2), (1000, 2), (1200, 3)])
def test_at_most_500_images_at_equal_distances_calibrate(n, step):
    selected = select_calibration_images([f"{row}.jpg" for row in range(n)])
    assert selected == [f"{row}.jpg" for row in range(0, n, step)]
    assert len(selected) <= 500


def test_labels_that_a_method_does_not_support_leave_other_methods():
    two = resolve_model("tiny-vit", NAMES[:2], max_passes=6)  # dense_regions compares three labels
    assert (two.run.method.name, max_encoder_passes(two.method)) == ("tiles", 5)


def test_if_no_method_is_supported_its_error_is_raised():
    def unsupported(overrides):
        raise ConfigError(f"{overrides[0]} needs a text tower.")

    with pytest.raises(ConfigError, match="needs a text tower"):
        best_label_free_recognizer("tiny-vit", unsupported, max_passes=14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"max_passes": 0},
            "max_passes must be 1 or more, because each image is encoded at least once; got 0",
        ),
        (
            {"max_passes": 3, "settings": ["method.name=crops"]},
            r"with its default settings; got method\.name=crops\. Remove max_passes",
        ),
    ],
)
def test_passes_out_of_range_and_beside_a_method_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        resolve_model("tiny-vit", NAMES, **options)


def test_a_saved_recognizer_keeps_its_method(tmp_path):
    Recognizer.zero_shot("tiny-rn", NAMES).save(tmp_path / "saved")
    with pytest.raises(InputError, match=r"got the saved recognizer .*, whose method cannot"):
        resolve_model(str(tmp_path / "saved"), max_passes=6)
