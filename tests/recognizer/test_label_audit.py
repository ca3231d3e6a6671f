import numpy as np
import pytest

import surelabel as sl
from surelabel.errors import ConfigError, InputError
from surelabel.evaluation import ERROR_KINDS

LINEAR = ["method.name=linear", "epochs=5", "calibrator.name=platt"]


@pytest.fixture(scope="module")
def vectors():
    random = np.random.default_rng(0)
    return random.normal(size=(120, 2))


def labelled(vectors, wrong=()):
    targets = (vectors > 0).astype(float)
    for row, column in wrong:
        targets[row, column] = 1 - targets[row, column]
    return sl.LabelledFeatures(vectors, ["dog", "cat"], targets)


def test_planted_errors_of_both_kinds_are_found(vectors):
    missing, wrong = (int(vectors[:, 0].argmax()), 0), (int(vectors[:, 1].argmin()), 1)
    source = labelled(vectors, [missing, wrong])
    result = sl.audit(source, model="features:2", settings=LINEAR)
    for kind, (row, column) in zip(ERROR_KINDS, (missing, wrong), strict=True):
        first = result.suspected(kind, flagged_only=False)[0]
        assert (first.path, first.label) == (f"row {row}", source.names[column])
    assert (len(result.paths), result.noun, result.has_images) == (120, "row", False)
    counts = {row["label"]: row["positives"] + row["negatives"] for row in result.label_rows()}
    assert counts == {"dog": 120, "cat": 120}
    assert result.description.startswith("linear of features:2, calibrated by ")


def test_without_a_method_the_methods_are_compared(vectors):
    result = sl.audit(labelled(vectors), model="features:2", settings=["epochs=2"], folds=2)
    assert result.selection.selected.method in result.description


def test_the_method_of_a_saved_recognizer_is_fitted_again(vectors, tmp_path):
    run = sl.load_run(None, ["encoder.name=features:2", *LINEAR])
    recognizer = sl.Recognizer(run, ["dog", "cat"]).fit(labelled(vectors))
    recognizer.save(tmp_path / "saved")
    again, direct = (
        sl.audit(labelled(vectors), model=model, settings=settings)
        for model, settings in ((str(tmp_path / "saved"), []), ("features:2", LINEAR))
    )
    np.testing.assert_array_equal(again.errors.probabilities, direct.errors.probabilities)
    with pytest.raises(InputError, match="whose settings cannot be changed"):
        sl.audit(labelled(vectors), model=str(tmp_path / "saved"), settings=LINEAR)


def test_too_few_images_are_refused(vectors):
    with pytest.raises(InputError, match="at least 20 images with known targets; got 5"):
        sl.audit(labelled(vectors).take(range(5)), model="features:2", settings=LINEAR)


def test_images_without_labels_are_refused(vectors):
    with pytest.raises(InputError, match="requires annotated images; got 120 images"):
        sl.audit(vectors, model="features:2")


def test_a_method_of_texts_is_refused(vectors):
    with pytest.raises(ConfigError, match="got tai, which is fitted on texts"):
        sl.audit(labelled(vectors), model="features:2", settings=["method.name=tai"])
