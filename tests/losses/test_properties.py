"""Table 1 of Cheng and Vasconcelos, CVPR 2024, comes out of measurements."""

from pathlib import Path

import pytest
import torch

from surelabel.errors import ConfigError, UnknownName
from surelabel.losses import LOSSES
from surelabel.losses.properties import Properties, best_scores, properties

PAGE = (Path(__file__).parents[2] / "docs/losses.md").read_text(encoding="utf-8")
SHOWN = {
    "`binary`": ("binary", {}),
    "`focal`, powers 1 and 4": ("focal", {"gamma_pos": 1.0, "gamma_neg": 4.0}),
    "`focal`, powers 2 and 2": ("focal", {}),
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
    found = properties(name, **settings)
    assert found == Properties(asymmetric, strictly_proper, recoverable)


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
    assert properties(name, **settings) == Properties(*answers)


@pytest.mark.parametrize("shown", SHOWN)
def test_the_page_of_losses_shows_what_is_found(shown):
    name, settings = SHOWN[shown]
    assert properties(name, **settings).row(shown) in PAGE.splitlines()


def test_the_page_of_losses_shows_nothing_else():
    rows = [line for line in PAGE.splitlines() if line.endswith(("| yes |", "| no |"))]
    assert len(rows) == len(SHOWN)


def test_the_best_score_of_binary_cross_entropy_is_the_logit():
    shares = torch.tensor([[0.001, 0.2, 0.5, 0.97]], dtype=torch.float64)
    torch.testing.assert_close(best_scores(LOSSES["binary"], shares), shares.logit())


def test_it_can_be_asked_where_gradients_are_off():
    with torch.no_grad():
        assert properties("spa").strictly_proper


@pytest.mark.parametrize("name", ["info_nce", "multi_matching", "ranking", "two_way"])
def test_a_loss_that_compares_labels_is_refused(name):
    with pytest.raises(ConfigError, match=f"single labels.*'{name}'.*calibrate"):
        properties(name)


def test_what_is_unknown_is_refused():
    with pytest.raises(UnknownName, match="Did you mean 'focal'"):
        properties("focl")
    with pytest.raises(ConfigError, match="no setting clip"):
        properties("focal", clip=0.1)
