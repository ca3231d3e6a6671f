import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records import Captions, LabelledTexts


def test_captions_have_one_path_each_or_none_at_all():
    assert len(Captions(["a dog", "a cat"])) == 2
    assert Captions(["a dog"], ["a.jpg"]).paths == ["a.jpg"]
    with pytest.raises(InputError, match="one entry per caption, 2; got 1"):
        Captions(["a dog", "a cat"], ["a.jpg"])


def test_nan_is_an_unknown_target_of_a_text():
    texts = LabelledTexts(["a dog"], ["dog", "cat"], [[1, np.nan]])
    assert texts.known.tolist() == [[True, False]]
    assert texts.targets.tolist() == [[1, 0]]


@pytest.mark.parametrize("targets", [[[1.0]], [[1.0, 0.0], [0.0, 1.0]]])
def test_a_matrix_of_the_wrong_shape_is_refused(targets):
    with pytest.raises(
        InputError, match=r"per text and one column per label, with shape \(1, 2\); got"
    ):
        LabelledTexts(["a dog"], ["dog", "cat"], targets)


def test_a_target_of_a_text_is_in_the_unit_interval():
    with pytest.raises(InputError, match=r"must be in \[0, 1\]"):
        LabelledTexts(["a dog"], ["dog"], [[2.0]])


def test_rows_are_taken_in_their_order():
    texts = LabelledTexts(["a", "b", "c"], ["x"], [[0], [1], [np.nan]], n_dropped=4)
    part = texts.take([2, 1])
    assert (part.texts, part.targets.tolist()) == (["c", "b"], [[0], [1]])
    assert part.known.tolist() == [[False], [True]]
    assert (texts.n_dropped, part.n_dropped) == (4, 0)
