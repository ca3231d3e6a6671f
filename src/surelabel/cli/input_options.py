"""Define options and arguments for models, labels, datasets and images."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.label_table_options import check_no_label_table_options
from surelabel.cli.output_paths import validate_terminal_model_path
from surelabel.cli.terminal import Command
from surelabel.counts import format_count
from surelabel.storage.image_paths import is_container_path, is_object_url

if TYPE_CHECKING:
    from surelabel.cli.terminal import Terminal
    from surelabel.recognizer import LabelledInput, Recognizer
    from surelabel.recognizer.inputs import RecognizerInput
    from surelabel.records import (
        Images,
        LabelledFeatures,
        LabelledImages,
        LabelledTexts,
        PairFeatures,
        Pairs,
        SkippedImage,
    )

    TrainingData = Images | LabelledInput | LabelledTexts | Pairs | PairFeatures

SELECTION = "fit without --method"  # the name of a method in messages
ARFF_SUFFIX = ".arff"
DATASET_SUFFIXES = (
    *(".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".npy", ".npz"),
    ARFF_SUFFIX,
)


def model_input_option(function: Command) -> Command:
    """Add the option ``--model`` for an encoder, or a saved or exported recognizer."""
    return click.option(
        "--model",
        callback=validate_terminal_model_path,
        default="tiny-vit",
        show_default=True,
        help="Folder of a saved recognizer, exported .onnx or .xml file, or encoder. Encoders are "
        "tiny-vit and tiny-rn (trained on emoji only), open_clip models such as ViT-B-16/openai, "
        "and local-dir:FOLDER.",
    )(function)


def method_input_options(function: Command) -> Command:
    """Add the options ``--method`` and ``--set`` for the scoring method and the settings."""
    settings_option = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change a setting, such as method.domain=centred; see `surelabel show method`.",
    )
    method_option = click.option(
        "--method",
        help="Scoring method, if the model is an encoder: zero_shot, or another method that needs "
        "no annotated images, such as tiles or dense_regions.",
    )
    return method_option(settings_option(function))


def max_passes_input_option(function: Command) -> Command:
    """Add the option ``--max-passes``, which selects a scoring method for an encoder."""
    return click.option(
        "--max-passes",
        type=click.IntRange(1),
        metavar="N",
        help="Use the method with the highest measured mAP that needs no annotated images and "
        "at most N encoder passes for an image. With N > 1 and 20 or more IMAGES, an uncalibrated "
        "method is calibrated without labels; its probabilities are not verified. [6; 1 for "
        "fewer than 100 IMAGES]",
    )(function)


def labels_input_option(function: Command) -> Command:
    """Add the option ``--labels`` for the labels to recognize."""
    return click.option(
        "--labels",
        "names",
        metavar="LABELS|FILE|-",
        help='Labels to recognize: "dog, bicycle", a file with one label per line, or - for '
        "standard input. A label in double quotes can contain commas. [labels of the saved "
        "recognizer or dataset]",
    )(function)


class ImagesRoot(click.Path):
    """Type of an option for a folder, a tar archive, or a URL of an object store."""

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the value, after a check that it is a URL, an archive or an existing folder."""
        if is_object_url(value) or (is_container_path(value) and os.path.isfile(value)):
            return value
        return super().convert(value, param, ctx)


def images_root_input_option(function: Command) -> Command:
    """Add the option ``--images-root`` for the root of relative paths in an annotation file."""
    return click.option(
        "--images-root",
        type=ImagesRoot(exists=True, file_okay=False),
        metavar="FOLDER",
        help="Root of relative image paths: a folder, a tar archive, or a URL such as "
        "s3://bucket/folder. [folder of the annotation file]",
    )(function)


