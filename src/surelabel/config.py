"""Load and validate the configuration of a run: a TOML file with one section per component."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any

from surelabel.calibration import CALIBRATORS
from surelabel.encoders import ENCODERS
from surelabel.errors import ConfigError
from surelabel.file_readers import parse_toml, read_toml
from surelabel.losses import LOSSES, SET_LOSSES
from surelabel.methods import (
    METHODS,
    LearnsFromImages,
    Method,
    TrainingRecipe,
    check_method_contract,
    method_is_student,
)
from surelabel.migration import RUN, migrate_run
from surelabel.optimizers import OPTIMIZERS
from surelabel.pseudolabels import PSEUDOLABELS, SEWINGS
from surelabel.regularizers import DEFAULT_WEIGHTS, REGULARIZERS
from surelabel.tables import configure_table_entry

TEACHERS: dict[str, type[Method]] = {
    name: method
    for name, method in METHODS.items()
    if method.learns_from == "nothing" or issubclass(method, LearnsFromImages)
}
TABLES: dict[str, Mapping[str, Callable[..., Any]]] = {
    "encoder": ENCODERS,
    "method": METHODS,
    "loss": LOSSES | SET_LOSSES,
    "regularizer": REGULARIZERS,
    "optimizer": OPTIMIZERS,
    "calibrator": CALIBRATORS,
    "teacher": TEACHERS,
    "pseudolabels": PSEUDOLABELS,
    "sewing": SEWINGS,
}
UPPER_LIMIT = 2**31  # exclusive limit of all numbers; every random generator accepts smaller seeds
RUN_NUMBERS: dict[str, tuple[type[int] | type[float], float, float]] = {
    "regularizer_weight": (float, 0, UPPER_LIMIT),  # setting: type, minimum, exclusive upper limit
    "epochs": (int, 1, UPPER_LIMIT),
    "batch_size": (int, 1, UPPER_LIMIT),
    "micro_batch_size": (int, 1, UPPER_LIMIT),
    "learning_rate": (float, 1e-12, UPPER_LIMIT),
    "weight_decay": (float, 0, UPPER_LIMIT),
    "warm_up": (float, 0, 1),
    "ema_decay": (float, 0, 1),
    "seed": (int, 0, UPPER_LIMIT),
}


@dataclass(frozen=True)
class Choice:
    """Entry of a table, such as ``LOSSES``, and the settings of this entry in a run.

    Attributes:
        name: Name of the entry.
        settings: Values of the settings that differ from the defaults of the entry.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)


DEFAULT_ENCODER = Choice("tiny-vit")
DEFAULT_METHOD = Choice("clip_adapter")
DEFAULT_CALIBRATOR = Choice("cross_validated")
STUDENT_DEFAULTS = {  # components of methods that are trained by self-training
    "teacher": Choice("tiles"),
    "pseudolabels": Choice("tailored"),
    "sewing": Choice("cut_and_sew"),
}


