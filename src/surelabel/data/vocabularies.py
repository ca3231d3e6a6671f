"""Define open vocabularies: labels split into seen, unseen and unused classes."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

import numpy as np

from surelabel.data.label_names import parse_label_names
from surelabel.data.labels.resolution.vocabulary_alignment import (
    align_to_vocabulary,
    label_spellings_to_align,
)
from surelabel.data.scene_words import read_scene_vocabulary
from surelabel.errors import ConfigError, InputError
from surelabel.label_aliases import join_label_aliases, split_label_aliases
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class Vocabulary:
    """Seen, unseen and unused labels of an open-vocabulary test.

    A label can have several spellings, as in ``sofa|couch``.

    Attributes:
        seen: Labels with training images.
        unseen: Labels without training images, which are used only in the test.
        unused: Labels of the dataset that are neither seen nor unseen.

    Raises:
        InputError: If there is no seen or no unseen label, or if a label is invalid or repeated.
    """

    seen: tuple[str, ...]
    unseen: tuple[str, ...]
    unused: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for part in ("seen", "unseen", "unused"):
            names = tuple(name.strip() for name in getattr(self, part) if name.strip())
            object.__setattr__(self, part, names)
            if not names and part != "unused":
                raise InputError(
                    f"A vocabulary must have at least one {part} label; got none. Add a label."
                )
        both = label_spellings_to_align(*self.seen) & label_spellings_to_align(*self.unseen)
        if both:
            raise InputError(
                f"A label must be either seen or unseen; got "
                f"{_quote_vocabulary_labels(sorted(both))} in both lists. "
                "Remove the label from one list."
            )
        parse_label_names([*self.seen, *self.unseen, *self.unused])

    @property
    def names(self) -> tuple[str, ...]:
        """Return the labels of the test: the seen labels, followed by the unseen labels."""
        return self.seen + self.unseen


def read_vocabularies() -> dict[str, Vocabulary]:
    """Return the vocabularies in the package by name, with labels in alphabetical order.

    Source:
        Scenes: ``words.tsv`` of this package. COCO: Bansal et al., Zero-Shot Object Detection,
        ECCV 2018, arXiv:1804.04340. NUS-WIDE: Chua et al., NUS-WIDE, CIVR 2009. The 81 concepts
        of NUS-WIDE are unseen. The 1,000 tags are seen, except 75 tags that are also concepts.
    """
    text = files("surelabel.data").joinpath("vocabularies.tsv").read_text(encoding="utf-8")
    lists: dict[str, dict[str, list[str]]] = {"scenes-48-17": {}}
    for word in sorted(read_scene_vocabulary("scenes-80"), key=lambda word: word.name):
        lists["scenes-48-17"].setdefault(word.part, []).append(word.name)
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        lists.setdefault(row["vocabulary"], {}).setdefault(row["part"], []).append(row["name"])
    return {
        name: Vocabulary(**{part: tuple(names) for part, names in parts.items()})
        for name, parts in lists.items()
    }


def split_vocabulary(
    names: Sequence[str], *, unseen: int, unused: int = 0, seed: int = 0
) -> Vocabulary:
    """Split labels into seen, unseen and unused labels, reproducibly by a hash of each label.

    Labels are sorted by the SHA-256 digest of the UTF-8 text ``SEED LABEL``, where LABEL is the
    case-folded first spelling. The first ``unseen`` labels are unseen, the next ``unused`` labels
    are unused, and all other labels are seen. The order of ``names`` does not influence the split.

    Args:
        names: Labels to split, each with optional spellings as in ``sofa|couch``.
        unseen: Number of unseen labels, >= 1.
        unused: Number of unused labels, >= 0.
        seed: Integer seed of the hash.

    Returns:
        A vocabulary in which each list of labels is in the order of ``names``.

    Raises:
        InputError: If a label is invalid or repeated.
        ConfigError: If a setting is not an integer or is out of range, or if no label remains for
            the seen labels.

    Source:
        None; ours. Benchmarks of remote sensing do not publish lists of seen and unseen labels.

    Example:
        >>> split_vocabulary(["dog", "cat", "cup", "fork"], unseen=1, unused=1)
        Vocabulary(seen=('cat', 'fork'), unseen=('cup',), unused=('dog',))
    """
    labels = [join_label_aliases(each) for each in parse_label_names(names)[1].values()]
    _check_vocabulary_split(len(labels), unseen=unseen, unused=unused, seed=seed)
    order = sorted(labels, key=lambda name: _vocabulary_label_digest(name, seed))
    unseen_names, unused_names = set(order[:unseen]), set(order[unseen : unseen + unused])
    return Vocabulary(
        seen=tuple(name for name in labels if name not in unseen_names | unused_names),
        unseen=tuple(name for name in labels if name in unseen_names),
        unused=tuple(name for name in labels if name in unused_names),
    )


def remove_unseen_vocabulary_classes(
    images: LabelledImages, vocabulary: Vocabulary
) -> tuple[LabelledImages, int]:
    """Return the training images without unseen labels, and the number of removed images.

    Args:
        images: Training images with a column for each label of the vocabulary.
        vocabulary: Vocabulary with seen and unseen labels.

    Returns:
        The remaining images with one column per seen label, and the number of images that were
        removed because an unseen label is positive (target > 0). Images whose unseen labels are
        unknown remain.

    Raises:
        InputError: If a label of the vocabulary has no column, if a column matches both a seen
            and an unseen label, or if no image remains.

    Example:
        >>> images = LabelledImages(["a", "b"], ["dog", "cup"], [[1, 0], [1, 1]])
        >>> seen, removed = remove_unseen_vocabulary_classes(images, Vocabulary(("dog",), ("cup",)))
        >>> seen.paths, seen.names, removed
        (['a'], ['dog'], 1)
    """
    check_vocabulary_columns(vocabulary.names, images.names)
    no_images = images.take(range(0))
    align_to_vocabulary(no_images, vocabulary.names)  # error if a column is both seen and unseen
    unseen_images, _ = align_to_vocabulary(images, vocabulary.unseen)
    rows = np.flatnonzero(~(unseen_images.targets > 0).any(axis=1))
    if not len(rows):
        raise InputError(
            f"Training requires images without unseen labels; each of the {len(images)} images has "
            f"a label among {_quote_vocabulary_labels(vocabulary.unseen)}. Use fewer unseen labels."
        )
    seen_images, _ = align_to_vocabulary(images.take(rows), vocabulary.seen)
    return seen_images, len(images) - len(rows)


def check_vocabulary_columns(names: Sequence[str], labels: Sequence[str]) -> None:
    """Check that each label of a vocabulary has a column in a dataset.

    Args:
        names: Labels of the vocabulary.
        labels: Labels of the columns of the dataset.

    Raises:
        InputError: If a label of the vocabulary has no spelling in common with any column.
    """
    known = label_spellings_to_align(*labels)
    missing = [name for name in names if not label_spellings_to_align(name) & known]
    if missing:
        raise InputError(
            f"The dataset must contain each label of the vocabulary; got the labels "
            f"{_quote_vocabulary_labels(labels)} without {_quote_vocabulary_labels(missing)}. Use "
            'the labels of the dataset, or add an alias after |, such as "sofa|couch".'
        )


def _vocabulary_label_digest(name: str, seed: int) -> str:
    first_spelling = split_label_aliases(name)[0].casefold()
    return sha256(f"{seed} {first_spelling}".encode()).hexdigest()


def _check_vocabulary_split(n_labels: int, **sizes: int) -> None:
    are_integers = all(isinstance(n, int) and not isinstance(n, bool) for n in sizes.values())
    if not are_integers or sizes["unseen"] < 1 or sizes["unused"] < 0:
        raise ConfigError(
            "unseen must be an integer >= 1, unused must be an integer >= 0, and seed must be an "
            f"integer; got {sizes}."
        )
    if sizes["unseen"] + sizes["unused"] >= n_labels:
        raise ConfigError(
            f"At least one label must be seen; got {n_labels} labels with {sizes['unseen']} unseen "
            f"and {sizes['unused']} unused. Use fewer unseen or unused labels."
        )


def _quote_vocabulary_labels(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")


VOCABULARIES = read_vocabularies()
