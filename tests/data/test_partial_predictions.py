import json
import os
from contextlib import suppress

import numpy as np
import pytest

from surelabel.data.partial_predictions import open_partial_predictions
from surelabel.errors import DataError
from surelabel.records import Predictions, SkippedImage

NAMES = ["lion", "rocket"]


class Stopped(Exception):
    """Raised to interrupt a run."""


@pytest.fixture
def images(tmp_path):
    """Seven files, in three blocks of at most three."""
    paths = [tmp_path / f"{number}.jpg" for number in range(7)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return [str(path) for path in paths]


@pytest.fixture
def opened(tmp_path, images):
    def open_run(**changes):
        arguments = {
            "images": images,
            "block_size": 3,
            "recognizer": "0123abcd",
            "options": {"max_image_memory": 512},
        }
        return open_partial_predictions(tmp_path / "tags.parquet", **arguments | changes)

    return open_run


def block(paths):
    """Predictions of all but the last image, which is skipped."""
    values = np.arange(2 * len(paths), dtype=np.float32).reshape(-1, 2)[:-1]
    return Predictions(
        paths=paths[:-1],
        names=NAMES,
        scores=values,
        logits=values,
        calibration="platt",
        skipped=(SkippedImage(paths[-1], "empty file"),),
    )


def interrupt(opened, images, *, after):
    """Interrupt a run after some blocks."""
    with suppress(Stopped), opened() as partial:
        for start in range(partial.n_images, 3 * after, 3):
            partial.add(block(images[start : start + 3]))
        raise Stopped


def test_finished_blocks_are_found_again(opened, images):
    interrupt(opened, images, after=2)
    with opened() as partial:
        assert (partial.n_images, partial.n_read) == (6, 4)
        assert [image.path for image in partial.skipped] == [images[2], images[5]]
        found = list(partial.finished_blocks())
        assert [list(b.paths) for b in found] == [images[0:2], images[3:5]]
        np.testing.assert_array_equal(found[0].logits, block(images[:3]).logits)


def test_the_folder_is_deleted_at_the_end_and_not_after_an_error(opened, images, tmp_path):
    folder = tmp_path / "tags.parquet.partial"
    interrupt(opened, images, after=1)
    assert folder.is_dir()
    with opened():
        pass
    assert not folder.exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"recognizer": "other"}, "recognizer"),
        ({"options": {"max_image_memory": 100}}, "options"),
        ({"block_size": 4}, "block_size"),
    ],
)
def test_another_run_is_refused_and_its_blocks_remain(opened, images, tmp_path, changes, what):
    interrupt(opened, images, after=2)
    with (
        pytest.raises(DataError, match=rf"a run with another value of {what}\. Delete "),
        opened(**changes),
    ):
        pass
    with opened() as partial:
        assert partial.n_images == 6


def test_other_images_are_refused(opened, images):
    interrupt(opened, images, after=1)
    for others in (images[:-1], [*images[1:], images[0]]):
        with (
            pytest.raises(DataError, match=r"another value of .*images\. Delete"),
            opened(images=others),
        ):
            pass


@pytest.mark.parametrize("content", ["", "[]", "{", "null", '{"recognizer": 1}'])
def test_a_damaged_run_file_is_refused(opened, images, tmp_path, content):
    interrupt(opened, images, after=1)
    (tmp_path / "tags.parquet.partial" / "run.json").write_text(content)
    with pytest.raises(DataError, match=r"tags\.parquet\.partial.*Delete .*tags"), opened():
        pass


def test_a_damaged_block_and_the_blocks_after_it_are_predicted_again(opened, images, tmp_path):
    interrupt(opened, images, after=2)
    (first, _) = sorted((tmp_path / "tags.parquet.partial").glob("block-*"))
    first.write_bytes(first.read_bytes()[:-9])
    with opened() as partial:
        assert partial.n_images == 0


def test_a_block_with_a_changed_file_is_predicted_again(opened, images):
    interrupt(opened, images, after=2)
    os.utime(images[4], ns=(1, 1))
    with opened() as partial:
        assert partial.n_images == 3


def test_a_file_that_changes_while_its_block_is_predicted_is_noticed(opened, images):
    with suppress(Stopped), opened() as partial:
        os.utime(images[0], ns=(1, 1))  # after the run began, before its block is added
        partial.add(block(images[:3]))
        raise Stopped
    with opened() as partial:
        assert partial.n_images == 0


def test_blocks_without_a_readable_image_are_not_resumed(opened, images):
    with suppress(Stopped), opened() as partial:
        partial.add(block(images[:1]))
        raise Stopped
    with opened() as partial:
        assert (partial.n_images, partial.skipped) == (0, [])


def test_the_run_file_names_the_run_and_no_path(opened, images, tmp_path):
    interrupt(opened, images, after=1)
    run = json.loads((tmp_path / "tags.parquet.partial" / "run.json").read_text())
    assert (run["recognizer"], run["n_images"]) == ("0123abcd", 7)
    assert str(tmp_path) not in json.dumps(run)
