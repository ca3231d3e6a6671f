"""Table 1 of Cheng and Vasconcelos, CVPR 2024, comes out of measurements."""

from pathlib import Path

import pytest
import torch

from surelabel.errors import ConfigError, UnknownName
from surelabel.losses import LOSSES
from surelabel.losses.properties.loss_properties import (
    LossProperties,
    measure_loss_properties,
    minimizers_for_loss_properties,
)

PAGE = (Path(__file__).parents[3] / "docs/losses.md").read_text(encoding="utf-8")
SHOWN = {
    "`binary`": ("binary", {}),
    "`focal`, focusing parameters 1 and 4": ("focal", {"gamma_pos": 1.0, "gamma_neg": 4.0}),
    "`focal`, focusing parameters 2 and 2": ("focal", {}),
    "`asymmetric`": ("asymmetric", {}),
    "`asymmetric`, no clip": ("asymmetric", {"clip": 0.0}),
    "`spa`": ("spa", {}),
}


@pytest.mark.parametrize(
    ("name", "settings", "asymmetric", "strictly_proper", "recoverable"),
    [
        ("binary", {}, False, True, True),
        ("focal", {"gamma_pos": 1.0, "gamma_neg": 4.0}, True, False, True),
        ("asymmetric", {"gamma_pos": 1.0}, True, False, False),
        ("spa", {}, True, True, True),
    ],
)
def test_the_table_of_the_paper(name, settings, asymmetric, strictly_proper, recoverable):
    found = measure_loss_properties(name, **settings)
    assert found == LossProperties(asymmetric, strictly_proper, recoverable)


@pytest.mark.parametrize(
    ("name", "settings", "answers"),
    [
        ("focal", {}, (False, False, True)),  # the same power twice
        ("focal", {"gamma_pos": 0.0, "gamma_neg": 0.0}, (False, True, True)),
        ("asymmetric", {"clip": 0.0}, (True, False, True)),  # a focal loss
        ("asymmetric", {"variant": "code"}, (True, False, False)),
        ("spa", {"zeta_neg": 1.0, "k_neg": 1.0, "b_neg": 0.0}, (False, True, True)),
    ],
)
def test_the_answers_move_with_the_settings(name, settings, answers):
    assert measure_loss_properties(name, **settings) == LossProperties(*answers)


@pytest.mark.parametrize("shown", SHOWN)
def test_the_page_of_losses_shows_what_is_found(shown):
    name, settings = SHOWN[shown]
    assert measure_loss_properties(name, **settings).markdown_row(shown) in PAGE.splitlines()


def test_the_page_of_losses_shows_nothing_else():
    rows = [line for line in PAGE.splitlines() if line.endswith(("| yes |", "| no |"))]
    assert len(rows) == len(SHOWN)


def test_the_best_score_of_binary_cross_entropy_is_the_logit():
    shares = torch.tensor([[0.001, 0.2, 0.5, 0.97]], dtype=torch.float64)
    torch.testing.assert_close(
        minimizers_for_loss_properties(LOSSES["binary"], shares), shares.logit()
    )


def test_it_works_with_gradients_disabled():
    with torch.no_grad():
        assert measure_loss_properties("spa").strictly_proper


@pytest.mark.parametrize("name", ["info_nce", "multi_matching", "ranking", "two_way"])
def test_a_loss_that_compares_labels_is_refused(name):
    with pytest.raises(ConfigError, match=f"per-label loss.*'{name}'.*calibrator"):
        measure_loss_properties(name)


def test_unknown_names_and_settings_are_refused():
    with pytest.raises(UnknownName, match="Did you mean 'focal'"):
        measure_loss_properties("focl")
    with pytest.raises(ConfigError, match="no setting clip"):
        measure_loss_properties("focal", clip=0.1)
