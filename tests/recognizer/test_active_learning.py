import numpy as np
import pytest
from PIL import Image

import surelabel as sl
from surelabel.errors import ConfigError, InputError
from surelabel.records import RowSelection

N_ROWS = 200


def vectors(n_annotated, *, selection=None, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(N_ROWS, 3))
    targets = (features[:, :2] > 0).astype(float)
    targets[n_annotated:] = np.nan
    return sl.LabelledFeatures(features, ["lion", "car"], targets, row_selection=selection)


def annotate(batch):
    """Return the table of a batch, in which all rows of the batch have labels."""
    table = batch.table
    targets, known = table.targets.copy(), table.known.copy()
    targets[batch.rows] = table.features[batch.rows, :2] > 0
    known[batch.rows] = True
    selection = table.row_selection
    return sl.LabelledFeatures(
        table.features, table.names, targets, known, table.paths, row_selection=selection
    )


def test_without_labels_all_rows_are_random():
    batch = sl.label_next(vectors(0), count=30)
    assert (len(batch), batch.n_random, batch.n_pool) == (30, 30, N_ROWS)
    assert batch.inclusion_probability == 30 / N_ROWS
    assert not batch.table.known.any()


def test_one_table_goes_round_and_keeps_one_inclusion_probability():
    table = annotate(sl.label_next(vectors(0), count=30))
    for round_number in (1, 2, 3):
        batch = sl.label_next(table, count=20, random_share=0.25)
        assert len(batch) == 20
        assert set(batch.chosen_by) == {"random", "representative"}
        table = annotate(batch)
        selection = table.row_selection
        size = 30 + 5 * round_number
        assert selection.is_random.sum() == size
        assert set(selection.inclusion_probability[selection.is_random]) == {size / N_ROWS}
        assert table.known.any(axis=1).sum() == 30 + 20 * round_number
        chosen = np.array([bool(key) for key in selection.chosen_by])
        assert np.array_equal(chosen, table.known.any(axis=1))


def test_annotations_are_never_changed():
    source = annotate(sl.label_next(vectors(0), count=30))
    batch = sl.label_next(source, count=20)
    is_known = source.known
    assert np.array_equal(batch.table.targets[is_known], source.targets[is_known])
    assert not batch.table.known[batch.rows].any()
    assert batch.table.known.sum() == source.known.sum()


def test_the_random_rows_do_not_depend_on_earlier_strategy_rows():
    source = vectors(0)
    first = annotate(sl.label_next(source, count=20))
    random = {}
    for random_share in (0.2, 1.0):
        table = first
        for _ in range(2):
            count = round(4 / random_share)
            table = annotate(sl.label_next(table, count=count, random_share=random_share))
        random[random_share] = np.flatnonzero(table.row_selection.is_random)
    assert np.array_equal(random[0.2], random[1.0])
    assert len(random[1.0]) == 28


def test_rows_chosen_before_without_labels_are_counted_and_not_chosen_again():
    first = sl.label_next(vectors(0), count=30)
    again = sl.label_next(first.table, count=10)
    assert (again.n_pending, len(again), again.n_random) == (30, 10, 10)
    taken = {first.table.paths[row] for row in first.rows}
    assert not taken & set(again.paths)
    assert "30 rows of earlier batches still have no labels" in again.describe()


def test_annotated_rows_without_an_entry_become_random_only_by_their_number():
    batch = sl.label_next(vectors(100), count=20)
    selection = batch.table.row_selection
    keys = np.array(selection.chosen_by)
    n_random = (keys == "random").sum()
    assert n_random == 4  # of 200 rows, whoever annotated them
    assert len(batch) == 20
    assert (keys == "").sum() == N_ROWS - n_random - (keys == "representative").sum()


def test_with_random_share_one_no_strategy_is_used():
    batch = sl.label_next(annotate(sl.label_next(vectors(0), count=50)), count=20, random_share=1)
    assert (len(batch), batch.n_random) == (20, 20)


