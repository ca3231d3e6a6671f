import numpy as np
import pytest
import torch

from surelabel.calibration import Cooccurrence
from surelabel.export.calibration.beta_module import BetaModule
from surelabel.export.calibration.cooccurrence_module import CooccurrenceModule, cooccurrence_module

RATES = [0.3, 0.01, 0.7]
LOG_RATIOS = [[0.0, 4.5, 0.35], [1.2, 0.0, -7.0], [-0.5, -3.0, 0.0]]  # P(1 | 0) is 0.9


def calibrator_of(strength, *, anchor_probability=0.3, log_ratios=LOG_RATIOS):
    return Cooccurrence().restore(
        {
            "anchor_probability": anchor_probability,
            "rates": RATES,
            "log_ratios": log_ratios,
            "strength": strength,
            "slopes": [0.8, 1.3],
            "shift": -0.7,
        }
    )


def differences(calibrator, x):
    found = cooccurrence_module(calibrator)(torch.from_numpy(x)).clamp(-40, 40).numpy()
    return np.abs(found - calibrator.logits(x))


@pytest.mark.parametrize("anchor_probability", [0.0, 0.3, 0.9])
def test_every_float32_score_is_an_anchor_in_both_or_in_none(anchor_probability):
    calibrator = calibrator_of(0.8, anchor_probability=anchor_probability)
    module = cooccurrence_module(calibrator)
    assert isinstance(module, CooccurrenceModule)
    limit = np.float32(max(module.first_anchor.item(), -1e6))
    below = np.nextafter(limit, np.float32(-np.inf))
    rng = np.random.default_rng(0)
    x = rng.choice([limit, below, -5, 0, 2, 9, 45], size=(400, 3)).astype(np.float32)
    assert differences(calibrator, x).max() < 2e-5


def test_a_label_that_is_almost_certain_given_the_anchors_keeps_its_digits():
    log_ratios = [[0.0, np.log(100), np.log(1 / 0.7) - 1e-6], [1.2, 0.0, 0.0], [0.0, 0.0, 0.0]]
    calibrator = calibrator_of(1.0, log_ratios=log_ratios)
    x = np.stack(np.meshgrid(*[np.linspace(-12, 12, 25, dtype=np.float32)] * 3), -1).reshape(-1, 3)
    assert differences(calibrator, x).max() < 1e-4


def test_without_a_strength_the_graph_is_that_of_beta():
    calibrator = calibrator_of(0.0)
    assert isinstance(cooccurrence_module(calibrator), BetaModule)
    x = np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32)
    assert differences(calibrator, x).max() < 1e-5
