"""Dynamic outlier regularization: which words are sampled, and their mean distance."""

import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.records import FrozenTextVectors, TrainingStep
from surelabel.regularizers import outlier

ANGLES = {"lion": 0.0, "tiger": 0.1, "cat": 0.3, "dog": 0.5, "bus": 1.2, "car": 1.5}
SHIFTS = {"lion": 0.0, "tiger": 0.2, "cat": 0.4, "dog": 0.6, "bus": 0.8, "car": 1.0}


def vectors(words, shifts=None):
    angles = [ANGLES[word] + (shifts or {}).get(word, 0.0) for word in words]
    return torch.tensor([[torch.tensor(a).cos(), torch.tensor(a).sin()] for a in angles])


class Words:
    """Text tower in the plane that records its calls; the context rotates each word."""

    def __init__(self, labels=("lion",), reference=tuple(ANGLES)):
        self.encoded, self.frozen = [], []
        zeros = torch.zeros(2, len(labels))
        self.step = TrainingStep(
            *(zeros, zeros, zeros, zeros == 0),
            texts=vectors(name.split("|")[0] for name in labels),
            encode_words=self.encode_words,
            frozen_text_vectors=FrozenTextVectors(labels, reference, self.encode_frozen),
        )

    def encode_words(self, words):
        self.encoded.append(words)
        return vectors(words, SHIFTS)

    def encode_frozen(self, words):
        self.frozen.append(words)
        return vectors(words)


def test_equals_the_mean_of_loops_over_the_nearest_words():
    got = outlier(Words().step, nearest=3, sampled=3).item()
    expected = sum(1 - torch.tensor(SHIFTS[word]).cos().item() for word in ("tiger", "cat", "dog"))
    assert got == pytest.approx(expected / 3, abs=1e-6)


def test_words_are_nearest_to_the_mean_of_all_labels():
    words = Words(labels=("lion", "car", "bus"))
    outlier(words.step, nearest=1)
    assert words.encoded == [["dog"]]


def test_labels_their_synonyms_and_excluded_words_are_never_sampled():
    words = Words(labels=("lion|Tiger",))
    outlier(words.step, exclude=["cat", "kitten|DOG"])
    assert sorted(words.encoded[0]) == ["bus", "car"]


def test_words_of_the_setting_replace_the_reference_words():
    words = Words(reference=["bus"])
    outlier(words.step, words=["cat", " tiger ", "lion", "cat", ""])
    assert sorted(words.encoded[0]) == ["cat", "tiger"]


def test_only_the_sampled_words_are_encoded_with_the_learned_prompts():
    words = Words()
    for _ in range(20):
        outlier(words.step, sampled=2)
    assert [len(encoded) for encoded in words.encoded] == [2] * 20
    assert {word for encoded in words.encoded for word in encoded} == ANGLES.keys() - {"lion"}
    assert len(set(words.frozen)) == 1  # so that the cache has one entry


def test_the_sample_depends_on_the_seed():
    samples = []
    for seed in (0, 0, 1, 2, 3):
        torch.manual_seed(seed)
        words = Words()
        outlier(words.step, sampled=2)
        samples.append(tuple(words.encoded[0]))
    assert samples[0] == samples[1]
    assert len(set(samples)) > 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"words": ["lion"]}, "neither a label nor excluded; got only labels"),
        ({"exclude": "lion"}, r"exclude must be a list of words; got the string 'lion'. Use \["),
        ({"words": "words.txt"}, r"words must be a list of words; got the string"),
        ({"nearest": 0}, "nearest must be 1 or more; got 0"),
        ({"sampled": 0}, "sampled must be 1 or more; got 0"),
    ],
)
def test_settings_that_select_no_word_are_refused(settings, says):
    with pytest.raises(ConfigError, match=says):
        outlier(Words().step, **settings)
