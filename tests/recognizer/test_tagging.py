from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from surelabel.data import collection
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.recognizer import select_tags, shown_label_mask, tag
from surelabel.records import LabelTree, Predictions

SCORES = np.array([[1.0, 3.0, 2.0]], np.float32)


def predictions(calibration):
    logits = np.array([[2.0, 0.0, 0.0]], np.float32)
    return Predictions(["a.jpg"], ["x", "y", "z"], SCORES, logits, calibration)


def test_the_likeliest_comes_first_and_the_score_breaks_ties():
    assert [t["label"] for t in select_tags(predictions("platt"))[0]] == ["x", "y", "z"]
    assert [t["label"] for t in select_tags(predictions(None))[0]] == ["y", "z", "x"]


def test_a_threshold_and_a_count_cut_the_list():
    assert [t["label"] for t in select_tags(predictions("platt"), threshold=0.6)[0]] == ["x"]
    assert [t["label"] for t in select_tags(predictions("platt"), top_k=2)[0]] == ["x", "y"]


@pytest.mark.parametrize(
    "selection",
    [
        {},
        {"threshold": 0.5},
        {"top_k": 2},
        {"threshold": 0.5, "top_k": 1},
        {"threshold": np.array([0.9, 0.5, 1.0])},
    ],
)
def test_the_mask_has_the_labels_that_are_selected(selection):
    generator = np.random.default_rng(0)
    logits = generator.normal(0, 2, (20, 3)).astype(np.float32)
    logits[0] = [0.0, 0.0, 0.0]  # ties
    names = ["x", "y", "z"]
    it = Predictions([f"{n}.jpg" for n in range(20)], names, logits, logits, "platt")
    mask = shown_label_mask(it, **selection)
    for flags, tags in zip(mask, select_tags(it, **selection), strict=True):
        assert {n for n, flag in zip(names, flags, strict=True) if flag} == {
            t["label"] for t in tags
        }
    assert mask.any()


TREE = LabelTree({"x": "y", "y": "z"})


def shown_with_tree(logits, calibration="platt", **selection):
    logits = np.array([logits], np.float32)
    it = Predictions(["a.jpg"], ["x", "y", "z"], -logits, logits, calibration)
    mask = shown_label_mask(it, label_tree=TREE, **selection)
    names = [tag["label"] for tag in select_tags(it, label_tree=TREE, **selection)[0]]
    assert sorted(names) == [name for name, flag in zip("xyz", mask[0], strict=True) if flag]
    return names


def test_the_ancestors_of_a_shown_label_are_shown_too():
    assert shown_with_tree([1, 2, 3], threshold=np.array([0.5, 0.95, 1.0])) == ["z", "y", "x"]
    assert shown_with_tree([-1, 2, 3], threshold=np.array([0.5, 0.5, 1.0])) == ["z", "y"]
    assert shown_with_tree([-1, -1, 3], threshold=np.array([0.5, 0.5, 1.0])) == []
    assert shown_with_tree([2, 2, 2], top_k=1) == ["z"]  # of equal ones, the ancestor
    assert shown_with_tree([3, 1, 2], calibration=None, top_k=1) == ["y", "z"]


def test_a_tree_with_other_labels_is_refused():
    with pytest.raises(InputError, match="got 1 other label, such as 'w'"):
        select_tags(predictions("platt"), label_tree=LabelTree({"w": "x"}))


def test_without_calibration_the_probability_is_none_and_a_threshold_an_error():
    assert {t["probability"] for t in select_tags(predictions(None))[0]} == {None}
    with pytest.raises(NotFitted, match="are uncalibrated"):
        select_tags(predictions(None), threshold=0.5)


@pytest.mark.parametrize(
    ("setting", "says"), [({"threshold": 1.5}, r"\[0, 1\]"), ({"top_k": 0}, "at least 1")]
)
def test_settings_out_of_range_are_refused(setting, says):
    with pytest.raises(InputError, match=says):
        select_tags(predictions("platt"), **setting)


