"""Generate captions of scenes in several styles, such as iconic captions and paraphrases."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from surelabel.data.scene_arrangement import MIN_VISIBLE_SHARE, Scene
from surelabel.data.scene_words import Word
from surelabel.records import Relevance

ICONIC_TEMPLATES = ("a photo of a {}.", "a picture of the {}.", "{}", "a {} in the scene.")
CAPTION_KINDS = ("iconic", "pair", "full", "paraphrase", "paraphrase")


@dataclass(frozen=True)
class SceneCaption:
    """Caption of an image, with the objects that the caption mentions.

    Attributes:
        text: Text of the caption.
        kind: Kind of the caption, one of ``CAPTION_KINDS``.
        mentions: Vocabulary indices of the objects that the caption mentions.
    """

    text: str
    kind: str
    mentions: tuple[int, ...]


def caption_scene(
    scene: Scene, visible_shares: npt.NDArray[np.float32], words: Sequence[Word]
) -> list[SceneCaption]:
    """Return five captions: of the main object, two objects and all objects, and two paraphrases.

    Small objects whose visible fraction is below ``MIN_VISIBLE_SHARE`` are not mentioned. If no
    small object is visible, all captions mention only the main object.

    Args:
        scene: Scene with k objects.
        visible_shares: Visible fraction of each object in [0, 1], length k or more.
        words: Vocabulary of the scene.
    """
    rng = np.random.default_rng([scene.background, 1])
    main = int(scene.words[0])
    is_visible = visible_shares[1 : len(scene.words)] >= MIN_VISIBLE_SHARE
    shuffled = rng.permutation(scene.words[1:][is_visible]).tolist()
    others = [int(w) for w in dict.fromkeys(shuffled) if w != main]
    all_objects, pair = [main, *others], [main, *others[:1]]
    names = [w.name for w in words]
    iconic = ICONIC_TEMPLATES[rng.integers(len(ICONIC_TEMPLATES))].format(names[main])
    full = f"a photo of {_join_caption_names([names[w] for w in all_objects])}."
    if others:
        pair_text = f"a {names[main]} and a {names[others[0]]}."
        pair_paraphrase = f"a small {names[others[0]]} near a large {names[main]}."
        permuted_names = [names[w] for w in rng.permutation(all_objects)]
        full_paraphrase = f"a scene with {_join_caption_names(permuted_names)}."
    else:
        pair_text, pair_paraphrase = f"a {names[main]} alone.", f"a large {names[main]}."
        full_paraphrase = f"a scene with a {names[main]}."
    texts = (iconic, pair_text, full, pair_paraphrase, full_paraphrase)
    mentions = ([main], pair, all_objects, pair, all_objects)
    return [
        SceneCaption(text, kind, tuple(indices))
        for text, kind, indices in zip(texts, CAPTION_KINDS, mentions, strict=True)
    ]


def caption_relevance(
    mentions: Sequence[Sequence[int]], targets: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Return, for each image and caption, the fraction of mentioned objects that are in the image.

    Args:
        mentions: Vocabulary indices of the objects in each of ``s`` captions, at least one each.
        targets: Boolean targets of n images, ``(n, c)``; True means positive.

    Returns:
        Fractions of mentioned objects, in [0, 1], ``(n, s)``.
    """
    is_mentioned = np.zeros((len(mentions), targets.shape[1]))
    for row, indices in zip(is_mentioned, mentions, strict=True):
        row[list(indices)] = 1
    share: npt.NDArray[np.float64] = (
        targets.astype(float) @ is_mentioned.T / is_mentioned.sum(axis=1)
    )
    return share


def sparse_caption_relevance(
    mentions: Sequence[Sequence[int]], labels: Sequence[Sequence[int]], *, n_columns: int
) -> Relevance:
    """Return the pairs of :func:`caption_relevance` with a fraction above 0, as graded relevance.

    Args:
        mentions: Vocabulary indices of the objects in each of ``s`` captions, at least one each.
        labels: Vocabulary indices of the positive labels of each of n images.
        n_columns: Number of labels c; all indices are below c.
    """
    is_mentioned = _membership_matrix(mentions, n_columns)
    n_common = (_membership_matrix(labels, n_columns) @ is_mentioned.T).tocsr()
    n_common.sort_indices()  # in place; `Relevance` sorts the pairs otherwise
    images, captions = n_common.tocoo().coords
    n_mentioned = is_mentioned.sum(axis=1, dtype=np.float64)
    return Relevance(images, captions, n_common.data / n_mentioned[captions])


def _membership_matrix(indices: Sequence[Sequence[int]], n_columns: int) -> csr_array:
    """Return a sparse matrix with 1 at the given columns of each row."""
    distinct = [sorted(set(row)) for row in indices]
    starts = np.cumsum([0, *map(len, distinct)], dtype=np.int32)
    columns = np.fromiter(chain.from_iterable(distinct), np.int32, int(starts[-1]))
    return csr_array(
        (np.ones(len(columns), np.float32), columns, starts), shape=(len(distinct), n_columns)
    )


def _join_caption_names(names: Sequence[str]) -> str:
    *first, last = [f"a {name}" for name in names]
    return f"{', '.join(first)} and {last}" if first else last