@dataclass(frozen=True, init=False)
class Run:
    """Complete configuration of a run.

    A training setting that is omitted or None is set to its value in the training recipe of the
    method. The training settings are ``loss``, ``optimizer``, and the settings from ``epochs`` to
    ``ema_decay``.

    Attributes:
        encoder: Encoder that computes features. Its name is the name of an embedded encoder, such
            as ``tiny-vit``, or another name that ``load_encoder`` accepts.
        method: Method that computes scores from features.
        loss: Loss that is minimized in training.
        regularizer: Regularizer that is added to the loss. If None, there is no regularizer.
        calibrator: Calibrator that ``calibrate`` fits on held-out annotated images.
        teacher: Method whose scores become pseudo-labels in self-training. If the scale of this
            method is not set, the scores are log-odds of a softmax at half the scale of the
            encoder. If ``method`` does not use self-training, the value is None.
        pseudolabels: Algorithm that computes targets from the scores of the teacher. If ``method``
            does not use self-training, the value is None.
        sewing: Algorithm that combines several images into one training image. If ``method`` does
            not use self-training, the value is None.
        optimizer: Optimizer that is used in training.
        regularizer_weight: Weight of the regularizer in the training objective, >= 0. If not given,
            the weight is the value of the regularizer in ``DEFAULT_WEIGHTS`` of
            ``surelabel.regularizers``, or 1 if the table has no value for the regularizer.
        epochs: Number of passes over the training images, >= 1.
        batch_size: Number of images per optimizer step, >= 1.
        micro_batch_size: Number of images per forward pass, >= 1. Gradients are accumulated until
            a batch is complete.
        learning_rate: Peak learning rate, > 0. After the warm-up, the learning rate decreases to
            0 along a cosine.
        weight_decay: Weight decay, >= 0, applied to parameters with two or more axes only.
        warm_up: Fraction of the optimizer steps in which the learning rate increases linearly to
            its peak, in [0, 1).
        ema_decay: Decay of the exponential moving average of the weights, in [0, 1). If the decay
            is 0, the weights of the last step are used.
        seed: Seed of all random numbers, >= 0.

    Raises:
        ConfigError: If the settings of ``encoder`` contain a device or a name. If a number has the
            wrong type or is out of range. If a component of self-training is set for a method
            without self-training. If the teacher is a method with gradient training. If the class
            of the method lacks a required attribute or method.
    """

    encoder: Choice
    method: Choice
    loss: Choice
    regularizer: Choice | None
    calibrator: Choice
    teacher: Choice | None
    pseudolabels: Choice | None
    sewing: Choice | None
    optimizer: Choice
    regularizer_weight: float
    epochs: int
    batch_size: int
    micro_batch_size: int
    learning_rate: float
    weight_decay: float
    warm_up: float
    ema_decay: float
    seed: int

    def __init__(
        self,
        encoder: Choice = DEFAULT_ENCODER,
        method: Choice = DEFAULT_METHOD,
        loss: Choice | None = None,
        regularizer: Choice | None = None,
        calibrator: Choice = DEFAULT_CALIBRATOR,
        teacher: Choice | None = None,
        pseudolabels: Choice | None = None,
        sewing: Choice | None = None,
        optimizer: Choice | None = None,
        regularizer_weight: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        micro_batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        warm_up: float | None = None,
        ema_decay: float | None = None,
        seed: int = 0,
    ) -> None:
        _check_run_encoder_settings(encoder)
        entry = _find_run_method(method.name)
        recipe = entry.recipe if entry else TrainingRecipe()
        training = (optimizer, epochs, batch_size, micro_batch_size, learning_rate, weight_decay)
        uses_training_loop = (loss is not None and loss.name in SET_LOSSES) or any(
            value is not None for value in (regularizer, *training, warm_up, ema_decay)
        )
        if entry:
            stated = entry.settings_in_run(uses_training_loop=uses_training_loop)
            method = Choice(method.name, stated | method.settings)
        components = _run_student_components(
            method.name, entry, teacher=teacher, pseudolabels=pseudolabels, sewing=sewing
        )
        vars(self).update(  # the dataclass is frozen
            encoder=encoder,
            method=method,
            loss=loss or Choice(recipe.loss),
            regularizer=regularizer,
            calibrator=calibrator,
            **components,
            optimizer=optimizer or Choice(recipe.optimizer),
            regularizer_weight=_default_run_regularizer_weight(regularizer)
            if regularizer_weight is None
            else regularizer_weight,
            epochs=recipe.epochs if epochs is None else epochs,
            batch_size=recipe.batch_size if batch_size is None else batch_size,
            micro_batch_size=recipe.micro_batch_size
            if micro_batch_size is None
            else micro_batch_size,
            learning_rate=recipe.learning_rate if learning_rate is None else learning_rate,
            weight_decay=recipe.weight_decay if weight_decay is None else weight_decay,
            warm_up=recipe.warm_up if warm_up is None else warm_up,
            ema_decay=recipe.ema_decay if ema_decay is None else ema_decay,
            seed=seed,
        )
        for key in RUN_NUMBERS:
            _check_run_number(key, getattr(self, key))

    def entry(self, part: str) -> Callable[..., Any]:
        """Return the table entry of a component, such as ``loss``, with the settings of the run.

        The component must not be None.

        Raises:
            UnknownName: If the name of the component is not in its table.
            ConfigError: If a setting of the component does not exist or has an invalid type.
        """
        choice = getattr(self, part)
        return configure_table_entry(TABLES[part], choice.name, **choice.settings)


