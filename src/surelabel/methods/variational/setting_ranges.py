"""Check the settings of methods with a latent similarity."""

import math

from surelabel.errors import ConfigError


def check_loss_weights(**weights: float) -> None:
    """Check that weights of loss terms are finite and not negative.

    Raises:
        ConfigError: If a weight is out of range.
    """
    for name, value in weights.items():
        if not 0 <= value < math.inf:
            raise ConfigError(f"{name} must be 0 or more, and finite; got {value}.")


def check_positive_settings(**values: float) -> None:
    """Check that settings are finite and above 0.

    Raises:
        ConfigError: If a value is out of range.
    """
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ConfigError(f"{name} must be above 0, and finite; got {value}.")


def check_trained_blocks(trained_blocks: int, width: int, text_width: int | None) -> None:
    """Check that the number of trained blocks is not negative, and that texts can be encoded.

    Args:
        trained_blocks: Number of trained blocks.
        width: Width of the encoder.
        text_width: Width of precomputed text vectors, or None.

    Raises:
        ConfigError: If the number is not an integer of 0 or more, or blocks are trained and the
            width of the text vectors is not that of the encoder.
    """
    if not isinstance(trained_blocks, int) or trained_blocks < 0:
        raise ConfigError(
            f"trained_blocks must be a whole number of at least 0; got {trained_blocks}."
        )
    if trained_blocks and text_width not in (None, width):
        raise ConfigError(
            f"trained_blocks={trained_blocks} needs the text tower of the encoder, of width "
            f"{width}; got text_width={text_width}. Remove text_width, or set trained_blocks=0."
        )
