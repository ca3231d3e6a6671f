"""Export a recognizer to a file, and check the file on images."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn

from surelabel.arrays import Array
from surelabel.data import collection
from surelabel.encoders.engines.conversion import exported_program
from surelabel.errors import InputError
from surelabel.export import onnx_file, openvino_files, pt2_file
from surelabel.export.check_images import ExportViews, image_as_array, views_of_recognizer
from surelabel.export.file_writing import (
    check_export_packages,
    check_export_paths,
    check_export_size,
    export_format_of_file,
    write_checked_export,
)
from surelabel.export.graph_preprocessing import GraphPreprocessor
from surelabel.export.interface import ExportFormat, GraphProgram, GraphRuntime
from surelabel.export.metadata import describe_export
from surelabel.export.recognizer_graph import RecognizerGraph
from surelabel.export.verification import (
    BATCH_SIZES,
    PARITY_LIMIT,
    CheckBatch,
    ExportCheck,
    check_runtimes,
)
from surelabel.progress import Progress, report_progress
from surelabel.recognizer import Recognizer
from surelabel.records.export_metadata import METADATA_KEY, ExportMetadata

EXPORT_FORMATS: dict[str, ExportFormat] = {  # by the suffix of the file
    ".onnx": onnx_file,
    ".xml": openvino_files,
    ".pt2": pt2_file,
}
N_CHECK_IMAGES = 32  # images of the bundled collection, without other images
MAX_CHECK_IMAGES = 1024
# Runtimes round a few pixels of a resized image to another level, which changes the logits.
RESIZING_LIMIT = 0.05  # difference of logits after resizing in the graph
EXAMPLE_SIZES = (48, 80)  # height and width of the example image, when the size is dynamic


@dataclass(frozen=True)
class ExportReport:
    """Result of an export.

    Attributes:
        paths: Paths of the written files.
        n_bytes: Size of the files in bytes.
        metadata: Metadata in the file.
        check: Result of the check by the runtimes of the format.
        max_prediction_difference: Largest difference between the output of the graph and the
            prediction of the recognizer on the images of the check, in probability, or in scores if
            the output contains scores. The recognizer rounds image features to float16.
    """

    paths: tuple[str, ...]
    n_bytes: int
    metadata: ExportMetadata
    check: ExportCheck
    max_prediction_difference: float


class _PreprocessedGraph(nn.Module):
    """Compute the output of a recognizer from images, uint8 ``(n, h, w, 3)``."""

    def __init__(self, preprocess: GraphPreprocessor, graph: RecognizerGraph):
        super().__init__()
        self.preprocess, self.recognizer_graph = preprocess, graph
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        """Return logits or scores, ``(n, c)``."""
        outputs: Tensor = self.recognizer_graph(self.preprocess(images))
        return outputs


def export_recognizer(
    recognizer: Recognizer,
    path: str | Path,
    *,
    thresholds: float | Array | None = None,
    preprocessing_in_graph: bool = False,
    overwrite: bool = False,
    images: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Write a recognizer to a file that other programs run, and check the file on images.

    The file contains the image encoder, the method with the texts of the labels, the link and the
    calibration. Its output is the logits, or the scores of a recognizer that is not calibrated.

    Args:
        recognizer: Fitted recognizer of c labels.
        path: Path of the file. Its suffix is an entry of ``EXPORT_FORMATS``: ``.onnx``, ``.xml``
            (with a second file, ``.bin``) or ``.pt2``.
        thresholds: Minimum probability of a label, as one number or as an array ``(c,)``. It is
            written to the metadata. If None, the threshold of each label is 0.5.
        preprocessing_in_graph: Whether the input of the graph is images, uint8 ``(n, h, w, 3)``,
            instead of preprocessed images.
        overwrite: Whether an existing file is replaced.
        images: Paths of 1 to 1,024 images for the check. If None, 32 images of the bundled
            collection ``scenes-80`` are used.
        progress: Function called with the number of checked images and the total number of images.

    Raises:
        NotFitted: If the method has to be fitted first, or if there are thresholds and the
            recognizer is not calibrated.
        ConfigError: If the recognizer cannot be exported, or is too large for the format.
        InputError: If the suffix, the thresholds or the number of images is invalid.
        MissingPart: If a package of the format is not installed.
        DataError: If the file exists or cannot be written, if an image cannot be read, or if the
            output of a runtime differs by more than 1e-4 in logits from PyTorch.
    """
    file = Path(path)
    suffix, export_format = export_format_of_file(file, EXPORT_FORMATS)
    recognizer.check_fitted()
    check_export_paths(file, export_format, overwrite=overwrite)
    check_export_packages(suffix, export_format)
    graph = RecognizerGraph(recognizer)
    views = views_of_recognizer(recognizer, graph)
    describe_export(recognizer, graph, views, thresholds=thresholds)  # checks the thresholds
    names = _check_image_paths(images)
    pixels = [views.pixels(name) for name in names]
    expected = _outputs_of_pixels(graph, pixels)
    if preprocessing_in_graph:
        module: nn.Module = _PreprocessedGraph(
            GraphPreprocessor(views.preprocess, views.layouts), graph
        )
        difference = _preprocessing_difference(graph, views, names)
        batches = _image_batches(views, names)
        example = torch.zeros(2, *EXAMPLE_SIZES, 3, dtype=torch.uint8)
    else:
        module, difference = graph, None
        batches = _pixel_batches(pixels, names)
        example = torch.stack([pixels[0], pixels[-1]])
    metadata = describe_export(
        recognizer,
        graph,
        views,
        thresholds=thresholds,
        preprocessing_in_graph=preprocessing_in_graph,
        preprocessing_difference=difference,
    )
    dynamic_axes = (0, 1, 2) if preprocessing_in_graph else (0,)
    program = GraphProgram(
        exported_program(module, (example,), dynamic_axes=dynamic_axes),
        (metadata.input_name,),
        metadata.output_name,
    )
    check_export_size(program.n_bytes, suffix, export_format)
    n_done, n_inputs = 0, len(names) * len(BATCH_SIZES)

    def report_batch(n_images: int) -> None:
        nonlocal n_done
        n_done += n_images
        report_progress(progress, n_done, n_inputs, "images")

    def check(runtimes: Mapping[str, GraphRuntime]) -> ExportCheck:
        return check_runtimes(
            module,
            runtimes,
            batches,
            source=str(file),
            output=metadata.output,
            report_batch=report_batch,
        )

    result = write_checked_export(
        program, file, export_format, {METADATA_KEY: metadata.as_json()}, check
    )
    paths = export_format.paths(file)
    return ExportReport(
        tuple(map(str, paths)),
        sum(path.stat().st_size for path in paths),
        metadata,
        result,
        _prediction_difference(recognizer, names, expected, metadata.output),
    )