def test_strategy_rows_are_spread_over_the_clusters_without_labels():
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(4) * 10, 50, axis=0)
    targets = np.full((200, 1), np.nan)
    targets[:50] = 1  # the first cluster is annotated
    targets[50] = 0
    source = sl.LabelledFeatures(centres + rng.normal(size=(200, 4)), ["lion"], targets)
    batch = sl.label_next(source, count=3, random_share=0)
    clusters = {int(path.split()[1]) // 50 for path in batch.paths}
    assert clusters == {1, 2, 3}
    assert batch.n_random == 0


def test_scores_are_chosen_by_the_distances_of_their_vectors():
    rng = np.random.default_rng(0)
    scores = sl.LabelledScores(rng.normal(size=(40, 2)), "logits", columns=["lion", "car"])
    targets = np.full((40, 1), np.nan)
    targets[:10] = rng.integers(0, 2, (10, 1))
    batch = sl.label_next(scores.with_labels(["lion"], targets), count=10)
    assert isinstance(batch.table, sl.LabelledScores)
    assert (len(batch), batch.noun) == (10, "image")
    assert batch.table.row_selection.is_random.sum() == 2


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    rng = np.random.default_rng(0)
    for number in range(12):
        pixels = rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def test_a_folder_is_a_pool_and_the_table_has_only_the_chosen_images(images):
    batch = sl.label_next(images, names=["lion", "car"], count=5)
    assert (len(batch.table), batch.n_pool, batch.table.names) == (5, 12, ["lion", "car"])
    table = batch.table
    filled = sl.LabelledImages(
        table.paths, table.names, np.ones((5, 2)), row_selection=table.row_selection
    )
    (images / "broken.png").write_bytes(b"no image")
    with pytest.warns(UserWarning, match="broken.png"):
        after = sl.label_next(filled, pool=images, count=4, random_share=0.25)
    assert len(after.table) == 9
    assert set(after.table.paths[:5]) == set(table.paths)
    assert after.chosen_by.count("representative") == 3
    with pytest.raises(InputError, match="Add images with --pool"):
        sl.label_next(filled, count=4)


def test_other_labels_are_added_as_unknown_targets(images):
    labelled = sl.LabelledImages([str(images / "0.png")], ["lion"], [[1]])
    batch = sl.label_next(labelled, pool=images, names=["car", "lion"], count=2, random_share=1)
    assert batch.table.names == ["car", "lion"]
    assert batch.table.known[0].tolist() == [False, True]


@pytest.mark.parametrize(
    ("settings", "error", "complaint"),
    [
        ({"count": 0}, ConfigError, "count must be >= 1; got 0"),
        ({"count": 1, "random_share": 1.5}, ConfigError, r"random_share must be in \[0, 1\]"),
        ({"count": 1, "pool": np.eye(3)}, InputError, "A pool requires a dataset of images"),
        ({"count": 1, "names": []}, InputError, "requires the labels to annotate"),
    ],
)
def test_invalid_settings_are_refused(settings, error, complaint):
    with pytest.raises(error, match=complaint):
        sl.label_next(vectors(20), **settings)


def test_a_dataset_without_free_rows_is_refused():
    with pytest.raises(InputError, match="200 rows that have labels or were chosen before"):
        sl.label_next(vectors(N_ROWS), count=1)


def test_annotated_rows_can_be_declared_a_random_sample():
    batch = sl.label_next(vectors(50), count=20, annotated_at_random=True)
    selection = batch.table.row_selection
    assert selection.is_random.sum() == 54
    assert selection.is_random[:50].all()
    assert batch.inclusion_probability == 54 / N_ROWS
    again = sl.label_next(annotate(batch), count=20, seed=1)
    assert again.table.row_selection.is_random[:50].all()
    with pytest.raises(InputError, match="Remove --annotated-at-random"):
        sl.label_next(annotate(batch), count=20, annotated_at_random=True)


def test_entries_of_an_empty_table_are_kept():
    selection = RowSelection(["representative"] * N_ROWS, [np.nan] * N_ROWS)
    source = vectors(N_ROWS - 10, selection=selection)
    with pytest.raises(InputError, match="were chosen before"):
        sl.label_next(source, count=5)
