"""Find the labels that captions mention, as targets of the captions or of their images."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from surelabel.arrays import ColumnIndices
from surelabel.counts import format_count
from surelabel.data.captions.resolution.caption_entries import check_captioned_images_exist
from surelabel.data.label_names import parse_label_names
from surelabel.data.text_labels.noun_plurals import plural_phrases
from surelabel.data.text_labels.phrase_matching import (
    Phrase,
    PhraseNode,
    build_phrase_trie,
    find_phrase_columns,
    split_words,
)
from surelabel.data.text_labels.word_lists import WordListEntry, read_word_list
from surelabel.errors import InputError
from surelabel.records import Captions, LabelledImages, LabelledTexts

_PhraseColumns = dict[Phrase, dict[int, None]]  # dicts as ordered sets


def label_captions(
    captions: Captions, names: Sequence[str], *, word_list: str | Path | None = None
) -> LabelledTexts:
    """Return the captions that mention a label, with the labels that they mention.

    A caption mentions a label if it contains a phrase of the label, or the plural of a phrase, as
    whole words. The phrases are the label, its aliases, and its synonyms and narrower terms in the
    word list. Case and punctuation are ignored, and a hyphen equals a space. If several labels have
    the same phrase, the phrase mentions all these labels. For example, "woman" mentions the labels
    "woman" and "person".

    Longer phrases are matched first, and each word is used once: if "hot dog" is a label, the words
    "hot dog" do not mention the label "dog". The word list has exceptions too, so that "hot dog"
    never mentions "dog".

    All targets are known: a label that a caption does not mention is negative for this text, since
    the text contains no other content. The label can nevertheless be positive for the image of the
    caption.

    Args:
        captions: Captions in English; plurals are formed as in English.
        names: Labels with optional aliases, as in ``sofa|couch``. If a label is a plural, add the
            singular as an alias.
        word_list: Path of a word list with the tab-separated columns label, synonyms, kinds and
            exceptions. If None, the word list of this package is used.

    Returns:
        The captions that mention at least one label, in their order, and the number of the other
        captions. The labels have no aliases.

    Raises:
        InputError: If a label is invalid or has no letter and no digit, or if no caption mentions a
            label.
        DataError: If the word list is invalid.

    Source:
        Guo et al., Texts as Images in Prompt Tuning for Multi-Label Image Recognition, CVPR 2023,
        arXiv:2211.12739.

    Differs:
        The paper lemmatizes captions with a library; here, plurals of the phrases are generated.
        The synonyms of the paper are in its released code; the word list of this package is a
        different list.

    Example:
        >>> captions = Captions(["Two dogs on a sofa.", "a hot dog", "the sky"])
        >>> texts = label_captions(captions, ["dog", "couch", "hot dog"])
        >>> texts.targets.tolist(), texts.n_dropped
        ([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 1)
    """
    labels, trie = _label_phrases(names, word_list)
    caption_indices, columns = _mention_indices(captions, labels, trie)
    mentioning, rows = np.unique(caption_indices, return_inverse=True)
    targets = np.zeros((len(mentioning), len(labels)), dtype=bool)
    targets[rows, columns] = True
    texts = [captions.texts[index] for index in mentioning.tolist()]
    return LabelledTexts(texts, labels, targets, n_dropped=len(captions) - len(texts))


def label_captioned_images(
    captions: Captions,
    names: Sequence[str],
    *,
    word_list: str | Path | None = None,
    unmentioned: float = math.nan,
) -> LabelledImages:
    """Return the images of captions, with the labels that their captions mention.

    A label is positive if any caption of the image mentions it; see :func:`label_captions`. By
    default, all other labels are unknown, because captions omit many objects of an image. Methods
    that learn from labels need negative targets too: ``unmentioned=0.0``.

    Args:
        captions: Captions with the paths of their images.
        names: Labels with optional aliases, as in ``sofa|couch``.
        word_list: Path of a word list with the tab-separated columns label, synonyms, kinds and
            exceptions. If None, the word list of this package is used.
        unmentioned: Target in [0, 1] of a label that no caption of an image mentions, such as 0
            (negative), or NaN (unknown).

    Returns:
        Every image once, in the order of its first caption. The labels have no aliases.

    Raises:
        InputError: If ``unmentioned`` is out of range, or if the captions have no images. Also if a
            label is invalid or has no letter and no digit, or if no caption mentions a label.
        DataError: If an image does not exist, or if the word list is invalid.
    """
    if captions.paths is None:
        raise InputError(
            "label_captioned_images needs captions with image paths; got captions without paths. "
            "Read COCO captions, or CSV with the header image,caption."
        )
    labels, trie = _label_phrases(names, word_list)
    caption_indices, columns = _mention_indices(captions, labels, trie)
    row_of = {path: row for row, path in enumerate(dict.fromkeys(captions.paths))}
    check_captioned_images_exist(row_of)
    rows = np.array([row_of[path] for path in captions.paths])
    targets = np.full((len(row_of), len(labels)), unmentioned)
    targets[rows[caption_indices], columns] = 1.0
    return LabelledImages(list(row_of), labels, targets)


def labels_without_captions(labelled: LabelledTexts | LabelledImages) -> list[str]:
    """Return the labels without a positive target, which no caption mentions.

    Args:
        labelled: Result of :func:`label_captions` or :func:`label_captioned_images`.

    Example:
        >>> labels_without_captions(label_captions(Captions(["a dog"]), ["dog", "cat"]))
        ['cat']
    """
    columns = np.flatnonzero(~(labelled.targets > 0).any(axis=0))
    return [labelled.names[column] for column in columns.tolist()]


def _label_phrases(
    names: Sequence[str], word_list: str | Path | None
) -> tuple[list[str], PhraseNode]:
    """Return the labels, and the trie of the phrases that mention them.

    A phrase that is a spelling of labels mentions these labels only, even if it is also a plural of
    another label. An example is "glasses", a label and the plural of "glass". A phrase that
    mentions a label is no exception of this label.
    """
    labels, aliases = parse_label_names(names)
    entries = read_word_list(word_list)
    spellings: _PhraseColumns = {}
    plurals: _PhraseColumns = {}
    exceptions: _PhraseColumns = {}
    for column, label in enumerate(labels):
        for phrase in _phrases_of_label(aliases[label], entries):
            spellings.setdefault(phrase, {})[column] = None
            for plural in plural_phrases(phrase):
                plurals.setdefault(plural, {})[column] = None
        for phrase in _exceptions_of_label(aliases[label], entries):
            for words in (phrase, *plural_phrases(phrase)):
                if column not in spellings.get(words, plurals.get(words, ())):
                    exceptions.setdefault(words, {})[column] = None
    return labels, build_phrase_trie(plurals | spellings, exceptions)


def _phrases_of_label(
    aliases: Sequence[str], entries: Mapping[Phrase, WordListEntry]
) -> Iterator[Phrase]:
    for alias in aliases:
        words = tuple(split_words(alias))
        if not words:
            raise InputError(
                f"A label must contain letters or digits to be found in captions; got {alias!r}. "
                "Rename the label."
            )
        yield words
        if words in entries:
            for spelling in (*entries[words].spellings, *entries[words].kinds):
                yield tuple(split_words(spelling))


def _exceptions_of_label(
    aliases: Sequence[str], entries: Mapping[Phrase, WordListEntry]
) -> Iterator[Phrase]:
    for words in (tuple(split_words(alias)) for alias in aliases):
        if words in entries:
            yield from (tuple(split_words(phrase)) for phrase in entries[words].exceptions)


def _mention_indices(
    captions: Captions, labels: Sequence[str], trie: PhraseNode
) -> tuple[ColumnIndices, ColumnIndices]:
    """Return the indices of the caption and of the label of each mention.

    Raises:
        InputError: If no caption mentions a label.
    """
    columns = [find_phrase_columns(trie, split_words(text)) for text in captions.texts]
    counts = np.fromiter(map(len, columns), np.intp, len(columns))
    if not counts.any():
        first = ", ".join(map(repr, labels[:3])) + (", …" if len(labels) > 3 else "")
        raise InputError(
            "At least one caption must mention a label; got "
            f"{format_count(len(captions), 'caption')} without any of {first}. Give other "
            "captions, or aliases of the labels, such as sofa|couch."
        )
    caption_indices = np.repeat(np.arange(len(columns)), counts)
    return caption_indices, np.fromiter(chain.from_iterable(columns), np.intp, counts.sum())
