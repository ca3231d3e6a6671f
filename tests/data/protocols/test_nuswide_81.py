"""NUS-WIDE: the order of its concepts, and its damaged files."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from nuswide_miniatures import write_nuswide_81, write_nuswide_lines

from surelabel.data.protocols import PROTOCOLS, check_protocol_folder
from surelabel.errors import DataError

LABELS = PROTOCOLS["nuswide-81"].labels
AIRPORT = "Groundtruth/TrainTestLabels/Labels_airport_Train.txt"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nuswide") / "data"
    write_nuswide_81(folder)
    return folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "data")


def test_the_concepts_are_in_the_order_of_the_official_file():
    assert len(LABELS) == 81
    assert LABELS[:3] == ("airport", "animal", "beach")
    assert LABELS[-2:] == ("window", "zebra")


@pytest.mark.parametrize(
    ("file", "lines", "message"),
    [
        ("ConceptsList/Concepts81.txt", LABELS[::-1], "order of Concepts81.txt.*'zebra' instead"),
        ("ConceptsList/Concepts81.txt", LABELS[1:], "1 label are missing|1 label.*airport"),
        ("ConceptsList/Concepts81.txt", [*LABELS, "aeroplane"], r"Labels_aeroplane_Train\.txt"),
        ("ConceptsList/Concepts81.txt", ["airport", *LABELS], r"line 2: .*'airport'"),
        ("ConceptsList/Concepts81.txt", ["../x", *LABELS], r"Concepts81\.txt, line 1"),
        (AIRPORT, ["0"] * 5 + ["2"], r"Labels_airport_Train\.txt, line 6: .* got '2'"),
        (AIRPORT, ["1"] * 5, r"Labels_airport_Train\.txt must have .* 5 lines and 6 images"),
        (AIRPORT, [], r"Labels_airport_Train\.txt, line 1"),
        ("ImageList/TrainImagelist.txt", ["..\\a.jpg"] * 6, r"TrainImagelist\.txt, line 1"),
        ("ImageList/TrainImagelist.txt", ["C:\\a.jpg"] * 6, r"TrainImagelist\.txt, line 1"),
        ("ImageList/TrainImagelist.txt", ["a.jpg"] * 6, r"a\.jpg' in rows 0 and 1"),
        ("ImageList/TrainImagelist.txt", [], r"TrainImagelist\.txt, line 1"),
    ],
)
def test_damaged_files_are_named(folder, file, lines, message):
    write_nuswide_lines(folder / file, lines)
    with pytest.raises(DataError, match=message) as error:
        check_protocol_folder(PROTOCOLS["nuswide-81"], folder)
    assert "\n" not in str(error.value)


def test_the_official_and_the_evaluated_count_are_stated(folder):
    problems = check_protocol_folder(PROTOCOLS["nuswide-81"], folder).problems
    assert problems[0].startswith("train must list 161,789 (README.md of NExTplusplus/NUS-WIDE")
    assert problems[1].startswith("test must list 107,859 (")
    assert "60,260 (akang-wang/PIAA" in problems[1]
