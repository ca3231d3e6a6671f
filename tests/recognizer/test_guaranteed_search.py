import numpy as np
import pytest
from scipy.special import expit

import surelabel as sl
from surelabel.decisions import accept_claims
from surelabel.errors import InputError, UnknownName
from surelabel.recognizer import index_images_with_recognizer

NAMES = ["lion", "car"]


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=4, size=(600, 2)).round(1)
    targets = (rng.random(logits.shape) < expit(logits)).astype(float)
    paths = [f"{row}.jpg" for row in range(600)]
    return sl.LabelledScores(logits, "logits", columns=NAMES, targets=targets, paths=paths)


@pytest.fixture(scope="module")
def recognizer():
    return sl.Recognizer.from_scores("logits", NAMES)


@pytest.fixture(scope="module")
def index(scores, recognizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    index = sl.Index.create(folder / "index", recognizer.predict(scores.take(range(500))))
    index.add(recognizer.predict(scores.take(range(500, 600))))
    return index


@pytest.mark.parametrize(
    ("query", "signs"), [("lion", [1, 0]), ("lion & car", [1, 1]), ("car & !lion", [-1, 1])]
)
@pytest.mark.parametrize("max_wrong", [0.1, 0.2])
def test_images_are_accepted_by_the_probability_of_the_query(
    scores, recognizer, index, query, signs, max_wrong
):
    calibration, n = scores.take(range(0, 600, 2)), np.arange(1, 600, 2)
    found = sl.search_with_guarantee(
        index, query, calibration, recognizer=recognizer, max_wrong=max_wrong
    )
    logits, targets = scores.features.astype(np.float64), scores.targets > 0
    probability, matches = np.ones(600), np.ones(600, bool)
    for column, sign in enumerate(signs):
        probability *= expit(sign * logits[:, column]) if sign else 1.0
        matches &= (targets[:, column] == (sign > 0)) | (sign == 0)
    mask = accept_claims(probability[n], probability[::2], ~matches[::2], level=max_wrong)
    accepted = n[mask]
    assert {hit.path.rpartition("/")[2] for hit in found.hits} == {f"{a}.jpg" for a in accepted}
    values = [hit.probability for hit in found.hits]
    assert values == sorted(values, reverse=True)
    assert (found.images, found.left_out, found.calibration_images) == (300, 300, 300)
    assert found.matches == matches[::2].sum()
    assert f"at most {100 * max_wrong:g} %" in found.guarantee


def test_images_without_a_target_of_each_queried_label_do_not_count(scores, recognizer, index):
    targets = scores.targets.copy()
    targets[:100, 1] = np.nan
    calibration = scores.with_labels(NAMES, targets).take(range(300))
    for query, n_images in (("lion", 300), ("lion & !car", 200)):
        found = sl.search_with_guarantee(index, query, calibration, recognizer=recognizer)
        assert (found.calibration_images, found.left_out) == (n_images, 300)


def test_the_recorded_recognizer_is_loaded_and_images_of_the_fit_are_left_out(tmp_path):
    images = sl.collection("scenes-80", split="test").take(range(70))
    fitted = sl.Recognizer.zero_shot("tiny-vit", ["lion", "guitar"]).calibrate(
        images.take(range(30))
    )
    fitted.save(tmp_path / "recognizer")
    update = index_images_with_recognizer(
        tmp_path / "index", fitted, list(images.paths), model=str(tmp_path / "recognizer")
    )
    calibration = images.take(range(30, 60))
    found = sl.search_with_guarantee(update.index, "!lion", calibration, max_wrong=0.2)
    assert (found.images, found.left_out, found.calibration_images) == (10, 60, 30)
    assert len(found.hits) == 10
    assert {hit.path for hit in found.hits} == {str(path) for path in images.paths[60:]}


def test_scores_of_existing_files_are_found_by_their_name(scores, recognizer, tmp_path):
    for path in scores.paths[:100]:
        (tmp_path / path).write_text(path)
    named = scores.with_paths([str(tmp_path / path) for path in scores.paths])
    index = sl.Index.create(tmp_path / "index", recognizer.predict(named))
    found = sl.search_with_guarantee(index, "lion", named.take(range(200)), recognizer=recognizer)
    assert (found.images, found.left_out) == (400, 200)


def test_rows_of_the_fit_cannot_be_found_among_scores_of_an_index(scores, tmp_path):
    calibrated = sl.Recognizer.from_scores("logits", NAMES).calibrate(scores.take(range(200)))
    index = sl.Index.create(tmp_path / "index", calibrated.predict(scores))
    with pytest.warns(UserWarning, match="no hashes of vectors and scores"):
        sl.search_with_guarantee(index, "lion", scores.take(range(200, 400)), recognizer=calibrated)


def test_too_few_calibration_images_and_unknown_labels_are_refused(scores, recognizer, index):
    with pytest.raises(InputError, match=r"max_wrong 0.1 requires at least 4 calibration images"):
        sl.search_with_guarantee(index, "lion", scores.take(range(3)), recognizer=recognizer)
    with pytest.raises(UnknownName, match="is not in the index"):
        sl.search_with_guarantee(index, "tiger", scores, recognizer=recognizer)
    other = sl.Recognizer.from_scores("logits", NAMES).calibrate(scores)
    with pytest.raises(InputError, match="Give the recognizer of the index"):
        sl.search_with_guarantee(index, "lion", scores, recognizer=other)
    with pytest.raises(InputError, match="does not record"):
        sl.search_with_guarantee(index, "lion", scores)


def test_a_query_that_no_calibration_image_matches_accepts_nothing(scores, recognizer, index):
    calibration = scores.with_labels(NAMES, np.zeros((600, 2))).take(range(300))
    found = sl.search_with_guarantee(index, "lion & car", calibration, recognizer=recognizer)
    assert (len(found.hits), found.matches) == (0, 0)
