import pytest

from surelabel.data.spreadsheet_cells import spreadsheet_safe_cell, text_of_spreadsheet_cell


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])
def test_a_text_that_a_spreadsheet_executes_gets_an_apostrophe(start):
    assert spreadsheet_safe_cell(f"{start}SUM(1)") == f"'{start}SUM(1)"


@pytest.mark.parametrize("text", ["", "a.jpg", "images/=a.jpg", " =a", "'a", "'", "1-2.jpg"])
def test_other_texts_do_not_change(text):
    assert spreadsheet_safe_cell(text) == text
    assert text_of_spreadsheet_cell(text) == text


@pytest.mark.parametrize("text", ["=a", "'=a", "''+a", "''", "'\\t"])
def test_the_text_of_a_cell_is_the_text_that_was_written(text):
    cell = spreadsheet_safe_cell(text)
    assert not cell.startswith("=")
    assert text_of_spreadsheet_cell(cell) == text
