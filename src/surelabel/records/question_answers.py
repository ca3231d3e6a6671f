"""This module defines the record of questions about images, with graded targets of answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.errors import InputError


@dataclass(frozen=True)
class QuestionAnswers:
    """Questions about images; each answer is a label of the pair of image and question.

    Attributes:
        paths: Path of the image of each question, length n.
        questions: Texts of the questions, length n.
        names: Answers of the columns, length c. If empty, the answers are unknown.
        targets: Scores of the answers in [0, 1], ``(n, c)``. If ``names`` is empty, the targets can
            be omitted.
        answer_types: Type of the answers to each question, such as ``yes/no``, ``number`` or
            ``other``, length n. If empty, the types are unknown.

    Raises:
        InputError: If the lengths and the shape do not match.
    """

    paths: Sequence[str]
    questions: Sequence[str]
    names: Sequence[str] = ()
    targets: Array = field(default_factory=lambda: np.empty((0, 0)))
    answer_types: Sequence[str] = ()

    def __post_init__(self) -> None:
        n_questions = len(self.questions)
        targets = np.asarray(self.targets, dtype=np.float64)
        if not self.names and not targets.size:
            targets = np.empty((n_questions, 0))
        expected = n_questions, len(self.names)
        if len(self.paths) != n_questions or targets.shape != expected:
            raise InputError(
                "paths and questions must have the same length, and targets one row per question "
                f"and one column per answer; got {len(self.paths)} paths, {n_questions} questions, "
                f"{len(self.names)} answers and targets of shape {targets.shape}. Give one "
                "path and one row for each question."
            )
        if self.answer_types and len(self.answer_types) != n_questions:
            raise InputError(
                f"answer_types must have one entry per question, {n_questions}; got "
                f"{len(self.answer_types)}. Give one type for each question, or none."
            )
        object.__setattr__(self, "targets", targets)

    def __len__(self) -> int:
        return len(self.questions)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> "QuestionAnswers":
        """Return the questions at the given row indices, in the order of the indices."""
        rows = np.asarray(rows, dtype=int)
        return QuestionAnswers(
            [self.paths[row] for row in rows],
            [self.questions[row] for row in rows],
            self.names,
            self.targets[rows],
            [self.answer_types[row] for row in rows] if self.answer_types else (),
        )
