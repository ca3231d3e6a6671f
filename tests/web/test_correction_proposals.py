import numpy as np
import pytest

from surelabel.data.correction_log import CorrectionLog
from surelabel.records import Predictions
from surelabel.retrieval import Index
from surelabel.web import correction_proposals
from surelabel.web.correction_proposals import (
    propose_representative_images,
    propose_target_checks,
)

NAMES = ["dog", "cat"]
N_IMAGES = 60


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Return an index of three groups of 20 images with similar vectors."""
    return write_index(tmp_path_factory.mktemp("proposals"), has_vectors=True)


def simulated_logits():
    return np.random.default_rng(1).normal(scale=4, size=(N_IMAGES, 2)).astype(np.float32)


def write_index(home, *, has_vectors):
    rng = np.random.default_rng(0)
    paths = [str(home / f"{number:02}.jpg") for number in range(N_IMAGES)]
    logits = simulated_logits()
    groups = np.eye(3)[np.arange(N_IMAGES) % 3]
    vectors = (groups + 0.01 * rng.normal(size=groups.shape)).astype(np.float16)
    predictions = Predictions(
        paths, NAMES, logits, logits, "tested", "m", features=vectors if has_vectors else None
    )
    return Index.create(home / "index", predictions, root=home)


@pytest.fixture
def log(tmp_path):
    return CorrectionLog(tmp_path / "corrections.csv")


def group_of(image):
    return int(image["path"][-6:-4]) % 3


def test_one_image_of_each_group_is_proposed_first(index, log):
    result = propose_representative_images(index, log.history(), 3)
    assert sorted(map(group_of, result["images"])) == [0, 1, 2]
    assert result["sentence"].startswith("3 images of 60 images without corrections")
    assert len(result["images"][0]["labels"]) == 2


def test_groups_with_corrected_images_are_proposed_later(index, log):
    paths = index.paths
    for path in paths[:3:2]:  # of the groups 0 and 2
        log.record(path, {"dog": 1.0}, chosen_by="query")
    result = propose_representative_images(index, log.history(), N_IMAGES)
    assert group_of(result["images"][0]) == 1
    proposed = {image["path"] for image in result["images"]}
    assert proposed == set(paths) - {paths[0], paths[2]}
    assert "With the 2 corrected images" in result["sentence"]


def test_a_large_index_is_sampled(index, log, monkeypatch):
    monkeypatch.setattr(correction_proposals, "MAX_CONSIDERED_IMAGES", 30)
    log.record(index.paths[0], {"dog": 1.0}, chosen_by="query")
    results = [propose_representative_images(index, log.history(), 50) for _ in range(2)]
    assert results[0] == results[1]
    assert len(results[0]["images"]) in (29, 30)
    assert "sampled images without corrections" in results[0]["sentence"]


def test_an_index_without_vectors_has_no_representative_images(tmp_path, log):
    index = write_index(tmp_path, has_vectors=False)
    result = propose_representative_images(index, log.history(), 3)
    assert result["images"] == []
    assert "contains no image vectors" in result["sentence"]


def correct_all(index, log, n_images, wrong=()):
    """Record targets that agree with the log-odds, except those of some cells."""
    for row, (path, values) in enumerate(zip(index.paths, simulated_logits(), strict=True)):
        if row < n_images:
            targets = {
                name: float((values[column] > 0) != ((row, column) in wrong))
                for column, name in enumerate(NAMES)
            }
            log.record(path, targets, chosen_by="browse")


def test_targets_that_contradict_the_log_odds_are_proposed(index, log):
    logits = simulated_logits()
    order = np.argsort(logits.ravel()).tolist()
    wrong = {divmod(cell, 2) for cell in (order[0], order[1], order[-1], order[-2])}
    correct_all(index, log, N_IMAGES, wrong)
    result = propose_target_checks(index, log.history(), 10)
    found = {(int(one["path"][-6:-4]), NAMES.index(one["label"])) for one in result["images"]}
    assert found == wrong
    assert result["sentence"].startswith("4 targets of 120 corrected targets are more likely wrong")
    for one in result["images"]:
        value = logits[int(one["path"][-6:-4]), NAMES.index(one["label"])]
        assert one["target"] == int(value < 0)
        assert one["error_probability"] > 0.5
        assert f"is {'positive' if value < 0 else 'negative'}, but" in one["reason"]
    assert len(propose_target_checks(index, log.history(), 2)["images"]) == 2


def test_the_targets_with_the_highest_error_probabilities_are_proposed_first(index, log):
    uncertain = np.argwhere(abs(simulated_logits()) < 1.5)[::2].tolist()
    correct_all(index, log, N_IMAGES, {(12, 0), (47, 1), *map(tuple, uncertain)})
    images = propose_target_checks(index, log.history(), 10)["images"]
    probabilities = [image["error_probability"] for image in images]
    assert len(set(probabilities)) > 2
    assert probabilities == sorted(probabilities, reverse=True)
    assert propose_target_checks(index, log.history(), 2)["images"] == images[:2]


def test_too_few_corrected_images_are_not_audited(index, log):
    correct_all(index, log, 19)
    result = propose_target_checks(index, log.history(), 10)
    assert result["images"] == []
    assert "at least 20 corrected images; there are 19" in result["sentence"]


def test_targets_of_one_kind_are_not_audited(index, log):
    for path in index.paths[:25]:
        log.record(path, {"dog": 1.0, "cat": np.nan}, chosen_by="query")
    result = propose_target_checks(index, log.history(), 10)
    assert (result["images"], "there is no negative one" in result["sentence"]) == ([], True)
