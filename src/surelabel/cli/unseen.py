"""Names that a model was not fitted on: ``--unseen`` of ``evaluate``, and what is printed."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import table

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation, OpenVocabulary
    from surelabel.recognizer import Labelled, Recognizer
    from surelabel.report import Unseen

Command = Callable[..., None]


def unseen_option(function: Command) -> Command:
    """``--unseen``: what the model has not learnt, and is asked for as well."""
    return click.option(
        "--unseen",
        metavar="NAMES|FILE|-",
        help="Names that MODEL was not fitted on and LABELS has: ask for them beside its own, and "
        "say how well they are found, alone and among all.",
    )(function)


def check_unseen(model: str, names: str | None, unseen: Sequence[str] | None) -> None:
    """Refuse to call names seen that a saved recognizer has not learnt."""
    if unseen is not None and names is not None and Path(model).is_dir():
        raise click.UsageError(
            "--labels would exchange the names that a saved recognizer has seen. Leave it out: "
            "--unseen gives the others."
        )


def seen_of(labels: Sequence[str], unseen: Sequence[str] | None) -> list[str]:
    """What an encoder, which has learnt no name, is asked for as seen: all other labels."""
    from surelabel.data.vocabularies import spellings

    hidden = spellings(*unseen or ())
    return [label for label in labels if not spellings(label) & hidden]


def with_unseen(recognizer: "Recognizer", unseen: Sequence[str], test: "Labelled") -> "Recognizer":
    """The recognizer asked for its own names, then for the unseen ones.

    Raises:
        InputError: a name is given twice, or is seen and unseen at once, or the labels have no
            column for one.
        ConfigError: the method has learnt its names by heart.
    """
    from surelabel.data import Vocabulary, checked_names
    from surelabel.data.vocabularies import check_columns

    checked_names(unseen)  # alone, so that a message counts their own lines
    vocabulary = Vocabulary(tuple(recognizer.spellings), tuple(unseen))
    check_columns(vocabulary.unseen, test.names)
    return recognizer.with_names(vocabulary.names)


def opened(evaluation: "Evaluation", seen: int) -> "OpenVocabulary":
    """What was judged as one list of names, judged as ``seen`` seen ones and the others."""
    from surelabel.evaluation import open_vocabulary

    said = evaluation.predictions
    return open_vocabulary(
        said.scores,
        evaluation.targets,
        range(seen),
        evaluation.known,
        said.probabilities if said.calibration else None,
    )


def for_report(
    found: "OpenVocabulary | None", evaluation: "Evaluation", seen: int
) -> "Unseen | None":
    """The same for a report; None where nobody asked."""
    from surelabel.report import Unseen

    return None if found is None else Unseen(evaluation.predictions.names[seen:], found)


def as_value(found: "OpenVocabulary | None") -> dict[str, Any]:
    """What ``--json`` prints of it; nothing where nobody asked."""
    return {"open_vocabulary": asdict(found)} if found else {}


def as_text(found: "OpenVocabulary | None") -> list[str]:
    """A table of rankings beside the best that can be, and one of seen beside unseen names."""
    if found is None:
        return []
    from surelabel.report.meanings import shown
    from surelabel.report.unseen import RANKED, SIDES, ranking_rows, side_rows

    every = found.zsl_of_all_pictures
    lines = [
        f"\nNames: {found.gzsl.names - found.zsl.names} seen, {found.zsl.names} unseen.",
        table(RANKED, ranking_rows(found.zsl, found.gzsl)),
        f"Unseen names alone are looked for in the {found.zsl.pictures} pictures that show one. In "
        f"all {every.pictures} their F1 at 3 is {shown(every.found.best[3].f1, '%')}, of at most "
        f"{shown(every.ceiling.best[3].f1, '%')}.",
        "",
        table(SIDES, side_rows(found)),
    ]
    return ["\n".join(lines)]
