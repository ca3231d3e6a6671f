import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surelabel.data import PRE_ANNOTATION_WRITERS, read_labels
from surelabel.errors import DataError, NotFitted
from surelabel.records import Predictions

FILES = {"label-studio": "tasks.json", "cvat": "tags.xml", "fiftyone": "labels.json"}
OPTIONS_OF_READING = {"label-studio": {"with_predictions": True}, "cvat": {"missing": "negative"}}
WRITERS = pytest.mark.parametrize(("name", "write"), PRE_ANNOTATION_WRITERS.items())

labels = st.lists(
    st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1),
    min_size=1,
    max_size=4,
    unique=True,
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    for image in ("a.jpg", "b.jpg", "sub/c d.jpg"):
        (tmp_path / image).touch()
    return tmp_path


def predictions_of(folder, probabilities, names=("dog", "cat"), calibration="beta"):
    logits = np.log(np.array(probabilities) / (1 - np.array(probabilities))).astype(np.float32)
    paths = [str(folder / name) for name in ("a.jpg", "b.jpg", "sub/c d.jpg")][: len(logits)]
    return Predictions(paths, list(names), logits, logits, calibration=calibration)


@WRITERS
def test_uncalibrated_predictions_are_refused(name, write, folder):
    predictions = predictions_of(folder, [[0.9, 0.2]], calibration=None)
    with pytest.raises(NotFitted, match="Probabilities need a calibrated recognizer"):
        write(predictions, folder / FILES[name])
    assert not (folder / FILES[name]).exists()


@WRITERS
def test_a_file_that_may_contain_annotations_is_never_replaced(name, write, folder):
    (folder / FILES[name]).write_text("annotations")
    with pytest.raises(DataError, match="must be a new file"):
        write(predictions_of(folder, [[0.9, 0.2]]), folder / FILES[name])
    assert (folder / FILES[name]).read_text() == "annotations"


@WRITERS
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=labels, data=st.data())
def test_written_predictions_are_read_with_the_same_tags(name, write, folder, names, data):
    values = st.lists(st.floats(0.01, 0.99), min_size=len(names), max_size=len(names))
    probabilities = data.draw(st.lists(values, min_size=3, max_size=3))
    predictions = predictions_of(folder, probabilities, names)
    threshold = data.draw(st.floats(0.0, 1.0))
    file = folder / FILES[name]
    file.unlink(missing_ok=True)
    write(predictions, file, thresholds=threshold)
    expected = predictions.probabilities >= threshold
    options = OPTIONS_OF_READING.get(name, {})
    assert sorted(map(str, read_labels(file, **options).names)) == sorted(names)
    labelled = read_labels(file, names=names, **options)
    assert labelled.paths == list(predictions.paths)
    assert labelled.targets.astype(bool).tolist() == expected.tolist()
