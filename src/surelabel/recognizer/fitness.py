"""What cannot be fitted is told before a picture is read."""

from typing import Any

from surelabel.backbones import Backbone
from surelabel.config import Run
from surelabel.errors import ConfigError
from surelabel.recognizer.calibrating import check_level
from surelabel.recognizer.fitting import objective_of
from surelabel.records import LabelledFeatures, LabelledImages


def check_patches(run: Run, method: Any, backbone: Backbone) -> None:
    """Refuse a method of patches where the encoder gives none.

    Raises:
        ConfigError: it gives none in the joint space.
    """
    if "patches" in method.needs and "patches" not in backbone.dense_parts:
        raise ConfigError(
            f"{run.method.name} looks at patches, and {backbone.name} gives none in the joint "
            "space. Take an encoder that does, such as ViT-B-16/openai."
        )


def check_fits(
    run: Run,
    method: Any,
    backbone: Backbone,
    names: list[str],
    source: LabelledImages | LabelledFeatures,
    folds: int,
) -> None:
    """Refuse a fit in which method, encoder, loss, calibrator and source do not go together.

    Raises:
        ConfigError, InputError: they do not; the remedy is named.
    """
    if method.learns_from != "labels":
        raise ConfigError(
            f"{run.method.name} learns from {method.learns_from}, so it cannot be fitted. Choose "
            "method.name=clip_adapter or linear, or calibrate it."
        )
    if folds and folds < 2:
        raise ConfigError(f"folds must be 0 for none, or 2 and more. Got {folds}.")
    if "pixels" in method.needs:
        _check_trainable(run.method.name, backbone, source, folds)
    objective = objective_of(run, backbone, names)
    if folds:
        check_level(run, None if objective.link else run.loss.name)


def _check_trainable(
    name: str, backbone: Backbone, source: LabelledImages | LabelledFeatures, folds: int
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
