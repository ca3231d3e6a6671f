"""Label smoothing by plain loops, and its effect on the targets of binary cross-entropy."""

import math
from dataclasses import replace

import pytest
import torch

from surelabel.errors import ConfigError, InputError
from surelabel.losses import binary
from surelabel.regularizers import label_smoothing

COSINES = [[1, 0.6, 0.3], [0.6, 1, 0.5], [0.3, 0.5, 1]]


def smoothed_by_hand(targets, scale=10.0):
    """Return the targets q of one image."""
    q = [0.0] * 3
    for i, target in enumerate(targets):
        others = [j for j in range(3) if j != i]
        weights = {j: math.exp(scale * COSINES[i][j]) for j in others}
        for j in others:
            q[j] += target * weights[j] / sum(weights.values())
    return [min(1.0, value) for value in q]


def cross_entropy(p, target):
    return -target * math.log(p) - (1 - target) * math.log(1 - p)


@pytest.mark.parametrize("scale", [0.0, 2.0, 10.0])
def test_equals_the_mean_of_loops_over_known_targets(small, scale):
    targets = small.targets.clone()
    targets[2] = torch.tensor([1.0, 1.0, 0.0])
    targets[3] = torch.tensor([0.0, 0.25, 0.5])
    known = small.known.clone()
    known[1, 2] = known[3, 0] = False
    step = replace(small, targets=targets, known=known)
    elements = [
        cross_entropy(small.scores.sigmoid()[n, c].item(), smoothed_by_hand(row, scale)[c])
        for n, row in enumerate(targets.tolist())
        for c in range(3)
        if known[n, c]
    ]
    expected = sum(elements) / len(elements)
    assert label_smoothing(step, scale=scale).item() == pytest.approx(expected)


def test_several_positives_raise_a_target_to_one_at_most(small):
    assert smoothed_by_hand([1, 1, 0], scale=0.0) == [0.5, 0.5, 1.0]
    assert smoothed_by_hand([1, 0, 1])[1] == 1.0  # the sum is 1.83


def test_beside_the_binary_loss_it_smooths_the_targets(small):
    weight = 0.05 / 0.95
    z = small.scores.clone().requires_grad_()
    step = replace(small, scores=z, logits=z)
    total = binary(z, step.targets).mean() + weight * label_smoothing(step)
    q = torch.tensor([smoothed_by_hand(row) for row in step.targets.tolist()])
    smoothed = 0.95 * step.targets + 0.05 * q
    expected = (1 + weight) * binary(z, smoothed).mean()
    torch.testing.assert_close(total, expected)
    gradients = [torch.autograd.grad(value, z)[0] for value in (total, expected)]
    torch.testing.assert_close(*gradients)
    assert smoothed[0].tolist() == pytest.approx([0.95, 0.05 * 0.952574, 0.05 * 0.047426], rel=1e-5)


def test_without_texts_the_error_names_a_remedy(small):
    with pytest.raises(
        InputError, match=r"step\.texts \(c, d\); got None. Use an encoder with a text tower"
    ):
        label_smoothing(replace(small, texts=None))


def test_a_scale_below_zero_is_refused(small):
    with pytest.raises(ConfigError, match=r"scale must be 0 or more; got -1\. The default is 10"):
        label_smoothing(small, scale=-1)
