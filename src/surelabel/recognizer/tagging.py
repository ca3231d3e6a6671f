"""Tags as people know them: a label, its score, its probability."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from surelabel.config import Choice, Run
from surelabel.errors import InputError
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Array, Flags, Predictions


def tag(
    images: str | Path | Image.Image | Sequence[str | Path | Image.Image],
    labels: Sequence[str],
    *,
    model: str = "tiny-vit",
    method: str = "zero_shot",
    device: str = "cpu",
    **settings: Any,
) -> list[list[dict[str, Any]]]:
    """Tag pictures in one line: every label with its own probability.

    Args:
        images: Paths or pictures in memory.
        labels: What to look for; one is enough.
        model: The encoder.
        method: What it is asked with; one that needs no labels. One that learns from images looks
            at all of ``images`` first.
        device: Where it runs.
        settings: Of the method, such as ``domain="centred"``.

    Returns:
        For each picture its labels, likeliest first, as ``{"label", "score", "probability"}``;
        the probability is None while nothing calibrates the model.

    Raises:
        DataError: a picture cannot be read.
        UnknownName, ConfigError: there is no such method or setting.
        NotFitted: the method is trained; fit a recognizer instead.

    Example:
        >>> import surelabel as sl
        >>> picture = sl.collection("scenes-80", split="test").paths[0]
        >>> [sorted(found) for found in sl.tag(picture, labels=["lion"])[0]]
        [['label', 'probability', 'score']]
    """
    several = [images] if isinstance(images, str | Path | Image.Image) else list(images)
    run = Run(backbone=Choice(model), method=Choice(method, settings))
    recognizer = Recognizer(run, labels, device=device)
    opened = [p for p in several if isinstance(p, Image.Image)]
    if opened and len(opened) < len(several):
        raise InputError("images must be all paths or all pictures in memory, not a mixture.")
    if opened:
        return tags_of(recognizer.predict_pictures(opened))
    paths = [str(p) for p in several]
    if hasattr(recognizer.method, "learn"):
        recognizer.fit(paths)
    return tags_of(recognizer.predict(paths, strict=True))


def tags_of(
    predictions: Predictions,
    *,
    threshold: float | Array | None = None,
    top_k: int | None = None,
) -> list[list[dict[str, Any]]]:
    """The labels of each picture, likeliest first.

    Args:
        predictions: Of a recognizer.
        threshold: Only labels with this probability or more, in [0, 1]; one for all labels, or
            one each, ``(c,)``, where 1 means never.
        top_k: At most so many.

    Raises:
        NotFitted: a threshold needs probabilities and there are none.
        InputError: ``threshold`` or ``top_k`` is out of range.
    """
    check_choice(threshold=threshold, top_k=top_k)
    known = predictions.calibration is not None
    probabilities = predictions.probabilities if known or threshold is not None else None
    least = None if threshold is None else np.asarray(threshold, dtype=float)
    if least is not None and least.shape not in ((), (len(predictions.names),)):
        raise InputError(
            f"threshold must be one probability, or one for each of {len(predictions.names)} "
            f"labels. Got {least.shape}."
        )
    shown = None if least is None or probabilities is None else _shown(probabilities, least)
    found = []
    for row, scores in enumerate(predictions.scores):
        order = np.argsort(-scores, kind="stable")
        if probabilities is not None:
            order = order[np.argsort(-probabilities[row][order], kind="stable")]
            order = order if shown is None else order[shown[row][order]]
        found.append(
            [
                {
                    "label": predictions.names[c],
                    "score": round(float(scores[c]), 6),
                    "probability": None
                    if probabilities is None
                    else round(float(probabilities[row, c]), 6),
                }
                for c in order[:top_k]
            ]
        )
    return found


def _shown(probabilities: Array, least: Array) -> Flags:
    """At or above its threshold; a label whose own threshold is 1 is never shown."""
    never = least >= 1 if least.ndim else np.False_
    shown: Flags = (probabilities >= least) & ~never
    return shown


def check_choice(*, threshold: float | Array | None = None, top_k: int | None = None) -> None:
    """Refuse what ``tags_of`` would refuse, before any work is done.

    Raises:
        InputError: ``threshold`` or ``top_k`` is out of range.
    """
    least = np.asarray(0.0 if threshold is None else threshold)
    if least.size and not (least.min() >= 0 and least.max() <= 1):  # NaN is neither
        raise InputError(f"threshold is a probability in [0, 1]. Got {threshold}.")
    if top_k is not None and top_k < 1:
        raise InputError(f"top_k must be 1 or more. Got {top_k}.")
