"""Resolve, encode and align the inputs of a recognizer: images or precomputed features."""

from collections.abc import Iterable, Mapping, Sequence
from io import IOBase
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from PIL import Image
from torch import Tensor

from surelabel.counts import format_count
from surelabel.data import RowDataset, align_to_vocabulary, find_images
from surelabel.data.labels.resolution.label_files import has_label_file_suffix
from surelabel.encoders import Encoder
from surelabel.errors import ConfigError, InputError
from surelabel.features import (
    EncodedImages,
    FeatureCache,
    normalize_precomputed_vectors,
)
from surelabel.methods import METHODS, Method
from surelabel.recognizer.feature_extraction import extract_features
from surelabel.recognizer.images_in_memory import (
    FileContent,
    ImagesInMemory,
    array_input_error,
    image_in_memory,
)
from surelabel.recognizer.user_warnings import warn_unannotated_labels
from surelabel.recognizer.vector_normalization import (
    image_vector_normalization,
    precomputed_vectors,
)
from surelabel.records import (
    Images,
    LabelledFeatures,
    LabelledImages,
    LabelledScores,
    LabelTree,
)

LabelledInput = LabelledImages | LabelledFeatures
ImageInput = str | Path | Image.Image | FileContent | npt.NDArray[np.uint8]  # one image
RecognizerInput = Images | LabelledInput | ImageInput | Sequence[ImageInput] | npt.NDArray[Any]


@runtime_checkable
class Table(Protocol):
    """Table with named columns, such as a ``DataFrame`` of pandas."""

    columns: Any

    def __getitem__(self, names: list[str], /) -> Any:
        """Return the columns with the given names."""


ResolvedInput = Images | ImagesInMemory | LabelledInput


def resolve_recognizer_input(source: RecognizerInput) -> ResolvedInput:
    """Return ``source`` as images or features.

    A folder, an image file, a .txt file with paths, or a sequence of paths of image files is
    converted to ``Images``. PIL images, bytes and arrays of pixels are converted to
    ``ImagesInMemory``. An array of vectors is converted to ``LabelledFeatures`` without labels. A
    table of numbers, such as a ``DataFrame``, is an array of vectors.

    Raises:
        DataError: If ``source`` is a single path without images.
        InputError: If an array contains neither vectors nor pixels, or if a sequence contains
            different kinds of images. Also if ``source`` is a file or table of labels, or if
            ``source`` or an item has another type.
    """
    if isinstance(source, Images | LabelledImages | LabelledFeatures):
        return source
    if isinstance(source, RowDataset):
        raise _unread_table_error(source)
    if isinstance(source, Table):
        values = np.asarray(source)
        if values.ndim == 2 and values.shape[1] > 1 and values.dtype.kind == "O":
            raise _unread_table_error(source)
        source = values
    if isinstance(source, str | Path):
        if has_label_file_suffix(source) and not Path(source).is_dir():
            raise _unread_label_file_error(source)
        return Images(find_images([source]))
    if isinstance(source, Image.Image | FileContent):
        return ImagesInMemory([image_in_memory(source)])
    if isinstance(source, np.ndarray) and source.dtype.kind not in "OUS":
        return _resolve_recognizer_array(source)
    items = _list_recognizer_input(source)
    in_memory = [item for item in items if not isinstance(item, str | Path)]
    if in_memory and len(in_memory) < len(items):
        raise InputError(
            "The input must contain only files or only images in memory; got "
            f"{format_count(len(in_memory), 'image')} in memory among "
            f"{format_count(len(items), 'image')}. Make one call for files, and one for images in "
            "memory."
        )
    if not in_memory:
        return Images([str(path) for path in items])
    return ImagesInMemory([image_in_memory(item) for item in in_memory])


def _list_recognizer_input(source: object) -> list[ImageInput]:
    """Return the items of a sequence of images.

    Raises:
        InputError: If ``source`` is not a sequence, or if an item is neither a path nor an image.
    """
    if isinstance(source, Tensor):
        raise array_input_error(source)
    if isinstance(source, Mapping | IOBase) or not isinstance(source, Iterable):
        raise _type_input_error(type(source).__name__)
    if isinstance(source, np.ndarray) and source.ndim != 1:
        raise InputError(
            f"An array of paths or images must have the shape (n,); got {source.shape}. Give one "
            "column of the array."
        )
    items = list(source)
    for index, item in enumerate(items):
        if isinstance(item, Tensor):
            raise array_input_error(item)
        if not isinstance(item, str | Path | Image.Image | FileContent | np.ndarray):
            raise _type_input_error(f"{type(item).__name__} at index {index} of a list")
    return items


