"""Generate images for captions with the generator of scenes."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surelabel.data.captions import read_captions
from surelabel.data.domains import DOMAINS
from surelabel.data.emoji_sprites import Sprites, draw_sprites
from surelabel.data.scene_arrangement import MAX_OBJECTS, MIN_VISIBLE_SHARE, Scene, arrange_scene
from surelabel.data.scene_images import save_scene_images, single_rendering_thread
from surelabel.data.scene_words import read_scene_vocabulary
from surelabel.data.scenes import render_scenes
from surelabel.data.text_labels import label_captions
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.files import atomic_folder
from surelabel.records import Captions

CAPTIONS = "captions.csv"
IMAGES_PER_BATCH = 64
TEST_PIXELS = 64  # side of the images in which the visible shares are measured
ARRANGEMENTS = 10  # attempts to place the objects of a caption so that all are visible


def synthesize_images(
    captions: Captions,
    folder: str | Path,
    *,
    seed: int,
    vocabulary: str | Path = "scenes-80",
    domain: str = "photo",
    pixels: int = 128,
) -> Captions:
    """Generate an image for each caption, with the objects that the caption mentions.

    One of the objects is large, as in :func:`surelabel.data.write_scenes`. If less than 0.3 of an
    object is visible, all objects are placed again, in at most ten attempts. The positions, the
    appearance and the background of an image depend on ``seed`` and on the number of the image; no
    image equals an image of ``write_scenes``.

    The folder contains the images and ``captions.csv`` with the header ``image,caption``. The
    folder can be used to fit methods that learn from labels; see :func:`label_captioned_images`.

    Args:
        captions: Captions. A caption that mentions no word of the vocabulary, or more than seven
            words, is left out.
        folder: Path of a new or empty folder.
        seed: Seed of the random numbers, >= 0.
        vocabulary: Name ``scenes-80`` or ``scenes-all``, or the path of a file with one word per
            line.
        domain: Name of the visual domain, one of ``DOMAINS``.
        pixels: Side length of the images in pixels, >= 16.

    Returns:
        The captions that were not left out, with the paths of their images.

    Raises:
        ConfigError: If ``seed`` or ``pixels`` is out of range.
        UnknownName: If the domain or a word of the vocabulary does not exist.
        InputError: If no caption mentions a word of the vocabulary, or if a vocabulary file has
            fewer than two words.
        DataError: If the folder is not empty or cannot be written, or if a vocabulary file cannot
            be read. Also if every caption mentions more than seven words.
        MissingPart: If the colour-emoji font cannot be used.
    """
    if seed < 0 or pixels < 16:
        raise ConfigError(
            f"seed must be at least 0, and pixels must be at least 16; got seed {seed} and pixels "
            f"{pixels}."
        )
    if domain not in DOMAINS:
        raise UnknownName(f"domain must be one of {', '.join(DOMAINS)}; got {domain!r}.")
    folder, words = Path(folder), read_scene_vocabulary(vocabulary)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise DataError(
            f"{folder} must be a new or empty folder; got a file or a folder with files. Choose "
            "another folder."
        )
    labelled = label_captions(captions, [word.name for word in words])
    mentions = [np.flatnonzero(row) for row in labelled.targets]
    rows = [row for row, indices in enumerate(mentions) if len(indices) <= MAX_OBJECTS]
    paths = [f"images/{number:05d}.jpg" for number in range(len(rows))]
    sprites = draw_sprites(words)
    with atomic_folder(folder) as temporary, single_rendering_thread():
        for start in range(0, len(rows), IMAGES_PER_BATCH):
            numbers = range(start, min(start + IMAGES_PER_BATCH, len(rows)))
            scenes = arrange_captions(
                [mentions[rows[number]] for number in numbers],
                [words[mentions[rows[number]][0]].theme for number in numbers],
                [[seed, number] for number in numbers],
                sprites,
            )
            images = DOMAINS[domain](
                render_scenes(scenes, sprites, pixels).pixels, [s.background for s in scenes]
            )
            save_scene_images(images, [temporary / paths[number] for number in numbers])
        with (temporary / CAPTIONS).open("w", newline="", encoding="utf-8") as table:
            writer = csv.writer(table, lineterminator="\n")
            writer.writerow(["image", "caption"])
            writer.writerows(zip(paths, (labelled.texts[row] for row in rows), strict=True))
    return read_captions(folder / CAPTIONS)


def arrange_captions(
    mentions: Sequence[npt.NDArray[np.int64]],
    themes: Sequence[str],
    seeds: Sequence[list[int]],
    sprites: Sprites,
) -> list[Scene]:
    """Return a scene for each caption, with all objects visible if ten attempts suffice.

    Args:
        mentions: Vocabulary indices of the objects of each caption.
        themes: Theme of each scene.
        seeds: Two seeds of each scene. The number of the attempt, >= 1, is the third seed; scenes
            of ``SceneSampler`` have no third seed.
        sprites: Sprites of the vocabulary.
    """
    scenes: dict[int, Scene] = {}
    hidden = list(range(len(mentions)))
    for attempt in range(1, ARRANGEMENTS + 1):
        for row in hidden:
            rng = np.random.default_rng([*seeds[row], attempt])
            objects = rng.permutation(mentions[row])
            scenes[row] = arrange_scene(objects, theme=themes[row], rng=rng)
        shares = render_scenes([scenes[row] for row in hidden], sprites, TEST_PIXELS).visible_shares
        hidden = [
            row
            for row, of_scene in zip(hidden, shares, strict=True)
            if of_scene[: len(mentions[row])].min() < MIN_VISIBLE_SHARE
        ]
        if not hidden:
            break
    return [scenes[row] for row in range(len(mentions))]
