"""This module defines the record of questions about images, with graded targets of answers."""

from collections.abc import Sequence
from dataclasses import dataclass

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
        names: Answers of the columns, length c.
        targets: Scores of the answers in [0, 1], ``(n, c)``.

    Raises:
        InputError: If the lengths and the shape do not match.
    """

    paths: Sequence[str]
    questions: Sequence[str]
    names: Sequence[str]
    targets: Array

    def __post_init__(self) -> None:
        expected = len(self.questions), len(self.names)
        if len(self.paths) != len(self.questions) or self.targets.shape != expected:
            raise InputError(
                "paths and questions must have the same length, and targets one row per question "
                f"and one column per answer; got {len(self.paths)} paths, {len(self.questions)} "
                f"questions, {len(self.names)} answers and targets of shape {self.targets.shape}."
            )

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
        )
