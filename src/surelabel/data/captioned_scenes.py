"""Pair images of generated scenes with captions, with graded relevance."""

import numpy as np

from surelabel.data.scene_captions import SceneCaption, sparse_caption_relevance
from surelabel.data.scene_files import AnnotatedScenes
from surelabel.records import Pairs


def scene_pairs(scenes: AnnotatedScenes) -> Pairs:
    """Return the images and captions of scenes, with graded relevance.

    The relevance of a caption for an image is the fraction of the mentioned objects that are in the
    image. If an image has a text twice, the text is kept once. The memory grows with the number of
    relevant pairs, which are about 6 % of all pairs with the vocabulary ``scenes-80``.

    Args:
        scenes: Scenes with their captions and complete targets.
    """
    distinct: dict[tuple[int, str], SceneCaption] = {}
    for row, captions in enumerate(scenes.captions):
        for caption in captions:
            distinct.setdefault((row, caption.text), caption)
    relevance = sparse_caption_relevance(
        [caption.mentions for caption in distinct.values()],
        [np.flatnonzero(targets).tolist() for targets in scenes.images.targets > 0],
        n_columns=len(scenes.images.names),
    )
    return Pairs(
        scenes.images.paths,
        [text for _, text in distinct],
        np.array([row for row, _ in distinct]),
        relevance=relevance,
    )
