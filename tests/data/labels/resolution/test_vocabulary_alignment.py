import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data import parse_label_names
from surelabel.data.labels import align_to_vocabulary
from surelabel.errors import InputError
from surelabel.label_aliases import LiteralLabel
from surelabel.records import LabelledImages

NAN = pytest.approx(np.nan, nan_ok=True)


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


def test_names_find_their_labels_by_any_spelling_and_in_any_case():
    labelled = LabelledImages(["a", "b"], ["Couch", "DOG ", "lamp"], [[1, 0, 1], [0, np.nan, 1]])
    names, aliases = ["dog", "sofa", "owl"], {"sofa": ("sofa", "couch"), "dog": ("dog",)}
    aligned, dropped = align_to_vocabulary(labelled, names, aliases)
    assert aligned.names == names
    assert aligned.paths == labelled.paths
    assert by_nan(aligned) == [[0, 1, NAN], [NAN, 0, NAN]]
    assert dropped == ["lamp"]


def test_marks_of_the_writing_direction_are_ignored():
    labelled = LabelledImages(["a"], ["\u200fשלום\u200f", "dog"], [[1, 0]])
    aligned, dropped = align_to_vocabulary(labelled, ["dog\u200e", "שלום"])
    assert (by_nan(aligned), dropped) == ([[0, 1]], [])


def test_several_labels_of_one_name_are_joined():
    rows = [[1, np.nan], [np.nan, 0], [0, 0], [0.25, 0.5], [0.5, np.nan]]
    labelled = LabelledImages(list("abcde"), ["sofa", "couch"], rows)
    aligned, dropped = align_to_vocabulary(labelled, ["sofa"], {"sofa": ("sofa", "couch")})
    assert by_nan(aligned) == [[1], [NAN], [0], [0.5], [NAN]]
    assert dropped == []


@pytest.mark.parametrize("name", ["guitar", "Banjo", "lute|banjo", "guitar|banjo"])
def test_a_label_written_with_its_aliases_is_found_by_any_of_them(name):
    labelled = LabelledImages(["a", "b"], ["guitar | banjo", "lamp"], [[1, 0], [0, 1]])
    aligned, dropped = align_to_vocabulary(labelled, [name])
    assert by_nan(aligned) == [[1], [0]]
    assert dropped == ["lamp"]


def test_a_label_that_spells_two_names_is_refused():
    labelled = LabelledImages(["a"], ["guitar|banjo"], [[1]])
    with pytest.raises(
        InputError, match=r"got 'guitar\|banjo', which matches 'banjo' and 'guitar'"
    ):
        align_to_vocabulary(labelled, ["banjo", "guitar"])


def test_a_literal_label_is_compared_as_a_whole_before_its_parts():
    labels = [LiteralLabel("guitar|banjo"), "guitar", LiteralLabel("lute|oud")]
    labelled = LabelledImages(["a"], labels, [[1, 0, 1]])
    names, aliases = parse_label_names([r"guitar\|banjo", "guitar", "lute"])
    aligned, dropped = align_to_vocabulary(labelled, names, aliases)
    assert (names, by_nan(aligned), dropped) == (
        ["guitar|banjo", "guitar", "lute"],
        [[1, 0, 1]],
        [],
    )


@settings(deadline=None)
@given(st.permutations(range(4)))
def test_the_own_names_in_another_order_only_move_the_columns(order):
    targets = np.arange(12).reshape(3, 4) / 11
    labelled = LabelledImages(list("abc"), list("wxyz"), targets)
    aligned, dropped = align_to_vocabulary(labelled, [labelled.names[place] for place in order])
    assert np.array_equal(aligned.targets, targets[:, order])
    assert dropped == []
