import numpy as np
import pytest

from surelabel.config import load_run
from surelabel.errors import InputError
from surelabel.recognizer import Recognizer
from surelabel.recognizer.inputs import align_recognizer_input_labels, resolve_recognizer_input
from surelabel.records import Images, LabelledFeatures

ROWS = np.arange(1, 13, dtype=np.float64).reshape(4, 3)


def test_an_array_of_numbers_is_vectors_without_labels():
    found = resolve_recognizer_input(ROWS)
    assert isinstance(found, LabelledFeatures)
    np.testing.assert_array_equal(found.features, ROWS)
    assert found.targets.shape == (4, 0)
    assert found.paths == ["row 0", "row 1", "row 2", "row 3"]


def test_an_array_of_words_is_paths():
    assert resolve_recognizer_input(np.array(["a.jpg", "b.jpg"])) == Images(["a.jpg", "b.jpg"])


@pytest.mark.parametrize("array", [np.ones(3), np.ones((2, 3, 4)), np.array(1.0)])
def test_an_array_of_other_axes_is_refused(array):
    with pytest.raises(InputError, match=r"features must have axes \(n, d\)"):
        resolve_recognizer_input(array)


def test_an_array_with_nan_is_refused():
    with pytest.raises(InputError, match=r"features must be finite; got 12"):
        resolve_recognizer_input(ROWS * np.nan)


def test_numbers_too_large_for_float32_are_refused_without_a_warning():
    with pytest.raises(InputError, match=r"features must be finite; got 12"):
        resolve_recognizer_input(ROWS * 1e300)


@pytest.mark.parametrize("given", [ROWS, Images(["a.jpg"]), ["a.jpg"]])
def test_labels_are_asked_for_where_there_are_none(given):
    with pytest.raises(InputError, match=rf"Labels are required.* got {type(given).__name__}"):
        align_recognizer_input_labels(given, ["lion"], {"lion": ["lion"]})


def test_a_recognizer_predicts_an_array_like_vectors_with_labels():
    run = load_run(overrides=["encoder.name=features:3", "method.name=linear", "epochs=1"])
    labelled = LabelledFeatures(ROWS, ["lion"], np.array([[0], [1], [0], [1]]))
    fitted = Recognizer(run, ["lion"]).fit(labelled)
    np.testing.assert_array_equal(fitted.predict(ROWS).scores, fitted.predict(labelled).scores)
    with pytest.raises(InputError, match=r"features must have 3 columns.* got 2"):
        fitted.predict(ROWS[:, :2])
