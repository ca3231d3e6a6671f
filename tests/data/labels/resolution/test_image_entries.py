"""What the labels of one image may be."""

from pathlib import Path

import numpy as np
import pytest

from surelabel.data.labels.resolution.image_entries import (
    ImageEntry,
    image_entry,
    is_image_entry,
    resolve_image_entries,
)
from surelabel.errors import DataError


@pytest.mark.parametrize(
    "value",
    [[], {}, {"path": "", "labels": []}, {"path": "a", "labels": [""]}, {"path": "a", "labels": 1}],
)
def test_other_values_are_no_entries(value):
    assert not is_image_entry(value)


def test_labels_without_absent_ones_are_complete(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(b"")
    entries = [ImageEntry("a", ["dog"], None), ImageEntry("b", ["cat"], ["fox"])]
    labelled = resolve_image_entries(Path(tmp_path / "x"), entries, images_root=None, names=None)
    assert labelled.names == ["cat", "dog", "fox"]
    targets = np.where(labelled.known, labelled.targets, -1)
    assert targets.tolist() == [[0, 1, 0], [1, -1, 0]]


def test_a_label_in_both_lists_is_refused_with_the_place():
    value = {"path": "a", "labels": ["dog"], "absent": ["dog"]}
    assert is_image_entry(value)
    with pytest.raises(DataError, match=r"^x, line 3: .* 'dog' in both lists\. Correct it\.$"):
        image_entry("x, line 3", value, remedy="Correct it.")
