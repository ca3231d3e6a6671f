"""Words for regularizers: those of a file, and those of the reference list."""

import pytest
import torch

from surelabel.encoders import load_encoder, reference_names
from surelabel.errors import ConfigError
from surelabel.recognizer.regularizer_inputs import (
    WORD_BYTES,
    frozen_text_vectors_for_regularizers,
    read_regularizer_words,
)


def test_reference_words_are_those_that_the_encoder_was_trained_on():
    encoder = load_encoder("tiny-vit")
    words = frozen_text_vectors_for_regularizers(encoder, ["lion|cat"])
    untrained = encoder.labels_with_untrained_tokens(reference_names())
    assert {*words.reference}.isdisjoint(untrained)
    assert {*words.reference, *untrained} == {*reference_names()}
    assert len(words.reference) > 299


def test_words_are_encoded_once_and_as_zero_shot_texts():
    encoder = load_encoder("tiny-vit")
    words = frozen_text_vectors_for_regularizers(encoder, ["lion"])
    first, second = words.encode(("crab", "bus")), words.encode(("crab", "bus"))
    assert first is second
    torch.testing.assert_close(first, encoder.encode_labels(["crab", "bus"], ["a photo of a {}."]))


def test_an_encoder_without_texts_gives_no_words():
    assert frozen_text_vectors_for_regularizers(load_encoder("features:16"), ["lion"]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \n",
        f"{'x' * 9_000}\n" + "".join(f"{'y' * 9_000}{i}\n" for i in range(WORD_BYTES // 9_000)),
    ],
    ids=["empty", "blank", "too large"],
)
def test_a_file_without_words_and_a_file_too_large_for_a_run_are_refused(tmp_path, text):
    (tmp_path / "words.txt").write_text(text)
    with pytest.raises(
        ConfigError, match=r"one word per line, .*; got .*words\.txt with \d+ words and"
    ):
        read_regularizer_words(str(tmp_path / "words.txt"))
