import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surelabel.bench import (
    ComparisonTask,
    ResultCache,
    encode_feature_splits,
    load_protocol_image_splits,
)
from surelabel.bench.calibrated import CALIBRATED
from surelabel.bench.calibrated.fits import calibrated_fit_scores
from surelabel.bench.calibrated.heads import HEADS, candidate_head_runs
from surelabel.bench.compatible_methods import compatible_methods
from surelabel.data.protocols import PROTOCOLS, SourcedCount
from surelabel.errors import DataError, InputError, UnknownName

sys.path.insert(0, str(Path(__file__).parents[1] / "data/protocols"))
from protocol_miniatures import MINIATURES, write_voc


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
    with pytest.raises(InputError, match=r"open-vocabulary requires .*got voc12\."):
        load_protocol_image_splits("voc12", voc12[0], comparison="open-vocabulary")
    with pytest.raises(UnknownName, match=r"Known: .*voc12"):
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


def average_precision_by_hand(scores, targets):
    """Mean over labels of the mean precision at the rank of each positive image, with loops."""
    values = []
    for column in range(targets.shape[1]):
        ranked = sorted(zip(scores[:, column], targets[:, column], strict=True), reverse=True)
        precisions, n_positive = [], 0
        for rank, (_, target) in enumerate(ranked, start=1):
            if target == 1:
                n_positive += 1
                precisions.append(n_positive / rank)
        if precisions:
            values.append(sum(precisions) / len(precisions))
    return sum(values) / len(values)


def test_the_calibrated_comparison_of_a_miniature_has_the_values_of_a_hand_computation(
    voc12, plan, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("larger")
    expected = write_voc(folder, ["train", "val"], [40, 12])
    splits = load_protocol_image_splits("voc12", folder, comparison="calibrated")
    features = encode_feature_splits(splits, "tiny-vit")
    cache = ResultCache(tmp_path_factory.mktemp("cache"))
    small = replace(plan, seeds=1, max_query_length=2, max_exact_length=1, queries_per_shape=2)
    results = CALIBRATED.measure(ComparisonTask(features, small, cache))
    assert (results.dataset, results.images) == ("Pascal VOC 2012, tiny-vit", (32, 8, 12))
    (run,) = candidate_head_runs(HEADS["bce"], small.shared_run(32), count=1, seed=0)
    _, scores = calibrated_fit_scores(cache, features, run, seed=0)
    targets = expected["val"].targets  # of the files of the miniature, not of the reader
    row = results.row("BCE")
    assert row.metrics["mean_average_precision"] == [
        pytest.approx(average_precision_by_hand(scores, targets))
    ]
    log_loss = 0.0
    for image in range(len(targets)):
        for column in range(targets.shape[1]):
            z, y = scores[image, column], targets[image, column]
            log_loss += np.log1p(np.exp(-z if y == 1 else z)) / targets.size
    assert row.metrics["log_loss"] == [pytest.approx(log_loss)]
