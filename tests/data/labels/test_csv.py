import csv as standard
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data.labels import csv
from surelabel.errors import DataError, InputError
from surelabel.records import LabelledImages


def written(folder, text, name="labels.csv"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


NAN = pytest.approx(np.nan, nan_ok=True)


def test_wide_has_a_column_a_label_and_empty_is_unknown(folder):
    path = written(folder, "path,dog,cat\na.jpg,1,0\nb.jpg,,0.25\nsub/c d.jpg,0,1\n")
    labelled = csv.read(path)
    assert labelled.names == ["dog", "cat"]
    assert labelled.paths == [str(folder / p) for p in ("a.jpg", "b.jpg", "sub/c d.jpg")]
    assert by_nan(labelled) == [[1, 0], [NAN, 0.25], [0, 1]]


def test_byte_order_mark_crlf_and_quotes_are_understood(folder):
    text = '\ufeffpath,"hot dog","cat, black"\r\n"sub/c d.jpg","1",""\r\n"a.jpg",0,1\r\n'
    labelled = csv.read(written(folder, text))
    assert labelled.names == ["hot dog", "cat, black"]
    assert by_nan(labelled) == [[1, NAN], [0, 1]]


def test_long_has_a_list_of_labels_and_lines_of_one_image_add_up(folder):
    path = written(folder, "path,label\na.jpg,dog; hot dog\nb.jpg,\na.jpg,cat\n")
    labelled = csv.read(path)
    assert labelled.names == ["cat", "dog", "hot dog"]
    assert by_nan(labelled) == [[1, 1, 1], [0, 0, 0]]


def test_a_wide_file_of_one_column_is_not_taken_for_a_long_one(folder):
    labelled = csv.read(written(folder, "path,dog\na.jpg,1\nb.jpg,\n"))
    assert by_nan(labelled) == [[1], [NAN]]


def test_names_choose_and_order_the_columns(folder):
    wide = written(folder, "path,dog,cat\na.jpg,1,0\n")
    assert by_nan(csv.read(wide, names=["cat", "owl", "dog"])) == [[0, NAN, 1]]
    long = written(folder, "path,labels\na.jpg,dog\n", "long.csv")
    assert by_nan(csv.read(long, names=["cat", "dog"])) == [[0, 1]]
    for path in (wide, long):
        with pytest.raises(DataError, match=r"which has 1 label; got \d other labels?: .*'dog'"):
            csv.read(path, names=["owl"])


def test_images_root_is_where_relative_paths_start(folder, tmp_path_factory):
    path = written(tmp_path_factory.mktemp("elsewhere"), f"path,dog\na.jpg,1\n{folder}/b.jpg,0\n")
    found = csv.read(path, images_root=folder)
    assert found.paths == [str(folder / "a.jpg"), str(folder / "b.jpg")]


def test_file_names_that_a_spreadsheet_program_would_execute_begin_with_a_folder(tmp_path):
    names = ["=1+1.jpg", "-2.jpg", "@a.jpg", "b.jpg"]
    for name in names:
        (tmp_path / name).touch()
    labelled = LabelledImages([str(tmp_path / name) for name in names], ["dog"], np.eye(4)[:, :1])
    csv.write(labelled, tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(newline="") as file:
        cells = [row[0] for row in standard.reader(file)]
    assert cells == ["path", "./=1+1.jpg", "./-2.jpg", "./@a.jpg", "b.jpg"]
    again = csv.read(tmp_path / "labels.csv").paths
    assert [os.path.normpath(path) for path in again] == labelled.paths


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"must have the columns path,dog,cat.* got '' on line 1"),
        ("path\na.jpg\n", "got 'path' on line 1"),
        ("path,dog,path\na.jpg,1,0\n", "'path' must not be a label"),
        ("path,label\na.jpg,dog\nb.jpg,cat;path\n", "line 3: 'path' is not a valid label"),
        ("path,label\na.jpg,NaN\n", "line 2: 'NaN' is not a valid label"),
        ("path,dog,dog\na.jpg,1,0\n", "got 'dog' 2 times on line 1"),
        ("path,dog,\na.jpg,1,0\n", "got '' 1 time on line 1"),
        ("path,dog,cat\na.jpg,1,0\nb.jpg,1\n", "line 3: expected 3 columns .* got 2"),
        ('path,dog,cat\n"a\n.jpg",1,0\nb.jpg,1,0,1\n', "line 4: expected 3 columns .* got 4"),
        ("path,label\na.jpg,dog,cat\n", "line 2: expected 2 columns.*got 3: 'a.jpg,dog,cat'"),
        ("path,dog\na.jpg,inf\n", "line 2: the target of 'dog' must be .*got 'inf'"),
        ("path,dog,cat\na.jpg,1,2\n", "line 2: the target of 'cat' must be .*got '2'"),
        ("path,dog\n\na.jpg,yes\n", "line 3: the target of 'dog' must be .*got 'yes'"),
        ("path,dog\na.jpg,-1\n", "line 2: the target of 'dog' is -1"),
        ("path,dog\n,1\n", "line 2: expected an image path; got an empty cell"),
        ("path,dog\n", "at least one image with labels"),
        ("path,label\n", "at least one image with labels"),
        ("path,dog\na.jpg,1\na.jpg,0\n", "'a.jpg' has 1 for 'dog' on line 2, but 0 on"),
        ('path,"do\ng"\na.jpg,1\n', r"control character; got 'do\\ng' on line 1, column 2"),
        ('path,dog\na.jpg,1\n"b\n.jpg",7\n', "line 3: the target of 'dog' must be .*got '7'"),
        (
            b"path,caf\xe9\na.jpg,1\n",
            r"must be a CSV file in UTF-8.* line 1 contains bytes that are not UTF-8 at "
            r"position 8, such as 0xe9 \(é in Windows-1252\)\. Save the file as UTF-8; in a "
            r"spreadsheet",
        ),
        (b"path,dog\ncaf\xe9.jpg,1\n", "must be a CSV file in UTF-8.* line 2 contains bytes that"),
        (
            "path,dog\na.jpg,1\n".encode("utf-16"),
            "line 1 contains text in UTF-16\\. Save the file as UTF-8",
        ),
        (
            "path,dog\na.jpg,1\n".encode("utf-16-le"),
            "line 1 contains text in UTF-16 without a byte",
        ),
        (
            'path,dog\n"a.jpg,1\n',
            "must be a CSV file in UTF-8 with cells separated by commas; got: unexpected end",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(folder, text, message):
    with pytest.raises(DataError, match=rf"labels\.csv.*{message}"):
        csv.read(written(folder, text))


def test_images_that_do_not_exist_are_counted_and_named(folder):
    lines = "".join(f"lost{n}.jpg,1\n" for n in range(5))
    with pytest.raises(
        DataError,
        match=r"All images of .* must exist; 5 of 6 missing: '.*lost0\.jpg', .*lost2\.jpg', …",
    ):
        csv.read(written(folder, "path,dog\na.jpg,1\n" + lines))


def test_a_file_that_is_not_there_is_named(folder):
    with pytest.raises(DataError, match=r"none\.csv cannot be read: No such file.*Check the path"):
        csv.read(folder / "none.csv")


def test_what_is_written_is_read_again(folder):
    paths = [str(folder / "a.jpg"), str(folder / "sub/c d.jpg")]
    targets = [[1, 0, np.nan], [0.25, np.nan, 1]]
    labelled = LabelledImages(paths, ["dog", 'the "cat"', "a,b"], targets)
    csv.write(labelled, folder / "new.csv")
    again = csv.read(folder / "new.csv")
    assert (again.paths, again.names) == (paths, labelled.names)
    assert np.array_equal(again.targets, labelled.targets)
    assert np.array_equal(again.known, labelled.known)
    with (folder / "new.csv").open(newline="") as file:
        rows = list(standard.reader(file))
    assert rows[1:] == [["a.jpg", "1", "0", ""], ["sub/c d.jpg", "0.25", "", "1"]]


@pytest.mark.parametrize("names", [["path", "dog"], ["label"], ["Tags"]])
def test_labels_that_a_csv_cannot_hold_are_refused(folder, names):
    labelled = LabelledImages([str(folder / "a.jpg")], names, np.ones((1, len(names))))
    with pytest.raises(InputError, match=r"Write JSON lines \(\.jsonl\) instead"):
        csv.write(labelled, folder / "new.csv")
    assert not (folder / "new.csv").exists()


def test_a_label_with_a_line_break_is_not_written(folder):
    labelled = LabelledImages([str(folder / "a.jpg")], ["dog\ncat"], [[1]])
    with pytest.raises(InputError, match=r"got 'dog\\ncat'\. Rename the label"):
        csv.write(labelled, folder / "new.csv")


ODD_LABELS = st.text(
    st.one_of(
        st.sampled_from(",;|\"'\\&! \u200f\u202b\u05d0\ufeff"),
        st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]),
    ),
    min_size=1,
    max_size=12,
).filter(lambda label: label == label.strip() and label != "path")


