"""The variant with the correlation over all pictures."""

from dataclasses import replace

import pytest
import torch

from surelabel.regularizers import class_correlation


def test_equals_the_value_worked_out_by_hand(small):
    got = class_correlation(small, epsilon=0.0, least=1)
    assert got.item() == pytest.approx(0.617887, abs=1e-6)


def test_does_not_look_at_targets(small):
    other = replace(small, targets=1 - small.targets)
    assert torch.equal(class_correlation(other), class_correlation(small))
