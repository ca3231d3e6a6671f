import numpy as np
import pytest

from surelabel.data import correct_labels, read_labels
from surelabel.data.correction_log import CorrectionLog
from surelabel.data.labels import corrections, csv
from surelabel.errors import DataError
from surelabel.records import LabelledImages

NAN = np.nan


@pytest.fixture
def images(tmp_path):
    """Create three files, and return their paths."""
    for name in "abc":
        (tmp_path / f"{name}.jpg").touch()
    return [str(tmp_path / f"{name}.jpg") for name in "abc"]


@pytest.fixture
def log(tmp_path):
    return CorrectionLog(tmp_path / "index.corrections.csv")


def test_targets_that_are_not_corrected_are_unknown(log, images):
    log.record(images[1], {"dog": 1.0}, chosen_by="query")
    log.record(images[0], {"=cat": 0.0, "dog": NAN}, chosen_by="browse")
    labelled = read_labels(log.path)
    assert labelled.paths == [images[1], images[0]]
    assert labelled.names == ["dog", "=cat"]
    np.testing.assert_array_equal(labelled.targets, [[1, 0], [0, 0]])
    np.testing.assert_array_equal(labelled.known, [[1, 0], [0, 1]])
    assert labelled.row_selection.chosen_by == ["query", "browse"]


def test_an_image_of_the_sample_has_only_the_targets_of_its_check(log, images):
    a, b, c = images
    log.record(a, {"dog": 1.0}, chosen_by="query")
    log.append_sample([a, b], 0.25)
    log.record(a, {"dog": 0.0, "cat": 1.0}, chosen_by="random")
    log.record(a, {"cat": 0.0}, chosen_by="audit")
    log.record(b, {"dog": 1.0}, chosen_by="query")
    log.record(c, {"dog": 1.0}, chosen_by="query")
    log.append_sample([c], 0.5)
    labelled = read_labels(log.path)
    np.testing.assert_array_equal(labelled.targets, [[0, 0], [1, 0], [1, 0]])
    np.testing.assert_array_equal(labelled.known, [[1, 1], [1, 0], [1, 0]])
    selection = labelled.row_selection
    assert selection.is_random.all()
    np.testing.assert_array_equal(selection.inclusion_probability, [0.5, 0.5, 0.5])
    np.testing.assert_array_equal(selection.sample_targets, [[0, 1], [NAN, NAN], [NAN, NAN]])


def test_a_table_of_the_corrections_has_no_target_that_depends_on_predictions(
    log, images, tmp_path
):
    log.append_sample(images[:2], 0.25)
    log.record(images[0], {"dog": 0.0}, chosen_by="random")
    log.record(images[1], {"dog": 1.0}, chosen_by="query")
    csv.write(read_labels(log.path), tmp_path / "table.csv")
    table = read_labels(tmp_path / "table.csv")
    assert table.known.tolist() == [[True], [False]]
    assert table.row_selection.chosen_by == ["random", "random"]


def test_undone_corrections_are_not_read(log, images):
    log.record(images[0], {"dog": 1.0}, chosen_by="query")
    log.undo(log.record(images[1], {"cat": 1.0}, chosen_by="query"))
    labelled = read_labels(log.path)
    assert (labelled.paths, labelled.names) == ([images[0]], ["dog"])
    assert labelled.reading.endswith("1 event undone; selection of the images in 'chosen_by'")


def test_the_file_of_an_audit_states_no_selection(tmp_path, images):
    file = tmp_path / "corrections.csv"
    file.write_text(
        "path,label,target,probability,error_probability,corrected\n"
        f"{images[0]},dog,1,0.1,0.9,0\n{images[1]},cat,0,0.9,0.9,\n"
    )
    labelled = read_labels(file, names=["cat", "dog"])
    assert labelled.paths == [images[0]]
    np.testing.assert_array_equal(labelled.known, [[False, True]])
    assert labelled.row_selection is None


def test_the_corrections_of_a_log_change_a_dataset(log, images):
    dataset = LabelledImages(images, ["dog", "cat"], [[0, 0], [0, NAN], [1, 1]])
    log.record(images[0], {"dog": 1.0}, chosen_by="query")
    log.record(images[0], {"dog": 0.0, "cat": 1.0}, chosen_by="query")
    log.undo(log.record(images[2], {"cat": 0.0}, chosen_by="query"))
    corrected = correct_labels(dataset, log.path)
    np.testing.assert_array_equal(corrected.targets, [[0, 1], [0, 0], [1, 1]])
    np.testing.assert_array_equal(corrected.known, [[1, 1], [1, 0], [1, 1]])


def test_an_incomplete_event_at_the_end_is_left_out_with_a_warning(log, images):
    log.record(images[0], {"dog": 1.0}, chosen_by="query")
    with log.path.open("a") as file:
        file.write("b.jpg,dog")
    with pytest.warns(UserWarning, match="ends with 9 bytes of a correction"):
        labelled = corrections.read(log.path)
    assert labelled.paths == [images[0]]


def test_entries_need_no_files(log, tmp_path):
    log.record(str(tmp_path / "lost.jpg"), {"dog": 1.0}, chosen_by="query")
    assert corrections.read_entries(log.path).paths == [str(tmp_path / "lost.jpg")]
    with pytest.raises(DataError, match=r"must exist; 1 of 1 missing.*lost\.jpg"):
        read_labels(log.path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.jpg,dog,1\na.jpg,dog,0\n", "two different corrections of 'dog' .* in lines 2 and 3"),
        ("a.jpg,dog,\n", "must contain corrections; got no row"),
    ],
)
def test_a_file_without_an_order_must_not_contradict_itself(tmp_path, text, message):
    (tmp_path / "x.csv").write_text(f"path,label,corrected\n{text}")
    with pytest.raises(DataError, match=message):
        corrections.read(tmp_path / "x.csv")
