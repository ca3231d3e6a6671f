"""From features and labels to a fitted method."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from surelabel.backbones import TEMPLATES, Backbone, prompt_templates
from surelabel.calibration import dealt
from surelabel.config import Choice, Run
from surelabel.encoding import Progress
from surelabel.errors import ConfigError
from surelabel.links import Link, Sigmoid
from surelabel.losses import LINK_OF, SET_LOSSES
from surelabel.methods import Recipe
from surelabel.methods.wording import spelled
from surelabel.optimizers import OPTIMIZERS
from surelabel.records import Features
from surelabel.training import (
    Batch,
    Checkpoint,
    Labelled,
    Objective,
    Pictures,
    Source,
    fit,
    of_elements,
    taken,
)


@dataclass(frozen=True)
class Examples:
    """Pictures with their labels, as fitting takes them.

    Attributes:
        paths: One file each, or what rows of ready-made vectors are called.
        features: Of ``n`` pictures.
        targets: In [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
    """

    paths: Sequence[str]
    features: Features
    targets: Tensor
    known: Tensor

    def take(self, rows: npt.NDArray[np.int64]) -> "Examples":
        """Only these rows."""
        features = taken(self.features, torch.from_numpy(rows))
        return Examples(
            [self.paths[r] for r in rows], features, self.targets[rows], self.known[rows]
        )

    def dealt(self, folds: int, seed: int) -> npt.NDArray[np.int64]:
        """The fold of each, ``(n,)``; rare labels are spread evenly.

        Raises:
            InputError: there are fewer pictures with a known label than folds.
        """
        order = np.random.default_rng(seed)
        return dealt(self.targets.double().numpy(), self.known.numpy(), folds, order)


def link_of(run: Run) -> Link | None:
    """The link of the run's loss; None where it has none."""
    make = LINK_OF[run.loss.name]
    return make(**run.loss.settings) if make else None


def resolved(run: Run) -> Run:
    """The run as it is read back once it is saved: a setting that is None is left out, and the
    sentences of prompt files are in it, so that it needs the files no more.
    """
    choices: dict[str, Any] = {
        k: _resolved(v) for k, v in vars(run).items() if isinstance(v, Choice)
    }
    return replace(run, **choices)


def _resolved(choice: Choice) -> Choice:
    settings = {k: _plain(v) for k, v in choice.settings.items() if v is not None}
    templates = settings.get("templates")
    if isinstance(templates, str) and templates not in TEMPLATES and "{}" not in templates:
        settings["templates"] = list(prompt_templates(templates))
    return replace(choice, settings=settings)


def _plain(value: Any) -> Any:
    """A setting as a TOML file gives it: lists in the place of tuples, and Python's own numbers."""
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def new_method(run: Run, backbone: Backbone, spellings: Sequence[str]) -> Any:
    """The method before any fitting, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        return run.make("method")(backbone, spellings).eval()


def objective_of(run: Run, backbone: Backbone, spellings: Sequence[str]) -> Objective:
    """What the run makes small, tried once, so that what cannot work is told at once.

    Raises:
        ConfigError, InputError: a setting out of range, or a regularizer that the encoder or the
            loss cannot serve.
    """
    loss = run.make("loss")
    regularizer = run.make("regularizer") if run.regularizer else None
    made = Objective(
        loss=loss if run.loss.name in SET_LOSSES else of_elements(loss),
        regularizer=regularizer,
        weight=run.regularizer_weight,
        link=link_of(run),
        texts=_texts(backbone, spellings) if regularizer else None,
    )
    nothing = torch.zeros(1, len(spellings))
    made(nothing, Batch(Features(nothing), nothing, nothing == 0))
    return made


def fitted(
    run: Run,
    backbone: Backbone,
    spellings: Sequence[str],
    examples: Examples,
    *,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Any:
    """A method fitted as the run says, from the start or from where its checkpoint was kept."""
    method, objective = new_method(run, backbone, spellings), objective_of(run, backbone, spellings)
    start = (examples.features, examples.targets, examples.known)
    method.start(*start, objective.link or Sigmoid())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        if "pixels" in method.needs:
            _fit_head(method.head, objective, examples, run.seed)
        source = _source(method, backbone, examples, in_memory(run))
        trained(run, method, source, objective, checkpoint=checkpoint, progress=progress)
    return method


def in_memory(run: Run) -> int:
    """Pictures that are in memory at once: a batch, or an equal part of one."""
    return math.ceil(run.batch / _together(run))


def trained(
    run: Run,
    method: Any,
    source: Source,
    objective: Objective,
    *,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> None:
    """Train a method as the run says; batches of ``source`` hold ``in_memory(run)`` pictures."""
    fit(
        method,
        source,
        objective=objective,
        epochs=run.epochs,
        learning_rate=run.learning_rate,
        weight_decay=run.weight_decay,
        optimizer=run.make("optimizer"),
        together=_together(run),
        warm_up=run.warm_up,
        averaging=run.averaging,
        seed=run.seed,
        checkpoint=checkpoint,
        progress=progress,
    )


def _together(run: Run) -> int:
    return math.ceil(run.batch / run.at_once)


def _fit_head(head: Any, objective: Objective, examples: Examples, seed: int) -> None:
    """Fit the head of a network by its own recipe, on vectors of the network as it is.

    From a head that knows nothing, the first steps of the whole would undo what the network knows.
    """
    recipe: Recipe = head.recipe
    fit(
        head,
        Labelled(examples.features, examples.targets, examples.known, size=recipe.batch),
        objective=objective,
        epochs=recipe.epochs,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        optimizer=OPTIMIZERS[recipe.optimizer],
        warm_up=recipe.warm_up,
        averaging=recipe.averaging,
        seed=seed,
    )


def out_of_fold(
    run: Run,
    backbone: Backbone,
    spellings: Sequence[str],
    examples: Examples,
    *,
    fold: npt.NDArray[np.int64],
    progress: Progress | None = None,
) -> npt.NDArray[np.float32]:
    """Scores ``(n, c)`` of every picture by a method that was fitted on the other folds."""
    folds = int(fold.max()) + 1
    scores = np.empty(tuple(examples.targets.shape), dtype=np.float32)
    for part in range(folds):
        others, rest = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        method = fitted(run, backbone, spellings, examples.take(others))
        with torch.no_grad():
            scores[rest] = method(examples.take(rest).features).numpy()
        if progress:
            progress(part + 1, folds)
    return scores


def _source(method: Any, backbone: Backbone, examples: Examples, size: int) -> Source:
    if "pixels" not in method.needs:
        return Labelled(examples.features, examples.targets, examples.known, size=size)
    return Pictures(
        examples.paths,
        examples.targets,
        examples.known,
        prepare=backbone.prepare,
        least_side=backbone.least_side,
        size=size,
    )


def _texts(backbone: Backbone, spellings: Sequence[str]) -> Tensor | None:
    """Vectors of the names for regularizers that look at them; those say when they miss them."""
    try:
        return spelled(backbone, spellings, prompt_templates("one"))
    except ConfigError:  # an encoder of pictures alone
        return None
