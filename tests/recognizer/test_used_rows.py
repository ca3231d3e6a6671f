from pathlib import Path

import numpy as np
import pytest

import surelabel as sl
from surelabel.errors import DataError
from surelabel.recognizer.used_rows import (
    UsedRows,
    image_keys,
    labelled_row_keys,
    vector_row_keys,
)

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(60, 4)).astype(np.float32)
TARGETS = (VECTORS[:, :2] > 0).astype(float)


def labelled_vectors(rows=slice(None), targets=TARGETS):
    return sl.LabelledFeatures(VECTORS[rows], ["lion", "car"], targets[rows])


def linear():
    settings = ["encoder.name=features:4", "method.name=linear", "epochs=2"]
    return sl.Recognizer(sl.load_run(None, settings), ["lion", "car"])


def score_table(rows, targets=TARGETS):
    paths = [f"folder/{row}.jpg" for row in range(60)]
    scores = sl.LabelledScores(
        VECTORS[:, :2], "logits", columns=["lion", "car"], targets=targets, paths=paths
    )
    return scores.take(rows)


def test_rows_with_a_target_are_used_by_a_fit_and_others_are_not():
    targets = TARGETS.copy()
    targets[:10] = np.nan
    recognizer = linear().fit(labelled_vectors(slice(0, 40), targets))
    used = recognizer.used_rows.contain(vector_row_keys(VECTORS))
    assert used.tolist() == [False] * 10 + [True] * 30 + [False] * 20


def test_a_calibration_replaces_the_rows_of_an_earlier_one_and_keeps_those_of_the_fit():
    recognizer = linear().fit(labelled_vectors(slice(0, 20)))
    recognizer.calibrate(labelled_vectors(slice(20, 40)))
    recognizer.calibrate(labelled_vectors(slice(40, 60)))
    used = recognizer.used_rows.contain(vector_row_keys(VECTORS))
    assert used.tolist() == [True] * 20 + [False] * 20 + [True] * 20


def test_a_new_fit_forgets_the_rows_of_the_earlier_one():
    recognizer = linear().fit(labelled_vectors(slice(0, 20)), folds=2)
    recognizer.fit(labelled_vectors(slice(30, 50)))
    used = recognizer.used_rows.contain(vector_row_keys(VECTORS))
    assert np.flatnonzero(used).tolist() == list(range(30, 50))


def test_hashes_are_saved_and_loaded(tmp_path):
    recognizer = linear().fit(labelled_vectors(slice(0, 30)), folds=2)
    recognizer.save(tmp_path / "saved")
    loaded = sl.Recognizer.load(tmp_path / "saved")
    assert loaded.used_rows.contain(vector_row_keys(VECTORS)).sum() == 30
    (tmp_path / "saved" / "used_rows.safetensors").unlink()
    assert sl.Recognizer.load(tmp_path / "saved").used_rows is None


def test_a_changed_file_of_hashes_is_refused(tmp_path):
    recognizer = linear().fit(labelled_vectors(slice(0, 30)))
    recognizer.save(tmp_path / "saved")
    other = linear().fit(labelled_vectors(slice(30, 60)))
    other.save(tmp_path / "other")
    file = "used_rows.safetensors"
    (tmp_path / "saved" / file).write_bytes((tmp_path / "other" / file).read_bytes())
    with pytest.raises(DataError, match=r"checksums of .*used_rows\.safetensors must equal"):
        sl.Recognizer.load(tmp_path / "saved")


def test_scores_are_compared_with_their_file_name_without_the_folder():
    recognizer = sl.Recognizer.from_scores("logits", ["lion", "car"])
    recognizer.calibrate(score_table(range(40)))
    moved = score_table(range(60)).with_paths([f"other/{row}.jpg" for row in range(60)])
    renamed = moved.with_paths([f"other/x{row}.jpg" for row in range(60)])
    for scores, expected in ((moved, 40), (renamed, 0)):
        keys = labelled_row_keys(recognizer.encoder, scores)
        assert recognizer.used_rows.contain(keys).sum() == expected


def test_the_content_of_an_image_counts_not_its_path(tmp_path):
    images = sl.collection("scenes-80", split="test").take(range(24))
    recognizer = sl.Recognizer.zero_shot("tiny-vit", ["lion", "guitar"]).calibrate(images)
    copies = [tmp_path / f"{row}.png" for row in range(2)]
    for copy, path in zip(copies, images.paths, strict=False):
        copy.write_bytes(Path(path).read_bytes())
    assert recognizer.with_names(["lion"]).used_rows is recognizer.used_rows
    copied = recognizer.predict([*copies, sl.collection("scenes-80", split="test").paths[30]])
    used = recognizer.used_rows.contain(image_keys(copied.hashes))
    assert used.tolist() == [True, True, False]


def test_images_that_cannot_be_read_and_data_without_labels_have_no_hashes(tmp_path):
    encoder = sl.Recognizer.zero_shot("tiny-vit", ["lion"]).encoder
    missing = sl.LabelledImages([str(tmp_path / "missing.jpg")], ["lion"], np.ones((1, 1)))
    assert labelled_row_keys(encoder, missing).tolist() == []
    assert labelled_row_keys(encoder, sl.Images(["a.jpg"])).dtype == np.uint64
    assert not UsedRows().contain(np.array([0, 1], np.uint64)).any()


def test_pairs_are_used_by_their_images():
    encoder = sl.Recognizer.zero_shot("tiny-vit", ["lion"]).encoder
    pairs = sl.collection("scenes-80", split="test", captions=True).take(range(3))
    assert len(labelled_row_keys(encoder, pairs)) == 3
    vectors = sl.PairFeatures(VECTORS[:5], VECTORS[:5], np.arange(5))
    keys = labelled_row_keys(encoder, vectors)
    np.testing.assert_array_equal(keys, vector_row_keys(VECTORS[:5]))


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"fit": np.zeros(2, np.uint64)},
        {"fit": np.zeros(2, np.int64), "calibration": np.zeros(2, np.uint64)},
        {"fit": np.zeros((2, 1), np.uint64), "calibration": np.zeros(2, np.uint64)},
    ],
)
def test_damaged_hashes_are_refused(arrays):
    with pytest.raises(DataError, match="Hashes of used images must be two uint64 arrays"):
        UsedRows.restore(arrays)


def test_a_recalibration_adds_its_images_to_those_of_the_calibration():
    rows = UsedRows().with_calibration(np.array([5, 3], np.uint64))
    more = rows.with_recalibration(np.array([7, 3], np.uint64))
    assert more.calibration.tolist() == [3, 5, 7]
    assert more.calibration.dtype == np.uint64
