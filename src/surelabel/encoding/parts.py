"""What can be asked of an encoder by name: ``images``, ``patches``, … or ``ladder/0/3``."""

from torch import Tensor

from surelabel.backbones import Backbone
from surelabel.errors import ConfigError
from surelabel.records import Features

LADDER = "ladder"


def ladder_part(first: int, depth: int) -> str:
    """The name of ``backbone.ladder(pixels, first=first, depth=depth)``; it keys the cache.

    Example:
        >>> ladder_part(0, 3)
        'ladder/0/3'
    """
    return f"{LADDER}/{first}/{depth}"


def rungs(part: str) -> tuple[int, int] | None:
    """``first`` and ``depth`` of the name of a ladder; None for all other parts.

    Raises:
        ConfigError: the name of a ladder without these two numbers.

    Example:
        >>> rungs("ladder/0/3"), rungs("images")
        ((0, 3), None)
    """
    name, *numbers = part.split("/")
    if name != LADDER:
        return None
    if len(numbers) != 2 or not all(n.isascii() and n.isdigit() for n in numbers):
        raise ConfigError(f"A ladder is named ladder/FIRST/DEPTH, as ladder/0/3. Got {part!r}.")
    return int(numbers[0]), int(numbers[1])


def seen(backbone: Backbone, part: str, pixels: Tensor) -> Features:
    """What the encoder gives under this name of prepared pictures ``(n, 3, h, w)``.

    Raises:
        ConfigError: it gives no such part.
    """
    ladder = rungs(part)
    if ladder is not None:
        return backbone.ladder(pixels, first=ladder[0], depth=ladder[1])
    features: Features = getattr(backbone, part)(pixels)
    return features
