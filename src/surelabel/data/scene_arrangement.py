"""Sample scenes of generated images: objects, positions and appearance.

The seed and the index of a scene determine the scene completely.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.data.scene_words import Word

MAX_OBJECTS = 7  # in a scene: one main object and up to six small ones
SMALL_COUNT = (0.13, 0.20, 0.22, 0.19, 0.13, 0.08, 0.05)  # probability of 0, 1 … 6 small objects
MIN_VISIBLE_SHARE = 0.3  # objects with a smaller visible share are not labels
SMALL_FROM_THEME = 0.7  # probability that a small object belongs to the theme


@dataclass(frozen=True)
class Scene:
    """Objects and background of a generated image; row 0 of each array is the main object.

    Attributes:
        words: Vocabulary indices of the k objects, ``(k,)``.
        centres: Centres of the objects, ``(k, 2)``, x and y as fractions of the image side.
        sides: Side lengths of the square sprites as fractions of the image side, ``(k,)``.
        angles: Rotation angles of the objects in radians, ``(k,)``.
        mirrored: Boolean mask of the objects that are mirrored horizontally, ``(k,)``.
        tints: Factors by which the red, green and blue channels are multiplied, ``(k, 3)``.
        depths: Distances of the objects from the viewer, in [0, 1], ``(k,)``.
        theme: Name of the theme of the scene.
        background: Seed of the random background.
    """

    words: npt.NDArray[np.int64]
    centres: npt.NDArray[np.float32]
    sides: npt.NDArray[np.float32]
    angles: npt.NDArray[np.float32]
    mirrored: npt.NDArray[np.bool_]
    tints: npt.NDArray[np.float32]
    depths: npt.NDArray[np.float32]
    theme: str
    background: int


class SceneSampler:
    """Sampler of scenes in which objects of the same theme often co-occur.

    Args:
        words: Vocabulary of the scenes.
        seed: Seed of the random numbers; ``seed`` and the index of a scene determine the scene.
        long_tail: If True, the frequencies of themes, and of words within a theme, are proportional
            to 1/rank. If False, all words are equally frequent.
    """

    def __init__(self, words: Sequence[Word], *, seed: int, long_tail: bool = False):
        self.words, self.seed = words, seed
        self._themes = list(dict.fromkeys(w.theme for w in words))
        self._members = [
            np.array([i for i, w in enumerate(words) if w.theme == theme]) for theme in self._themes
        ]
        self._theme_probabilities = _zipf_scene_probabilities(len(self._themes), long_tail)
        if not long_tail:  # every word is the main object equally often
            sizes = np.array([len(m) for m in self._members])
            self._theme_probabilities = sizes / sizes.sum()
        self._word_probabilities = [
            _zipf_scene_probabilities(len(m), long_tail) for m in self._members
        ]
        self._overall_probabilities = np.zeros(len(words))
        for theme, members in enumerate(self._members):
            self._overall_probabilities[members] = (
                self._theme_probabilities[theme] * self._word_probabilities[theme]
            )

    def __call__(self, index: int) -> Scene:
        """Return the scene with the given index."""
        rng = np.random.default_rng([self.seed, index])
        theme = int(rng.choice(len(self._themes), p=self._theme_probabilities))
        n_small = int(rng.choice(len(SMALL_COUNT), p=SMALL_COUNT))
        k = 1 + n_small
        is_in_theme = rng.random(k) < SMALL_FROM_THEME
        is_in_theme[0] = True
        theme_words = rng.choice(self._members[theme], size=k, p=self._word_probabilities[theme])
        any_words = rng.choice(len(self.words), size=k, p=self._overall_probabilities)
        words = np.where(is_in_theme, theme_words, any_words)
        return arrange_scene(words, theme=self._themes[theme], rng=rng)


def arrange_scene(words: npt.NDArray[np.int64], *, theme: str, rng: np.random.Generator) -> Scene:
    """Return a scene of given objects with random positions, appearance and background.

    Args:
        words: Vocabulary indices of the k objects, the main object first, ``(k,)``, with k from 1
            to ``MAX_OBJECTS``.
        theme: Name of the theme of the scene.
        rng: Random numbers.
    """
    k = len(words)
    sides = np.concatenate([rng.uniform(0.42, 0.60, 1), rng.uniform(0.16, 0.28, k - 1)])
    max_offset = np.where(np.arange(k) == 0, 0.25, 0.44)[:, None]
    depths = rng.random(k)
    depths[0] = rng.uniform(0.3, 1.0)  # the main object is rarely the nearest
    return Scene(
        words=words,
        centres=(0.5 + max_offset * rng.uniform(-1, 1, (k, 2))).astype(np.float32),
        sides=sides.astype(np.float32),
        angles=rng.uniform(-0.5, 0.5, k).astype(np.float32),
        mirrored=rng.random(k) < 0.5,
        tints=(rng.uniform(0.8, 1.2, (k, 1)) * rng.uniform(0.85, 1.15, (k, 3))).astype(np.float32),
        depths=depths.astype(np.float32),
        theme=theme,
        background=int(rng.integers(2**31)),
    )


def _zipf_scene_probabilities(count: int, long_tail: bool) -> npt.NDArray[np.float64]:
    """Return probabilities proportional to 1/rank, or uniform probabilities without a long tail."""
    weights = 1 / np.arange(1, count + 1) if long_tail else np.ones(count)
    probabilities: npt.NDArray[np.float64] = weights / weights.sum()
    return probabilities