def _default_run_regularizer_weight(regularizer: Choice | None) -> float:
    """Return the weight of a regularizer in a run that sets no weight."""
    return DEFAULT_WEIGHTS.get(regularizer.name, 1.0) if regularizer else 1.0


def _check_run_encoder_settings(encoder: Choice) -> None:
    """Check that the settings of an encoder contain neither a device nor a name.

    Raises:
        ConfigError: If the settings contain a device or a name.
    """
    reserved = sorted(encoder.settings.keys() & {"device", "name"})
    if reserved:
        raise ConfigError(
            f"encoder.{reserved[0]} is not a setting of a run. Give the encoder with "
            "encoder.name=…, and the device with the option --device or the argument device=…."
        )


def _find_run_method(name: str) -> type[Method] | None:
    """Return the entry of a method, or None if the name is unknown.

    ``load_run`` and ``Run.entry`` raise an error for an unknown name.

    Raises:
        ConfigError: If the class of the method lacks a required attribute or method.
    """
    entry = METHODS.get(name)
    if entry is not None:
        check_method_contract(name, entry)
    return entry


def _run_student_components(
    name: str, entry: type[Method] | None, **components: Choice | None
) -> dict[str, Choice | None]:
    """Return the components of self-training, with default values if the method is a student.

    Args:
        name: Key of the method.
        entry: Entry of the method. If None, the name is unknown.
        components: Values of the keys of ``STUDENT_DEFAULTS``.

    Raises:
        ConfigError: If a component is set for a method without self-training. If the teacher is a
            method with gradient training.
    """
    if entry is not None and method_is_student(entry):
        components = {part: choice or STUDENT_DEFAULTS[part] for part, choice in components.items()}
    given = [part for part, choice in components.items() if choice is not None]
    if given and not (entry is not None and method_is_student(entry)):
        raise ConfigError(
            f"{given[0]} requires a method with self-training, such as tailor; "
            f"got method.name={name}. Remove {given[0]}."
        )
    teacher = components["teacher"]
    if teacher and teacher.name in METHODS.keys() - TEACHERS.keys():
        raise ConfigError(
            f"teacher.name must be a method without gradient training, one of "
            f"{', '.join(sorted(TEACHERS))}; got {teacher.name}. Choose one of "
            "these methods."
        )
    return components


def load_run(path: str | Path | None = None, overrides: Sequence[str] = ()) -> Run:
    """Read the configuration of a run from a TOML file and apply overrides.

    Args:
        path: Path of the TOML file. If None, the default settings are used.
        overrides: Strings of the form ``section.setting=value`` or ``setting=value``, such as
            ``loss.name=binary`` or ``epochs=5``, which replace settings of the file.

    Raises:
        UnknownName: If a component other than the encoder has an unknown name. This error is raised
            before data and weights are read.
        ConfigError: If a setting does not exist or has an invalid value, or if an override does not
            have the form ``key=value``.
        DataError: If the file cannot be read or is not valid TOML.
    """
    tree = _read_run_config(path, overrides)
    names = [f.name for f in fields(Run)]
    unknown = sorted(tree.keys() - set(names))
    if unknown:
        renamed = "".join(f" {name} is now {RUN[name]}." for name in unknown if name in RUN)
        near = get_close_matches(unknown[0], names, n=1)
        hint = renamed or (f" Did you mean {near[0]!r}?" if near else "")
        raise ConfigError(
            f"A run has no setting {', '.join(unknown)}.{hint} Its settings are: "
            f"{', '.join(names)}."
        )
    defaults = Run(method=_parse_run_config_choice("method", tree.get("method", {}), Run()))
    values: dict[str, Any] = {
        k: _parse_run_config_choice(k, v, defaults)
        if k in TABLES
        else _parse_run_config_number(k, v)
        for k, v in tree.items()
    }
    run = Run(**values)
    for part in TABLES:  # an encoder may also be a file, a folder or an open_clip name
        if part != "encoder" and getattr(run, part) is not None:
            run.entry(part)
    return run


