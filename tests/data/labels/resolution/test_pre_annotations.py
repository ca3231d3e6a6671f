import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data.labels.resolution.pre_annotations import select_pre_annotations
from surelabel.errors import DataError, InputError, NotFitted
from surelabel.recognizer import shown_label_mask
from surelabel.records import Predictions

LOGITS = np.array([[2.0, -1.0], [-0.5, -0.8], [0.4, 1.4]], np.float32)


def predictions(logits=LOGITS, prefix="", **fields):
    logits = np.asarray(logits, np.float32)
    paths = [f"{prefix}{number}.jpg" for number in range(len(logits))]
    fields = {"names": ["dog", "cat"], "calibration": "beta", "model": "model 1"} | fields
    return Predictions(paths, scores=logits, logits=logits, **fields)


def selected(blocks, thresholds=None):
    return [image.labels for image in select_pre_annotations(blocks, thresholds)[1]]


def test_labels_are_ranked_by_probability_and_all_probabilities_are_given():
    names, images = select_pre_annotations(predictions(), None)
    assert names == ["dog", "cat"]
    first, second, third = images
    assert (first.path, first.model) == ("0.jpg", "model 1")
    assert first.probabilities == {"dog": 0.880797, "cat": 0.268941}
    assert [first.labels, second.labels, third.labels] == [["dog"], [], ["cat", "dog"]]


def test_thresholds_replace_the_shown_labels_and_these_the_thresholds_of_the_predictions():
    shown, thresholds = np.array([[False, True]] * 3), np.array([1.0, 0.3])
    assert selected(predictions(thresholds=thresholds)) == [[], ["cat"], ["cat"]]
    both = predictions(thresholds=thresholds, shown=shown)
    assert selected(both) == [["cat"]] * 3
    assert selected(both, 0.25) == [["dog", "cat"], ["dog", "cat"], ["cat", "dog"]]


def test_blocks_follow_each_other():
    blocks = [predictions(), predictions(LOGITS[:1], prefix="x")]
    assert selected(iter(blocks)) == [["dog"], [], ["cat", "dog"], ["dog"]]


@settings(max_examples=30)
@given(
    thresholds=st.floats(0, 1) | st.tuples(st.floats(0, 1), st.sampled_from([0.2, 0.5, 1.0])),
    logits=st.lists(st.tuples(*[st.floats(-8, 8, width=32)] * 2), min_size=1, max_size=4),
)
def test_the_labels_are_those_that_tag_shows(thresholds, logits):
    block = predictions(logits)
    values = np.array(thresholds) if isinstance(thresholds, tuple) else thresholds
    mask = shown_label_mask(block, threshold=values)
    assert [set(labels) for labels in selected(block, values)] == [
        {name for name, is_shown in zip(block.names, row, strict=True) if is_shown} for row in mask
    ]


@pytest.mark.parametrize(
    ("blocks", "thresholds", "error", "message"),
    [
        (predictions(calibration=None), None, NotFitted, "Probabilities need a calibrated recog"),
        (predictions(), 1.5, InputError, r"one number in \[0, 1\], or one for each of 2 labels"),
        (predictions(), float("nan"), InputError, r"one number in \[0, 1\]"),
        (predictions(), np.ones(3), InputError, "one for each of 2 labels"),
        ([], None, InputError, "at least one block of predictions; got none"),
        ([predictions(), predictions(names=["a", "b"])], None, InputError, "the same labels"),
        (
            [predictions(), predictions()],
            None,
            InputError,
            "one prediction; got several of '0.jpg'",
        ),
        (predictions(LOGITS * np.inf), None, InputError, "Every score must be finite"),
        (predictions(prefix="caf\udce9"), None, DataError, "must be valid UTF-8"),
    ],
)
def test_predictions_that_no_file_can_hold_are_refused(blocks, thresholds, error, message):
    with pytest.raises(error, match=message):
        selected(blocks, thresholds)
