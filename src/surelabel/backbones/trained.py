"""What comes back from training an encoder: its weights, and a name that says so."""

from torch import nn

from surelabel.errors import InputError

SUFFIX = " (fine-tuned)"


def fine_tuned(name: str) -> str:
    """The name of an encoder whose weights were trained further.

    Example:
        >>> fine_tuned(fine_tuned("tiny-vit"))
        'tiny-vit (fine-tuned)'
    """
    return name.removesuffix(SUFFIX) + SUFFIX


def load_trained(network: nn.Module, trained: nn.Module, name: str) -> None:
    """Copy all weights of ``trained`` into ``network``.

    Args:
        network: What is written.
        trained: A network of the same architecture.
        name: Of the encoder, for messages.

    Raises:
        InputError: the architectures differ.
    """
    try:
        network.load_state_dict(trained.state_dict())
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"The network must be a trained copy of what network() of {name} gave. "
            f"Got another one ({reason})."
        ) from error
