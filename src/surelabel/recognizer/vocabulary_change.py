"""Change the labels of a fitted recognizer: check the method, and adapt the calibration."""

from collections.abc import Sequence

import torch

from surelabel.calibration import LabelTexts, UsesLabelTexts
from surelabel.encoders import Encoder, prompt_templates
from surelabel.errors import ConfigError
from surelabel.methods import Method, TunesTexts
from surelabel.methods.text_scoring.text_scorer import encode_synonyms_for_text_scorer
from surelabel.recognizer.calibration_record import CalibrationRecord
from surelabel.recognizer.user_warnings import warn_dropped_calibration


def check_vocabulary_can_change(name: str, method: Method) -> None:
    """Check that a method accepts other labels without another fit.

    Args:
        name: Key of the method.
        method: Method of the recognizer.

    Raises:
        ConfigError: If the method supports only the labels that it was fitted on.
    """
    if not method.open_vocabulary:
        cause = ""
        remedy = (
            " with the new labels, or use an open-vocabulary method such as zero_shot or "
            "recover_match"
        )
        if type(method).open_vocabulary:
            cause = ", because its context is class-specific"
            remedy = " with method.class_specific=false"
        raise ConfigError(
            f"with_names requires an open-vocabulary method; {name} supports only the labels of "
            f"the fit{cause}. Fit the recognizer again{remedy}."
        )


def calibration_after_vocabulary_change(
    calibration: CalibrationRecord | None,
    name: str,
    method: Method,
    old_names: Sequence[str],
    new_names: Sequence[str],
    encoder: Encoder,
) -> CalibrationRecord | None:
    """Return the calibration for the new labels, or warn and return None if it is dropped.

    Args:
        calibration: Calibration for the old labels. If None, the recognizer is not calibrated.
        name: Key of the method.
        method: Method of the recognizer. If its scores of a label depend on the other labels, the
            calibration is only kept for the same labels, in any order.
        old_names: Labels before the change; aliases are separated by ``|``.
        new_names: Labels after the change.
        encoder: Encoder of the texts.
    """
    if calibration is None or list(old_names) == list(new_names):
        return calibration
    if set(old_names) != set(new_names) and method.scores_depend_on_other_labels:
        warn_dropped_calibration(name)
        return None
    if not isinstance(calibration.calibrator, UsesLabelTexts) or not calibration.fit_labels:
        column_of_name = {name: column for column, name in enumerate(old_names)}
        return calibration.for_new_names(columns=[column_of_name.get(name) for name in new_names])
    fit_texts = label_texts(method, encoder, calibration.fit_labels)
    return calibration.for_new_names((fit_texts, label_texts(method, encoder, new_names)))


@torch.no_grad()
def label_texts(method: Method, encoder: Encoder, names: Sequence[str]) -> LabelTexts:
    """Return the text vectors of labels, before and after the training of a method.

    If the method learns no prompts, the vectors before and after training are equal, and are those
    of the frozen text encoder.

    Args:
        method: Fitted open-vocabulary method.
        encoder: Encoder of the texts.
        names: Labels; aliases are separated by ``|``.
    """
    zero_shot = encode_synonyms_for_text_scorer(encoder, names, prompt_templates("one"))
    tuned = method.encode_words(names) if isinstance(method, TunesTexts) else zero_shot
    return LabelTexts(zero_shot.double().cpu().numpy(), tuned.double().cpu().numpy())
