import numpy as np
import torch

from surelabel.links import Sigmoid


def test_scores_are_their_own_logits():
    scores = np.array([[-3.5, 0.0, 0.25]])
    np.testing.assert_array_equal(Sigmoid().logits(scores), scores)
    np.testing.assert_array_equal(Sigmoid().scores(scores), scores)


def test_logits_end_at_forty_on_both_sides():
    scores = torch.tensor([-1e30, -40.5, 40.5, 1e30])
    assert Sigmoid().logits(scores).tolist() == [-40, -40, 40, 40]