def max_image_memory_input_option(function: Command) -> Command:
    """Add the option ``--max-image-memory``, which limits the memory for decoding an image."""

    def limit_image_memory(context: click.Context, _: click.Parameter, megabytes: int) -> None:
        from surelabel.data.image_memory import image_memory_limit

        context.with_resource(image_memory_limit(megabytes))

    return click.option(
        "--max-image-memory",
        type=click.IntRange(1),
        default=512,
        show_default=True,
        metavar="MB",
        callback=limit_image_memory,
        expose_value=False,
        help="Maximum memory for decoding an image, in megabytes. Images that need more memory "
        "are skipped.",
    )(function)


def parse_labels_input_option(text: str | None) -> list[str] | None:
    """Return the labels of ``--labels``, or None if the option is not given.

    Raises:
        InputError: If the text or the file contains no labels, or a label is invalid.
        DataError: If the file of labels cannot be read.
    """
    from surelabel.data import read_label_names

    return None if text is None else read_label_names(text)


def load_dataset_from_input_options(
    source: str, images_root: str | None = None, table_options: Mapping[str, Any] | None = None
) -> "LabelledInput":
    """Load annotated images or feature vectors.

    Args:
        source: Annotation file, split of a bundled collection (``scenes-80:test``), feature archive
            (``vectors.npz``), split of a feature archive (``vectors.npz:train``), or ARFF file.
        images_root: Root of relative paths in an annotation file. If None, the folder
            of the annotation file is used.
        table_options: Options for the columns and cells of a table, as keyword arguments of
            ``read_labels``.

    Raises:
        DataError: If the dataset does not exist or cannot be read.
        UnknownName: If the collection has no such split.
        UsageError: If ``table_options`` are given for vectors or for a split of a collection.
    """
    from surelabel.data import COLLECTIONS, collection, read_labels

    name, colon, split = source.rpartition(":")
    options = dict(table_options or {})
    if colon and name in COLLECTIONS:
        check_no_label_table_options(options, source)
        return collection(name, split=split)
    if _is_vectors_input_option(source):
        is_arff = source.lower().endswith(ARFF_SUFFIX)
        label_file = options.pop("label_file", None) if is_arff else None
        check_no_label_table_options(options, source)
        return _load_vectors_from_input_options(source, label_file=label_file)
    return read_labels(source, images_root=images_root, **options)


def _load_vectors_from_input_options(
    source: str, *, label_file: str | None = None, with_labels: bool = True
) -> "LabelledFeatures":
    """Return the vectors of a feature archive, of a split of an archive, or of an ARFF file."""
    from surelabel.data import read_feature_archive
    from surelabel.data.arff_vectors import read_arff_vectors
    from surelabel.errors import DataError

    if source.lower().endswith(ARFF_SUFFIX):
        return read_arff_vectors(source, label_file=label_file, with_labels=with_labels)
    name, _, split = source.rpartition(":")
    if source.endswith(".npz"):
        return read_feature_archive(source, with_labels=with_labels).all_rows
    archive = read_feature_archive(name, with_labels=with_labels)
    if split not in archive.splits:
        splits = ", ".join(archive.splits)
        remedy = f"Give one of its splits: {splits}" if splits else "Give the file without a split"
        raise DataError(f"{name} contains no split {split!r}. {remedy}.")
    return archive.splits[split]


def load_unlabelled_from_input_options(
    sources: Sequence[str],
) -> "list[str] | LabelledFeatures":
    """Return the paths of images, or the vectors of a feature archive without its labels.

    Args:
        sources: Folders, image files, ``.txt`` files of paths and ``-``; or one feature archive
            (``vectors.npz``), one split of an archive (``vectors.npz:test``) or one ARFF file.

    Raises:
        DataError: If a source cannot be read.
        InputError: If there are other sources besides an archive, or if the only source is a file
            of labels.
    """
    from surelabel.data import find_images
    from surelabel.errors import InputError

    archive = next((source for source in sources if _is_vectors_input_option(source)), None)
    if archive is None:
        if len(sources) == 1 and os.path.isfile(sources[0]) and is_dataset_input_option(sources[0]):
            raise InputError(
                f"Images must be given as folders, image files, archives or .txt lists of paths; "
                f"got the file of labels {sources[0]}. Give the folder of its images."
            )
        return find_images(sources)
    if len(sources) > 1:
        raise InputError(
            f"Vectors must be given as one .npz or .arff file; got {len(sources)} arguments: "
            f"{' '.join(sources[:5])}. Run the command once for each file."
        )
    return _load_vectors_from_input_options(archive, with_labels=False)


