"""PA-100K: its MATLAB file, its groups of labels and its damaged files."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

sys.path.insert(0, str(Path(__file__).parent))
from attribute_miniatures import cells, published, write_pa100k

from surelabel.data.protocols import PROTOCOLS, check_protocol_folder
from surelabel.errors import DataError

PROTOCOL = PROTOCOLS["pa100k"]
NAMES = PROTOCOL.labels


@pytest.fixture
def folder(tmp_path):
    write_pa100k(tmp_path)
    return tmp_path


def change(folder, **variables):
    content = {k: v for k, v in loadmat(folder / "annotation.mat").items() if k[0] != "_"}
    content |= variables
    content = {key: value for key, value in content.items() if value is not None}
    savemat(folder / "annotation.mat", content)


def read(folder, split="train"):
    return PROTOCOL.read_split(folder, PROTOCOL.split(split))


def with_value(row, column, value):
    targets = np.zeros((30, 26))
    targets[row, column] = value
    return targets


def test_the_rarest_labels_of_the_published_test_list_are_unseen():
    assert {*PROTOCOL.groups["unseen"]} == {
        *("Upper Stride", "Long Coat", "Upper Splice", "Hat", "Age Over 60", "Lower Pattern"),
        *("Hold Objects In Front", "Age Less 18", "Boots", "Lower Stripe"),
    }
    assert len(PROTOCOL.groups["seen"]) == 16


def test_a_correct_file_has_no_defects(folder):
    rows = read(folder)
    assert (list(rows.defects), list(rows.known_defects)) == ([], [])


def test_identical_labels_and_another_frequency_are_reported(folder):
    targets = loadmat(folder / "annotation.mat")["train_label"]
    targets[:, NAMES.index("Hat")] = 1
    targets[:, NAMES.index("Boots")] = 1
    change(folder, train_label=targets)
    same, frequency = read(folder).known_defects
    assert same == (
        "The labels Hat, Boots are identical in 30 images, with 30 positive images each."
    )
    assert frequency.startswith("The seen labels are not the most frequent ones: Hat is unseen")
    assert "has 30 positive images" in frequency


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"attributes": None}, "annotation.mat must contain the variable attributes"),
        ({"train_images_name": None}, "must contain the variable train_images_name"),
        ({"train_label": None}, "must contain the variable train_label"),
        ({"attributes": np.zeros((26, 1))}, "attributes must be a cell array"),
        ({"attributes": cells([1.5] * 26)}, "attributes, cell 1: expected a text"),
        ({"attributes": cells(["Hat"] * 26)}, "attributes: each label must occur once.*0 and 1"),
        ({"train_images_name": cells(["../a.jpg"] * 30)}, "train_images_name, cell 1: an image"),
        ({"train_images_name": cells(["a.jpg"] * 30)}, "'data/a.jpg' in rows 0 and 1"),
        ({"train_images_name": cells([""] * 30)}, "train_images_name, cell 1: expected a text"),
        ({"train_label": np.zeros((29, 26))}, r"train_label must be .* 30 rows.*\(29, 26\)"),
        ({"train_label": np.zeros((30, 25))}, r"at least 26 columns; got the shape \(30, 25\)"),
        ({"train_label": with_value(4, 2, 2.0)}, "train_label, row 5, column 3: .* got 2"),
        ({"train_label": with_value(0, 0, np.nan)}, "train_label, row 1, column 1: .* got nan"),
        ({"train_label": cells([1] * 30)}, "train_label must be a matrix of 0 and 1"),
        (
            {"train_label": np.zeros((30, 26), dtype=complex) + 1j},
            "or of complex numbers, are not read",
        ),
    ],
)
def test_damaged_variables_are_named(folder, variables, message):
    change(folder, **variables)
    with pytest.raises(DataError, match=message) as error:
        read(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"MATLAB", b"\x89HDF\r\n\x1a\n" + b"\0" * 600])
def test_other_files_are_refused(folder, content):
    (folder / "annotation.mat").write_bytes(content)
    with pytest.raises(DataError, match=r"must be a MATLAB file of version 5 to 7\.2"):
        read(folder)


def test_another_order_of_labels_is_refused(folder):
    names = [published(name) for name in NAMES]
    change(folder, attributes=cells([names[1], names[0], *names[2:]]))
    with pytest.raises(DataError, match="got 'Age Over 60' instead of 'Female' in column 0"):
        check_protocol_folder(PROTOCOL, folder)


def test_bytes_changed_at_random_give_one_error_or_targets(folder):
    content = (folder / "annotation.mat").read_bytes()
    random = np.random.default_rng(0)
    messages = set()
    for _ in range(150):
        changed = bytearray(content)
        for position in random.integers(0, len(content), 5):
            changed[position] = random.integers(0, 256)
        (folder / "annotation.mat").write_bytes(changed[: random.integers(1, len(content))])
        try:
            read(folder)
        except DataError as error:
            messages.add(str(error)[:200])
    assert len(messages) > 2
