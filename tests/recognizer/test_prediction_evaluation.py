import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data import (
    describe_prediction_run,
    open_prediction_folder,
    open_predictions,
    write_prediction_blocks,
    write_prediction_part,
)
from surelabel.errors import InputError
from surelabel.evaluation import evaluate_predictions
from surelabel.recognizer.prediction_evaluation import evaluate_stored_predictions
from surelabel.records import LabelledImages, Predictions, SkippedImage

NAMES = ["lion", "sofa"]


def random_data(n_images, annotated, seed=0):
    """Return predictions of n images, and annotations of some images in another order."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(n_images, 2)).astype(np.float32)
    paths = [f"images/{row:03}.jpg" for row in range(n_images)]
    predictions = Predictions(paths, NAMES, logits / 2, logits, model="abc")
    labels = [f"images/{row:03}.jpg" for row in annotated]
    targets = random.integers(0, 2, (len(labels), 2))
    return predictions, LabelledImages(labels, ["couch|sofa", "lion"], targets[:, ::-1])


def take(predictions, rows):
    return Predictions(
        [predictions.paths[row] for row in rows],
        NAMES,
        predictions.scores[rows],
        predictions.logits[rows],
        model="abc",
    )


def expected_evaluation(predictions, labelled):
    """Return the evaluation of the shared images, which are found by a loop."""
    rows, targets = [], []
    for row, path in enumerate(predictions.paths):
        for position, other in enumerate(labelled.paths):
            if path == other:
                rows.append(row)
                targets.append(labelled.targets[position, ::-1])
    shared = take(predictions, rows)
    return evaluate_predictions(shared, LabelledImages(shared.paths, NAMES, np.array(targets)))


@settings(max_examples=15)
@given(
    st.integers(2, 30),
    st.lists(st.integers(0, 40), min_size=1, max_size=30, unique=True),
    st.integers(1, 7),
    st.sampled_from(["memory", "file", "folder"]),
)
def test_stored_predictions_have_the_metrics_of_the_shared_images(
    tmp_path_factory, n_images, annotated, block_size, where
):
    predictions, labelled = random_data(n_images, annotated)
    folder = tmp_path_factory.mktemp("stored")
    starts = range(0, n_images, block_size)
    blocks = [np.arange(start, min(start + block_size, n_images)) for start in starts]
    stored = predictions
    if where == "file":
        parts = (take(predictions, rows) for rows in blocks)
        write_prediction_blocks(parts, folder / "tags.parquet", skipped=())
        stored = open_predictions(folder / "tags.parquet")
    if where == "folder":
        run = describe_prediction_run("abc", NAMES, None, predictions.paths, {})
        open_prediction_folder(folder / "out", run)
        for number, rows in enumerate(blocks):
            part = take(predictions, rows)
            write_prediction_part(folder / "out", run, f"{number:03}", part, rows)
        stored = open_predictions(folder / "out")
    shared = set(predictions.paths) & set(labelled.paths)
    if not shared:
        with pytest.raises(
            InputError, match=r"must share .*; the first paths are 'images/000\.jpg'"
        ):
            evaluate_stored_predictions(stored, labelled)
        return
    found, compared = evaluate_stored_predictions(stored, labelled)
    expected = expected_evaluation(predictions, labelled)
    assert found.summary == pytest.approx(expected.summary, nan_ok=True)
    np.testing.assert_array_equal(found.targets, expected.targets)
    np.testing.assert_array_equal(found.predictions.logits, expected.predictions.logits)
    assert found.predictions.paths == expected.predictions.paths
    missing = set(labelled.paths) - shared
    assert set(compared.images_without_predictions) == missing
    others = [path for path in predictions.paths if path not in shared]
    assert compared.images_without_annotations == len(others)
    assert compared.first_without_annotations == (others[0] if others else None)


def test_other_paths_can_be_given_and_only_annotated_images_are_skipped_ones():
    predictions, labelled = random_data(4, range(6))
    moved = Predictions(
        [f"/elsewhere/{path}" for path in predictions.paths],
        NAMES,
        predictions.scores,
        skipped=[SkippedImage("images/005.jpg", "empty"), SkippedImage("images/999.jpg", "empty")],
    )
    with pytest.raises(InputError, match=r"/elsewhere/images/000.jpg"):
        evaluate_stored_predictions(moved, labelled)
    found, _ = evaluate_stored_predictions(moved, labelled, paths=predictions.paths)
    assert found.predictions.paths == predictions.paths
    assert [image.path for image in found.predictions.skipped] == ["images/005.jpg"]
    assert found.predictions.logits is None
    assert "ece" not in found.summary


def test_annotations_without_a_predicted_label_are_an_error_and_some_are_a_warning():
    predictions, labelled = random_data(4, range(4))
    other = LabelledImages(labelled.paths, ["dog", "cat"], labelled.targets)
    with pytest.raises(InputError, match=r"labels lion, sofa and the annotated labels dog, cat\."):
        evaluate_stored_predictions(predictions, other)
    one = LabelledImages(labelled.paths, ["dog", "lion"], labelled.targets)
    with pytest.warns(UserWarning, match=r"1 of 2 labels \(sofa\) has no known target"):
        found, _ = evaluate_stored_predictions(predictions, one)
    assert found.known.all(axis=0).tolist() == [True, False]


def test_the_read_images_are_counted():
    predictions, labelled = random_data(5, range(3))
    counts = []
    evaluate_stored_predictions(
        predictions, labelled, progress=lambda done, total: counts.append((done, total))
    )
    assert counts == [(5, 5)]
