"""Load fine-tuned weights into an encoder, and mark its name."""

from torch import nn

from surelabel.errors import InputError

SUFFIX = " (fine-tuned)"


def finetuned_name(name: str) -> str:
    """Return the name of an encoder with the suffix for fine-tuned weights.

    Example:
        >>> finetuned_name(finetuned_name("tiny-vit"))
        'tiny-vit (fine-tuned)'
    """
    return name.removesuffix(SUFFIX) + SUFFIX


def load_finetuned_weights(network: nn.Module, finetuned: nn.Module, name: str) -> None:
    """Copy all weights of a fine-tuned network into a network of the same architecture.

    Args:
        network: Network that receives the weights.
        finetuned: Fine-tuned network.
        name: Name of the encoder, for messages.

    Raises:
        InputError: If the architectures differ.
    """
    try:
        network.load_state_dict(finetuned.state_dict())
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"network must be a trained copy of trainable_network() of {name}; got a network of "
            f"another architecture ({reason})."
        ) from error
