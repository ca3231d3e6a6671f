"""Define ``surelabel export``, which writes a recognizer to a file that other programs run."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.input_options import (
    labels_input_option,
    method_input_options,
    parse_labels_input_option,
    run_overrides_from_input_options,
)
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.operating_point_options import (
    OperatingPointRange,
    operating_point_options,
    parse_operating_point_options,
    thresholds_of_operating_point_options,
)
from surelabel.cli.output_paths import validate_terminal_model_path, validate_terminal_output_path
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.arrays import Array
    from surelabel.export import ExportReport, TextTowerReport
    from surelabel.recognizer import Recognizer


@click.command()
@click.argument("recognizer", callback=validate_terminal_model_path)
@click.argument("out", callback=validate_terminal_output_path, metavar="OUT.{onnx,xml,pt2}")
@labels_input_option
@method_input_options
@click.option(
    "--template",
    metavar="TEXT",
    help='Prompt templates: "one", "ensemble", or a text with {} such as "a drawing of a {}".',
)
@click.option(
    "--threshold",
    type=OperatingPointRange(0, 1),
    help="Minimum probability of a label, which is written to the metadata. [0.5]",
)
@operating_point_options
@click.option(
    "--preprocessing-in-graph",
    is_flag=True,
    help="Write a graph whose input is images, uint8 (n h w 3), which are resized and normalized "
    "in the graph. Without this option, the input is preprocessed images.",
)
@click.option(
    "--text-tower",
    callback=validate_terminal_output_path,
    metavar="FILE.onnx",
    help="Also write the text tower: token ids in, unit vectors out. The folder FILE.tokenizer "
    "contains the tokenizer.",
)
@click.option(
    "--images",
    multiple=True,
    callback=validate_terminal_input_paths,
    metavar="FOLDER|FILE",
    help="Images for the check of the file, at most 1,024. The option can be repeated. "
    "[32 images of scenes-80]",
)
@click.option("--overwrite", is_flag=True, help="Replace existing files.")
@with_terminal_options
def export(
    terminal: Terminal,
    recognizer: str,
    out: str,
    names: str | None,
    method: str | None,
    settings: tuple[str, ...],
    template: str | None,
    threshold: float | None,
    preprocessing_in_graph: bool,
    text_tower: str | None,
    images: tuple[str, ...],
    overwrite: bool,
    **points: Any,
) -> None:
    """Write a recognizer to a file that other programs run.

    RECOGNIZER is the folder of a saved recognizer, or an encoder with --labels. The suffix of OUT
    sets the format: .onnx for ONNX, .xml for OpenVINO (with a second file, .bin), or .pt2 for
    PyTorch. The input of the graph is images, and the output is logits, which a sigmoid converts to
    probabilities. If the recognizer is not calibrated, the output is scores, which only rank the
    labels of an image. The metadata in the file contain the labels, thresholds and preprocessing.

    After writing, the file is run on images and compared with PyTorch. A file whose logits differ
    by more than 1e-4 is not kept.
    """
    point = parse_operating_point_options(threshold, points)
    labels = parse_labels_input_option(names)
    terminal.print_import_status()

    from surelabel.export import EXPORT_FORMATS, export_recognizer, export_text_tower
    from surelabel.export.file_writing import check_export_paths, export_format_of_file
    from surelabel.export.text_tower import check_text_tower_export
    from surelabel.recognizer import resolve_model

    _, export_format = export_format_of_file(Path(out), EXPORT_FORMATS)
    check_export_paths(Path(out), export_format, overwrite=overwrite)
    if text_tower:
        check_text_tower_is_another_file(out, text_tower)
    paths = find_images_of_export(images)
    model = resolve_model(
        recognizer,
        labels,
        template=template,
        settings=run_overrides_from_input_options(settings, method__name=method),
        device=terminal.device,
    )
    check_exported_recognizer_is_fitted(model)
    if text_tower:
        check_text_tower_export(model.encoder, Path(text_tower), overwrite=overwrite)
    thresholds: float | Array | None = threshold
    if point is not None:
        thresholds = thresholds_of_operating_point_options(terminal, model, point)
    with terminal.progress("Checking") as progress:
        report = export_recognizer(
            model,
            out,
            thresholds=thresholds,
            preprocessing_in_graph=preprocessing_in_graph,
            overwrite=overwrite,
            images=paths,
            progress=progress,
        )
    tower = None
    if text_tower:
        tower = export_text_tower(model.encoder, text_tower, model.names, overwrite=overwrite)
    print_export_report(terminal, report, tower)


def check_text_tower_is_another_file(out: str, text_tower: str) -> None:
    """Check that the text tower is not written to the file of the recognizer.

    Raises:
        UsageError: If both files are the same.
    """
    if Path(out).absolute() == Path(text_tower).absolute():
        raise click.UsageError(
            f"--text-tower must be another file than the recognizer; got {text_tower} for both. "
            "Give another path."
        )


def find_images_of_export(sources: tuple[str, ...]) -> list[str] | None:
    """Return the paths of the images of the check, or None for the default images.

    Raises:
        DataError: If a source contains no images.
    """
    from surelabel.data import find_images

    return find_images(sources) if sources else None


def check_exported_recognizer_is_fitted(recognizer: "Recognizer") -> None:
    """Check that the method of an encoder needs no fit.

    Raises:
        NotFitted: If the method has to be fitted first.
    """
    from surelabel.errors import NotFitted

    if not recognizer.is_fitted:
        name = recognizer.run.method.name
        raise NotFitted(
            f"{name} must be fitted before it is exported. Run `surelabel fit IMAGES --method "
            f"{name} --labels LABELS --out FOLDER`, and export FOLDER."
        )


def print_export_report(
    terminal: Terminal, report: "ExportReport", tower: "TextTowerReport | None"
) -> None:
    """Print what was written, the result of the check, and how to run the file.

    Args:
        terminal: Object that prints results, status lines and progress.
        report: Result of the export of the recognizer.
        tower: Result of the export of the text tower, or None.
    """
    metadata = report.metadata
    value = {
        "files": list(report.paths),
        "bytes": report.n_bytes,
        "check": report.check.as_json(),
        "max_prediction_difference": report.max_prediction_difference,
        "metadata": metadata.as_json_object(),
        "text_tower": tower
        and {
            "file": tower.path,
            "tokenizer": tower.tokenizer_folder,
            "bytes": tower.n_bytes,
            "inputs": list(tower.input_names),
            "check": tower.check.as_json(),
        },
    }
    terminal.print_result(value, "\n".join(_lines_of_export_report(report, tower)))


def _lines_of_export_report(report: "ExportReport", tower: "TextTowerReport | None") -> list[str]:
    metadata, check = report.metadata, report.check
    axes = ", ".join("any size" if size < 0 else str(size) for size in metadata.input_shape)
    dtype = "uint8" if metadata.preprocessing_in_graph else "float32"
    is_logits = metadata.output == "logits"
    largest = ", ".join(f"{name} {value:.1g}" for name, value in check.max_differences.items())
    unit = "probability" if is_logits else "scores"
    lines = [
        f"Wrote {' and '.join(report.paths)} ({report.n_bytes / 1e6:,.1f} MB).",
        f"Input: {metadata.input_name}, {dtype} (n, {axes}). Output: {metadata.output_name}, "
        f"float32 (n, {len(metadata.names)}).",
        f"Checked on {format_count(check.n_items, 'image')}, one by one and in batches of "
        f"{check.max_batch}. Largest difference of {metadata.output} to PyTorch: {largest}.",
        f"Largest difference to surelabel tag, which rounds image features to float16: "
        f"{report.max_prediction_difference:.1g} in {unit}.",
    ]
    if is_logits:
        lines.append(f"Calibration: {metadata.calibrated_on}.")
    else:
        lines.append(
            "The recognizer is not calibrated, so the output is scores, which only rank the labels "
            "of an image. To export logits, calibrate first (`surelabel calibrate`)."
        )
    if metadata.preprocessing_difference is not None:
        difference = metadata.preprocessing_difference
        lines.append(
            f"Preprocessing in the graph differs from Pillow by at most {difference['levels']:.1f} "
            f"of 255 levels of a pixel and {difference[unit]:.1g} in {unit} on these images."
        )
    lines += [f"Difference: {sentence}" for sentence in metadata.differences]
    lines.append(f"License of the encoder: {metadata.license['text']}.")
    if tower:
        lines.append(
            f"Wrote the text tower to {tower.path} ({tower.n_bytes / 1e6:,.1f} MB) and its "
            f"tokenizer to {tower.tokenizer_folder}. Checked on "
            f"{format_count(tower.check.n_items, 'prompt')}."
        )
    lines.append(_how_to_run(report.paths[0]))
    return lines


def _how_to_run(path: str) -> str:
    commands = {
        ".onnx": f"onnxruntime.InferenceSession({path!r})",
        ".xml": f"openvino.compile_model({path!r})",
        ".pt2": f"torch.export.load({path!r}).module()",
    }
    return f"To run the file in Python: {commands[Path(path).suffix.lower()]}. See docs/export.md."
