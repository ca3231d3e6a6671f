import pytest
import torch

from surelabel.errors import DataError
from surelabel.methods.prompt_tuning.class_vectors import ClassVectors

TEXTS = torch.eye(4)[:2]


def loaded(names, fit_names=("lion", "guitar")):
    """Return vectors of other labels, with the learned vectors of a fit."""
    fitted = ClassVectors(["lion", "guitar"], TEXTS)
    with torch.no_grad():
        fitted.vectors += torch.tensor([[0.0, 1, 0, 0], [0, 0, 0, 2]])
    other = ClassVectors(names, torch.zeros(len(names), 4))
    other.load_state_dict(fitted.state_dict())
    other.use_fit_labels(fit_names)
    return other


def test_the_vectors_start_at_the_texts_and_are_unit_vectors():
    assert torch.equal(ClassVectors(["lion", "guitar"], 3 * TEXTS)(TEXTS), TEXTS)


def test_labels_of_the_fit_keep_their_vectors_and_others_have_none():
    found = loaded(["cow", "guitar", "lion"])(7 * torch.ones(3, 4))
    expected = [[7, 7, 7, 7], [0, 0.2**0.5, 0, 0.8**0.5], [0.5**0.5, 0.5**0.5, 0, 0]]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_the_vectors_are_trained_also_beside_other_labels():
    it = loaded(["cow", "guitar"])
    it(torch.ones(2, 4)).square()[:, 0].sum().backward()
    assert it.vectors.grad.shape == (2, 4)


def test_another_number_of_labels_than_vectors_is_refused():
    with pytest.raises(DataError, match="must have 2 labels, one for each learned vector; got 1"):
        loaded(["cow"], fit_names=["lion"])


def test_vectors_of_another_width_are_refused():
    with pytest.raises(RuntimeError, match="size mismatch for vectors"):
        ClassVectors(["lion"], torch.eye(3)[:1]).load_state_dict({"vectors": TEXTS})