def _is_vectors_input_option(source: str) -> bool:
    """Return True for a feature archive, a split of it, and an ARFF file without image paths."""
    from surelabel.data.labels.multihot import is_multihot_file
    from surelabel.data.labels.resolution.arff_files import has_arff_image_paths

    path = Path(source)
    if source.lower().endswith(ARFF_SUFFIX):
        return not path.is_file() or not has_arff_image_paths(path)
    if source.endswith(".npz"):
        return not is_multihot_file(path)
    return source.rpartition(":")[0].endswith(".npz")


def load_pairs_from_input_options(
    source: str, images_root: str | None = None
) -> "Pairs | PairFeatures":
    """Load images with captions, or precomputed vectors of both.

    Args:
        source: Caption file with images, split of a bundled collection (``scenes-80:train``), or
            archive of pairs (``pairs.npz``).
        images_root: Root of relative paths in a caption file. If None, the folder of the caption
            file is used.

    Raises:
        DataError: If the source does not exist or cannot be read, or if its captions have no
            images.
        UnknownName: If the collection has no such split.
    """
    from surelabel.data import COLLECTIONS, collection, read_pair_archive, read_pairs
    from surelabel.errors import DataError

    name, colon, split = source.rpartition(":")
    if colon and name in COLLECTIONS:
        return collection(name, split=split, captions=True)
    if source in COLLECTIONS:
        raise DataError(
            f"A collection needs a split; got {source}. Give one of "
            f"{', '.join(f'{source}:{split}' for split in COLLECTIONS[source])}."
        )
    if source.endswith(".npz"):
        return read_pair_archive(source)
    return read_pairs(source, images_root=images_root)


def find_images_from_input_options(source: str) -> list[str]:
    """Return the paths of unlabelled images.

    Args:
        source: Folder of images, image file, or ``.txt`` file of paths.

    Raises:
        DataError: If the source is an annotated dataset, or contains no images.
    """
    from surelabel.data import find_images
    from surelabel.errors import DataError

    if is_dataset_input_option(source):
        raise DataError(
            f"--unlabelled requires images without labels: a folder, an image file or a .txt file "
            f"of paths; got {source}, which has labels. Remove --unlabelled to calibrate with "
            "labels."
        )
    return find_images([source])


def is_dataset_input_option(source: str) -> bool:
    """Return whether a source is a dataset, by its name; no file is opened.

    The name of a dataset has the suffix of an annotation file or a feature archive, begins with
    ``xmp:``, or is a split of an archive or of a collection.
    """
    from surelabel.data import COLLECTIONS

    name, colon, _ = source.rpartition(":")
    has_suffix = source.lower().endswith(DATASET_SUFFIXES)
    is_folder_of_sidecars = source.startswith("xmp:")
    is_split = bool(colon and name.endswith(".npz")) or name in COLLECTIONS
    return has_suffix or is_folder_of_sidecars or is_split