def method_settings_of_run(
    path: str | Path | None = None, overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the section ``method`` of a run file with overrides, or an empty dict without it.

    Args:
        path: Path of the TOML file, or None.
        overrides: Settings that replace those of the file, as for ``load_run``.

    Raises:
        ConfigError: If ``method`` is not a section, or an override is not ``key=value``.
        DataError: If the file cannot be read or is not valid TOML.
    """
    section = _read_run_config(path, overrides).get("method", {})
    if not isinstance(section, dict):
        raise ConfigError(
            f'method must be a section with a name, such as method.name="…"; got {section!r}.'
        )
    return section


def run_as_toml(run: Run) -> str:
    """Return the complete configuration of a run as TOML text that ``load_run`` can read."""
    numbers = [f"{f.name} = {getattr(run, f.name)!r}" for f in fields(Run) if f.name not in TABLES]
    sections = [
        "\n".join(
            [f"\n[{part}]", f"name = {json.dumps(choice.name, ensure_ascii=False)}"]
            + [f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in choice.settings.items()]
        )
        for part, choice in ((part, getattr(run, part)) for part in TABLES)
        if choice is not None
    ]
    return "\n".join(numbers + sections) + "\n"


def _parse_run_config_choice(part: str, section: Any, run: Run) -> Choice:
    """Return the choice that a section defines; the default name is the name in ``run``."""
    if not isinstance(section, dict):
        raise ConfigError(
            f'{part} must be a section with a name, such as {part}.name="…"; got {section!r}.'
        )
    entry_settings, default = dict(section), getattr(run, part) or STUDENT_DEFAULTS.get(part)
    if default is None and "name" not in entry_settings:
        raise ConfigError(
            f"{part} requires a name, one of {', '.join(sorted(TABLES[part]))}; got {section!r}."
        )
    return Choice(entry_settings.pop("name", default and default.name), entry_settings)


def _parse_run_config_number(key: str, value: Any) -> int | float:
    """Return a number of a run in the type of its setting, such as an integer as a float."""
    _check_run_number(key, value)
    kind, _, _ = RUN_NUMBERS[key]
    return kind(value)


def _check_run_number(key: str, value: Any) -> None:
    """Check the type and the range of a number of a run.

    Raises:
        ConfigError: If the number has the wrong type, is not finite, or is out of range.
    """
    kind, minimum, limit = RUN_NUMBERS[key]
    allowed = (int,) if kind is int else (int, float)
    is_number = isinstance(value, allowed) and not isinstance(value, bool) and isfinite(value)
    if not is_number or not minimum <= value < limit:
        raise ConfigError(
            f"{key} must be {'an integer' if kind is int else 'a number'} in "
            f"[{minimum}, {limit}); got {value!r}."
        )


def _read_run_config(path: str | Path | None, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the sections and settings of a run file with overrides."""
    tree = migrate_run(read_toml(path)) if path else {}
    for text in overrides:
        _apply_run_config_override(tree, text)
    return tree


def _apply_run_config_override(tree: dict[str, Any], text: str) -> None:
    key, equals, value = text.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")):
        raise ConfigError(f"--set requires key=value, such as loss.name=binary; got {text!r}.")
    *path, last = key.strip().split(".")
    for part in path:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise ConfigError(
                f"--set requires a section before the last dot; got {text}, where {part} is a "
                "value, not a section."
            )
    try:
        tree[last] = parse_toml(f"x = {value}")["x"]
    except ValueError:
        tree[last] = value.strip()
