import math

import pytest

from surelabel.errors import ConfigError
from surelabel.methods.variational.setting_ranges import (
    check_loss_weights,
    check_positive_settings,
    check_trained_blocks,
)


def test_a_weight_of_zero_is_valid_and_a_factor_of_zero_is_not():
    check_loss_weights(alpha=0.0, beta=2.0)
    with pytest.raises(ConfigError, match="temperature must be above 0, and finite; got 0"):
        check_positive_settings(s_scale=1.0, temperature=0.0)


@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan])
def test_values_out_of_range_are_refused_by_name(value):
    with pytest.raises(ConfigError, match="beta must be 0 or more"):
        check_loss_weights(alpha=0.0, beta=value)


@pytest.mark.parametrize("value", [-1, 0.5])
def test_trained_blocks_are_a_whole_number(value):
    with pytest.raises(ConfigError, match="trained_blocks must be a whole number of at least 0"):
        check_trained_blocks(value, 8, None)


def test_trained_blocks_need_texts_of_the_width_of_the_encoder():
    check_trained_blocks(0, 8, 7)
    check_trained_blocks(2, 8, 8)
    with pytest.raises(ConfigError, match="of width 8; got text_width=7"):
        check_trained_blocks(2, 8, 7)
