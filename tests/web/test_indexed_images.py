import numpy as np
import pytest
from scipy.special import expit

from surelabel.records import Predictions
from surelabel.retrieval import Index
from surelabel.web.index_session import IndexSession
from surelabel.web.indexed_images import (
    describe_images,
    find_images_by_path,
    identifier_of_image,
    images_at_positions,
    positions_of_images,
    stored_logits,
)

NAMES = [f"label {number}" for number in range(40)]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Return an index of three shards, in which images were removed, and its log-odds by path."""
    home = tmp_path_factory.mktemp("indexed")
    rng, index = np.random.default_rng(0), None
    for shard in range(3):
        paths = [str(home / "in" / f"{shard}" / f"{row}.jpg") for row in range(20)]
        paths[0] = f"/elsewhere/{shard}.jpg"
        logits = rng.normal(size=(20, len(NAMES))).astype(np.float32)
        predictions = Predictions(paths, NAMES, logits, logits, "tested", "m")
        if index is None:
            index = Index.create(home / "index", predictions, root=home / "in")
        else:
            index.add(predictions)
    index.remove([*index.paths[3:6], index.paths[25]])
    return Index.open(home / "index")


def test_the_images_of_paths_have_the_order_of_the_paths(index):
    paths = [index.paths[row] for row in (40, 0, 17, 55)]
    found = find_images_by_path(index, [paths[0], "/lost.jpg", *paths[1:], paths[1]])
    assert list(found) == paths
    assert [image.path for image in found.values()] == paths
    assert find_images_by_path(index, []) == {}


def test_removed_images_are_not_found(index):
    folder = index.paths[1].rpartition("/")[0]
    assert f"{folder}/3.jpg" not in index.paths
    assert find_images_by_path(index, [f"{folder}/3.jpg"]) == {}


def test_positions_and_images_belong_together(index):
    positions = np.random.default_rng(1).permutation(len(index))
    images = images_at_positions(index, positions)
    assert [image.path for image in images] == index.paths_of_rows(positions.tolist())
    assert positions_of_images(index, images).tolist() == positions.tolist()


def test_an_identifier_is_that_of_a_search(index):
    session = IndexSession(str(index.folder), root=None, load_encoder=lambda _: None)
    for image in images_at_positions(index, [0, 30, 55]):
        found = session.current().find_image(identifier_of_image(image))
        assert (found.path, found.row) == (image.path, image.row)


def test_log_odds_and_descriptions_are_those_of_the_images(index):
    session = IndexSession(str(index.folder), root=None, load_encoder=lambda _: None)
    images = images_at_positions(index, [50, 2, 30, 1])
    logits = stored_logits(index, images)
    for image, row, text in zip(images, logits, describe_images(index, images), strict=True):
        expected = session.current().label_probabilities(image)
        np.testing.assert_array_equal(expit(row), expected)
        assert (text["id"], text["path"]) == (identifier_of_image(image), image.path)
        order = np.argsort(-expected)[:30]
        assert [label["label"] for label in text["labels"]] == [NAMES[i] for i in order]
        assert [label["probability"] for label in text["labels"]] == expected[order].tolist()
