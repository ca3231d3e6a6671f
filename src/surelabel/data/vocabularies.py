"""Label names that are learnt, and names that only the test knows: how they are divided."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

import numpy as np

from surelabel.data.labels.aligning import align
from surelabel.data.sources import checked_names
from surelabel.data.words import vocabulary
from surelabel.errors import ConfigError, InputError
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class Vocabulary:
    """Names for an open-vocabulary test; ``sofa|couch`` are two spellings of one.

    Attributes:
        seen: Names that training has labels of.
        unseen: Names that only the test has labels of.
        unused: Names of the same data that neither looks at.
    """

    seen: tuple[str, ...]
    unseen: tuple[str, ...]
    unused: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what in ("seen", "unseen", "unused"):
            kept = tuple(name.strip() for name in getattr(self, what) if name.strip())
            object.__setattr__(self, what, kept)
            if not kept and what != "unused":
                raise InputError(f"A vocabulary needs one {what} name or more. Got none.")
        both = spellings(*self.seen) & spellings(*self.unseen)
        if both:
            raise InputError(
                f"A name is seen or unseen, never both. Got {_first(sorted(both))} in both lists; "
                "take it out of one."
            )
        checked_names([*self.seen, *self.unseen, *self.unused])

    @property
    def names(self) -> tuple[str, ...]:
        """All that the test asks for: the seen names, then the unseen ones."""
        return self.seen + self.unseen


def read_vocabularies() -> dict[str, Vocabulary]:
    """The divisions inside the package; each list in alphabetical order.

    Source:
        Scenes: what its words say of themselves. COCO: Bansal et al., Zero-Shot Object Detection,
        ECCV 2018, arXiv:1804.04340. NUS-WIDE: Chua et al., NUS-WIDE, CIVR 2009: its 81 concepts are
        unseen, its 1,000 tags without the 75 that are also concepts are seen.
    """
    text = files("surelabel.data").joinpath("vocabularies.tsv").read_text(encoding="utf-8")
    lists: dict[str, dict[str, list[str]]] = {"scenes-48-17": {}}
    for word in sorted(vocabulary("scenes-80"), key=lambda word: word.name):
        lists["scenes-48-17"].setdefault(word.part, []).append(word.name)
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        lists.setdefault(row["vocabulary"], {}).setdefault(row["part"], []).append(row["name"])
    return {
        name: Vocabulary(**{part: tuple(names) for part, names in parts.items()})
        for name, parts in lists.items()
    }


def divided(names: Sequence[str], *, unseen: int, unused: int = 0, seed: int = 0) -> Vocabulary:
    """Divide names by a rule that anybody can repeat, in any language.

    Names stand in a row by the SHA-256 digest of the text ``SEED NAME`` (UTF-8, the first spelling,
    case-folded as by Unicode). The first ``unseen`` of the row are unseen, the next ``unused`` are
    unused, all others are seen. So the order in which names are given has no influence on where
    they go.

    Args:
        names: What to divide.
        unseen: How many are unseen, >= 1.
        unused: How many are left out, >= 0.
        seed: Of the row, a whole number.

    Returns:
        Three lists, each in the order of ``names``.

    Raises:
        InputError: a name comes twice, or is none.
        ConfigError: a number is not whole, or no name would be seen.

    Source:
        None; ours: the benchmarks of remote sensing publish no list of theirs.

    Example:
        >>> divided(["dog", "cat", "cup", "fork"], unseen=1, unused=1)
        Vocabulary(seen=('cat', 'fork'), unseen=('cup',), unused=('dog',))
    """
    given = ["|".join(each) for each in checked_names(names)[1].values()]
    _check_counts(len(given), unseen=unseen, unused=unused, seed=seed)
    row = sorted(given, key=lambda name: _digest(name, seed))
    hidden, left = set(row[:unseen]), set(row[unseen : unseen + unused])
    return Vocabulary(
        seen=tuple(name for name in given if name not in hidden | left),
        unseen=tuple(name for name in given if name in hidden),
        unused=tuple(name for name in given if name in left),
    )


def without_unseen(images: LabelledImages, vocabulary: Vocabulary) -> tuple[LabelledImages, int]:
    """What may be learnt from: columns of seen names, pictures without a trace of an unseen one.

    Args:
        images: Training pictures with columns for all names, whatever else they have.
        vocabulary: Which of them are seen.

    Returns:
        The pictures that stay, with one column a seen name; and how many were removed because an
        unseen name is present in them. Where that is unknown, a picture stays.

    Raises:
        InputError: the labels have no column for a name, so that nobody can say which pictures
            show it; one column spells a seen and an unseen name; or no picture is left.

    Example:
        >>> images = LabelledImages(["a", "b"], ["dog", "cup"], [[1, 0], [1, 1]])
        >>> seen, removed = without_unseen(images, Vocabulary(("dog",), ("cup",)))
        >>> seen.paths, seen.names, removed
        (['a'], ['dog'], 1)
    """
    check_columns(vocabulary.names, images.names)
    align(images.take(range(0)), vocabulary.names)  # refuses one column for a seen and an unseen
    hidden, _ = align(images, vocabulary.unseen)
    kept = np.flatnonzero(~(hidden.targets > 0).any(axis=1))
    if not len(kept):
        raise InputError(
            f"Pictures without an unseen name are needed to learn from. All {len(images)} show one "
            f"of {_first(vocabulary.unseen)}; hide fewer names."
        )
    seen, _ = align(images.take(kept), vocabulary.seen)
    return seen, len(images) - len(kept)


def check_columns(names: Sequence[str], labels: Sequence[str]) -> None:
    """Refuse names that no label spells.

    Raises:
        InputError: there are some; the message says which.
    """
    there = spellings(*labels)
    missing = [name for name in names if not spellings(name) & there]
    if missing:
        raise InputError(
            f"Labels must have a column for each name. There is none for {_first(missing)}; the "
            f"columns are {_first(labels)}. Write names as the labels do, or add their spelling "
            'with a |, as in "sofa|couch".'
        )


def spellings(*names: str) -> set[str]:
    """All spellings of all names, in small letters."""
    return {spelling.strip().casefold() for name in names for spelling in name.split("|")}


def _digest(name: str, seed: int) -> str:
    first = name.partition("|")[0].casefold()
    return sha256(f"{seed} {first}".encode()).hexdigest()


def _check_counts(names: int, **given: int) -> None:
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in given.values())
    if not whole or given["unseen"] < 1 or given["unused"] < 0:
        raise ConfigError(
            f"unseen must be 1 or more, unused 0 or more, and seed a whole number. Got {given}."
        )
    if given["unseen"] + given["unused"] >= names:
        raise ConfigError(
            f"Some names must stay seen. Got {names} names, {given['unseen']} of them unseen and "
            f"{given['unused']} unused."
        )


def _first(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")


VOCABULARIES = read_vocabularies()
