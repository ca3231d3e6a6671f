import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records import QuestionAnswers


def test_rows_can_be_taken_in_any_order():
    data = QuestionAnswers(["a", "b"], ["x?", "y?"], ["yes"], np.array([[1.0], [0.3]]))
    taken = data.take([1, 0, 1])
    assert (len(data), len(taken)) == (2, 3)
    assert (taken.paths, taken.questions) == (["b", "a", "b"], ["y?", "x?", "y?"])
    assert taken.targets.tolist() == [[0.3], [1.0], [0.3]]


@pytest.mark.parametrize(
    ("paths", "shape"), [(["a"], (2, 1)), (["a", "b"], (1, 1)), (["a", "b"], (2, 2))]
)
def test_other_lengths_and_shapes_are_refused(paths, shape):
    with pytest.raises(InputError, match="paths and questions must have the same length"):
        QuestionAnswers(paths, ["x?", "y?"], ["yes"], np.zeros(shape))
