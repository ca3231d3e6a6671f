import warnings

import numpy as np
import pytest

import surelabel as sl
from surelabel.data.labels import csv
from surelabel.errors import InputError
from surelabel.recognizer.random_rows import random_sample_rows, take_random_rows
from surelabel.records import RowSelection

SETTINGS = ["encoder.name=features:4", "method.name=linear", "epochs=5", "calibrator.name=beta"]


def vectors(n, *, chosen_by=None, probability=None, known=None, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 4))
    targets = (features[:, :2] + rng.normal(size=(n, 2)) > 0).astype(float)
    targets[~np.ones(n, bool) if known is None else ~known] = np.nan
    selection = None if chosen_by is None else RowSelection(chosen_by, probability)
    return sl.LabelledFeatures(features, ["lion", "car"], targets, row_selection=selection)


def mixed(n, n_random, *, probability=0.2):
    keys = ["random"] * n_random + ["representative"] * (n - n_random)
    return vectors(
        n, chosen_by=keys, probability=[probability] * n_random + [np.nan] * (n - n_random)
    )


def quiet(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*arguments)


def test_without_entries_all_rows_are_used_and_nothing_is_said():
    source = vectors(30)
    assert quiet(take_random_rows, source, "The calibration") is source
    assert len(quiet(random_sample_rows, source, "The calibration")) == 30


def test_only_random_rows_are_used_and_the_others_are_counted():
    text = r"The calibration uses 20 annotated rows .* at random\. 10 annotated rows are left out"
    with pytest.warns(UserWarning, match=text):
        rows = random_sample_rows(mixed(30, 20), "The calibration")
    assert rows.tolist() == list(range(20))


def test_a_random_row_without_labels_makes_the_sample_incomplete():
    source = vectors(3, chosen_by=["random"] * 3, probability=[1] * 3, known=np.arange(3) < 2)
    with pytest.warns(UserWarning, match="1 random row has no labels.*incomplete"):
        assert random_sample_rows(source, "The calibration").tolist() == [0, 1]


def test_a_dataset_without_random_rows_is_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"got none among 4 annotated rows.*--random-share 1"):
        random_sample_rows(mixed(4, 0), "The calibration")


