"""A run is one TOML file: a [section] for each choice, ``name`` plus its settings."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any

from surelabel.backbones import BACKBONES
from surelabel.calibration import CALIBRATORS
from surelabel.errors import ConfigError, DataError
from surelabel.losses import LOSSES, SET_LOSSES
from surelabel.methods import METHODS, Recipe
from surelabel.optimizers import OPTIMIZERS
from surelabel.pseudolabels import PSEUDOLABELS, SEWINGS
from surelabel.regularizers import REGULARIZERS
from surelabel.tables import choose

TEACHERS: dict[str, Callable[..., Any]] = {
    name: method
    for name, method in METHODS.items()
    if getattr(method, "learns_from", "") == "nothing" or hasattr(method, "learn")
}
TABLES: dict[str, Mapping[str, Callable[..., Any]]] = {
    "backbone": BACKBONES,
    "method": METHODS,
    "loss": LOSSES | SET_LOSSES,
    "regularizer": REGULARIZERS,
    "optimizer": OPTIMIZERS,
    "calibrator": CALIBRATORS,
    "teacher": TEACHERS,
    "pseudolabels": PSEUDOLABELS,
    "sewing": SEWINGS,
}
LARGEST = 2**31  # of any number of a run; a seed must fit into every generator
FROM_ZERO = {"seed", "weight_decay", "regularizer_weight", "warm_up", "averaging"}
BELOW_ONE = {"warm_up", "averaging"}


@dataclass(frozen=True)
class Choice:
    """A name from a table and the settings that differ from its defaults."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)


STUDENT = {  # what a student has beside its recipe
    "teacher": Choice("tiles"),
    "pseudolabels": Choice("tailored"),
    "sewing": Choice("sewn"),
}


@dataclass(frozen=True)
class Run:
    """All that is needed to repeat a run. What is left out is what the method's recipe says.

    Attributes:
        backbone: An embedded encoder, or any that ``load_backbone`` takes.
        method: From features to scores.
        loss: What fitting makes small.
        regularizer: What it makes small beside the loss; None for nothing.
        calibrator: What ``calibrate`` fits on held-out pictures.
        teacher: Whose scores a student learns from, log-odds of a softmax at half the encoder's own
            scale where it says none; None for methods that are no student, as are the next two.
        pseudolabels: What makes targets of these scores.
        sewing: How pictures are sewn together for the student.
        optimizer: How fitting steps.
        regularizer_weight: What the regularizer is multiplied with (lambda).
        epochs: Passes over the labelled pictures.
        batch: Pictures a step.
        at_once: Pictures in memory at once; a larger batch is added up from several.
        learning_rate: Largest step size; it falls to zero along a cosine.
        weight_decay: On matrices only.
        warm_up: Share of all steps in which the step size rises before it falls, in [0, 1).
        averaging: Decay of the exponential mean of the weights that stays at the end, in [0, 1);
            0 for the weights of the last step.
        seed: Of everything that is drawn.
    """

    backbone: Choice = Choice("tiny-vit")
    method: Choice = Choice("clip_adapter")
    loss: Choice = None  # type: ignore[assignment]  # filled below, as all that are None
    regularizer: Choice | None = None
    calibrator: Choice = Choice("beta")
    teacher: Choice | None = None
    pseudolabels: Choice | None = None
    sewing: Choice | None = None
    optimizer: Choice = None  # type: ignore[assignment]
    regularizer_weight: float = 1.0
    epochs: int = None  # type: ignore[assignment]
    batch: int = None  # type: ignore[assignment]
    at_once: int = None  # type: ignore[assignment]
    learning_rate: float = None  # type: ignore[assignment]
    weight_decay: float = None  # type: ignore[assignment]
    warm_up: float = None  # type: ignore[assignment]
    averaging: float = None  # type: ignore[assignment]
    seed: int = 0

    def __post_init__(self) -> None:
        taken = sorted(self.backbone.settings.keys() & {"device", "name"})
        if taken:
            raise ConfigError(
                f"backbone.{taken[0]} is no setting: the name stands by itself, and the device is "
                "of the machine, not of the run (--device, or device=…)."
            )
        recipe = getattr(METHODS.get(self.method.name), "recipe", Recipe())
        for key, value in vars(recipe).items():
            if getattr(self, key) is None:
                filled = Choice(value) if key in TABLES else value
                object.__setattr__(self, key, filled)
        self._have_what_a_student_needs()

    def make(self, part: str) -> Callable[..., Any]:
        """The chosen entry of ``part`` with its settings fixed."""
        choice = getattr(self, part)
        return choose(TABLES[part], choice.name, **choice.settings)

    def _have_what_a_student_needs(self) -> None:
        student = is_student(METHODS.get(self.method.name))
        for part, usual in STUDENT.items():
            if student and getattr(self, part) is None:
                object.__setattr__(self, part, usual)
            elif not student and getattr(self, part) is not None:
                raise ConfigError(
                    f"{part} is for methods that are taught without labels, such as "
                    f"method.name=tailor. {self.method.name} is none; leave {part} out."
                )
        if self.teacher and self.teacher.name in METHODS.keys() - TEACHERS.keys():
            raise ConfigError(
                f"A teacher knows without being taught: {', '.join(sorted(TEACHERS))}. "
                f"Got teacher.name={self.teacher.name}, which must be fitted itself."
            )


