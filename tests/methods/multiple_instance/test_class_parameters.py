import pytest
import torch

from surelabel.errors import DataError
from surelabel.methods.multiple_instance.class_parameters import ClassParameters


def learned(names, has_positives):
    classes = ClassParameters(names, 4)
    with torch.no_grad():
        classes.offsets += torch.arange(1.0, len(names) + 1)[:, None]
        classes.log_slopes += torch.arange(10.0, 10 + len(names))
        classes.biases += torch.arange(20.0, 20 + len(names))
        classes.has_positives |= torch.tensor(has_positives)
    return classes


def test_a_label_without_positive_images_has_the_shared_values():
    offsets, log_slopes, biases = learned(["cat", "dog"], [False, True])()
    assert offsets.tolist() == [[0.0] * 4, [2.0] * 4]
    assert log_slopes.tolist() == [0.0, 11.0]
    assert biases.tolist() == [0.0, 21.0]


def test_other_labels_keep_the_parameters_of_the_labels_of_the_fit():
    fitted = learned(["cat", "dog", "bus"], [True, True, True])
    classes = ClassParameters(["bus", "pizza"], 4)
    classes.load_state_dict(fitted.state_dict())
    classes.use_fit_labels(["cat", "dog", "bus"])
    offsets, log_slopes, biases = classes()
    assert offsets.tolist() == [[3.0] * 4, [0.0] * 4]
    assert (log_slopes.tolist(), biases.tolist()) == ([12.0, 0.0], [22.0, 0.0])
    assert classes.fit_names == ["cat", "dog", "bus"]


def test_labels_of_another_number_than_the_parameters_are_refused():
    with pytest.raises(DataError, match="have 2 labels, one for each row of parameters; got 1"):
        learned(["cat", "dog"], [True, True]).use_fit_labels(["cat"])
