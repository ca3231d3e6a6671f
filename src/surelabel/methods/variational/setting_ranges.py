"""Checks of the settings of methods with a latent similarity."""

import math

from surelabel.errors import ConfigError


def check_loss_weights(**weights: float) -> None:
    """Check that weights of loss terms are finite and not negative.

    Raises:
        ConfigError: If a weight is out of range.
    """
    for name, value in weights.items():
        if not 0 <= value < math.inf:
            raise ConfigError(f"{name} must be 0 or more; got {value}.")


def check_positive_settings(**values: float) -> None:
    """Check that settings are finite and above 0.

    Raises:
        ConfigError: If a value is out of range.
    """
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ConfigError(f"{name} must be above 0; got {value}.")
