import pytest

from surelabel.data.spreadsheet_cells import spreadsheet_safe_cell


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])
def test_a_text_that_a_spreadsheet_executes_gets_an_apostrophe(start):
    assert spreadsheet_safe_cell(f"{start}SUM(1)") == f"'{start}SUM(1)"


@pytest.mark.parametrize("text", ["", "a.jpg", "images/=a.jpg", " =a", "'=a", "1-2.jpg"])
def test_other_texts_do_not_change(text):
    assert spreadsheet_safe_cell(text) == text
