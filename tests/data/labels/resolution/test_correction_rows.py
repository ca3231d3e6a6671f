import math

import pytest

from surelabel.data.labels.resolution.correction_rows import (
    LOG_COLUMNS,
    CorrectionRow,
    format_correction_rows,
    is_correction_header,
    read_correction_header,
    read_correction_rows,
)
from surelabel.errors import DataError

EVENT = "e2-" + "a" * 16
HEADER = ",".join(LOG_COLUMNS) + "\n"
NAN = math.nan
ROWS = [
    CorrectionRow(
        "a.jpg",
        "=1+1",
        1.0,
        0.25,
        "query",
        NAN,
        '=cmd|" ,',
        3,
        "2026-01-01T00:00:00Z",
        "e2-" + "a" * 16,
    ),
    CorrectionRow("a.jpg", "'dog", NAN, NAN, "random", 1 / 3, "", None, "", EVENT),
]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "log.csv"


def event_lines(event, *labels):
    return "".join(f"a.jpg,{label},1,,query,,,,,{event}\n" for label in labels)


def test_rows_that_are_written_and_read_are_equal(file):
    file.write_text(HEADER + format_correction_rows(ROWS), encoding="utf-8")
    table = read_correction_rows(file)
    expected = [row._replace(line=number) for number, row in enumerate(ROWS, start=2)]
    assert repr(table.rows) == repr(expected)  # NaN differs from itself
    assert table.is_ordered
    assert table.has_selection


def test_no_cell_is_executed_by_a_spreadsheet_program():
    cells = format_correction_rows(ROWS[:1]).split(",")
    assert cells[1] == "'=1+1"
    assert cells[6].startswith("\"'=cmd|")


def test_a_row_without_a_label_is_an_image_of_the_sample(file):
    file.write_text(f"{HEADER}a.jpg,,,,random,0.5,seed 0,,,\na.jpg,dog,,,,,,,,\n")
    (row,) = read_correction_rows(file).rows
    assert (row.is_sampling, row.inclusion_probability) == (True, 0.5)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_and_the_order_of_the_columns_are_free(file, delimiter):
    file.write_text("label,path,corrected,x\ndog,a.jpg,yes,9\n".replace(",", delimiter))
    assert read_correction_header(file)[0] == delimiter
    table = read_correction_rows(file)
    assert [(row.path, row.label, row.target) for row in table.rows] == [("a.jpg", "dog", 1.0)]
    assert not table.is_ordered
    assert not table.has_selection


def test_a_header_of_corrections_has_three_columns():
    assert is_correction_header(["corrected", "x", "label", "path"])
    assert not is_correction_header(["path", "label", "dog"])


@pytest.mark.parametrize("cut", range(1, 8))
def test_an_event_that_was_not_written_completely_is_left_out(file, cut):
    complete = HEADER + event_lines(EVENT, "dog", "cat")
    event = event_lines("e3-" + "b" * 16, "cow", "cat", "dog")
    file.write_text(complete + event[: -(cut**2)])  # 1 to 49 characters are missing
    table = read_correction_rows(file)
    if cut == 1:  # only the line break is missing
        assert len(table.rows) == 5
        assert table.n_bytes == file.stat().st_size
    else:
        assert [row.label for row in table.rows] == ["dog", "cat"]
        assert table.n_bytes == len(complete)


def test_rows_that_a_person_removed_from_an_event_do_not_make_it_incomplete(file):
    file.write_text(HEADER + event_lines("e3-" + "b" * 16, "cow"))
    assert [row.label for row in read_correction_rows(file).rows] == ["cow"]


def test_only_the_rows_of_the_incomplete_event_are_left_out(file):
    one, two = (event_lines("e1-" + sign * 16, sign) for sign in "ab")
    file.write_text(HEADER + one + two + "a.jpg,dog,1,0.")
    assert [row.label for row in read_correction_rows(file).rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,label\na,b\n", "the column corrected is missing"),
        ("path,label,corrected\na.jpg,dog,2\n", "line 2: .* must be 1, 0, unknown or empty"),
        ("path,label,corrected\na.jpg,,1\n", "line 2: the cell in the column label"),
        ("path,label,corrected\n,dog,1\n", "line 2: the cell in the column path"),
        ("path,label,corrected\na.jpg,dog\n", "line 2: expected 3 columns .* got 2"),
        ("path,label,corrected,chosen_by\n", "both columns chosen_by and inclusion_probability"),
        (f"{HEADER}a.jpg,dog,1,,random,2,,,,\n", r"must be in \(0, 1\]"),
        (f"{HEADER}a.jpg,dog,1,,random,,,,,\n", r"must be in \(0, 1\]"),
        (f'{HEADER}"a.jpg\n', "must be a CSV file in UTF-8"),
    ],
)
def test_an_invalid_file_is_refused_with_the_place(file, text, message):
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read_correction_rows(file)


def test_numbers_that_are_only_information_need_not_be_valid(file):
    file.write_text(f"{HEADER}a.jpg,dog,1,much,query,,,first,,\n")
    (row,) = read_correction_rows(file).rows
    assert (math.isnan(row.probability), row.rank) == (True, None)