def _unread_table_error(source: object) -> InputError:
    return InputError(
        f"A table with labels must first be read as a dataset; got {type(source).__name__}. Give "
        "surelabel.read_labels(table, images_root=FOLDER) instead."
    )


def _unread_label_file_error(path: str | Path) -> InputError:
    return InputError(
        f"A file with labels must first be read as a dataset; got {path}. Give "
        f"surelabel.read_labels({str(path)!r}) instead."
    )


def _type_input_error(description: str) -> InputError:
    return InputError(
        "Images must be paths, PIL images, contents of image files as bytes, or NumPy arrays; got "
        f"{description}. Give one image, a flat list of images, or an array of feature vectors."
    )


def resolve_recognizer_files(source: RecognizerInput) -> Images | LabelledInput:
    """Return ``source`` as image files or features, as :func:`resolve_recognizer_input`.

    Raises:
        InputError: If ``source`` contains images in memory, or for the reasons of
            :func:`resolve_recognizer_input`.
        DataError: If ``source`` is a single path without images.
    """
    resolved = resolve_recognizer_input(source)
    if isinstance(resolved, ImagesInMemory):
        raise InputError(
            "Image files or feature vectors are required; got "
            f"{format_count(len(resolved), 'image')} in memory. Save the images and give their "
            "paths; only predict accepts images in memory."
        )
    return resolved


def resolve_recognizer_targets(
    source: RecognizerInput, targets: npt.ArrayLike | None, names: Sequence[str]
) -> Images | LabelledInput:
    """Return image files or features, with the targets that are given separately, if any.

    Args:
        source: Images or features. With ``targets``, they have no labels.
        targets: Targets of n images and c labels, 1 = positive, NaN = unknown, ``(n, c)``. If None,
            the targets of ``source`` are used.
        names: Labels of the columns, length c.

    Raises:
        InputError: If ``source`` contains images in memory, if both ``source`` and ``targets``
            contain targets, or if the shapes differ. Also if ``targets`` is a table whose columns
            are not the labels.
    """
    resolved = resolve_recognizer_files(source)
    if targets is None:
        return resolved
    if isinstance(resolved, LabelledImages) or (
        isinstance(resolved, LabelledFeatures) and resolved.names
    ):
        raise InputError(
            f"Targets must be given once; got {type(resolved).__name__}, which has targets, and a "
            "separate array. Remove the array, or give a source without targets."
        )
    if isinstance(targets, Table):
        targets = _sort_table_columns(targets, names)
    values = np.asarray(targets, dtype=np.float64)
    if isinstance(resolved, LabelledScores):
        return resolved.with_labels(names, values)
    if isinstance(resolved, LabelledFeatures):
        selection = resolved.row_selection
        return LabelledFeatures(resolved.features, names, values, row_selection=selection)
    return LabelledImages(resolved.paths, names, values)


def _sort_table_columns(targets: Table, names: Sequence[str]) -> npt.ArrayLike:
    """Return the columns of a table in the order of the labels.

    Raises:
        InputError: If the columns have names, and the names are not the labels.
    """
    columns = list(targets.columns)
    if not any(isinstance(column, str) for column in columns):
        return np.asarray(targets)
    if sorted(map(str, columns)) != sorted(names):
        raise InputError(
            "The columns of a target table must have the names of the "
            f"{format_count(len(names), 'label')}, in any order; got "
            f"{', '.join(map(str, columns[:10]))}. Select and rename the columns."
        )
    return np.asarray(targets[list(names)])


def _resolve_recognizer_array(array: npt.NDArray[Any]) -> ImagesInMemory | LabelledFeatures:
    """Return an array as feature vectors or as images.

    Raises:
        InputError: If the array contains neither vectors nor pixels.
    """
    if array.dtype.kind == "f" and array.ndim == 2:
        return LabelledFeatures(array, (), np.zeros((len(array), 0)))
    if array.ndim == 4:
        return ImagesInMemory([image_in_memory(pixels) for pixels in array])
    return ImagesInMemory([image_in_memory(array)])


