"""Check the options of ``tag`` that select labels and outputs, before an image is read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.gallery import check_open_gallery_option
from surelabel.cli.operating_point_options import (
    GUARANTEES,
    POINTS,
    parse_operating_point_options,
    thresholds_of_operating_point_options,
)
from surelabel.cli.score_inputs import is_score_input
from surelabel.cli.shard_options import check_shard_options
from surelabel.cli.terminal import Terminal
from surelabel.counts import format_count
from surelabel.errors import ConfigError, NotFitted
from surelabel.storage.image_paths import is_object_url

if TYPE_CHECKING:
    from surelabel.arrays import Array
    from surelabel.data import ImageShard
    from surelabel.recognizer import Recognizer
    from surelabel.records import LabelTree

DEFAULT_THRESHOLD, DEFAULT_TOP_K = 0.5, 5  # with and without calibrated probabilities
MIN_AUTOMATIC_IMAGES = 20  # fewest images of a calibration that was not requested
CALIBRATE = (
    "To calibrate, use annotated images (`surelabel calibrate`) or, less reliably, these images "
    "without labels (--calibrate-unlabelled)."
)


@dataclass(frozen=True)
class TagOptions:
    """Values of the options of ``tag`` that select labels and outputs.

    Attributes:
        calibrate_unlabelled: Whether a model without calibration is calibrated on the images.
        threshold: Minimum probability of a label, or None.
        top_k: Maximum number of labels per image, or None.
        operating_point: Name and value of the operating point or guarantee, or None.
        uncertainty: Kind of uncertainty of each label, or None.
        out: Path of the prediction file, or None.
        format: Key of ``PRE_ANNOTATION_WRITERS`` if ``out`` is a file of an annotation tool, or
            None.
        spreadsheet_safe: Whether paths in a CSV file are safe in spreadsheet programs.
        sidecar: Format of the sidecars, or None.
        sidecar_name: Naming of the sidecars, ``stem`` or ``full``, or None for the default.
        heat_maps: Folder of heat maps, or None.
        gallery: Path of the HTML page with thumbnails, or None.
        open_gallery: Whether the page is shown in the browser.
        strict: Whether an unreadable image is an error.
        workers: Number of worker processes that decode images, or None for the default.
        shard: Shard of the images, whose predictions are written to the folder ``out``; or None.
    """

    calibrate_unlabelled: bool
    threshold: float | None
    top_k: int | None
    operating_point: tuple[str, Any] | None
    uncertainty: str | None
    out: str | None
    format: str | None
    spreadsheet_safe: bool
    sidecar: str | None
    sidecar_name: str | None
    heat_maps: str | None
    gallery: str | None
    open_gallery: bool
    strict: bool
    workers: int | None
    shard: "ImageShard | None"

    @property
    def selects_labels(self) -> bool:
        """Return whether an option selects the labels that are shown."""
        options = (self.threshold, self.top_k, self.operating_point)
        return any(option is not None for option in options)

    @property
    def shows_labels(self) -> bool:
        """Return whether labels are shown without ``--json``; ``out`` alone contains all labels."""
        outputs = (self.sidecar, self.heat_maps, self.gallery)
        return self.out is None or self.selects_labels or any(outputs)


@dataclass(frozen=True)
class TagSelection:
    """Labels of an image that are shown.

    Attributes:
        threshold: Minimum probability, as one number for all labels or as an array ``(c,)`` with
            one number for each of c labels. If None, there is no minimum.
        top_k: Maximum number of labels per image. If None, there is no limit.
        label_tree: Tree of the labels. The ancestors of a shown label are shown too. If None, the
            labels have no tree.
    """

    threshold: "float | Array | None"
    top_k: int | None
    label_tree: "LabelTree | None" = None


def parse_tag_options(values: Mapping[str, Any]) -> TagOptions:
    """Return the options of ``tag``, after all checks that need no image and no recognizer.

    Args:
        values: Values of the options in ``TagOptions`` and of the options for operating points and
            guarantees, by name.

    Raises:
        UsageError: If options exclude each other.
        InputError: If the suffix of the prediction file is unknown.
        DataError: If the file of an annotation tool exists.
    """
    from surelabel.data import check_predictions_suffix
    from surelabel.files import check_is_new_file

    points = {name: values[name] for name in (*POINTS, *GUARANTEES)}
    others = {name: value for name, value in values.items() if name not in points}
    point = parse_operating_point_options(values["threshold"], points)
    options = TagOptions(operating_point=point, **others)
    if options.shard is not None:
        check_shard_options(
            options.out,
            {
                "--format": options.format,
                "--spreadsheet-safe": options.spreadsheet_safe,
                "--sidecar": options.sidecar,
                "--heat-maps": options.heat_maps,
                "--gallery": options.gallery,
            },
        )
    elif options.format:
        if not options.out:
            raise click.UsageError("--format requires --out FILE; got no --out. Add --out FILE.")
        check_is_new_file(options.out)
    elif options.out:
        check_predictions_suffix(options.out)
    is_csv = options.format is None and (options.out or "").lower().endswith(".csv")
    if options.spreadsheet_safe and not is_csv:
        raise click.UsageError(
            f"--spreadsheet-safe requires --out FILE.csv; got {options.out or 'no file'}. Remove "
            "--spreadsheet-safe for other formats, which contain no formulas."
        )
    suffix = ".xml" if options.format == "cvat" else ".json"
    if options.format and not str(options.out).lower().endswith(suffix):
        raise click.UsageError(
            f"--format {options.format} requires --out FILE{suffix}; got {options.out}. Change the "
            "suffix."
        )
    check_open_gallery_option(options.gallery, open_gallery=options.open_gallery)
    return options


def check_images_of_tag_options(paths: "list[str]", options: TagOptions) -> None:
    """Check that the images have names for the file of an annotation tool.

    Raises:
        UsageError: If a file of CVAT is requested, and an image is in an object store.
    """
    if options.format == "cvat" and (url := next(filter(is_object_url, paths), None)):
        raise click.UsageError(
            f"--format cvat requires image files; got {url}. Download the images, or add --format "
            "label-studio or --format fiftyone."
        )


def check_recognizer_of_tag_options(recognizer: "Recognizer", options: TagOptions) -> None:
    """Check that a recognizer computes what the options of ``tag`` request.

    Raises:
        ConfigError: If heat maps are requested, and the recognizer cannot localize labels.
        InputError: If a label cannot be a keyword in a sidecar.
        NotFitted: If a file of an annotation tool is requested, and the recognizer has no
            probabilities; or if sidecars are requested, the recognizer has no probabilities, and no
            option selects labels.
    """
    from surelabel.data import check_xmp_labels
    from surelabel.recognizer import check_recognizer_can_localize

    if options.heat_maps:
        check_recognizer_can_localize(recognizer)
    has_probabilities = recognizer.calibrated_on is not None or options.calibrate_unlabelled
    if options.format and not has_probabilities:
        raise NotFitted(
            f"--format {options.format} requires probabilities; the model is not calibrated. "
            f"{CALIBRATE}"
        )
    if options.sidecar:
        check_xmp_labels(recognizer.names)
        if not has_probabilities and not options.selects_labels:
            raise NotFitted(
                f"--sidecar {options.sidecar} requires probabilities; the model is not calibrated. "
                f"Add --top-k K to write the K labels with the highest scores, or calibrate the "
                f"model. {CALIBRATE}"
            )


def calibrate_selected_method_option(
    terminal: Terminal, recognizer: "Recognizer", options: TagOptions, n_images: int
) -> TagOptions:
    """Return the options, with a calibration without labels if the method has no calibration.

    If the selected method has several encoder passes, print its name. With one encoder pass or
    fewer than 20 images, no calibration is requested.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer of an encoder, with the method that was selected for it.
        options: Options of ``tag``.
        n_images: Number of images.
    """
    from surelabel.recognizer.feature_extraction import max_encoder_passes

    passes = max_encoder_passes(recognizer.method)
    if passes == 1:
        return options
    terminal.print_status(
        f"The method {recognizer.run.method.name} uses at most {passes} encoder passes for an "
        "image. Add --max-passes 1 to encode each image once."
    )
    if recognizer.calibrated_on is not None or n_images < MIN_AUTOMATIC_IMAGES:
        return options
    return replace(options, calibrate_unlabelled=True)


def check_tag_options_of_vectors(options: TagOptions, source: str) -> None:
    """Check that no option that requires image files is given for vectors.

    Args:
        options: Options of ``tag``.
        source: Feature archive or ``scores:FILE``, for the error message.

    Raises:
        UsageError: If an option that requires image files is given.
    """
    of_images = {
        "--calibrate-unlabelled": options.calibrate_unlabelled,
        "--format": options.format,
        "--sidecar": options.sidecar,
        "--heat-maps": options.heat_maps,
        "--gallery": options.gallery,
        "--shard": options.shard,
    }
    if given := [name for name, value in of_images.items() if value]:
        inputs = source if is_score_input(source) else f"the vectors of {source}"
        raise click.UsageError(
            f"{', '.join(given)} can be given only for image files; got {inputs}. Remove "
            f"{', '.join(given)}, or give images."
        )


def check_recognizer_of_vectors(recognizer: "Recognizer", source: str) -> None:
    """Check that a recognizer predicts from vectors instead of images.

    Args:
        recognizer: Recognizer of the vectors.
        source: Feature archive, for the error message.

    Raises:
        ConfigError: If the encoder of the recognizer encodes images.
    """
    from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures

    if not isinstance(recognizer.encoder, PrecomputedFeatures):
        raise ConfigError(
            f"{source} contains vectors, which require a recognizer that was fitted on vectors; "
            f"got a model with the image encoder {recognizer.encoder.name}. Fit a recognizer on "
            "annotated vectors (`surelabel fit FILE.npz --method linear --out FOLDER`) and give "
            "--model FOLDER, or give image files."
        )


def selection_of_tag_options(
    terminal: Terminal, recognizer: "Recognizer", options: TagOptions
) -> TagSelection:
    """Return the selection of the labels that are shown, and print its properties.

    Without an option, labels with a calibrated probability of at least 0.5 are shown. An exported
    file with probabilities stores the threshold of each label in place of 0.5. If there are no
    calibrated probabilities, the five labels with the highest scores are shown.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer of the images.
        options: Options of ``tag``.

    Raises:
        NotFitted: If there is a threshold and the recognizer is not calibrated, if it is not
            calibrated on enough images for the operating point, or if a guarantee cannot be
            reached.
    """
    threshold: float | Array | None = options.threshold
    top_k = options.top_k
    is_calibrated = recognizer.calibrated_on is not None
    if threshold is not None and not is_calibrated:
        raise NotFitted(
            "--threshold requires probabilities; the model is not calibrated. Replace --threshold "
            f"by --top-k, or calibrate the model. {CALIBRATE}"
        )
    if options.operating_point:
        threshold = thresholds_of_operating_point_options(
            terminal, recognizer, options.operating_point
        )
    elif not options.selects_labels:
        threshold, top_k = None, DEFAULT_TOP_K
        if is_calibrated:
            threshold, top_k = _default_thresholds(recognizer), None
    if threshold is None and not is_calibrated and (terminal.as_json or options.shows_labels):
        labels = format_count(top_k or DEFAULT_TOP_K, "label")
        terminal.print_status(
            f"The model is not calibrated, so the scores only rank labels: the first {labels} of "
            f"each image are shown. {CALIBRATE}"
        )
    return TagSelection(threshold, top_k, recognizer.label_tree)


def _default_thresholds(recognizer: "Recognizer") -> "float | Array":
    """Return 0.5, or the stored thresholds of an exported file; equal thresholds as one number."""
    thresholds = recognizer.default_thresholds
    if thresholds is None:
        return DEFAULT_THRESHOLD
    return float(thresholds[0]) if (thresholds == thresholds[0]).all() else thresholds
