"""Load fine-tuned weights into an encoder, and add a suffix to the name of the encoder."""

from torch import nn

from surelabel.errors import InputError

SUFFIX = " (fine-tuned)"


def encoder_name_for_finetuned_weights(name: str) -> str:
    """Return the name of an encoder with the suffix ``(fine-tuned)``.

    Example:
        >>> encoder_name_for_finetuned_weights(encoder_name_for_finetuned_weights("tiny-vit"))
        'tiny-vit (fine-tuned)'
    """
    return name.removesuffix(SUFFIX) + SUFFIX


def load_finetuned_weights(network: nn.Module, finetuned: nn.Module, name: str) -> None:
    """Copy all weights of a fine-tuned network into a network of the same architecture.

    Args:
        network: Network that receives the weights.
        finetuned: Fine-tuned network whose weights are copied.
        name: Name of the encoder, for error messages.

    Raises:
        InputError: If the architectures of the two networks differ.
    """
    try:
        network.load_state_dict(finetuned.state_dict())
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"network must have the architecture of {name}; got another architecture ({reason}). "
            "Train a copy of trainable_network() of the encoder."
        ) from error