def load_training_data_from_input_options(
    method: str | None,
    sources: Sequence[str],
    images_root: str | None,
    labels: Sequence[str] | None,
    table_options: Mapping[str, Any] | None = None,
) -> "TrainingData":
    """Load the training data of a method.

    Args:
        method: Key of the method. If None, the method is selected on an annotated dataset.
        sources: One annotated dataset or file of captions with images, images if the method is
            fitted on unlabelled images, or one caption file if it is fitted on texts or on pairs.
        images_root: Root of relative paths in an annotation file. If None, the folder
            of the annotation file is used.
        labels: Labels of the option ``--labels``, for which captions are searched.
        table_options: Options for the columns and cells of a table, as keyword arguments of
            ``read_labels``.

    Raises:
        DataError: If the method requires labels and the sources are unlabelled images, if the
            method requires images and the captions have none, or if a source cannot be read.
        InputError: If there are several sources for a method that requires one, if captions are
            given without labels, or if no caption mentions a label.
        UsageError: If ``table_options`` are given for other data than a table.
    """
    from surelabel.data import detect_caption_format, find_images, has_captioned_images
    from surelabel.errors import DataError, InputError
    from surelabel.methods import METHODS
    from surelabel.records import Images

    first, *others = sources
    learns_from = METHODS[method].learns_from if method else "labels"
    subject = method or SELECTION
    if learns_from in ("pairs", "texts"):
        check_no_label_table_options(table_options or {}, first)
    if learns_from == "pairs":
        if others:
            raise InputError(
                f"{subject} requires one file of images with captions; got {len(sources)} "
                f"arguments. Run `surelabel fit CAPTIONS --method {method} --out FOLDER`."
            )
        return load_pairs_from_input_options(first, images_root)
    if learns_from == "texts":
        return _load_captions_from_input_options(subject, sources, labels)
    if learns_from == "images" and (others or not is_dataset_input_option(first)):
        check_no_label_table_options(table_options or {}, first)
        return Images(find_images(sources))
    if learns_from == "labels" and others:
        raise InputError(
            f"{subject} requires one annotated dataset; got {len(sources)} arguments: "
            f"{' '.join(sources)}. Give one annotation file, such as one CSV file for all images."
        )
    if learns_from == "labels" and _is_unlabelled_input_option(first):
        raise DataError(
            f"{subject} requires an annotated dataset; got the unlabelled images "
            f"{' '.join(sources)}. Give one annotation file, or use self-training on images: "
            "--method tailor --labels LABELS."
        )
    if learns_from == "labels" and _is_text_input_option(first):
        if not table_options and has_captioned_images(first):
            return _load_captioned_images_from_input_options(method, first, images_root, labels)
        is_text = not table_options and detect_caption_format(first) == "text"
        if is_text and not is_dataset_input_option(first):
            raise DataError(
                f"{subject} requires images with labels or captions; got the text file {first}. "
                "Give a CSV file with the header image,caption, or fit on captions without images: "
                "--method tai."
            )
    return load_dataset_from_input_options(first, images_root, table_options)


def _load_captions_from_input_options(
    method: str, sources: Sequence[str], labels: Sequence[str] | None
) -> "LabelledTexts":
    """Return the captions of a file, or of a split of a collection, with the labels in them."""
    from surelabel.data import COLLECTIONS, label_captions, read_captions
    from surelabel.data.bundled_collections import bundled_collection_folder
    from surelabel.errors import InputError

    if not labels or len(sources) > 1:
        given = format_count(len(sources), "file") if labels else "no labels"
        raise InputError(
            f"{method} requires one caption file and labels; got {given}. Run "
            f'`surelabel fit CAPTIONS --method {method} --labels "dog, bicycle" --out FOLDER`.'
        )
    name, colon, split = sources[0].rpartition(":")
    if colon and name in COLLECTIONS:
        captions = read_captions(bundled_collection_folder(name, split=split) / "scenes.jsonl")
    else:
        captions = read_captions(sources[0])
    return label_captions(captions, labels)


def _load_captioned_images_from_input_options(
    method: str | None, source: str, images_root: str | None, labels: Sequence[str] | None
) -> "LabelledImages":
    """Return the images of a caption file, with the labels that their captions mention."""
    from surelabel.data import label_captioned_images, read_captions
    from surelabel.errors import InputError

    if not labels:
        option = f" --method {method}" if method else ""
        raise InputError(
            f"Captions need --labels, which are searched in the captions; got {source} without "
            f'labels. Run `surelabel fit {source}{option} --labels "dog, bicycle" --out FOLDER`.'
        )
    captions = read_captions(source, images_root=images_root)
    labelled = label_captioned_images(captions, labels, unmentioned=0.0)
    warnings.warn(
        "A label that no caption of an image mentions is used as a negative target of the image.",
        UserWarning,
        stacklevel=2,
    )
    return labelled


