"""What cannot be fitted is told before a picture is read."""

from typing import Any

from surelabel.backbones import Backbone
from surelabel.config import Choice, Run, is_student
from surelabel.errors import ConfigError, InputError
from surelabel.links import Sigmoid
from surelabel.recognizer.calibrating import check_level
from surelabel.recognizer.fitting import link_of, objective_of
from surelabel.recognizer.looking import parts_of
from surelabel.records import Images, LabelledFeatures, LabelledImages

LOOKED_AT = {
    "patches": "patches",
    "self_aware": "self-aware patches",
    "attentive": "the attention between patches",
    "trunk": "the tokens of the trunk",
    "ladder": "what enters the last blocks of a ViT",
}


def check_patches(run: Run, method: Any, backbone: Backbone) -> None:
    """Refuse a method that looks where the encoder sees nothing, before any picture is read.

    Raises:
        ConfigError: the encoder gives no such part, or takes no pictures of that size.
    """
    for part in (asked.partition("/")[0] for asked in parts_of(method)):
        if part != "images" and not backbone.gives(part):
            raise ConfigError(
                f"{run.method.name} looks at {LOOKED_AT[part]}, and {backbone.name} gives none. "
                "Take an encoder that does, such as ViT-B-16/openai."
            )
    if "views" in method.needs and not backbone.preprocess:
        raise ConfigError(
            f"{run.method.name} looks at parts of pictures, and {backbone.name} takes none. "
            "Take an encoder of pictures, such as tiny-vit."
        )
    if method.side:
        backbone.at(method.side)  # raises where it takes no such size


def check_fits(
    run: Run,
    method: Any,
    backbone: Backbone,
    names: list[str],
    source: Images | LabelledImages | LabelledFeatures,
    folds: int,
) -> None:
    """Refuse a fit in which method, encoder, loss, calibrator and source do not go together.

    Raises:
        ConfigError, InputError: they do not; the remedy is named.
    """
    if method.learns_from == "nothing":
        raise ConfigError(
            f"{run.method.name} learns from nothing, so it cannot be fitted. Choose "
            "method.name=clip_adapter or linear, or calibrate it."
        )
    if method.learns_from == "images":
        _check_learns(run, method, source, folds)
        return
    if isinstance(source, Images):
        raise InputError(
            f"{run.method.name} learns from labels, and these {len(source)} pictures have none. "
            "Give LabelledImages, or take method.name=tailor, which learns from pictures alone."
        )
    if folds and folds < 2:
        raise ConfigError(f"folds must be 0 for none, or 2 and more. Got {folds}.")
    if "pixels" in method.needs:
        _check_trainable(run.method.name, backbone, source, folds)
    objective = objective_of(run, backbone, names)
    if folds:
        check_level(run, None if objective.link else run.loss.name)


def _check_learns(
    run: Run, method: Any, source: Images | LabelledImages | LabelledFeatures, folds: int
) -> None:
    """Of a method that learns from pictures without labels."""
    name = run.method.name
    if folds:
        raise ConfigError(
            f"{name} learns without labels, so folds have nothing to calibrate on. Leave folds "
            "out, and calibrate afterwards."
        )
    if run.regularizer:
        raise ConfigError(
            f"{name} learns without labels, and {run.regularizer.name} goes by them. Leave the "
            "regularizer out."
        )
    student = is_student(method)
    if student and not isinstance(link_of(run), Sigmoid):
        raise ConfigError(
            f"{name} lets its own labels learn from scores that are log-odds, as loss.name=binary "
            f"makes them. Got {run.loss.name}."
        )
    if not student and run.loss != Choice("binary"):
        raise ConfigError(f"{name} makes no loss small. Leave loss.name={run.loss.name} out.")
    if isinstance(source, LabelledFeatures) and (student or method.needs):
        raise ConfigError(
            f"{name} looks at the pictures themselves, and ready-made vectors have none. Give "
            "picture files, or take method.name=standardised."
        )


def _check_trainable(
    name: str,
    backbone: Backbone,
    source: Images | LabelledImages | LabelledFeatures,
    folds: int,
) -> None:
    if isinstance(source, LabelledFeatures):
        raise ConfigError(
            f"{name} learns from pictures, and ready-made vectors have none: take "
            "method.name=linear."
        )
    if folds:
        raise ConfigError(
            f"{name} trains a whole network, which folds would do {folds} times more. Keep some "
            "labelled pictures back and calibrate on them."
        )
    backbone.network()  # raises where there is none to train
