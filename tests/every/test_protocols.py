"""Every evaluation protocol states its sources, and reads a miniature of its dataset."""

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "data/protocols"))
from protocol_miniatures import MINIATURES

from surelabel.data import read_labels, read_pairs
from surelabel.data.protocols import PROTOCOLS, SourcedCount, check_protocol_folder
from surelabel.data.protocols.definition.dataset_files import write_protocol_datasets
from surelabel.errors import DataError
from surelabel.metrics import METRICS

every = pytest.mark.parametrize("name", PROTOCOLS)
with_miniature = pytest.mark.parametrize("name", MINIATURES)
with_two_splits = pytest.mark.parametrize(
    "name", [name for name in MINIATURES if len(PROTOCOLS[name].splits) > 1]
)
with_list_of_images = pytest.mark.parametrize(  # the images of ImageNet are those in its folders
    "name", [name for name in MINIATURES if not name.startswith("imagenet")]
)
COMPARISONS = {
    *("calibrated", "label-free", "negation", "open-vocabulary", "prompts", "similarity"),
    "supervised",
}


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """Return a function that writes a miniature once, and returns its folder and annotations."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("protocols") / name
            folder.mkdir()
            made[name] = folder, MINIATURES[name](folder)
        return made[name]

    return make


@pytest.fixture
def miniature(originals, name, tmp_path):
    """Return a copy of a miniature, which the test can change, and its annotations."""
    folder, expected = originals(name)
    shutil.copytree(folder, tmp_path / "data")
    return tmp_path / "data", expected


def without_counts(name):
    """Return a protocol whose counts do not refer to the complete dataset."""
    protocol = PROTOCOLS[name]
    splits = tuple(
        replace(split, official=SourcedCount(), evaluated=SourcedCount())
        for split in protocol.splits
    )
    return replace(protocol, splits=splits)


@every
def test_labels_groups_metrics_and_comparisons_are_consistent(name):
    protocol = PROTOCOLS[name]
    assert len(set(protocol.labels)) == len(protocol.labels)
    assert bool(protocol.labels) == bool(protocol.label_source)
    assert {label for group in protocol.groups.values() for label in group} <= {*protocol.labels}
    assert protocol.metrics.keys() <= METRICS.keys()
    assert {*protocol.comparisons} <= COMPARISONS
    assert len({split.name for split in protocol.splits}) == len(protocol.splits)
    assert protocol.files
    assert all(file.origin and file.content for file in protocol.files)
    assert all(note.endswith(".") for note in protocol.notes)
    assert "test" in {split.role for split in protocol.splits}


@pytest.mark.parametrize("values", [{"value": 3}, {"source": "a table"}])
def test_a_count_needs_a_source_and_a_source_a_count(values):
    with pytest.raises(ValueError, match="a value and a source, or neither"):
        SourcedCount(**values)


@with_miniature
def test_a_miniature_in_the_official_layout_is_read(name, miniature):
    folder, expected = miniature
    check = check_protocol_folder(without_counts(name), folder)
    assert check.problems == ()
    assert not check.is_subset
    for split in check.splits:
        of_split = expected[split.split.name]
        assert list(split.rows.images) == of_split.images
        np.testing.assert_array_equal(split.rows.targets, of_split.targets)
        assert tuple(split.rows.captions) == of_split.captions
        assert tuple(split.rows.image_rows) == of_split.image_rows
    assert {split.split.name for split in check.splits} == expected.keys()


@with_miniature
def test_counts_of_the_complete_dataset_are_compared(name, miniature):
    check = check_protocol_folder(PROTOCOLS[name], miniature[0])
    n_stated = sum(
        (split.official.value, split.evaluated.value) != (None, None)
        for split in PROTOCOLS[name].splits
    )
    assert len([text for text in check.problems if " must list " in text]) == n_stated


@with_miniature
def test_dataset_files_have_the_same_annotations(name, miniature, tmp_path):
    folder, expected = miniature
    check = check_protocol_folder(without_counts(name), folder)
    files = write_protocol_datasets(check, tmp_path / "out")
    for file, split in zip(files, check.splits, strict=True):
        of_split = expected[split.split.name]
        if PROTOCOLS[name].task == "labels":
            read = read_labels(file)
            assert list(read.names) == list(split.rows.names)
            targets = np.where(read.known, read.targets, np.nan)
            np.testing.assert_array_equal(targets, of_split.targets)
            assert read.paths == [str(folder / image) for image in of_split.images]
        elif of_split.captions:
            pairs = read_pairs(file)
            assert tuple(pairs.captions) == of_split.captions
            assert [pairs.paths[row] for row in pairs.image_rows] == [
                str(folder / of_split.images[row]) for row in of_split.image_rows
            ]


@with_list_of_images
def test_missing_images_are_a_problem_unless_a_subset_is_allowed(name, miniature):
    folder, expected = miniature
    split = PROTOCOLS[name].splits[-1].name
    image = expected[split].images[1]
    (folder / image).unlink()
    protocol = without_counts(name)
    (problem,) = check_protocol_folder(protocol, folder).problems
    assert problem.startswith(f"{split}: 1 listed image of {len(expected[split].images)} do")
    check = check_protocol_folder(protocol, folder, subset=True)
    assert (check.problems, check.is_subset) == ((), True)
    assert check.splits[-1].missing == (image,)
    assert image not in check.splits[-1].rows.images
    assert len(check.splits[-1].rows.targets) == len(expected[split].images) - 1


@with_two_splits
def test_equal_images_in_two_splits_are_named(name, miniature):
    folder, expected = miniature
    splits = PROTOCOLS[name].splits
    first, second = (expected[split.name].images[0] for split in (splits[0], splits[-1]))
    shutil.copy(folder / first, folder / second)
    with pytest.raises(DataError, match=re.escape(f"{first} and {second}. Restore")):
        check_protocol_folder(without_counts(name), folder)


@with_miniature
def test_each_missing_file_is_named_with_its_origin(name, miniature):
    folder, _ = miniature
    for file in PROTOCOLS[name].files:
        path, other = folder / file.path, folder.parent / "moved"
        path.rename(other)
        with pytest.raises(DataError, match=re.escape(f"{file.path}, {file.content} (")):
            check_protocol_folder(without_counts(name), folder)
        other.rename(path)


@with_miniature
def test_an_archive_or_a_missing_folder_is_refused(name, tmp_path):
    (tmp_path / "data.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"got a file\. Unpack archives"):
        check_protocol_folder(PROTOCOLS[name], tmp_path / "data.zip")
    with pytest.raises(DataError, match="the following is missing"):
        check_protocol_folder(PROTOCOLS[name], tmp_path / "nothing")
