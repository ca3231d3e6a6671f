import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surelabel.data.label_trees import label_tree_as_text, read_label_tree
from surelabel.errors import DataError
from surelabel.records import LabelTree


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        (tmp_path / "tree.txt").write_text(text, encoding="utf-8")
        return read_label_tree(tmp_path / "tree.txt")

    return read_text


def test_lines_are_chains_of_labels(read):
    tree = read('# themes\n\nanimal > dog > puppy\nanimal>cat\nanimal > dog\n"a > ""b""" > c, d\n')
    expected = {"dog": "animal", "puppy": "dog", "cat": "animal", "c, d": 'a > "b"'}
    assert tree.parents == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must contain lines such as animal > dog; got no such line"),
        ("# only\n", "got no such line"),
        ("dog\n", r"tree\.txt, line 1: expected labels separated by >.*got 'dog'"),
        ("a > b\na >\n", r"line 2: expected labels separated by >"),
        ("> b\n", r"line 1: expected labels"),
        ("a > > b\n", r"line 1: expected labels"),
        ('a > "b\n', r"line 1: expected labels"),
        ('a > "b" c\n', r"line 1: expected labels"),
        ('a > b "c"\n', r"line 1: expected labels"),
        ("a > b\tc\n", r"line 1: expected labels"),
        ("a > b\nc > b\n", r"line 2: a label must have one parent; got 'c' for 'b', .*in line 1"),
        ("a > b > a\n", r"line 1: a label must not be its own ancestor"),
        ("a > a\n", r"line 1: a label must not be its own ancestor"),
        ("a > b\nb > c\nc > a\n", r"line 3: a label must not be its own ancestor"),
    ],
)
def test_an_invalid_file_is_refused_with_its_line(read, text, message):
    with pytest.raises(DataError, match=message):
        read(text)


labels = st.text(
    st.characters(exclude_categories=["C", "Zl", "Zp"], include_characters='#>" '), min_size=1
).filter(str.strip)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(labels, min_size=2, max_size=6, unique=True), data=st.data())
def test_a_written_tree_is_read_again(read, names, data):
    parents = {
        name: names[data.draw(st.integers(0, number - 1))]
        for number, name in enumerate(names)
        if number
    }
    lines = label_tree_as_text(LabelTree(parents)).splitlines(keepends=True)
    assert len(lines) == len(parents)
    assert read("".join(data.draw(st.permutations(lines)))).parents == parents


def test_labels_are_quoted_only_if_necessary():
    tree = LabelTree({"hot dog": "animal", 'a > "b"': "hot dog", "#1": "animal"})
    assert label_tree_as_text(tree) == ('animal > hot dog\nhot dog > "a > ""b"""\nanimal > "#1"\n')


def test_other_labels_are_refused_with_their_line(tmp_path):
    (tmp_path / "tree.txt").write_text("animal > dog\nanimal > catt\n")
    assert len(read_label_tree(tmp_path / "tree.txt").parents) == 2
    message = r"line 2: all labels must be .*; got 'catt'\. Did you mean 'cat'\?"
    with pytest.raises(DataError, match=message):
        read_label_tree(tmp_path / "tree.txt", names=["animal", "dog", "cat"])
