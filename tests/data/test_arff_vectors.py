import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import arff as scipy_arff

from surelabel.data.arff_vectors import read_arff_vectors
from surelabel.data.labels.resolution import arff_rows
from surelabel.data.labels.resolution.arff_values import split_arff_values
from surelabel.errors import DataError

MULAN = Path(__file__).parents[3] / "shared/data/mulan"
XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="sea"></label>
<label name="hot dog"></label>
</labels>"""
HEADER = """% A comment
@RELATION scenes

@Attribute width NUMERIC
@ATTRIBUTE 'hot dog' {1, 0}
@attribute "it's \\"50%\\"" real % a comment
@attribute flag {0,1}
@attribute colour {red,'dark green',blue}
@attribute sea {0,1}
@Data
"""
ROWS = """1.5,1,-2e3,1,blue,0
% a comment between the rows

 3 , ? , .25 , 0 , 'dark green' , 1 % a comment
4\t0\t5\t1\tred\t?
{0 7, 1 0, 4 blue}
{1 ?, 5 1, 3 1}
"""


def write(folder, text, xml=XML):
    (folder / "scenes.arff").write_text(text, encoding="utf-8")
    if xml is not None:
        (folder / "scenes.xml").write_text(xml, encoding="utf-8")
    return folder / "scenes.arff"


def pattern(message):
    """Return the regular expression of a message in which only ``.*`` is special."""
    return ".*".join(map(re.escape, message.split(".*")))


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


NAN = pytest.approx(np.nan, nan_ok=True)


def test_dense_and_sparse_rows_become_vectors_and_targets(tmp_path):
    vectors = read_arff_vectors(write(tmp_path, HEADER + ROWS))
    assert vectors.names == ["hot dog", "sea"]
    assert vectors.features.tolist() == [
        [1.5, -2000, 1, 0, 0, 1],
        [3, 0.25, 0, 0, 1, 0],
        [4, 5, 1, 1, 0, 0],
        [7, 0, 0, 0, 0, 1],
        [0, 0, 1, 1, 0, 0],
    ]
    assert by_nan(vectors) == [[1, 0], [NAN, 1], [0, NAN], [0, 0], [NAN, 1]]
    assert vectors.paths[1] == "scenes.arff, row 1"


def test_a_file_with_windows_line_ends_and_a_byte_order_mark_is_read(tmp_path):
    path = write(tmp_path, HEADER + ROWS)
    expected = read_arff_vectors(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    found = read_arff_vectors(path)
    assert found.features.tolist() == expected.features.tolist()
    assert by_nan(found)[0] == by_nan(expected)[0]


MEKA = (
    "@relation {}\n@attribute a {{0,1}}\n@attribute b {{0,1}}\n@attribute c {{0,1}}\n@data\n1,0,0\n"
)


@pytest.mark.parametrize(
    ("relation", "names"),
    [
        ("'scenes: -C 2'", ["a", "b"]),
        ("'scenes: -C -1 -split-percentage 50'", ["c"]),
        ('"scenes:  -split-number 4 -c 1"', ["a"]),
        ("scenes: -C -2", ["b", "c"]),
    ],
)
def test_the_option_of_meka_selects_the_first_or_last_attributes(tmp_path, relation, names):
    vectors = read_arff_vectors(write(tmp_path, MEKA.format(relation), xml=None))
    assert vectors.names == names
    row = dict(zip("abc", (1, 0, 0), strict=True))
    assert vectors.targets.tolist() == [[row[name] for name in names]]
    assert vectors.features.tolist() == [[row[name] for name in "abc" if name not in names]]


def test_children_of_a_hierarchy_are_labels(tmp_path):
    xml = '<labels><label name="a"><label name="c"/></label></labels>'
    vectors = read_arff_vectors(write(tmp_path, MEKA.format("x"), xml))
    assert (vectors.names, vectors.targets.tolist()) == (["a", "c"], [[1, 0]])


def test_the_xml_file_is_found_by_the_first_parts_of_the_name(tmp_path):
    path = write(tmp_path, MEKA.format("x"), '<labels><label name="a"/></labels>')
    split = path.rename(tmp_path / "scenes-train_2.arff")
    assert read_arff_vectors(split).names == ["a"]
    (tmp_path / "scenes-train.xml").write_text('<labels><label name="b"/></labels>')
    assert read_arff_vectors(split).names == ["b"]
    assert read_arff_vectors(split, label_file=tmp_path / "scenes.xml").names == ["a"]


def test_without_labels_a_file_may_have_no_list_of_labels(tmp_path):
    path = write(tmp_path, MEKA.format("x"), xml=None)
    vectors = read_arff_vectors(path, with_labels=False)
    assert (vectors.names, vectors.features.tolist()) == ([], [[1, 0, 0]])
    write(tmp_path, MEKA.format("x"), '<labels><label name="a"/></labels>')
    assert read_arff_vectors(path, with_labels=False).features.tolist() == [[0, 0]]
    (tmp_path / "scenes.xml").unlink()
    with pytest.raises(
        DataError, match=r"scenes\.arff must state .* \(scenes\.xml\) .* got neither"
    ):
        read_arff_vectors(path)


def test_numeric_labels_can_be_graded_and_a_name_with_a_bar_is_one_label(tmp_path):
    text = "@relation 'x: -C 1'\n@attribute 'a|b' numeric\n@attribute f real\n@data\n.5,1\n?,2\n"
    vectors = read_arff_vectors(write(tmp_path, text, xml=None))
    assert by_nan(vectors) == [[0.5], [NAN]]
    assert type(vectors.names[0]).__name__ == "LiteralLabel"


def test_an_attribute_of_paths_contains_the_identifiers_of_the_rows(tmp_path):
    text = "@relation 'x: -C 1'\n@attribute a {0,1}\n@attribute f real\n@attribute Path string\n"
    vectors = read_arff_vectors(write(tmp_path, f"{text}@data\n1,2,'x y.jpg'\n0,3,z.jpg\n", None))
    assert (vectors.paths, vectors.features.tolist()) == (["x y.jpg", "z.jpg"], [[2], [3]])
    path = write(tmp_path, f"{text}@data\n1,2,z.jpg\n0,3,z.jpg\n", None)
    with pytest.raises(DataError, match=r"scenes\.arff, line 7: .* distinct; .* also on line 6"):
        read_arff_vectors(path)


ROW = "1,0,0,1,red,0\n"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "line 1", "must contain @relation, @attribute and @data; got the end of the file"),
        ("@attribute a real\n", "line 1", "expected @relation; got '@attribute a real'"),
        ("@relation x\n@data\n", "line 2", "expected @attribute; got '@data'"),
        ("@relation x\n@attribute a\n", "line 2", "got 'a' without a type"),
        ("@relation x\n@attribute a text\n", "line 2", "got the type 'text'"),
        ("@relation x\n@attribute a relational\n", "line 2", "got the type 'relational'"),
        ("@relation x\n@attribute 'a real\n", "line 2", 'not closed by a quote, at "\'a real"'),
        ("@relation x\n@attribute a {0,1\n", "line 2", "got no value"),
        ("@relation x\n@attribute a {}\n", "line 2", "got a list without values"),
        ("@relation x\n@attribute a {0,0}\n", "line 2", "got the value '0' twice"),
        ("@relation x\n@attribute a real {5}\n", "line 2", "got '{5}' after the type"),
        ("@relation x\n@attribute '' real\n", "line 2", "must be a text without control"),
        ("@relation x\n@attribute a real\n@attribute a real\n", "line 3", "also on line 2"),
        ("@relation x\n@attribute a real\nfoo\n", "line 3", "expected @attribute or @data"),
        ("@relation 'x: -C 3'\n@attribute a real\n@data\n", "line 1", "at most 1; got '3'"),
        ("@relation 'x: -C'\n@attribute a real\n@data\n", "line 1", "got ''"),
        ("@relation 'x: -C 0'\n@attribute a real\n@data\n", "line 1", "got '0'"),
        ("@relation 'x\n@attribute a real\n@data\n", "line 1", "expected @relation NAME"),
        (f"{HEADER}1,0,0,1,red\n", "line 11", "expected 6 values, .*; got 5"),
        (f"{HEADER}{ROW}1,0,0,1,red,0,2\n", "line 12", "expected 6 values, .*; got 7"),
        (f"{HEADER}1,0,,1,red,0\n", "line 11", "no value, at ',1,red,0'"),
        (f"{HEADER}1,0,0,1,red,0,\n", "line 11", "no value after the last comma"),
        (f"{HEADER}1,0,0,1,red,0,{{5}}\n", "line 11", "no value, at '{5}'"),
        (f"{HEADER}?,0,0,1,red,0\n", "line 11", "the feature 'width' must have a value; got ?"),
        (f"{HEADER}1,0,0,1,?,0\n", "line 11", "the feature 'colour' must have a value"),
        (f"{HEADER}x,0,0,1,red,0\n", "line 11", "'width' must be a number .*; got 'x'"),
        (f"{HEADER}nan,0,0,1,red,0\n", "line 11", "'width' must be a number .*; got 'nan'"),
        (f"{HEADER}1_0,0,0,1,red,0\n", "line 11", "'width' must be a number .*; got '1_0'"),
        (f"{HEADER}1e39,0,0,1,red,0\n", "line 11", "between -3.4e38 and 3.4e38, .*; got 1e+39"),
        (f"{HEADER}1,2,0,1,red,0\n", "line 11", "'hot dog' must be one of {1,0} of line 5; got"),
        (f"{HEADER}1,0,0,1,pink,0\n", "line 11", "of {red,dark green,blue} of line 8; got 'pink'"),
        (f"{HEADER}{{6 1}}\n", "line 11", "index of an attribute, from 0 to 5, .*; got '6 1}'"),
        (f"{HEADER}{{1 0, 1 1}}\n", "line 11", "the index 1 is repeated"),
        (f"{HEADER}{{1 0 2 1}}\n", "line 11", "expected a comma or }; got '2 1}'"),
        (f"{HEADER}{{1 0,}}\n", "line 11", "expected the index of an attribute, .*; got '}'"),
        (f"{HEADER}{{1 0\n", "line 11", "expected a comma or }; got ''"),
        (f"{HEADER}{{1 0}}, {{2}}\n", "line 11", "weights of rows are not supported"),
        (f"{HEADER}{{5 1}}\n", "line 11", "omits 'hot dog', whose first value is 1"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, text, place, message):
    with pytest.raises(
        DataError, match=rf"scenes\.arff, {place}: .*{pattern(message)}.*\.$"
    ) as error:
        read_arff_vectors(write(tmp_path, text))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("sea string", "the label 'sea' must have the type {0,1} or numeric; got string"),
        ("sea {no,yes}", "the label 'sea' must have the type .*; got nominal {no,yes}"),
        (
            "sea {0,1}\n@attribute t string",
            "a feature must be numeric or nominal; .* 't' of type s",
        ),
        ("sea {0,1}\n@attribute t date 'yyyy'", ".* got the attribute 't' of type date"),
    ],
)
def test_a_type_that_is_no_label_or_feature_is_refused(tmp_path, attribute, message):
    text = f"@relation x\n@attribute f real\n@attribute {attribute}\n@data\n1,0\n"
    with pytest.raises(DataError, match=rf"scenes\.arff, line [34]: {pattern(message)}"):
        read_arff_vectors(write(tmp_path, text, '<labels><label name="sea"/></labels>'))


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("<labels>", "must be an XML file in UTF-8; got: no element found"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><labels/>', "must not declare a document type"),
        ("<annotation/>", "the root element must be <labels>; got <annotation>"),
        ("<labels/>", "must contain at least one <label>; got none"),
        ("<labels><tag name='sea'/></labels>", "element 1: expected <label .* got <tag>"),
        ("<labels><label name='sea'/><label/></labels>", "element 2: .* with the name ''"),
        ("<labels><label name='sea'/><label name='sea'/></labels>", "element 2: .* is repeated"),
        (
            "<labels><label name='sea'/><label name='sky'/></labels>",
            r"each label must be an attribute of .*scenes\.arff; got 1 other label: 'sky'",
        ),
    ],
)
def test_an_xml_file_that_is_no_list_of_labels_is_refused(tmp_path, xml, message):
    with pytest.raises(DataError, match=rf"scenes\.xml.*{message}"):
        read_arff_vectors(write(tmp_path, HEADER + ROWS, xml))


def test_an_option_that_contradicts_the_xml_file_is_refused(tmp_path):
    path = write(tmp_path, MEKA.format("'x: -C 1'"), '<labels><label name="b"/></labels>')
    with pytest.raises(DataError, match=r"-C 1 in @relation and .*scenes\.xml must state the same"):
        read_arff_vectors(path)


def test_files_without_rows_or_features_and_numbers_that_are_no_targets_are_refused(tmp_path):
    with pytest.raises(DataError, match="at least one row and one feature; got 0 rows and 6 feat"):
        read_arff_vectors(write(tmp_path, HEADER))
    (tmp_path / "scenes.xml").unlink()
    with pytest.raises(DataError, match="got 1 row and 0 features"):
        read_arff_vectors(write(tmp_path, MEKA.format("'x: -C 3'"), xml=None))
    text = "@relation 'x: -C 1'\n@attribute a numeric\n@attribute f real\n@data\n2,1\n"
    with pytest.raises(DataError, match=r"line 5: the label 'a' must be in \[0, 1\]; got '2'"):
        read_arff_vectors(write(tmp_path, text, xml=None))


def test_a_small_file_cannot_describe_vectors_that_exceed_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(arff_rows, "MAX_NUMBERS", 20)
    path = write(tmp_path, HEADER + "{1 0}\n" * 3)
    assert len(read_arff_vectors(path)) == 3
    path.write_text(HEADER + "{1 0}\n" * 4)
    with pytest.raises(
        DataError, match=r"line 14: .* at most 20 numbers; got more, with 6 numbers"
    ):
        read_arff_vectors(path)


def test_a_long_line_is_read_in_linear_time():
    text = "'a b', " * 100_000 + "c"
    assert len(split_arff_values(text)) == 100_001


# An independent writer of ARFF files, for generated tables.

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=4)
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)
TARGETS = st.sampled_from([0.0, 1.0, math.nan])


def quote(text):
    mark = "'" if '"' in text else '"'
    return mark + text.replace("\\", "\\\\").replace(mark, f"\\{mark}") + mark


def target_text(target):
    return "?" if math.isnan(target) else str(int(target))


def row_text(vector, targets, is_sparse):
    values = [*map(repr, vector), *map(target_text, targets)]
    if not is_sparse:
        return ",".join(values)
    stated = [f"{i} {value}" for i, value in enumerate(values) if value not in ("0.0", "0")]
    return f"{{{', '.join(stated)}}}"


@st.composite
def tables(draw):
    width, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    n_names = width + n_labels
    names = draw(st.lists(NAMES, min_size=n_names, max_size=n_names, unique=True))
    row = st.tuples(
        st.lists(NUMBERS, min_size=width, max_size=width),
        st.lists(TARGETS, min_size=n_labels, max_size=n_labels),
        st.booleans(),
    )
    return names, width, draw(st.lists(row, min_size=1, max_size=4))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables())
def test_generated_tables_are_read_as_they_were_written(tmp_path, table):
    names, width, rows = table
    lines = [f"@relation 'x: -C {width - len(names)}'"]
    lines += [f"@attribute {quote(name)} numeric" for name in names[:width]]
    lines += [f"@attribute {quote(name)} {{0,1}}" for name in names[width:]]
    lines += ["@data", *(row_text(*row) for row in rows)]
    vectors = read_arff_vectors(write(tmp_path, "\n".join(lines), xml=None))
    assert vectors.names == names[width:]
    assert vectors.features.tolist() == [vector for vector, _, _ in rows]
    np.testing.assert_array_equal(by_nan(vectors), [targets for _, targets, _ in rows])


@pytest.mark.skipif(not MULAN.is_dir(), reason="the files of Mulan are not part of the repository")
@pytest.mark.parametrize(
    ("name", "rows", "width", "n_labels"),
    [("emotions", (391, 202), 72, 6), ("yeast", (1500, 917), 103, 14)],
)
def test_files_of_mulan_are_read_as_by_scipy(name, rows, width, n_labels):
    for split, n_rows in zip(("train", "test"), rows, strict=True):
        vectors = read_arff_vectors(MULAN / f"{name}-{split}.arff")
        assert vectors.features.shape == (n_rows, width)
        assert (len(vectors.names), vectors.known.all()) == (n_labels, True)
        table, attributes = scipy_arff.loadarff(MULAN / f"{name}-{split}.arff")
        for column, attribute in enumerate(attributes.names()[:width]):
            expected = table[attribute].astype(np.float32)
            np.testing.assert_array_equal(vectors.features[:, column], expected)
        for column, label in enumerate(vectors.names):
            np.testing.assert_array_equal(vectors.targets[:, column], table[label].astype(float))
