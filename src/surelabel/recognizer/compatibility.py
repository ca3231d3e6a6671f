"""Check the compatibility of method, encoder, loss and data, before any image is read."""

from surelabel.config import Choice, Run
from surelabel.counts import format_count
from surelabel.encoders import Encoder
from surelabel.encoders.image_only.exported_model import ExportedModel
from surelabel.errors import ConfigError, InputError
from surelabel.links import Sigmoid
from surelabel.methods import FitsTargets, Method, method_is_student
from surelabel.recognizer.calibrating import check_recognizer_calibrator
from surelabel.recognizer.feature_extraction import feature_extraction_kinds_of_method
from surelabel.recognizer.fitting import make_link_for_fitting, make_objective_for_fitting
from surelabel.recognizer.regularizer_inputs import check_regularizer_image_count
from surelabel.recognizer.user_warnings import warn_of_plain_patches
from surelabel.records import Images, LabelledFeatures, LabelledImages, LabelledTexts

FEATURE_DESCRIPTIONS = {
    "patches": "patch features",
    "self_aware": "self-aware patch features",
    "attentive": "patch features with attention",
    "multi_layer": "patch features of several layers",
    "trunk": "trunk tokens",
    "ladder": "features of the last ViT blocks",
}


def check_encoder_method_compatibility(run: Run, method: Method, encoder: Encoder) -> None:
    """Check that the encoder can compute the features that the method needs.

    If the method needs self-aware patches, and the encoder has only plain patches, emit a warning.

    Raises:
        ConfigError: If the encoder cannot compute the required features, accepts no images for the
            required views, or does not support the image size of the method.
    """
    for kind in (
        full_kind.partition("/")[0] for full_kind in feature_extraction_kinds_of_method(method)
    ):
        if kind != "images" and not encoder.supports(kind):
            raise ConfigError(
                f"{run.method.name} requires {FEATURE_DESCRIPTIONS[kind]}; {encoder.name} does "
                "not compute such features. Use another encoder, such as ViT-B-16/openai."
            )
    if "views" in method.needs and not encoder.preprocess_cfg:
        raise ConfigError(
            f"{run.method.name} encodes views of images; {encoder.name} accepts no images. "
            "Use an image encoder, such as tiny-vit."
        )
    if method.image_size:
        encoder.with_image_size(method.image_size)  # raises if the size is not supported
    needs_self_aware = not {"self_aware", "attention"}.isdisjoint(method.needs)
    is_quantized = encoder.engine.dtype == "int8"  # the original encoder was checked before
    if needs_self_aware and not is_quantized and "self_aware" not in encoder.patch_kinds:
        warn_of_plain_patches(run.method.name, encoder)


def check_encoder_is_not_quantized(encoder: Encoder, use: str) -> None:
    """Check that an encoder was not quantized to int8.

    Args:
        encoder: Encoder of a recognizer.
        use: Participle of the use that requires the original weights, such as ``fitted``.

    Raises:
        ConfigError: If the encoder was quantized.
    """
    if encoder.engine.dtype == "int8":
        raise ConfigError(
            f"A recognizer with the encoder {encoder.name} cannot be {use}, because its encoder "
            "was quantized to int8. Give the recognizer before the quantization."
        )


def check_fit_compatibility(
    run: Run,
    method: Method,
    encoder: Encoder,
    names: list[str],
    source: Images | LabelledImages | LabelledFeatures,
    folds: int,
) -> None:
    """Check that method, encoder, loss, calibrator and data of a fit are compatible.

    Raises:
        ConfigError: If the method has no parameters to fit, or if a setting is not compatible with
            the method or the encoder.
        InputError: If the method requires labels and ``source`` has no labels, or if there are
            fewer images than the regularizer compares. Also if the number of labels is not valid
            for the loss or the regularizer.
    """
    run.entry("calibrator")()  # raises an error if a setting is out of range
    if isinstance(encoder, ExportedModel):
        encoder.trainable_network()  # raises, because nothing of an exported file can be fitted
    if method.learns_from == "nothing":
        raise ConfigError(
            f"{run.method.name} has no parameters to fit. Use method.name=clip_adapter or "
            "linear, or calibrate the recognizer instead."
        )
    if method.learns_from == "images":
        _check_unlabelled_fit_compatibility(run, method, source, folds)
        return
    if isinstance(source, Images):
        raise InputError(
            f"{run.method.name} requires labels; got {format_count(len(source), 'image')} without "
            "labels. Give LabelledImages, or use method.name=tailor, which needs only images."
        )
    if folds and folds < 2:
        raise ConfigError(f"folds must be 0 (no cross-validation) or at least 2; got {folds}.")
    if "pixels" in method.needs:
        _check_encoder_training_compatibility(run.method.name, encoder, source, folds)
    if isinstance(method, FitsTargets):
        _check_fit_at_once_compatibility(run)
    objective = make_objective_for_fitting(run, encoder, names, method)
    if run.regularizer:
        regularizer = run.entry("regularizer")
        check_regularizer_image_count(run.regularizer.name, regularizer, len(source))
    if folds:
        check_recognizer_calibrator(run, None if objective.link else run.loss.name)


