"""The variant with the second moment of the confidence in negatives."""

from dataclasses import replace

import pytest
import torch

from surelabel.regularizers import class_second_moment


def test_equals_the_value_computed_by_hand(small):
    got = class_second_moment(small, epsilon=0.0, min_images=1)
    assert got.item() == pytest.approx(0.140013, abs=1e-6)


def test_confident_negatives_have_correlation_one(small):
    sure = torch.full_like(small.scores, -30.0)
    same = replace(small, logits=sure, targets=0 * small.targets, texts=torch.ones(3, 1).double())
    assert class_second_moment(same, epsilon=0.0).item() == pytest.approx(0, abs=1e-12)
