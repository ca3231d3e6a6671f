"""The variant with the correlation over all images."""

from dataclasses import replace

import pytest
import torch

from surelabel.regularizers import class_correlation


def test_equals_the_value_computed_by_hand(small):
    got = class_correlation(small, epsilon=0.0, min_images=1)
    assert got.item() == pytest.approx(0.617887, abs=1e-6)


def test_the_targets_have_no_influence(small):
    other = replace(small, targets=1 - small.targets)
    assert torch.equal(class_correlation(other), class_correlation(small))
