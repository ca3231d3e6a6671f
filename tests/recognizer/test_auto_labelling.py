import numpy as np
import pytest
from scipy.special import expit

import surelabel as sl
from surelabel.decisions import accept_claims, benjamini_yekutieli, conformal_p_values
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.records import RowSelection

NAMES = ["lion", "car", "boat"]


def table(n=400, seed=0, scale=4.0, columns=NAMES):
    """Return calibrated log-odds of n images with all targets."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-1, scale, size=(n, len(columns))).round(2)
    targets = (rng.random(logits.shape) < expit(logits)).astype(float)
    paths = [f"{row}.jpg" for row in range(n)]
    return sl.LabelledScores(logits, "logits", columns=columns, targets=targets, paths=paths)


def recognizer(names=NAMES):
    return sl.Recognizer.from_scores("logits", names)


def by_hand(calibration, new, max_wrong):
    """Return the accepted targets with loops over labels and signs."""
    targets = np.full(new.features.shape, np.nan)
    for column in range(new.features.shape[1]):
        for sign in (1, -1):
            known = [
                row
                for row in range(len(calibration))
                if calibration.known[row, column]
                and (calibration.features[row, column] >= 0) == (sign > 0)
            ]
            wrong = [calibration.targets[row, column] != (sign > 0) for row in known]
            values = [sign * float(calibration.features[row, column]) for row in known]
            rows = np.flatnonzero((new.features[:, column] >= 0) == (sign > 0))
            confidences = expit(sign * new.features[rows, column].astype(float))
            accepted = rows[accept_claims(confidences, expit(values), wrong, level=max_wrong)]
            targets[accepted, column] = sign > 0
    return targets


@pytest.mark.parametrize("max_wrong", [0.05, 0.1])
def test_targets_are_accepted_for_each_label_and_predicted_target(max_wrong):
    scores = table()
    targets = np.where(np.random.default_rng(1).random(scores.targets.shape) < 0.2, np.nan, 0)
    calibration = scores.with_labels(NAMES, scores.targets + targets).take(range(200))
    new = scores.take(range(200, 400))
    result = sl.auto_label(recognizer(), calibration, new.without_labels(), max_wrong=max_wrong)
    np.testing.assert_array_equal(result.targets, by_hand(calibration, new, max_wrong))
    assert 0 < result.accepted.sum() < result.targets.size
    assert (result.calibration_images, result.left_out, list(result.paths)) == (
        (calibration.known.any(axis=1)).sum(),
        0,
        new.paths,
    )


def test_counts_state_what_was_accepted_and_what_is_missing():
    scores = table()
    new = scores.take(range(200, 400))
    few = scores.take(range(200))
    targets = np.where(few.features < 0, few.targets, np.nan)  # few known positives
    targets[:3] = few.targets[:3]
    result = sl.auto_label(recognizer(), few.with_labels(NAMES, targets), new, max_wrong=0.1)
    for count in result.counts:
        column = NAMES.index(count.label)
        rows = (new.features[:, column] >= 0) == bool(count.target)
        accepted = rows & result.accepted[:, column]
        assert (count.images, count.accepted) == (rows.sum(), accepted.sum())
        assert count.share == accepted.sum() / rows.sum()
        if count.accepted:
            lowest = np.abs(new.features[accepted, column]).min()
            assert count.min_probability == pytest.approx(expit(lowest))
        else:
            assert count.min_probability is None
        assert count.more_images_needed == max(4 - count.calibration_images, 0)
    assert {c.accepted for c in result.counts if c.target} == {0}
    assert sum(c.accepted for c in result.counts) == result.accepted.sum() > 0


def test_all_labels_together_use_the_rule_for_any_dependence():
    scores = table(1500)
    calibration, new = scores.take(range(1300)), scores.take(range(1300, 1500))
    result = sl.auto_label(recognizer(), calibration, new, max_wrong=0.2, pooled=True)
    p_values = np.ones(new.features.shape)
    for column in range(3):
        for sign in (1, -1):
            known = (calibration.features[:, column] >= 0) == (sign > 0)
            rows = (new.features[:, column] >= 0) == (sign > 0)
            wrong = calibration.targets[known, column] != (sign > 0)
            p_values[rows, column] = conformal_p_values(
                sign * new.features[rows, column], sign * calibration.features[known, column], wrong
            )
    expected = benjamini_yekutieli(p_values.ravel(), level=0.2).reshape(p_values.shape)
    np.testing.assert_array_equal(result.accepted, expected)
    assert expected.any()
    assert "all labels together" in result.guarantee


def test_calibration_images_and_images_of_the_fit_are_left_out():
    scores = table()
    fitted = recognizer().calibrate(scores.take(range(40)))
    with pytest.warns(UserWarning, match="30 of 180 calibration images are left out"):
        result = sl.auto_label(fitted, scores.take(range(10, 190)), scores, max_wrong=0.1)
    assert (result.calibration_images, result.left_out) == (150, 190)
    assert list(result.paths) == scores.paths[190:]


def test_a_calibration_row_leaves_out_one_row_of_the_same_content():
    # each of 30 contents has four rows, of which one is in the calibration sample
    vectors = np.concatenate([np.repeat(np.arange(30.0), 4), np.arange(30, 60)])[:, None]
    labelled = sl.LabelledFeatures(vectors, ["lion"], (vectors > 40) * 1.0)
    settings = ["encoder.name=features:1", "method.name=linear"]
    fitted = sl.Recognizer(sl.load_run(None, settings), ["lion"])
    fitted.fit(labelled.take(range(120, 150)), folds=2)
    calibration = labelled.take(range(0, 120, 4))
    result = sl.auto_label(fitted, calibration, vectors[:120], max_wrong=0.2)
    assert (len(result), result.left_out) == (90, 30)
    # the row of the same name is left out, not the first one of the same content
    rows = labelled.take(range(120))
    result = sl.auto_label(fitted, labelled.take(range(3, 120, 4)), rows, max_wrong=0.2)
    assert list(result.paths) == [f"row {row}" for row in range(120) if row % 4 != 3]


def test_images_of_the_fit_alone_are_no_calibration_images():
    scores = table()
    fitted = recognizer().calibrate(scores.take(range(100)))
    with pytest.raises(InputError, match="got 100 images of the fit or an earlier"):
        sl.auto_label(fitted, scores.take(range(100)), scores)


def test_a_recognizer_without_hashes_cannot_be_checked():
    scores = table()
    loaded = recognizer()
    loaded.used_rows = None
    with pytest.warns(UserWarning, match="without hashes of the training images"):
        sl.auto_label(loaded, scores.take(range(100)), scores.take(range(100, 200)))


def test_rows_that_a_strategy_chose_are_left_out():
    scores = table()
    chosen_by = ["random"] * 150 + ["expected_gain"] * 50
    probability = np.where(np.arange(200) < 150, 0.5, np.nan)
    selection = RowSelection(chosen_by, probability)
    calibration = scores.take(range(200)).with_row_selection(selection)
    with pytest.warns(UserWarning, match="50 annotated rows are left out"):
        result = sl.auto_label(recognizer(), calibration, scores)
    assert (result.calibration_images, result.left_out) == (150, 150)


def test_too_few_calibration_images_state_how_many_are_needed():
    scores = table()
    with pytest.raises(InputError, match=r"max_wrong 0.05 requires at least 7 calibration images"):
        sl.auto_label(recognizer(), scores.take(range(6)), scores)


def test_one_class_and_no_wrong_target_are_accepted():
    logits = np.full((60, 1), 3.0)
    paths = [f"{row}.jpg" for row in range(60)]
    scores = sl.LabelledScores(
        logits, "logits", columns=["lion"], targets=np.ones((60, 1)), paths=paths
    )
    result = sl.auto_label(recognizer(["lion"]), scores.take(range(30)), scores)
    assert result.targets.tolist() == [[1.0]] * 30


def test_labels_without_calibration_targets_are_for_people():
    scores = table()
    calibration = scores.with_labels(["lion"], scores.targets[:, :1]).take(range(200))
    with pytest.warns(UserWarning, match="no known target"):
        result = sl.auto_label(recognizer(), calibration, scores.without_labels())
    assert result.accepted[:, 0].any()
    assert not result.accepted[:, 1:].any()


def test_soft_targets_and_other_inputs_are_refused():
    scores = table()
    soft = scores.with_labels(NAMES, scores.targets * 0.5)
    with pytest.raises(InputError, match="must be 0 or 1; got soft targets"):
        sl.auto_label(recognizer(), soft, scores)
    with pytest.raises(InputError, match="Calibration images must have labels"):
        sl.auto_label(recognizer(), scores.without_labels(), scores)
    with pytest.raises(ConfigError, match="level must be above 0 and below 1"):
        sl.auto_label(recognizer(), scores, scores, max_wrong=1.0)
    with pytest.raises(InputError, match="must be new, that is, not used for the fit"):
        sl.auto_label(recognizer(), scores, scores)


def test_a_recognizer_without_probabilities_is_refused():
    scores = sl.LabelledScores(
        np.random.default_rng(0).uniform(-1, 1, (40, 1)),
        "cosines",
        columns=["lion"],
        targets=np.ones((40, 1)),
    )
    with pytest.raises(NotFitted, match="Probabilities need a calibrated recognizer"):
        sl.auto_label(sl.Recognizer.from_scores("cosines", ["lion"]), scores, scores)


def test_the_file_is_read_as_a_dataset_with_unknown_targets(tmp_path):
    images = sl.collection("scenes-80", split="test").take(range(60))
    tagger = sl.Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])
    result = sl.auto_label(tagger, images.take(range(30)), images, max_wrong=0.1)
    result.to_csv(tmp_path / "accepted.csv")
    again = sl.read_labels(tmp_path / "accepted.csv")
    assert list(again.paths) == list(result.paths) == [str(path) for path in images.paths[30:]]
    np.testing.assert_array_equal(again.known, result.accepted)
    np.testing.assert_array_equal(again.targets[again.known], result.targets[result.accepted])
    assert set(again.row_selection.chosen_by) == {"auto_label"}
    with pytest.raises(InputError, match="chosen at random; got none"):
        tagger.calibrate(again)


def test_names_of_scores_are_written_as_they_are_and_a_file_is_not_replaced(tmp_path):
    scores = table()
    result = sl.auto_label(recognizer(), scores.take(range(200)), scores, max_wrong=0.1)
    path = tmp_path / "accepted.csv"
    result.to_csv(path)
    lines = path.read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:3]] == ['"200.jpg"', '"201.jpg"']
    with pytest.raises(DataError, match="must be a new file"):
        result.to_csv(path)


def test_the_summary_and_the_json_object_state_the_numbers():
    scores = table()
    result = sl.auto_label(recognizer(), scores.take(range(200)), scores, max_wrong=0.1)
    assert repr(result).startswith("AutoLabels(images=200, labels=3, accepted targets=")
    assert "<td>lion</td>" in result._repr_html_()
    value = result.as_dict()
    assert value["accepted"] + value["for_people"] == 600
    assert value["by_label"][0].keys() >= {"label", "target", "accepted", "share", "wrong"}
    assert "at most 10 %" in value["guarantee"]


def test_an_image_that_cannot_be_read_is_left_out_with_a_warning(tmp_path):
    images = sl.collection("scenes-80", split="test").take(range(40))
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    tagger = sl.Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])
    paths = [*images.paths[20:], tmp_path / "broken.jpg"]
    with pytest.warns(UserWarning, match=r"1 of 21 images cannot be read"):
        result = sl.auto_label(tagger, images.take(range(20)), paths, max_wrong=0.1)
    assert len(result) == 20
    with pytest.raises(DataError, match=r"broken\.jpg"):
        sl.auto_label(tagger, images.take(range(20)), [tmp_path / "broken.jpg"], max_wrong=0.1)
