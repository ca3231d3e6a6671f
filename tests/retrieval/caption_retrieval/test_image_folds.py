import json
from pathlib import Path

import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.retrieval.caption_retrieval.image_folds import (
    FoldRecall,
    consecutive_image_folds,
    recall_in_image_folds,
)

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden/caption_retrieval.json").read_text(encoding="utf-8")
)["small_collection"]


def test_equals_the_eccv_caption_package():
    scores, image_rows = np.array(GOLDEN["scores"], np.float32), GOLDEN["image_rows"]
    folds = consecutive_image_folds(len(scores), GOLDEN["images_per_fold"])
    found = recall_in_image_folds(scores, image_rows, folds)
    assert found.n_folds == 3
    for k in (1, 5, 10):
        expected = GOLDEN["expected"][f"fold_r{k}"]
        assert [found.image_to_caption[k], found.caption_to_image[k]] == pytest.approx(expected)


def test_the_order_of_images_and_captions_does_not_matter():
    random = np.random.default_rng(0)
    scores, image_rows = random.normal(size=(6, 9)), random.integers(6, size=9)
    image_rows[:6] = range(6)
    folds = [np.array([0, 4, 5]), np.array([1, 2, 3])]
    images, captions = random.permutation(6), random.permutation(9)
    position = np.argsort(images)
    found = recall_in_image_folds(
        scores[np.ix_(images, captions)],
        position[image_rows[captions]],
        [position[fold] for fold in folds],
    )
    assert found == recall_in_image_folds(scores, image_rows, folds)


def test_rsum_is_the_sum_of_the_recalls_of_table_1():
    """VACSR, ViT-B/32, COCO 1K: tables 1 and 6 of arXiv:2605.30968."""
    recall = FoldRecall({1: 0.842, 5: 0.972, 10: 0.99}, {1: 0.703, 5: 0.933, 10: 0.974}, 5)
    assert recall.rsum == pytest.approx(541.4)


def test_folds_of_different_sizes_are_refused():
    with pytest.raises(InputError, match="multiple of images_per_fold=1000; got 1,500"):
        consecutive_image_folds(1500)


@pytest.mark.parametrize("image_rows", [[0], [0, 1, 1]])
def test_scores_of_another_number_of_captions_are_refused(image_rows):
    with pytest.raises(InputError, match=r"scores \(n s\) has shape \(2, 2\)"):
        recall_in_image_folds(np.eye(2), image_rows, [np.array([0, 1])])


def test_a_fold_without_captions_is_refused():
    with pytest.raises(InputError, match="got a fold without captions"):
        recall_in_image_folds(np.eye(2), [0, 0], [np.array([1])])


PUBLISHED = {  # R@1, R@5 and R@10 from image to text and from text to image, COCO 1K
    "P2RM_B32": (78.6, 96.1, 98.6, 67.5, 92.3, 96.8),
    "DAA_B32": (79.8, 96.5, 98.9, 67.4, 91.9, 96.5),
    "PCME_B32": (80.1, 96.6, 98.7, 67.6, 92.1, 96.9),
    "PCMEpp_B32": (81.6, 97.0, 99.0, 69.2, 92.8, 97.1),
    "VACSR_B32": (84.2, 97.2, 99.0, 70.3, 93.3, 97.4),
    "PCMEpp_B16": (85.3, 97.9, 99.3, 73.4, 94.4, 97.8),
    "VACSR_B16": (87.4, 98.2, 99.4, 74.3, 94.6, 97.9),
}


@pytest.mark.parametrize("model", PUBLISHED)
def test_rsum_of_published_recalls_is_the_recorded_one(model):
    path = Path(__file__).parents[2] / "golden/variational.json"
    recorded = json.loads(path.read_text())["rsum_from_table1_1k"]
    assert recorded.keys() == PUBLISHED.keys()
    recalls = [value / 100 for value in PUBLISHED[model]]
    folds = FoldRecall(
        dict(zip((1, 5, 10), recalls[:3], strict=True)),
        dict(zip((1, 5, 10), recalls[3:], strict=True)),
        n_folds=5,
    )
    assert folds.rsum == pytest.approx(recorded[model], abs=1e-9)
