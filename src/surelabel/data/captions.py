"""Captions of scenes: mostly of the main object alone, as web captions are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.data.scenes import HIDDEN, Scene
from surelabel.data.words import Word

ICONIC = ("a photo of a {}.", "a picture of the {}.", "{}", "a {} in the scene.")
KINDS = ("iconic", "pair", "full", "paraphrase", "paraphrase")


@dataclass(frozen=True)
class Caption:
    """One sentence about one picture.

    Attributes:
        text: The sentence.
        kind: One of ``KINDS``.
        mentions: Indices of the words it names, into the vocabulary.
    """

    text: str
    kind: str
    mentions: tuple[int, ...]


def captions(scene: Scene, seen: npt.NDArray[np.float32], words: Sequence[Word]) -> list[Caption]:
    """Five sentences: the main object, two objects, all of them, and two paraphrases of those.

    Args:
        scene: What the picture shows.
        seen: Visible share of each object, ``(k,)`` or longer; hidden ones are not mentioned.
        words: The vocabulary of the scene.
    """
    rng = np.random.default_rng([scene.background, 1])
    main = int(scene.words[0])
    others = scene.words[1:][seen[1 : len(scene.words)] >= HIDDEN]
    rest = [int(w) for w in dict.fromkeys(rng.permutation(others).tolist()) if w != main]
    everything, pair = [main, *rest], [main, *rest[:1]]
    name = [w.name for w in words]
    iconic = ICONIC[rng.integers(len(ICONIC))].format(name[main])
    full = f"a photo of {_listed([name[w] for w in everything])}."
    if rest:
        two = f"a {name[main]} and a {name[rest[0]]}."
        two_again = f"a small {name[rest[0]]} near a large {name[main]}."
        shuffled = [name[w] for w in rng.permutation(everything)]
        full_again = f"a scene with {_listed(shuffled)}."
    else:
        two, two_again = f"a {name[main]} alone.", f"a large {name[main]}."
        full_again = f"a scene with a {name[main]}."
    texts = (iconic, two, full, two_again, full_again)
    mentions = ([main], pair, everything, pair, everything)
    return [
        Caption(text, kind, tuple(named))
        for text, kind, named in zip(texts, KINDS, mentions, strict=True)
    ]


def relevance(
    mentions: Sequence[Sequence[int]], targets: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """How well each picture fits each caption: the share of mentioned objects that it shows.

    Args:
        mentions: For each of ``s`` captions the words it names.
        targets: Labels of the pictures, ``(n, c)``.

    Returns:
        ``(n, s)`` in [0, 1].
    """
    named = np.zeros((len(mentions), targets.shape[1]))
    for row, words in zip(named, mentions, strict=True):
        row[list(words)] = 1
    share: npt.NDArray[np.float64] = targets.astype(float) @ named.T / named.sum(axis=1)
    return share


def _listed(names: Sequence[str]) -> str:
    *first, last = [f"a {name}" for name in names]
    return f"{', '.join(first)} and {last}" if first else last
