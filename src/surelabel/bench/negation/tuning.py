"""Select the settings of rows that score an embedding, on validation queries."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product

import numpy as np

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.bench.negation.encoder_outputs import NegationEncoder, SplitOutputs
from surelabel.bench.negation.plan import (
    ARITHMETIC,
    OPTIMIZED,
    SENTENCE,
    SENTENCE_TEMPLATES,
    NegationPlan,
)
from surelabel.bench.negation.query_embeddings import (
    arithmetic_embeddings,
    optimized_embeddings,
    sentence_embeddings,
)
from surelabel.bench.negation.ranking_metrics import mean_average_precision_of_queries

LABEL_START, SENTENCE_START = "wanted label", "sentence"


@dataclass(frozen=True)
class EmbeddingSetting:
    """Settings of a row that scores one embedding for each query.

    Attributes:
        row: Key of the row.
        subtract_reference: Whether the reference term of the image is subtracted from the cosine.
        template: Sentence of the row ``sentence``, and of the start of the optimization.
        weight: Weight of the excluded label in the embedding arithmetic.
        start: Start of the optimization: the vector of the wanted label or of the sentence.
        steps: Number of gradient steps.
        step_size: Size of a gradient step.
        negative_weight: Weight of the excluded label in the optimization.
        start_weight: Weight of the distance to the start in the optimization.
    """

    row: str
    subtract_reference: bool
    template: str = ""
    weight: float = 0.0
    start: str = ""
    steps: int = 0
    step_size: float = 0.0
    negative_weight: float = 0.0
    start_weight: float = 0.0

    def embeddings(self, encoder: NegationEncoder, pairs: ColumnIndices) -> Array:
        """Return the unit vectors of queries, ``(q, d)``.

        Args:
            encoder: Encoder with its labels.
            pairs: Columns of the wanted and of the excluded label of each query, ``(q, 2)``.
        """
        if self.row == SENTENCE:
            return sentence_embeddings(encoder, self.template, pairs)
        if self.row == ARITHMETIC:
            return arithmetic_embeddings(encoder.label_vectors, pairs, self.weight)
        start = (
            encoder.label_vectors[pairs[:, 0]]
            if self.start == LABEL_START
            else sentence_embeddings(encoder, self.template, pairs)
        )
        texts = np.stack([encoder.label_vectors, encoder.bare_label_vectors], axis=1)
        return optimized_embeddings(
            start,
            texts[pairs[:, 0]],
            texts[pairs[:, 1]],
            steps=self.steps,
            step_size=self.step_size,
            negative_weight=self.negative_weight,
            start_weight=self.start_weight,
        )

    def scores(
        self, encoder: NegationEncoder, outputs: SplitOutputs, pairs: ColumnIndices
    ) -> Array:
        """Return the scores of the images of a split for queries, ``(n, q)``.

        Args:
            encoder: Encoder with its labels.
            outputs: Outputs of the encoder for the images.
            pairs: Columns of the wanted and of the excluded label of each query, ``(q, 2)``.
        """
        embeddings = self.embeddings(encoder, pairs)
        return outputs.similarities(embeddings, subtract_reference=self.subtract_reference)

    @property
    def description(self) -> str:
        """Return a description of the settings of the row."""
        score = "cosine minus reference term" if self.subtract_reference else "cosine"
        if self.row == SENTENCE:
            return f'"{self.template}", {score}'
        if self.row == ARITHMETIC:
            return f"w = {self.weight:g}, {score}"
        start = f'"{self.template}"' if self.start == SENTENCE_START else "text vector of label a"
        return (
            f"initial embedding: {start}; {self.steps} steps of size {self.step_size:g}, v = "
            f"{self.negative_weight:g}, u = {self.start_weight:g}, {score}"
        )


@dataclass(frozen=True)
class SelectedSetting:
    """Selected settings of a row.

    Attributes:
        setting: Setting with the highest mean AP on validation queries, or the first of several
            equal settings.
        validation_ap: Mean AP of this setting on validation queries.
        n_candidates: Number of compared settings.
    """

    setting: EmbeddingSetting
    validation_ap: float
    n_candidates: int


def candidate_settings(row: str, plan: NegationPlan, template: str) -> Iterator[EmbeddingSetting]:
    """Iterate over the compared settings of a row.

    Args:
        row: Key of the row.
        plan: Plan with the compared values.
        template: Selected sentence, which is one of the starts of the optimization.
    """
    for subtract_reference in (False, True):
        make = partial(EmbeddingSetting, row, subtract_reference)
        if row == SENTENCE:
            yield from (make(template=sentence) for sentence in SENTENCE_TEMPLATES)
        elif row == ARITHMETIC:
            yield from (make(weight=weight) for weight in plan.weights)
        elif row == OPTIMIZED:
            for start, steps, negative_weight, start_weight in product(
                (LABEL_START, SENTENCE_START),
                plan.steps,
                plan.negative_weights,
                plan.start_weights,
            ):
                yield make(
                    template=template,
                    start=start,
                    steps=steps,
                    step_size=plan.step_size,
                    negative_weight=negative_weight,
                    start_weight=start_weight,
                )


def select_embedding_settings(
    encoder: NegationEncoder,
    pairs: ColumnIndices,
    is_positive: Flags,
    plan: NegationPlan,
    *,
    report: Callable[[], None] = lambda: None,
) -> dict[str, SelectedSetting]:
    """Return the settings with the highest mean AP on validation queries, by row.

    Args:
        encoder: Encoder, of which only the outputs for validation images are used.
        pairs: Columns of the labels of the validation queries, ``(q, 2)``.
        is_positive: True for positive targets of the validation images, ``(n, c)``.
        plan: Plan with the compared values.
        report: Function that is called after each row.
    """
    selected = dict[str, SelectedSetting]()
    template = SENTENCE_TEMPLATES[0]
    for row in (SENTENCE, ARITHMETIC, OPTIMIZED):
        candidates = list(candidate_settings(row, plan, template))
        precisions = [
            mean_average_precision_of_queries(
                partial(setting.scores, encoder, encoder.validation), pairs, is_positive
            )
            for setting in candidates
        ]
        best = int(np.argmax(precisions))
        selected[row] = SelectedSetting(candidates[best], precisions[best], len(candidates))
        template = selected[SENTENCE].setting.template
        report()
    return selected


def selected_setting_state(selected: SelectedSetting) -> dict[str, object]:
    """Return selected settings as a JSON object."""
    return asdict(selected)


def restore_selected_setting(state: dict[str, object]) -> SelectedSetting:
    """Return selected settings from the JSON object of ``selected_setting_state``."""
    setting = state["setting"]
    assert isinstance(setting, dict)
    return SelectedSetting(**(state | {"setting": EmbeddingSetting(**setting)}))  # type: ignore[arg-type]