def encode_recognizer_input(
    source: ResolvedInput,
    method: Method,
    encoder: Encoder,
    cache: FeatureCache,
    **options: Any,
) -> EncodedImages:
    """Return the features that a method needs, from images or precomputed features.

    If an image has fewer views than other images, each missing view is replaced by the pooled
    vector of the image.

    Raises:
        ConfigError: If ``source`` contains precomputed features, and the method also needs other
            features than pooled features.
        InputError: If ``source`` contains precomputed features without rows, or of another width
            than that of the encoder.
        NotFitted: If ``source`` contains precomputed features, and the encoder is not fitted yet.
        DataError: If no image can be read, or if ``strict`` is True and any image cannot be read.
    """
    if isinstance(source, LabelledFeatures):
        check_recognizer_vector_inputs(method)
        return normalize_precomputed_vectors(
            precomputed_vectors(encoder, source),
            width=encoder.width,
            normalization=image_vector_normalization(encoder),
        )
    if isinstance(source, ImagesInMemory):
        return extract_features(source.images, method, encoder, strict=options.get("strict", False))
    paths = [str(path) for path in source.paths]
    return extract_features(paths, method, encoder, cache=cache, **options)


def check_recognizer_vector_inputs(method: Method) -> None:
    """Check that a method needs only pooled features.

    Raises:
        ConfigError: If the method needs patches, views or other features of images.
    """
    needs = [need for need in method.needs if need != "pixels"]
    if needs:
        name = next((n for n, entry in METHODS.items() if entry is type(method)), "This method")
        raise ConfigError(
            f"{name} requires images to compute {', '.join(needs)}; got precomputed features. Give "
            "image files, or use a method that needs only pooled features, such as "
            "method.name=zero_shot or linear."
        )


def align_recognizer_input_labels(
    source: LabelledInput,
    names: Sequence[str],
    aliases: Mapping[str, Sequence[str]],
    label_tree: LabelTree | None = None,
) -> LabelledImages:
    """Return the labelled images with one target column per label in ``names``.

    A label of ``source`` matches a label in ``names`` if they share an alias. A warning lists the
    labels without a known target.

    Args:
        source: Images, vectors or scores with labels.
        names: Labels of the recognizer, length c.
        aliases: Aliases of each label of the recognizer.
        label_tree: Tree of the labels, from which further targets follow; see
            ``LabelTree.extend_targets``. If None, there is no tree.

    Raises:
        InputError: If ``source`` has no labels, or if a label of ``source`` matches two names.
        DataError: If a positive label has a negative ancestor in an image.
    """
    if not isinstance(source, LabelledImages | LabelledFeatures):
        raise InputError(
            "Labels are required, as LabelledImages or LabelledFeatures; got "
            f"{type(source).__name__}, which has no labels. Give annotated images."
        )
    labelled = LabelledImages(
        source.paths,
        source.names,
        source.targets,
        source.known,
        row_selection=source.row_selection,
    )
    aligned, _ = align_to_vocabulary(labelled, names, aliases)
    if label_tree is not None:
        targets = np.where(aligned.known, aligned.targets, np.nan)
        targets = label_tree.extend_targets(targets, names, [str(path) for path in aligned.paths])
        aligned = LabelledImages(aligned.paths, names, targets, row_selection=aligned.row_selection)
    warn_unannotated_labels(names, aligned.known)
    return aligned


def check_parents_are_annotated(labelled: LabelledImages, label_tree: LabelTree | None) -> None:
    """Check that each parent of the tree has a negative target, before a fit or a calibration.

    Args:
        labelled: Annotated images with the labels of the recognizer.
        label_tree: Tree of the labels, or None.

    Raises:
        InputError: If all known targets of a parent are positive. A dataset that annotates only
            the children contains no image without the parent.
    """
    if label_tree is None:
        return
    parents = dict.fromkeys(label_tree.parents.values())
    names = list(labelled.names)
    is_negative = labelled.known & (labelled.targets < 1)
    missing = [name for name in parents if not is_negative[:, names.index(name)].any()]
    if missing:
        others = f" and {format_count(len(missing) - 1, 'other label')}" if missing[1:] else ""
        raise InputError(
            "The annotations must contain both targets of each parent of the label tree, because "
            "annotated children do not show in which images a parent is absent; got no negative "
            f"target of {missing[0]!r}{others}. Add a column with 1 and 0 for each parent, or "
            "remove these parents from the tree."
        )
