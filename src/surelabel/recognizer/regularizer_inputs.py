"""Provide the inputs of regularizers besides scores: words, text vectors and enough images."""

from collections.abc import Callable, Sequence
from inspect import signature

from torch import Tensor

from surelabel.data.text_lists import read_text_list
from surelabel.encoders import Encoder, prompt_templates, reference_names
from surelabel.errors import ConfigError, InputError
from surelabel.records import FrozenTextVectors

WORD_BYTES = 2**19  # limit for a list of words, which is saved in the run.toml of a recognizer


def read_regularizer_words(path: str) -> list[str]:
    """Return the words of a text file with one word per line, without empty lines and repetitions.

    Raises:
        DataError: If the file cannot be read as text.
        ConfigError: If the file contains no word, or more than 512 KiB.
    """
    words = list(dict.fromkeys(line for line in read_text_list(path) if line))
    n_bytes = sum(len(word.encode()) for word in words)
    if not words or n_bytes > WORD_BYTES:
        raise ConfigError(
            f"words must be a text file with one word per line, 1 to {WORD_BYTES} bytes; got "
            f"{path} with {len(words)} words and {n_bytes} bytes. Give words that are similar to "
            "the labels."
        )
    return words


def frozen_text_vectors_for_regularizers(
    encoder: Encoder, labels: Sequence[str]
) -> FrozenTextVectors | None:
    """Return labels, reference words and an encoder of words, or None if there is no text encoder.

    Args:
        encoder: Encoder of the texts.
        labels: Labels of the fit; synonyms of one label are separated by ``|``.
    """
    reference = reference_names()
    try:
        untrained = set(encoder.labels_with_untrained_tokens(reference))
        encoder.encode_labels(reference[:1], prompt_templates("one"))
    except ConfigError:  # image-only encoder
        return None
    trained = [word for word in reference if word not in untrained]
    return FrozenTextVectors(labels, trained, _FrozenWordEncoder(encoder))


class _FrozenWordEncoder:
    """Callable that encodes words with a cache; unlike a local function, it can be pickled."""

    def __init__(self, encoder: Encoder):
        self._encoder, self._vectors = encoder, dict[tuple[str, ...], Tensor]()

    def __call__(self, words: tuple[str, ...]) -> Tensor:
        if words not in self._vectors:
            self._vectors[words] = self._encoder.encode_labels(words, prompt_templates("one"))
        return self._vectors[words]


def check_regularizer_batch_size(
    name: str, regularizer: Callable[..., Tensor], micro_batch_size: int
) -> None:
    """Check that a batch contains enough images for a regularizer that compares images.

    Args:
        name: Name of the regularizer.
        regularizer: Entry of ``REGULARIZERS``, or a partial function with its settings. If the
            entry compares images, its setting ``min_images`` is the smallest number of images.
        micro_batch_size: Number of images per forward pass.

    Raises:
        ConfigError: If a batch has fewer images than the regularizer needs.
    """
    smallest = _smallest_image_count(regularizer)
    if micro_batch_size < smallest:
        raise ConfigError(
            f"{name} compares the images of a batch and needs {smallest} or more images "
            f"per forward pass (regularizer.min_images); got {micro_batch_size}. Increase "
            "batch_size and micro_batch_size."
        )


def check_regularizer_image_count(
    name: str, regularizer: Callable[..., Tensor], n_images: int
) -> None:
    """Check that there are enough training images for a regularizer that compares images.

    Args:
        name: Name of the regularizer.
        regularizer: Entry of ``REGULARIZERS``; see ``check_regularizer_batch_size``.
        n_images: Number of training images.

    Raises:
        InputError: If there are fewer images than the regularizer needs.
    """
    smallest = _smallest_image_count(regularizer)
    if n_images < smallest:
        raise InputError(
            f"{name} compares the images of a batch and needs {smallest} or more images "
            f"(regularizer.min_images); got {n_images} training images. Give more images, or "
            "remove the regularizer."
        )


def _smallest_image_count(regularizer: Callable[..., Tensor]) -> int:
    """Return the smallest number of images that a regularizer compares, or 0 without comparison."""
    setting = signature(regularizer).parameters.get("min_images")
    return max(2, setting.default) if setting else 0
