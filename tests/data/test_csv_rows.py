import os

import pytest

from surelabel.data.csv_rows import open_csv_rows
from surelabel.errors import DataError


def rows_of(path):
    with open_csv_rows(path) as rows:
        return list(rows)


def test_a_row_has_the_number_of_its_first_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffa,b\r\n"x\ny",1\r\n\r\nz,2'.encode())
    rows = [(1, ["a", "b"]), (2, ["x\ny", "1"]), (4, []), (5, ["z", "2"])]
    assert rows_of(path) == rows


@pytest.mark.parametrize("data", [b"a,\xff\n", b'a,"b\n', b'a,"b"c\n'])
def test_a_file_that_is_no_csv_is_refused(tmp_path, data):
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(
        DataError, match=r"a\.csv must be a CSV file in UTF-8 with cells separated by commas; got: "
    ):
        rows_of(tmp_path / "a.csv")


def test_a_named_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(DataError, match="got a named pipe"):
        rows_of(tmp_path / "a.csv")


def test_the_file_is_closed_if_its_rows_are_not_read_to_the_end(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with open_csv_rows(tmp_path / "a.csv") as rows:
        assert next(rows) == (1, ["a", "b"])
    with pytest.raises(ValueError, match="closed file"):
        next(rows)
