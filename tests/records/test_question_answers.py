import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records import QuestionAnswers


def test_rows_can_be_taken_in_any_order():
    targets = np.array([[1.0], [0.3]])
    data = QuestionAnswers(["a", "b"], ["x?", "y?"], ["yes"], targets, ["yes/no", "other"])
    taken = data.take([1, 0, 1])
    assert (len(data), len(taken)) == (2, 3)
    assert (taken.paths, taken.questions) == (["b", "a", "b"], ["y?", "x?", "y?"])
    assert taken.targets.tolist() == [[0.3], [1.0], [0.3]]
    assert taken.answer_types == ["other", "yes/no", "other"]


def test_answers_and_types_can_be_unknown():
    data = QuestionAnswers(["a", "b"], ["x?", "y?"])
    assert data.targets.shape == (2, 0)
    assert data.take([1]).targets.shape == (1, 0)
    assert data.take([1]).answer_types == ()


def test_another_number_of_types_is_refused():
    with pytest.raises(InputError, match="answer_types must have one entry per question, 2; got 1"):
        QuestionAnswers(["a", "b"], ["x?", "y?"], answer_types=["other"])


@pytest.mark.parametrize(
    ("paths", "shape"), [(["a"], (2, 1)), (["a", "b"], (1, 1)), (["a", "b"], (2, 2))]
)
def test_other_lengths_and_shapes_are_refused(paths, shape):
    with pytest.raises(InputError, match="paths and questions must have the same length"):
        QuestionAnswers(paths, ["x?", "y?"], ["yes"], np.zeros(shape))
