"""Compute image features of a kind with the encoder method for this kind."""

from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.encoders.engines.interface import TORCH_FP32
from surelabel.encoders.interface import ENCODER_METHODS
from surelabel.errors import ConfigError
from surelabel.records import Features

LADDER = "ladder"


def ladder_feature_kind(first: int, depth: int) -> str:
    """Return the kind of ladder features as ``ladder/FIRST/DEPTH``.

    Args:
        first: Index of the first block, the argument ``first_block`` of
            ``encoder.encode_ladder_features``.
        depth: Number of last blocks of the image tower, the argument ``depth`` of
            ``encoder.encode_ladder_features``.

    Example:
        >>> ladder_feature_kind(0, 3)
        'ladder/0/3'
    """
    return f"{LADDER}/{first}/{depth}"


def parse_ladder_feature_kind(kind: str) -> tuple[int, int] | None:
    """Return ``first`` and ``depth`` of a kind of ladder features, or None for other kinds.

    Raises:
        ConfigError: If the kind starts with ``ladder`` but does not have two numbers.

    Example:
        >>> parse_ladder_feature_kind("ladder/0/3"), parse_ladder_feature_kind("images")
        ((0, 3), None)
    """
    name, *numbers = kind.split("/")
    if name != LADDER:
        return None
    if len(numbers) != 2 or not all(n.isascii() and n.isdigit() for n in numbers):
        raise ConfigError(
            f"Ladder features must be named ladder/FIRST/DEPTH, such as ladder/0/3; got {kind!r}."
        )
    return int(numbers[0]), int(numbers[1])


def encode_feature_kind(encoder: Encoder, kind: str, pixels: Tensor) -> Features:
    """Compute features of the given kind from preprocessed images, ``(n, 3, height, width)``.

    Raises:
        ConfigError: If the kind does not exist, or if the encoder does not support the kind.
    """
    ladder = parse_ladder_feature_kind(kind)
    if ladder is not None:
        return encoder.encode_ladder_features(pixels, first_block=ladder[0], depth=ladder[1])
    if kind not in ENCODER_METHODS:
        raise ConfigError(
            f"The kind of features must be one of {', '.join(ENCODER_METHODS)} or "
            f"ladder/FIRST/DEPTH; got {kind!r}."
        )
    features: Features = getattr(encoder, ENCODER_METHODS[kind])(pixels)
    return features


def image_cache_fingerprint(encoder: Encoder) -> str:
    """Return the fingerprint under which features of images are cached.

    Features that an engine computes differ in their last digits. Therefore the fingerprint also
    names the engine and the number format, unless they are ``torch fp32``.
    """
    if encoder.engine == TORCH_FP32:
        return encoder.fingerprint
    return f"{encoder.fingerprint} {encoder.engine.description}"
