"""Convert a model argument (saved folder, exported file or name of an encoder) to a Recognizer."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from surelabel.config import Run, load_run, method_settings_of_run
from surelabel.encoders import Encoder, load_encoder
from surelabel.encoders.image_only.exported_model import exported_model
from surelabel.errors import ConfigError, DataError, InputError, UnknownName
from surelabel.files import restore_folder
from surelabel.methods import METHODS, LearnsFromImages
from surelabel.recognizer.label_free_methods import (
    best_label_free_recognizer,
    check_max_passes,
)
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer_folder_checks import exported_file_of_model

PATH_PREFIXES = ("local-dir", "onnx")  # of encoder names that contain a path
FIT_ARGUMENTS = {
    "labels": "DATASET",
    "images": "IMAGES",
    "texts": "CAPTIONS --labels LABELS",
    "pairs": "CAPTIONS",
}


def resolve_model(
    model: str,
    names: Sequence[str] | None = None,
    *,
    default_names: Sequence[str] | None = None,
    template: str | None = None,
    settings: Sequence[str] = (),
    max_passes: int | None = None,
    n_images: int = 0,
    device: str = "cpu",
) -> Recognizer:
    """Load a recognizer, or combine an encoder with a method that needs no annotations.

    Args:
        model: Folder of a saved recognizer, path of a file that ``surelabel export`` wrote
            (``.onnx`` or ``.xml``), or name of an encoder.
        names: Labels. If None, a saved or exported recognizer keeps its labels, and an encoder uses
            ``default_names``.
        default_names: Labels for an encoder if ``names`` is None.
        template: Prompt template for an encoder: ``one``, ``ensemble``, or a sentence in which
            ``{}`` is replaced by the label.
        settings: Settings of the run for an encoder, such as ``method.name=tiles`` and
            ``method.domain=centred``. If no method is given, ``max_passes`` selects the method;
            without ``max_passes``, the method is ``zero_shot``. An exported file accepts only
            settings of the calibrator.
        max_passes: Maximum number of encoder passes of an image, >= 1, for an encoder without a
            method. The method is the label-free method with the highest measured mAP within this
            number. If None, no method is selected.
        n_images: Number of images that the recognizer will score. With ten or more, methods that
            are fitted on these images without labels are considered too.
        device: PyTorch device of the encoder.

    Returns:
        Loaded or new recognizer. If the method has to be fitted on unlabelled images, a new
        recognizer is not fitted yet, and its attribute ``is_fitted`` is False.

    Raises:
        InputError: If ``model`` is an encoder and no labels are given, or if ``model`` is a saved
            or exported recognizer and a template, settings or ``max_passes`` are given. Also if
            ``max_passes`` is below 1, or is given with a method.
        ConfigError: If the method has to be trained first, or supports only the saved labels. Also
            if the file was not written by ``surelabel export``, or is a ``.pt2`` file.
        UnknownName: If ``model`` is neither a folder nor an encoder.
        DataError: If the saved or exported recognizer is missing, incomplete or damaged.
        MissingPart: If the runtime of an exported file is not installed.
    """
    restore_folder(model)
    file = None if Path(model).is_dir() else exported_file_of_model(model)
    if file is not None:
        calibrator = [s for s in settings if s.startswith("calibrator.")]
        others = [s for s in settings if s not in calibrator]
        _check_no_method_arguments(f"exported file {model}", template, others, max_passes)
        return _resolve_exported_file(file, names, calibrator, device)
    if not Path(model).is_dir():
        labels = names or default_names
        if not labels:
            raise InputError(
                f"{model} requires labels; got none. Give labels with --labels: as text "
                '("dog, bicycle"), as a file with one label per line, or - for standard input.'
            )
        if max_passes is not None:
            check_max_passes(max_passes)
            _check_no_method_with_max_passes(settings)
        return _resolve_encoder_to_recognizer(
            model, labels, template, settings, max_passes, n_images, device
        )
    _check_no_method_arguments(f"saved recognizer {model}", template, settings, max_passes)
    saved = Recognizer.load(model, device=device)
    if names is None or list(names) == saved.names_with_aliases:
        return saved
    return saved.with_names(names)


def absolute_model_name(model: str) -> str:
    """Return a model argument in which the path of a folder or file is absolute.

    Args:
        model: Folder of a saved recognizer, exported file, or name of an encoder.

    Example:
        >>> absolute_model_name("tiny-vit")
        'tiny-vit'
    """
    if Path(model).is_dir():
        return os.path.abspath(model)
    if exported_file_of_model(model):
        return os.path.abspath(os.path.expanduser(model))
    prefix, colon, path = model.partition(":")
    is_folder_of_transformers = prefix == "transformers" and Path(path).expanduser().is_dir()
    if colon and (prefix in PATH_PREFIXES or is_folder_of_transformers):
        return f"{prefix}:{os.path.abspath(os.path.expanduser(path))}"
    architecture, slash, path = model.partition("/")
    if slash and Path(path).is_file():
        return f"{architecture}/{os.path.abspath(path)}"
    return model


def _check_no_method_arguments(
    what: str, template: str | None, settings: Sequence[str], max_passes: int | None
) -> None:
    """Check that no argument that selects a method is given for a recognizer.

    Args:
        what: Recognizer, for the error message.
        template: Prompt template.
        settings: Settings of the run.
        max_passes: Maximum number of encoder passes.

    Raises:
        InputError: If an argument is given.
    """
    if template is not None or settings:
        part, option = ("template", "--template") if template else ("method", "--method and --set")
        raise InputError(
            f"{option} requires an encoder as the model; got the {what}, whose "
            f"{part} cannot be changed. Remove {option}, or give an encoder."
        )
    if max_passes is not None:
        raise InputError(
            f"max_passes selects a method for an encoder; got the {what}, whose "
            "method cannot be changed. Remove max_passes, or give an encoder."
        )


def _resolve_exported_file(
    file: Path, names: Sequence[str] | None, settings: Sequence[str], device: str
) -> Recognizer:
    """Return the recognizer of an exported file.

    Its scores are the outputs of the graph. If the outputs are log-odds, its probabilities are
    their sigmoid, and ``calibrated_on`` is the stored description.

    Args:
        file: Path of the file.
        names: Labels, a part of the labels of the file in any order. If None, all labels are used.
        settings: Settings of the calibrator.
        device: PyTorch device.

    Raises:
        DataError: If the labels of the file are invalid.
        ConfigError: If the file does not have a label.
    """
    encoder = exported_model(file, device)
    choices = [f"encoder.name={json.dumps(str(file))}", "method.name=zero_shot"]
    run = load_run(overrides=[*settings, *choices, "method.domain=cosine"])
    labels = encoder.metadata.names_with_aliases
    try:
        recognizer = Recognizer(run, labels, encoder=encoder)
    except InputError as error:
        raise DataError(f"The labels of {file} are not valid. {error}") from error
    if names is None or list(names) == recognizer.names_with_aliases:
        return recognizer
    return recognizer.with_names(names)


def _check_no_method_with_max_passes(settings: Sequence[str]) -> None:
    """Check that settings contain no section of a method, because ``max_passes`` selects it.

    Raises:
        InputError: If the settings contain the name or another setting of a method.
    """
    for key, value in method_settings_of_run(overrides=settings).items():
        raise InputError(
            f"max_passes selects a method with its default settings; got method.{key}={value}. "
            "Remove max_passes, or remove the settings of the method."
        )


def _resolve_encoder_to_recognizer(
    model: str,
    names: Sequence[str],
    template: str | None,
    settings: Sequence[str],
    max_passes: int | None,
    n_images: int,
    device: str,
) -> Recognizer:
    """Return a recognizer of an encoder with the given method, or with the best method."""
    run = _resolve_model_to_encoder_run(model, template, settings)
    if max_passes in (None, 1):  # all methods but zero_shot need two encoder passes or more
        return _resolve_model_to_recognizer(run, names, device)
    encoder = _load_encoder_of_model(run, device)

    def make_recognizer(overrides: list[str]) -> Recognizer:
        method_run = _resolve_model_to_encoder_run(model, template, [*settings, *overrides])
        return Recognizer(method_run, names, encoder=encoder)

    return best_label_free_recognizer(
        model, make_recognizer, max_passes=max_passes, n_images=n_images
    )


def _resolve_model_to_encoder_run(model: str, template: str | None, settings: Sequence[str]) -> Run:
    """Return the run of an encoder and a method that needs no training.

    Raises:
        ConfigError: If the method has to be trained, or if a setting names another encoder.
    """
    if any(setting.startswith("encoder.name=") for setting in settings):
        raise ConfigError(
            f"The encoder must be given only with --model; got --model {model} and the setting "
            "encoder.name. Remove the setting."
        )
    templates = [] if template in (None, "one") else [f"method.templates={json.dumps(template)}"]
    overrides = [
        "method.name=zero_shot",
        *settings,
        *templates,
        f"encoder.name={json.dumps(model)}",
    ]
    run = load_run(overrides=overrides)
    entry = METHODS[run.method.name]
    if entry.learns_from != "nothing" and not issubclass(entry, LearnsFromImages):
        data = FIT_ARGUMENTS[entry.learns_from]
        raise ConfigError(
            f"{run.method.name} requires training on {entry.learns_from}; got the encoder "
            f"{model}. Run `surelabel fit {data} --method {run.method.name} --out FOLDER` and "
            "give FOLDER as the model."
        )
    return run


def _resolve_model_to_recognizer(run: Run, names: Sequence[str], device: str) -> Recognizer:
    """Return the recognizer of a run.

    Raises:
        UnknownName: If the encoder is unknown.
    """
    return Recognizer(run, names, encoder=_load_encoder_of_model(run, device))


def _load_encoder_of_model(run: Run, device: str) -> Encoder:
    """Return the encoder of a run.

    If the encoder is unknown, the error also mentions folders of saved recognizers.

    Raises:
        UnknownName: If the encoder is unknown.
    """
    model = run.encoder.name
    try:
        return load_encoder(model, device=device, **run.encoder.settings)
    except UnknownName as error:
        raise UnknownName(f"There is no folder {model}, and {error}") from error