def _is_text_input_option(source: str) -> bool:
    """Return True for a file of text that is no NumPy file, tar archive, table or NUS-WIDE file."""
    from surelabel.data.labels.nuswide import is_nuswide_path

    is_text = not source.lower().endswith((".npy", ".npz")) and not is_container_path(source)
    return is_text and os.path.isfile(source) and not is_nuswide_path(source)


def _is_unlabelled_input_option(source: str) -> bool:
    """Return True if a source is an image, or a folder without labels."""
    from surelabel.data.images import IMAGE_SUFFIXES
    from surelabel.data.labels.resolution.label_files import detect_label_folder_format

    path = Path(source)
    return path.suffix.lower() in IMAGE_SUFFIXES or (
        path.is_dir() and detect_label_folder_format(path) is None
    )


def fit_without_labels_on_input_options(
    terminal: "Terminal", recognizer: "Recognizer", source: "LabelledInput | Sequence[str]"
) -> None:
    """Fit the method of a recognizer on unlabelled images, if the method is not fitted yet.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer of the command.
        source: Images or feature vectors to fit on. Annotations are not used.
    """
    from surelabel.records import LabelledFeatures, LabelledImages, LabelledScores

    if recognizer.is_fitted:
        return
    terminal.print_status(
        f"{recognizer.run.method.name} is first fitted on {format_count(len(source), 'image')} "
        "without labels, so the scores of an image depend on the other images. Use `surelabel fit` "
        "to save the fitted method."
    )
    if isinstance(source, LabelledScores):
        inputs: RecognizerInput = source.without_labels()
    elif isinstance(source, LabelledFeatures):
        inputs = source.features
    else:
        inputs = source.paths if isinstance(source, LabelledImages) else source
    with terminal.progress("Fitting") as progress:
        recognizer.fit(inputs, progress=progress)


def vector_encoder_of_input_options(data: "TrainingData") -> str | None:
    """Return the name of the encoder of vectors or scores, or None for other data."""
    from surelabel.records import LabelledFeatures, LabelledScores, PairFeatures

    if isinstance(data, LabelledScores):
        return f"scores:{data.kind}"
    if isinstance(data, PairFeatures):
        return f"features:{data.image_vectors.shape[1]}"
    if not isinstance(data, LabelledFeatures):
        return None
    return f"features:{data.features.shape[1]}"


def skipped_images_of_input_options(
    recognizer: "Recognizer", data: "TrainingData"
) -> "Sequence[SkippedImage]":
    """Return the images that cannot be read, and cache the features of the other images.

    Args:
        recognizer: Recognizer with the encoder and the cache.
        data: Images, feature vectors or texts. For vectors and texts, no image is skipped.
    """
    from surelabel.features import encode_image_files
    from surelabel.records import LabelledFeatures, LabelledTexts, PairFeatures

    if isinstance(data, LabelledFeatures | LabelledTexts | PairFeatures):
        return ()
    return encode_image_files(recognizer.encoder, data.paths, cache=recognizer.cache).skipped


def run_overrides_from_input_options(settings: tuple[str, ...], **options: Any) -> list[str]:
    """Return the settings of a run as strings ``KEY=VALUE``.

    Args:
        settings: Values of the option ``--set``.
        options: Values of further settings, with ``__`` instead of a dot in their names. Settings
            with the value None are omitted.
    """
    import json

    given = {key.replace("__", "."): value for key, value in options.items() if value is not None}
    return [*settings, *(f"{key}={json.dumps(value)}" for key, value in given.items())]
