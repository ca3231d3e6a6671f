import pytest
import torch

from surelabel.records import TrainingStep


@pytest.fixture
def small():
    """Four images of three labels, and names whose cosines are 0.6, 0.3 and 0.5."""
    p = torch.tensor(
        [[0.9, 0.2, 0.1], [0.3, 0.8, 0.2], [0.2, 0.3, 0.1], [0.1, 0.4, 0.3]], dtype=torch.float64
    )
    targets = torch.zeros(4, 3, dtype=torch.float64)
    targets[0, 0] = targets[1, 1] = 1
    cosines = torch.tensor([[1, 0.6, 0.3], [0.6, 1, 0.5], [0.3, 0.5, 1]], dtype=torch.float64)
    texts = 3 * torch.linalg.cholesky(cosines)
    return TrainingStep(p.logit(), p.logit(), targets, torch.ones(4, 3, dtype=torch.bool), texts)
