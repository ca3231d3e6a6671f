"""Prepare training data of ``surelabel fit``: labels, few-shot samples and caption noise."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from surelabel.cli.input_options import SELECTION
from surelabel.cli.terminal import Terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.cli.input_options import TrainingData
    from surelabel.config import Run
    from surelabel.recognizer import LabelledInput
    from surelabel.records import SkippedImage


def add_caption_noise_in_fit_command(
    terminal: Terminal, training_data: "TrainingData", ratio: float, seed: int
) -> "TrainingData":
    """Return images with partly permuted captions, and print the number of permuted captions.

    Args:
        terminal: Object that prints results, status lines and progress.
        training_data: Images with captions, or precomputed vectors of both.
        ratio: Fraction of the captions that are permuted, in [0, 1].
        seed: Seed of the permutation.

    Raises:
        InputError: If the training data are not images with captions.
    """
    from surelabel.errors import InputError
    from surelabel.records import PairFeatures, Pairs

    if not isinstance(training_data, Pairs | PairFeatures):
        count = format_count(len(training_data), noun_of_fit_data(training_data))
        raise InputError(
            "--caption-noise requires images with captions and a method for captioned images, "
            f"such as variational; got {count}. Remove --caption-noise."
        )
    terminal.print_status(
        f"{int(ratio * len(training_data))} of {format_count(len(training_data), 'caption')} are "
        f"permuted (seed {seed})."
    )
    return training_data.with_noise(ratio, seed=seed)


def noun_of_fit_data(training_data: "TrainingData") -> str:
    """Return the noun of the items of training data: ``caption``, ``image`` or ``row``."""
    from surelabel.records import (
        LabelledFeatures,
        LabelledScores,
        LabelledTexts,
        PairFeatures,
        Pairs,
    )

    if isinstance(training_data, LabelledTexts | Pairs | PairFeatures):
        return "caption"
    is_vectors = isinstance(training_data, LabelledFeatures)
    return "row" if is_vectors and not isinstance(training_data, LabelledScores) else "image"


def count_of_fit_data(training_data: "TrainingData", skipped: "Sequence[SkippedImage]") -> int:
    """Return the number of captions or images that were used; skipped images are not counted."""
    import numpy as np

    from surelabel.records import Pairs

    if not isinstance(training_data, Pairs):
        return len(training_data) - len(skipped)
    skipped_paths = {image.path for image in skipped}
    rows = [row for row, path in enumerate(training_data.paths) if path in skipped_paths]
    return int((~np.isin(training_data.image_rows, rows)).sum())


def sample_shots_in_fit_command(
    terminal: Terminal,
    training_data: "TrainingData",
    labels: "Sequence[str]",
    shots: int,
    seed: int,
) -> "LabelledInput":
    """Return a few-shot sample of the training data, and print its size and counts.

    Args:
        terminal: Object that prints results, status lines and progress.
        training_data: Training data of any kind.
        labels: Labels of the recognizer.
        shots: Number of positive images per label, >= 1.
        seed: Seed of the sample.

    Raises:
        InputError: If the images have no labels, or no target of the labels is positive.
    """
    import numpy as np

    from surelabel.data import describe_shots, parse_label_names, sample_shots
    from surelabel.errors import InputError
    from surelabel.recognizer.inputs import align_recognizer_input_labels
    from surelabel.records import LabelledFeatures, LabelledImages

    if not isinstance(training_data, LabelledImages | LabelledFeatures):
        noun = noun_of_fit_data(training_data)
        count = format_count(len(training_data), noun)
        count += " without labels" if noun == "image" else ""
        raise InputError(
            "--shots requires an annotated DATASET, because it samples images by their labels; got "
            f"{count}. Remove --shots."
        )
    label_names, aliases = parse_label_names(labels)
    labelled = align_recognizer_input_labels(training_data, label_names, aliases)
    targets, known = labelled.targets, labelled.known
    rows = sample_shots(targets, known, shots, np.random.default_rng(seed))
    if not len(rows):
        count = format_count(len(labelled), noun_of_fit_data(training_data))
        raise InputError(
            f"--shots requires images with a positive label; got {count} without positive labels. "
            "Check the annotations and --labels."
        )
    for sentence in describe_shots(label_names, targets, known, rows, shots):
        terminal.print_status(sentence)
    return training_data.take(rows)


def use_vector_encoder_in_fit_command(
    run: "Run", encoder: str | None, training_data: "TrainingData"
) -> "Run":
    """Return the run with the encoder of precomputed vectors, or the unchanged run for other data.

    For vectors of images and captions, the setting ``text_width`` of the method is added, unless
    the run contains it.

    Args:
        run: Settings of the fit.
        encoder: Name of the encoder of the vectors or scores, such as ``features:512``. If None,
            the run is not changed.
        training_data: Training data of any kind.
    """
    from surelabel.config import Choice
    from surelabel.records import LabelledScores, PairFeatures

    if encoder is None:
        return run
    if isinstance(training_data, LabelledScores):
        settings = {"columns": list(training_data.columns), "views": training_data.views}
        return replace(run, encoder=Choice(encoder, settings))
    method = run.method
    if isinstance(training_data, PairFeatures):
        text_width = training_data.text_vectors.shape[1]
        method = replace(method, settings={"text_width": text_width, **method.settings})
    return replace(run, encoder=replace(run.encoder, name=encoder), method=method)


def labels_of_fit_data(method: str | None, training_data: "TrainingData") -> list[str]:
    """Return the labels of the training data, or an empty list for images with captions.

    Args:
        method: Key of the method. If None, the method is selected.
        training_data: Training data of any kind.

    Raises:
        InputError: If there are no labels.
    """
    from surelabel.errors import InputError
    from surelabel.records import Images, PairFeatures, Pairs

    if isinstance(training_data, Pairs | PairFeatures):
        return []
    labels = [] if isinstance(training_data, Images) else list(training_data.names)
    if not labels:
        raise InputError(
            f"{method or SELECTION} requires labels; got images without labels. Add --labels with "
            'a text ("dog, bicycle"), with a file that contains one label per line, or with - for '
            "standard input."
        )
    return labels
