"""Pascal VOC 2007 has two evaluation protocols, whose splits are lists of the same layout."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from protocol_miniatures import MINIATURES

from surelabel.data.protocols import PROTOCOLS, check_protocol_folder
from surelabel.errors import DataError


def test_both_evaluation_protocols_have_equal_totals():
    trainval, _ = PROTOCOLS["voc07"].splits
    train, val = PROTOCOLS["voc07-val"].splits
    assert train.official.value + val.official.value == trainval.official.value


@pytest.mark.parametrize(
    ("written", "checked", "missing"),
    [("voc07", "voc07-val", "train.txt"), ("voc07-val", "voc07", "trainval.txt")],
)
def test_a_missing_split_is_named_with_its_archive(tmp_path, written, checked, missing):
    MINIATURES[written](tmp_path)
    with pytest.raises(DataError, match=rf"{missing}, list of images \(VOCtrainval_06-Nov-2007"):
        check_protocol_folder(PROTOCOLS[checked], tmp_path)