def is_student(method: Any) -> bool:
    """Whether a method is trained on pictures without labels, so that it needs a teacher."""
    return getattr(method, "learns_from", "") == "images" and not hasattr(method, "learn")


def load_run(path: str | Path | None = None, overrides: Sequence[str] = ()) -> Run:
    """Read a TOML file, then apply ``section.setting=value`` overrides.

    Raises:
        UnknownName, ConfigError: at once, before any data or weights are read.
        DataError: the file cannot be read as TOML.
    """
    tree = _read(path) if path else {}
    for text in overrides:
        _apply(tree, text)
    known = {f.name: f for f in fields(Run)}
    unknown = sorted(tree.keys() - known.keys())
    if unknown:
        raise ConfigError(f"A run has no {', '.join(unknown)}. It has: {', '.join(known)}.")
    usual = Run(method=_choice("method", tree.get("method", {}), Run()))
    parts: dict[str, Any] = {
        k: _choice(k, v, usual) if k in TABLES else _number(k, v) for k, v in tree.items()
    }
    run = Run(**parts)
    for part in TABLES:  # a backbone may also be a file, a folder or an open_clip name
        if part != "backbone" and getattr(run, part) is not None:
            run.make(part)
    return run


def run_as_toml(run: Run) -> str:
    """The whole run as text that ``load_run`` reads back."""
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


def _read(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}.") from error


def _choice(part: str, section: Any, run: Run) -> Choice:
    """What a section says; one without a name is for what ``run`` has there."""
    if not isinstance(section, dict):
        raise ConfigError(
            f'{part} is a section with a name, such as {part}.name="…". Got {section!r}.'
        )
    rest, usual = dict(section), getattr(run, part) or STUDENT.get(part)
    if usual is None and "name" not in rest:
        raise ConfigError(
            f"{part} needs a name, one of {', '.join(sorted(TABLES[part]))}. Got {section!r}."
        )
    return Choice(rest.pop("name", usual and usual.name), rest)


def _number(key: str, value: Any) -> int | float:
    kind: type[int] | type[float] = type(getattr(Run(), key))
    smallest = 0 if key in FROM_ZERO else 1 if kind is int else 1e-12
    limit = 1 if key in BELOW_ONE else LARGEST
    allowed = (int,) if kind is int else (int, float)
    right = isinstance(value, allowed) and not isinstance(value, bool) and isfinite(value)
    if not right or not smallest <= value < limit:
        raise ConfigError(
            f"{key} must be {kind.__name__} and from {smallest} to below {limit}. Got {value!r}."
        )
    return kind(value)


def _apply(tree: dict[str, Any], text: str) -> None:
    key, equals, value = text.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")):
        raise ConfigError(f"--set needs key=value, such as loss.name=binary. Got {text!r}.")
    *path, last = key.strip().split(".")
    for part in path:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"--set {text}: {part} is a single value and has no settings.")
    try:
        tree[last] = tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        tree[last] = value.strip()