@settings(max_examples=25, deadline=None)
@given(st.lists(ODD_LABELS, min_size=2, max_size=5, unique=True), st.data())
def test_odd_labels_survive_both_kinds_of_tables(tmp_path_factory, names, data):
    folder = tmp_path_factory.getbasetemp()
    (folder / "a.jpg").touch()
    targets = [
        data.draw(st.lists(st.sampled_from([0, 1]), min_size=len(names), max_size=len(names)))
    ]
    labelled = LabelledImages([str(folder / "a.jpg")], names, targets)
    csv.write(labelled, folder / "wide.csv")
    wide = csv.read(folder / "wide.csv")
    assert (wide.names, wide.targets.tolist()) == (names, targets)

    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    with (folder / "list.csv").open("w", encoding="utf-8", newline="") as file:
        standard.writer(file).writerows([["image", "tags"], ["a.jpg", quoted]])
    assert csv.read(folder / "list.csv", separator="comma").names == sorted(names)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_tables_agree_with_the_standard_reader(tmp_path_factory, data):
    values = st.sampled_from(["0", "1", "", "0.5"])
    rows = data.draw(st.lists(st.tuples(values, values, values), min_size=1, max_size=6))
    folder = tmp_path_factory.getbasetemp()
    for number in range(len(rows)):
        (folder / f"{number}.jpg").touch()
    path = folder / "random.csv"
    with path.open("w", newline="") as file:
        quoting = data.draw(st.sampled_from([standard.QUOTE_ALL, standard.QUOTE_MINIMAL]))
        writer = standard.writer(file, quoting=quoting)
        writer.writerow(["path", "x", "y", "z"])
        writer.writerows([f"{number}.jpg", *row] for number, row in enumerate(rows))
    expected = [[float(value) if value else NAN for value in row] for row in rows]
    assert by_nan(csv.read(path)) == expected