def test_paths_and_images_in_memory_give_the_same():
    path = collection("scenes-80", split="test").paths[0]
    with Image.open(path) as image:
        shown = tag(image, labels=["lion", "car"])
    assert [
        {
            **t,
            "score": pytest.approx(t["score"], abs=0.05),
            "probability": pytest.approx(t["probability"], abs=0.01),
        }
        for t in tag([path], labels=["lion", "car"])[0]
    ] == shown[0]


def test_one_label_is_enough_and_has_its_own_probability():
    path = collection("scenes-80", split="test").paths[0]
    (found,) = tag(path, labels=["lion"])
    assert len(found) == 1
    assert 0 < found[0]["probability"] < 1


def test_a_path_that_is_no_image_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"gone\.jpg"):
        tag(tmp_path / "gone.jpg", labels=["lion"])
    with pytest.raises(InputError, match="only files or only images in memory"):
        tag([tmp_path / "gone.jpg", Image.new("RGB", (9, 9))], labels=["lion"])


def test_another_method_is_named_with_its_settings():
    paths, labels = collection("scenes-80", split="test").paths[:3], ["lion", "car", "guitar"]
    whole, parts = tag(paths, labels), tag(paths, labels, method="tiles", rows=2, columns=2)
    assert whole != parts
    assert {t["probability"] for found in parts for t in found} == {None}
    assert len(tag(paths, labels, method="standardized")) == 3
    with pytest.raises(ConfigError, match="tiles has no setting heigth"):
        tag(paths, labels, method="tiles", heigth=2)
    with pytest.raises(NotFitted, match="tailor must be fitted on images first"):
        tag(paths, labels, method="tailor")


def test_tags_have_an_uncertainty_if_a_kind_is_requested():
    path = collection("scenes-80", split="test").paths[0]
    (with_kind,) = tag(path, labels=["lion", "car"], uncertainty="bernoulli_variance")
    (without,) = tag(path, labels=["lion", "car"])
    for item in with_kind:
        p = item["probability"]
        assert item.pop("uncertainty") == pytest.approx(4 * p * (1 - p), abs=1e-5)
    assert with_kind == without
    with pytest.raises(ConfigError, match="residual_error needs a method that estimates"):
        tag(path, labels=["lion"], uncertainty="residual_error")


def test_the_method_of_many_images_is_selected_and_calibrated_without_labels(monkeypatch):
    paths, labels = collection("scenes-80", split="test").paths[:3], ["lion", "car", "guitar"]
    assert tag(paths, labels, max_passes=1) == tag(paths, labels, method="zero_shot")
    uncalibrated = tag(paths, labels, max_passes=5)
    assert uncalibrated == tag(paths, labels, method="tiles", rows=2, columns=2, grids=1)
    monkeypatch.setattr("surelabel.recognizer.tagging.MIN_CALIBRATION_IMAGES", 3)
    calibrated = tag(paths, labels, max_passes=5)
    for with_probability, without in zip(calibrated, uncalibrated, strict=True):
        scores = {item["label"]: item["score"] for item in without}
        for item in with_probability:
            assert 0 < item["probability"] < 1
            assert item["score"] == pytest.approx(scores[item["label"]], abs=1e-4)
    in_memory = tag([Path(path).read_bytes() for path in paths], labels, max_passes=5)
    assert {item["probability"] for found in in_memory for item in found} == {None}


def test_the_default_has_several_passes_only_for_enough_files(monkeypatch):
    paths, labels = collection("scenes-80", split="test").paths[:3], ["lion", "car", "guitar"]
    one_pass = tag(paths, labels)
    monkeypatch.setattr("surelabel.recognizer.label_free_methods.MIN_CALIBRATION_IMAGES", 3)
    assert tag(paths, labels) == tag(paths, labels, max_passes=6) != one_pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_passes": 0}, "max_passes must be 1 or more"),
        ({"max_passes": 2, "method": "tiles"}, "got max_passes=2 and method='tiles'. Remove"),
        ({"max_passes": 2, "domain": "centred"}, "got max_passes=2 and domain='centred'. Remove"),
    ],
)
def test_passes_out_of_range_or_with_a_method_are_refused(options, message):
    path = collection("scenes-80", split="test").paths[0]
    with pytest.raises(InputError, match=message):
        tag(path, labels=["lion", "car", "guitar"], **options)