def _check_image_paths(images: Sequence[str] | None) -> list[str]:
    """Return the paths of the images of the check.

    Raises:
        InputError: If there are no images, or too many.
    """
    if images is None:
        return list(collection("scenes-80", split="test").paths[:N_CHECK_IMAGES])
    if not 1 <= len(images) <= MAX_CHECK_IMAGES:
        raise InputError(
            f"images must contain 1 to {MAX_CHECK_IMAGES:,} images for the check; got "
            f"{len(images):,}."
        )
    return [str(image) for image in images]


@torch.no_grad()
def _outputs_of_pixels(graph: nn.Module, pixels: Sequence[Tensor]) -> Array:
    """Return the outputs ``(n, c)`` of a module for the preprocessed pixels of n images."""
    outputs = [graph(image[None]).numpy(force=True) for image in pixels]
    return np.concatenate(outputs).astype(np.float64)


def _pixel_batches(pixels: Sequence[Tensor], names: Sequence[str]) -> Iterator[CheckBatch]:
    """Yield preprocessed images one by one, and then in batches."""
    for size in BATCH_SIZES:
        for start in range(0, len(pixels), size):
            rows = slice(start, start + size)
            yield CheckBatch((torch.stack([*pixels[rows]]),), names[rows])


def _image_batches(views: ExportViews, names: Sequence[str]) -> Iterator[CheckBatch]:
    """Yield images one by one at their sizes, and then in batches of images of the input size.

    If an image has the input size, resizing does not change it, so that no pixel is rounded. Tiles
    are always resized.
    """
    for name in names:
        image = image_as_array(views.open_image(name))
        yield CheckBatch((image[None],), [name], RESIZING_LIMIT)
    limit = RESIZING_LIMIT if views.layouts else PARITY_LIMIT
    for start in range(0, len(names), BATCH_SIZES[-1]):
        rows = names[start : start + BATCH_SIZES[-1]]
        resized = [views.preprocess.resize(views.open_image(name)) for name in rows]
        yield CheckBatch((torch.from_numpy(np.stack(resized)),), rows, limit)


def _preprocessing_difference(
    graph: RecognizerGraph, views: ExportViews, names: Sequence[str]
) -> dict[str, float]:
    """Return the largest differences between preprocessing in the graph and by Pillow."""
    preprocess = GraphPreprocessor(views.preprocess, views.layouts)
    std = preprocess.std * 255
    levels = output = 0.0
    for name in names:
        image = views.open_image(name)
        pixels = views.pixels_of_image(image)[None]
        with torch.no_grad():
            computed = preprocess(image_as_array(image)[None])
            outputs = [graph(each).numpy(force=True) for each in (pixels, computed)]
        levels = max(levels, float(((computed - pixels).abs() * std).max()))
        output = max(output, _largest_difference(outputs[0], outputs[1], graph.output_name))
    kind = "probability" if graph.output_name == "logits" else "scores"
    return {"images": len(names), "levels": round(levels, 3), kind: output}


def _prediction_difference(
    recognizer: Recognizer, names: Sequence[str], expected: Array, output: str
) -> float:
    """Return the largest difference between the outputs of the graph and the predictions."""
    predictions = recognizer.predict(list(names), strict=True)
    predicted = predictions.scores if output == "scores" else predictions.logits
    assert predicted is not None  # the recognizer has logits
    return _largest_difference(predicted.astype(np.float64), expected, output)


def _largest_difference(first: Array, second: Array, output: str) -> float:
    """Return the largest difference of probabilities, or of scores."""
    if output == "logits":
        first, second = expit(first), expit(second)
    return float(np.abs(first - second).max())
