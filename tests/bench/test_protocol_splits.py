import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surelabel.bench import encode_feature_splits, load_protocol_image_splits
from surelabel.bench.compatible_methods import compatible_methods
from surelabel.data.protocols import PROTOCOLS, SourcedCount
from surelabel.errors import DataError, InputError, UnknownName

sys.path.insert(0, str(Path(__file__).parents[1] / "data/protocols"))
from protocol_miniatures import MINIATURES


@pytest.fixture
def voc12(tmp_path, monkeypatch):
    """A miniature of Pascal VOC 2012, whose counts are not compared; folder and annotations."""
    protocol = PROTOCOLS["voc12"]
    splits = tuple(
        replace(s, official=SourcedCount(), evaluated=SourcedCount()) for s in protocol.splits
    )
    monkeypatch.setitem(PROTOCOLS, "voc12", replace(protocol, splits=splits))
    return tmp_path, MINIATURES["voc12"](tmp_path)


def test_a_fifth_of_the_training_images_is_the_validation_split(voc12):
    folder, expected = voc12
    splits = load_protocol_image_splits("voc12", folder, comparison="calibrated")
    assert splits.name == "Pascal VOC 2012"
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (10, 2, 8)
    assert splits.test.paths == [str(folder / image) for image in expected["val"].images]
    np.testing.assert_array_equal(splits.test.targets, expected["val"].targets)
    paths = [*splits.train.paths, *splits.validation.paths]
    assert sorted(paths) == sorted(str(folder / image) for image in expected["train"].images)
    row = expected["train"].images.index(Path(splits.train.paths[3]).relative_to(folder).as_posix())
    np.testing.assert_array_equal(splits.train.targets[3], expected["train"].targets[row])
    again = load_protocol_image_splits("voc12", folder, comparison="calibrated")
    assert again.fingerprint == splits.fingerprint


def test_a_subset_is_marked_and_must_be_allowed(voc12):
    folder, expected = voc12
    (folder / expected["val"].images[0]).unlink()
    with pytest.raises(DataError, match=r"protocol voc12: val: 1 listed image of 8 do not exist"):
        load_protocol_image_splits("voc12", folder, comparison="calibrated")
    splits = load_protocol_image_splits("voc12", folder, comparison="calibrated", subset=True)
    assert splits.name == (
        "Pascal VOC 2012 (subset: 12 of 12 images of train and 7 of 8 images of val; not "
        "comparable with published results)"
    )


def test_a_comparison_that_does_not_fit_is_refused_with_those_that_do(voc12):
    with pytest.raises(InputError, match=r"open-vocabulary requires .*got voc12, which has labels"):
        load_protocol_image_splits("voc12", voc12[0], comparison="open-vocabulary")
    with pytest.raises(UnknownName, match=r"must be one of .*voc12"):
        load_protocol_image_splits("voc13", voc12[0], comparison="calibrated")


def test_vectors_are_those_of_the_images_of_each_split(voc12):
    splits = load_protocol_image_splits("voc12", voc12[0], comparison="calibrated")
    features = encode_feature_splits(splits, "tiny-vit")
    assert features.name == "Pascal VOC 2012, tiny-vit"
    assert [len(s) for s in (features.train, features.validation, features.test)] == [10, 2, 8]
    np.testing.assert_array_equal(features.test.targets, splits.test.targets)


def test_methods_of_texts_are_left_out_for_an_encoder_without_texts():
    methods, left_out = compatible_methods("features:8", ["zero_shot", "linear"], ["dog", "cat"])
    assert methods == ["linear"]
    assert list(left_out) == ["zero_shot"]
    assert "text" in left_out["zero_shot"]
    assert compatible_methods("tiny-vit", ["zero_shot"], ["dog"]) == (["zero_shot"], {})