def test_unequal_probabilities_are_thinned_to_the_smallest_one():
    n = 4000
    probability = np.where(np.arange(n) < n // 2, 0.1, 0.4)
    source = vectors(n, chosen_by=["random"] * n, probability=probability)
    with pytest.warns(UserWarning, match="random rows are left out to make .* equal"):
        rows = random_sample_rows(source, "The calibration")
    assert (rows < n // 2).sum() == n // 2
    kept = (rows >= n // 2).sum()  # binomial with probability 1/4
    assert abs(kept - n / 8) < 4 * np.sqrt(n / 2 * 0.25 * 0.75)
    with pytest.warns(UserWarning, match="random rows are left out"):
        again = take_random_rows(source, "The calibration")
    assert len(again) == len(rows)


def test_calibrate_equals_a_calibration_on_the_random_rows_alone():
    fitted = sl.Recognizer(sl.load_run(None, SETTINGS), ["lion", "car"]).fit(vectors(60, seed=1))
    source = mixed(60, 40)
    fitted.calibrate(source.take(range(40)))
    expected = fitted.predict(source).probabilities
    with pytest.warns(UserWarning, match="uses 40 annotated rows"):
        fitted.calibrate(source)
    assert np.array_equal(fitted.predict(source).probabilities, expected)
    assert "40 labelled" in fitted.calibrated_on


def test_folds_of_a_fit_calibrate_on_random_rows_and_fit_on_all():
    run, source = sl.load_run(None, SETTINGS), mixed(60, 40)
    plain = sl.LabelledFeatures(source.features, source.names, source.targets)
    on_all = sl.Recognizer(run, source.names).fit(plain, folds=3)
    with pytest.warns(UserWarning, match="20 annotated rows are left out"):
        recognizer = sl.Recognizer(run, source.names).fit(source, folds=3)
    assert np.array_equal(recognizer.predict(plain).scores, on_all.predict(plain).scores)
    assert "40 labelled" in recognizer.calibrated_on
    assert "60 labelled" in on_all.calibrated_on


def test_a_fit_with_folds_without_random_rows_is_refused_before_the_fit(monkeypatch):
    source, model = mixed(60, 0), "surelabel.recognizer"
    monkeypatch.setattr(f"{model}.recognizer.fit_recognizer_method", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(f"{model}.method_candidates.fit_recognizer_method", lambda *_, **__: 1 / 0)
    with pytest.raises(InputError, match="chosen at random; got none"):
        sl.Recognizer(sl.load_run(None, SETTINGS), source.names).fit(source, folds=3)
    with pytest.raises(InputError, match="chosen at random; got none"):
        sl.select_method(source, model="features:4")


def test_the_selection_of_a_method_calibrates_on_random_rows():
    with pytest.warns(UserWarning, match="20 annotated rows are left out"):
        recognizer = sl.select_method(
            mixed(60, 40), model="features:4", settings=["epochs=2", "calibrator.name=beta"]
        )
    assert "40 labelled" in recognizer.calibrated_on


def test_evaluate_equals_an_evaluation_of_the_random_rows_alone():
    recognizer = sl.Recognizer(sl.load_run(None, SETTINGS), ["lion", "car"])
    recognizer.fit(vectors(60, seed=1), folds=3)
    source = mixed(60, 40)
    expected = sl.evaluate(recognizer, source.take(range(40))).summary
    with pytest.warns(UserWarning, match="The evaluation uses 40 annotated rows"):
        assert sl.evaluate(recognizer, source).summary == expected


def test_scores_and_their_annotations_keep_how_rows_were_chosen(tmp_path):
    labels = tmp_path / "truth.csv"
    labels.write_text(
        "path,chosen_by,inclusion_probability,dog\nb,representative,,1\na,random,0.5,0\n"
    )
    scores = sl.LabelledScores([[0.0], [1.0]], "logits", columns=["dog"], paths=["a", "b"])
    joined = sl.read_scores(_table(scores, tmp_path / "scores.csv"), kind="logits", labels=labels)
    assert joined.row_selection.chosen_by == ["random", "representative"]


def with_corrected_errors(source, n_checked):
    """Return a source with wrong targets, whose sample has the right targets of some rows."""
    sample = np.where(np.arange(len(source))[:, None] < n_checked, source.targets, np.nan)
    selection = RowSelection(
        source.row_selection.chosen_by,
        source.row_selection.inclusion_probability,
        source.names[::-1],
        sample[:, ::-1],
    )
    targets = 1 - source.targets
    return sl.LabelledFeatures(source.features, source.names, targets, row_selection=selection)


def test_targets_that_were_not_annotated_for_the_sample_do_not_count():
    source = mixed(30, 20)
    text = r"uses 15 annotated rows .* 10 annotated rows are left out.* 5 random rows have not been"
    with pytest.warns(UserWarning, match=text):
        taken = take_random_rows(with_corrected_errors(source, 15), "The calibration")
    assert np.array_equal(taken.targets, source.targets[:15])


def test_a_calibration_uses_the_targets_of_the_sample_and_a_fit_uses_all():
    run, source = sl.load_run(None, SETTINGS), mixed(60, 40)
    corrected = with_corrected_errors(source, 40)
    wrong = sl.LabelledFeatures(source.features, source.names, corrected.targets)
    fitted = sl.Recognizer(run, source.names).fit(wrong)
    with pytest.warns(UserWarning, match="20 annotated rows are left out"):
        recognizer = sl.Recognizer(run, source.names).fit(corrected, folds=3)
    assert np.array_equal(recognizer.predict(wrong).scores, fitted.predict(wrong).scores)
    # the scores contradict the targets of the sample, so the calibrator is almost constant
    on_wrong = sl.Recognizer(run, source.names).fit(wrong, folds=3).predict(wrong).probabilities
    assert recognizer.predict(wrong).probabilities.std() < 0.01 * on_wrong.std()


def test_the_selection_of_a_method_calibrates_on_the_targets_of_the_sample():
    source = with_corrected_errors(mixed(60, 40), 40)
    settings = ["epochs=2", "calibrator.name=beta"]
    with pytest.warns(UserWarning, match="20 annotated rows are left out"):
        recognizer = sl.select_method(source, model="features:4", settings=settings)
    probabilities = recognizer.predict(source).probabilities
    is_positive = source.targets == 1
    plain = sl.LabelledFeatures(source.features, source.names, source.targets)
    on_all = sl.select_method(plain, model="features:4", settings=settings).predict(plain)
    assert on_all.probabilities[is_positive].mean() > probabilities[is_positive].mean()


def _table(scores, path):
    lines = [f"{name},{row[0]}" for name, row in zip(scores.paths, scores.features, strict=True)]
    path.write_text("\n".join(["path,dog", *lines]))
    return path


def test_aligned_and_corrected_images_keep_how_rows_were_chosen(tmp_path):
    paths = [str(tmp_path / "a.jpg"), str(tmp_path / "b.jpg")]
    selection = RowSelection(["random", ""], [0.5, np.nan])
    images = sl.LabelledImages(paths, ["dog"], [[1], [0]], row_selection=selection)
    recognizer = sl.Recognizer.zero_shot("tiny-vit", ["dog", "cat"])
    with pytest.warns(UserWarning, match="no known target"):
        assert recognizer.align_labels(images).row_selection is selection
    corrections = tmp_path / "corrections.csv"
    corrections.write_text(f"path,label,corrected\n{paths[1]},dog,1\n")
    assert sl.correct_labels(images, corrections).row_selection is selection
    csv.write(images, tmp_path / "labels.csv")
    assert "0.5" in (tmp_path / "labels.csv").read_text()
