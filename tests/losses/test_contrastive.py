import pytest
import torch
import torch.nn.functional as F

from surelabel.errors import ConfigError, InputError
from surelabel.losses import contrastive, info_nce

KNOWN = torch.ones(3, 3, dtype=torch.bool)
SCORES = torch.tensor([[2.0, 0.5, -1.0], [0.0, 1.0, 3.0], [-2.0, 0.3, 0.1]], dtype=torch.float64)


def test_one_caption_an_image_is_the_mean_of_both_cross_entropies():
    order = torch.arange(3)
    both = F.cross_entropy(SCORES, order), F.cross_entropy(SCORES.T, order)
    torch.testing.assert_close(contrastive(SCORES, torch.eye(3), KNOWN), sum(both) / 2)


def test_several_positives_are_averaged_by_hand():
    targets = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    rows = columns = 0.0
    for i in range(3):
        positives = [j for j in range(3) if targets[i, j]]
        for j in positives:
            rows -= SCORES[i].log_softmax(0)[j] / len(positives) / 3
            columns -= SCORES[:, i].log_softmax(0)[j] / len(positives) / 3
    torch.testing.assert_close(contrastive(SCORES, targets, KNOWN), (rows + columns) / 2)


def test_the_temperature_divides_the_scores():
    cold = contrastive(SCORES, torch.eye(3), KNOWN, temperature=0.5)
    torch.testing.assert_close(cold, contrastive(SCORES * 2, torch.eye(3), KNOWN))


def test_rows_and_columns_can_be_exchanged():
    torch.testing.assert_close(
        contrastive(SCORES, torch.eye(3), KNOWN), contrastive(SCORES.T, torch.eye(3), KNOWN)
    )
    assert contrastive(SCORES, torch.eye(3), KNOWN) != info_nce(SCORES, torch.eye(3), KNOWN)


def test_bad_shapes_and_temperatures_are_refused():
    with pytest.raises(InputError, match="targets"):
        contrastive(SCORES, torch.eye(2), KNOWN)
    with pytest.raises(ConfigError, match="temperature must be in"):
        contrastive(SCORES, torch.eye(3), KNOWN, temperature=0.0)