def check_text_fit_compatibility(
    run: Run, method: Method, encoder: Encoder, names: list[str], source: object, folds: int
) -> None:
    """Check that method, data and settings are compatible in a fit on texts.

    Raises:
        ConfigError: If the method is not fitted on texts, if ``source`` is not ``LabelledTexts``,
            or if there is only one label. Also if a setting is not compatible with the method or
            the encoder.
    """
    run.entry("calibrator")()  # raises an error if a setting is out of range
    name = run.method.name
    if method.learns_from != "texts":
        raise ConfigError(
            f"{name} is not fitted on texts; got {type(source).__name__}. Give images, or use "
            "method.name=tai."
        )
    if not isinstance(source, LabelledTexts):
        raise ConfigError(
            f"{name} is fitted on texts with labels; got {type(source).__name__}. Give "
            "LabelledTexts, for example from data.label_captions, or use method.name=coop for "
            "annotated images."
        )
    if len(names) < 2:
        raise ConfigError(
            f"{name} requires at least 2 labels, because the texts of one label are negatives of "
            f"the other labels; got {', '.join(names)}. Add labels."
        )
    if folds:
        raise ConfigError(
            f"folds requires annotated images; {name} is fitted on texts. Remove folds, and "
            "calibrate the fitted recognizer on annotated images."
        )
    make_objective_for_fitting(run, encoder, names, method)


def _check_unlabelled_fit_compatibility(
    run: Run, method: Method, source: Images | LabelledImages | LabelledFeatures, folds: int
) -> None:
    """Check that settings and data are compatible with a method fitted without labels.

    Raises:
        ConfigError: If ``folds``, the regularizer, the loss or ``source`` is not compatible with
            the method.
    """
    name = run.method.name
    if folds:
        raise ConfigError(
            f"folds requires labels; {name} is fitted without labels. Remove folds, and calibrate "
            "the fitted recognizer."
        )
    if run.regularizer:
        raise ConfigError(
            f"regularizer.name={run.regularizer.name} requires labels; {name} is fitted without "
            "labels. Remove the regularizer."
        )
    student = method_is_student(type(method))
    if student and not isinstance(make_link_for_fitting(run), Sigmoid):
        raise ConfigError(
            f"{name} requires a loss whose scores are log-odds; got loss.name={run.loss.name}. Use "
            "loss.name=binary."
        )
    if not student and run.loss != Choice("binary"):
        raise ConfigError(
            f"{name} is not trained with a loss; got loss.name={run.loss.name}. Remove loss.name."
        )
    if isinstance(source, LabelledFeatures) and (student or method.needs):
        raise ConfigError(
            f"{name} requires image files; got precomputed features. Give image files, or use "
            "method.name=standardized."
        )


def _check_fit_at_once_compatibility(run: Run) -> None:
    """Check that a method that is fitted without gradients has no settings of training.

    Raises:
        ConfigError: If the loss is not ``binary``, or if there is a regularizer.
    """
    name = run.method.name
    if run.loss != Choice("binary"):
        raise ConfigError(
            f"{name} is not trained with a loss; got loss.name={run.loss.name}. Remove loss.name."
        )
    if run.regularizer:
        raise ConfigError(
            f"{name} is not trained with a regularizer; got "
            f"regularizer.name={run.regularizer.name}. Remove the regularizer."
        )


def _check_encoder_training_compatibility(
    name: str,
    encoder: Encoder,
    source: Images | LabelledImages | LabelledFeatures,
    folds: int,
) -> None:
    """Check that data, folds and encoder are compatible with training of the encoder.

    Raises:
        ConfigError: If the data are not images, if ``folds`` is not 0, or if the encoder cannot be
            trained.
    """
    if isinstance(source, LabelledFeatures):
        raise ConfigError(
            f"{name} is trained on image files; got precomputed features. Give image files, or use "
            "method.name=linear."
        )
    if folds:
        raise ConfigError(
            f"folds must be 0 for {name}, because each fold would train the encoder again; got "
            f"{folds}. Remove folds, and calibrate the fitted recognizer on other annotated images."
        )
    encoder.trainable_network()  # raises if the encoder cannot be trained
