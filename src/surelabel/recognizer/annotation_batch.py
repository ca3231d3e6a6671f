"""Write a batch of rows to annotate next as a table, as tasks of Label Studio, or as a list."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.counts import format_count
from surelabel.data.labels import csv
from surelabel.data.labels.label_studio import task_prediction
from surelabel.data.labels.resolution.label_studio_urls import data_of_image
from surelabel.files import atomic_new_file, check_is_new_file, check_writable_file_paths
from surelabel.recognizer.inputs import LabelledInput
from surelabel.records import LabelledFeatures, LabelledImages, Predictions
from surelabel.summaries import Summary

SHOWN_PROBABILITY = 0.5  # lowest probability of a label that is selected in a task
N_SHOWN_PATHS = 3  # paths in the summary


@dataclass(frozen=True, repr=False)
class AnnotationBatch:
    """Result of :func:`label_next`: rows to annotate next, in the table of all rows.

    Attributes:
        table: All rows of the dataset, and the chosen images of the pool, with labels. The targets
            of the chosen rows are unknown. ``row_selection`` states how each row was chosen.
        rows: Indices of the chosen rows in the table: random rows first, then the rows of the
            strategy, best first.
        predictions: Probabilities of the chosen rows that can be read. If no calibrated recognizer
            was given, the value is None.
        n_pool: Number of rows without labels, from which the rows were chosen.
        n_pending: Number of rows that were chosen before and still have no labels.
        noun: Noun of a row in messages: ``image`` or ``row``.
    """

    table: LabelledInput
    rows: Sequence[int]
    predictions: Predictions | None
    n_pool: int
    n_pending: int
    noun: str

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    def _summary(self) -> Summary:
        properties = {"rows": len(self), "random": self.n_random, "pool": self.n_pool}
        entries = list(zip(self.paths, self.chosen_by, strict=True))
        return Summary(
            "AnnotationBatch", properties, ("path", "chosen_by"), entries[:N_SHOWN_PATHS], len(self)
        )

    @property
    def paths(self) -> list[str]:
        """Return the paths or names of the chosen rows."""
        return [str(self.table.paths[row]) for row in self.rows]

    @property
    def chosen_by(self) -> list[str]:
        """Return ``random``, or the key of the strategy, for each chosen row."""
        assert self.table.row_selection is not None  # by construction
        return [self.table.row_selection.chosen_by[row] for row in self.rows]

    @property
    def n_random(self) -> int:
        """Return the number of chosen rows that are random."""
        assert self.table.row_selection is not None  # by construction
        return int(self.table.row_selection.is_random[list(self.rows)].sum())

    @property
    def inclusion_probability(self) -> float:
        """Return the inclusion probability of the random rows of the table, or NaN without them."""
        assert self.table.row_selection is not None  # by construction
        probability = self.table.row_selection.inclusion_probability
        is_random = self.table.row_selection.is_random
        return float(probability[is_random][0]) if is_random.any() else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers of rows and the chosen rows as a JSON object."""
        selection = self.table.row_selection
        assert selection is not None  # by construction
        return {
            "rows": len(self),
            "random": self.n_random,
            "pool": self.n_pool,
            "pending": self.n_pending,
            "random_in_table": int(selection.is_random.sum()),
            "chosen": [
                {"path": path, "chosen_by": key}
                for path, key in zip(self.paths, self.chosen_by, strict=True)
            ],
        }

    def to_csv(self, path: str | Path) -> None:
        """Write the table with one column per label; the cells of the chosen rows are empty.

        Rows of vectors or scores that have no labels, and were not chosen now or before, are left
        out.

        Args:
            path: Path of a new file.

        Raises:
            InputError: If a label cannot be the name of a column.
            DataError: If the file exists or cannot be written.
        """
        check_is_new_file(path)
        if isinstance(self.table, LabelledImages):
            csv.write(self.table, path)
            return
        assert self.table.row_selection is not None  # by construction
        has_entry = np.array([bool(key) for key in self.table.row_selection.chosen_by], dtype=bool)
        taken = self.table.take(np.flatnonzero(self.table.known.any(axis=1) | has_entry))
        csv.write_label_entries(_entries_of_vectors(taken), path)

    def to_label_studio(self, path: str | Path) -> None:
        """Write the chosen images as tasks of Label Studio, with the predictions if there are any.

        The URLs of the images belong to a Label Studio server that serves local files from the root
        folder. Label Studio copies the fields of ``data`` to its exports.

        Args:
            path: Path of a new JSON file.

        Raises:
            DataError: If the file exists or cannot be written, or if the path of an image is not
                valid UTF-8.

        Source:
            Label Studio documentation, pages "Label Studio Task Format" and "Import pre-annotated
            data into Label Studio".
        """
        check_is_new_file(path)
        check_writable_file_paths(self.paths)
        selection = self.table.row_selection
        assert selection is not None  # by construction
        predicted = self.predictions.paths if self.predictions is not None else ()
        row_of_prediction = {path: number for number, path in enumerate(predicted)}
        tasks = []
        for row in self.rows:
            probability = float(selection.inclusion_probability[row])
            data = data_of_image(self.table.paths[row]) | {
                "chosen_by": selection.chosen_by[row],
                "inclusion_probability": None if np.isnan(probability) else probability,
            }
            predictions = []
            number = row_of_prediction.get(str(self.table.paths[row]))
            if self.predictions is not None and number is not None:
                probabilities = _probabilities_of_row(self.predictions, number)
                data["probabilities"] = probabilities
                labels = [name for name, p in probabilities.items() if p >= SHOWN_PROBABILITY]
                predictions.append(task_prediction(probabilities, labels, self.predictions.model))
            tasks.append({"data": data, "predictions": predictions})
        with atomic_new_file(Path(path)) as temporary:
            temporary.write_text(json.dumps(tasks, ensure_ascii=False, indent=1), "utf-8")

    def to_list(self, path: str | Path) -> None:
        """Write the paths or names of the chosen rows, one per line.

        Args:
            path: Path of a new text file.

        Raises:
            DataError: If the file exists or cannot be written, or if a path is not valid UTF-8 or
                contains a line break.
        """
        check_is_new_file(path)
        check_writable_file_paths(self.paths, forbidden="\r\n")
        with atomic_new_file(Path(path)) as temporary:
            temporary.write_text("".join(f"{name}\n" for name in self.paths), "utf-8")

    def describe(self) -> str:
        """Return sentences on the numbers of chosen rows and on the random sample."""
        selection = self.table.row_selection
        assert selection is not None  # by construction
        n_strategy = len(self) - self.n_random
        parts = [
            f"The batch contains {format_count(len(self), self.noun)} of {self.n_pool:,} without "
            f"labels: {self.n_random} chosen at random"
            + (f", {n_strategy} by the strategy {self.chosen_by[-1]}." if n_strategy else ".")
        ]
        n_random = int(selection.is_random.sum())
        if n_random:
            parts.append(
                f"The table contains {format_count(n_random, 'random row')}, with inclusion "
                f"probability {self.inclusion_probability:.3g}."
            )
        if self.n_pending:
            parts.append(
                f"{format_count(self.n_pending, self.noun)} of earlier batches still "
                f"{'has' if self.n_pending == 1 else 'have'} no labels. Annotate "
                f"{'it' if self.n_pending == 1 else 'them'} too."
            )
        return " ".join(parts)


def _probabilities_of_row(predictions: Predictions, row: int) -> dict[str, float]:
    """Return the probability of each label, rounded to four decimals."""
    values = predictions.probabilities[row].round(4).tolist()
    return dict(zip(predictions.names, values, strict=True))


def _entries_of_vectors(rows: LabelledFeatures) -> LabelledImages:
    """Return the names and labels of vectors or scores, without the vectors."""
    return LabelledImages(
        rows.paths, rows.names, rows.targets, rows.known, row_selection=rows.row_selection
    )
