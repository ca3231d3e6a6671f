"""Standardize scores per image and per label, and average them with scores of label pairs."""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.label_aliases import split_label_aliases
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.text_scoring.text_scorer import (
    TextScorer,
    text_scorer_background_without_labels,
)
from surelabel.records import Features
from surelabel.views.relative_scores import MIN_LABELS

MAX_PAIRS = 2000  # limit of the number of pair texts for all labels together
MIN_DEVIATION = 1e-6  # smaller deviations are rounding errors


class Standardized(Method):
    """Standardize scores per image and per label, and average them with scores of label pairs.

        z_ij = column(row(s_ij))        row, column: subtract mean, divide by deviation
        score_ij = ½ z_ij + ½ w_j · (sorted_k z_i(j and k), z_ij)

    s_ij is the score of image i for label j, z_ij is the standardized score, and w_j is a weight
    vector. z_i(j and k) is the standardized score of image i for the pair of labels j and k. The
    scores z_i(j and k) are sorted over k. A row contains the scores of an image, and a column
    contains the scores of a label or a pair.

    ``fit_unlabelled`` estimates the column statistics and the weights w_j on unlabelled images. The
    unlabelled images are usually the images to be scored (a transductive fit) or similar images.
    After the fit, each image is scored independently of other images. Label pairs have texts such
    as "a photo of a lion and a guitar." The scores of pairs are standardized with the row mean and
    row deviation of single labels in the same template. The weight vector w_j is the first
    principal component of the sorted scores over the images, with L1 norm 1 and a positive mean.
    The scores of all images of a fit are in memory: about 12 · c · (1 + k) bytes per image for c
    labels with k pairs each.

    Args:
        encoder: Encoder of the texts; ``encoder.scale`` is the default of ``scale``.
        names: Labels, three or more. Synonyms of one label are separated by ``|``, as in
            ``sofa|couch``. The text of a pair contains the first synonym of each label.
        templates: Prompt templates of single labels; see ``TextScorer``. Pairs have a separate
            template.
        domain: Score domain; see ``TextScorer``. All domains except ``softmax`` lead to equal
            scores, because they are linear in the cosines, up to a constant per image.
        background: Background words, which are included in the row statistics; see ``TextScorer``.
        scale: Factor of the cosines; see ``TextScorer``.
        pairs_per_label: Number of pairs per label, >= 0. Each label is paired with the labels whose
            texts are most similar. The number is reduced if there are fewer other labels, or if
            there would be more than 2,000 pairs in total. If 0, scores are only standardized.

    Raises:
        ConfigError: If there are fewer than three labels, or a setting is out of range.

    Source:
        SPARC (Miller et al., CVPR 2025), sections 3.2 to 3.4.

    Differs:
        In the paper a language model lists labels that co-occur; here the labels with the nearest
        texts are paired. The paper uses 80 templates for single labels; the default here is one
        template. Column statistics are stored, so that single images can be scored after the fit.

        The method does not improve the mAP on scenes-80. On the validation images, the mAP is 49.9
        (tiny-vit) and 50.0 (tiny-rn) without pairs, and 49.6 to 49.8 with 2 to 20 pairs per label,
        of nearest or random labels. With ``domain=softmax`` and without pairs, the mAP is 50.4. The
        mAP of ``zero_shot`` is 51.4 and 51.1.
    """

    learns_from = "images"
    needs = ()
    open_vocabulary = False
    recipe = TrainingRecipe()

    mean: Tensor
    deviation: Tensor
    weights: Tensor
    n_images: Tensor

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        domain: str = "reference",
        background: str | Sequence[str] = "none",
        scale: float | None = None,
        pairs_per_label: int = 10,
    ):
        super().__init__()
        if pairs_per_label < 0:
            raise ConfigError(f"pairs_per_label must be 0 or more; got {pairs_per_label}.")
        if len(names) < MIN_LABELS:
            raise ConfigError(
                f"standardized compares labels with each other and needs {MIN_LABELS} or more; "
                f"got {len(names)}. Add labels, or use the method zero_shot."
            )
        words = text_scorer_background_without_labels(background, names)
        first_synonyms = [split_label_aliases(name)[0] for name in names]
        self.label_scorer = TextScorer(
            encoder, [*names, *words], templates=templates, domain=domain, scale=scale
        )
        self.n_labels, self.row_length = len(names), len(names) + len(words)
        neighbours = nearest_labels_for_standardized(
            self.label_scorer.texts[: self.n_labels], pairs_per_label
        )
        pairs = [
            f"{first_synonyms[i]} and a {first_synonyms[j]}"
            for i, nearest in enumerate(neighbours)
            for j in nearest
        ]
        self.pair_scorer = (
            TextScorer(encoder, [*first_synonyms, *words, *pairs], domain=domain, scale=scale)
            if pairs
            else None
        )
        n_columns = self.n_labels + len(pairs)
        self.register_buffer("mean", torch.zeros(n_columns))
        self.register_buffer("deviation", torch.ones(n_columns))
        self.register_buffer("weights", torch.zeros(self.n_labels, n_columns // self.n_labels))
        self.register_buffer("n_images", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def fit_unlabelled(self, features: Features) -> None:
        """Estimate the column statistics and the weights of sorted scores on unlabelled images.

        Raises:
            InputError: If there are fewer than two images.
        """
        if len(features.pooled) < 2:
            raise InputError(
                f"standardized needs two images or more to standardize labels; "
                f"got {len(features.pooled)}. Fit on the images to be scored, or on similar images."
            )
        rows = self._row_standardized_scores(features.pooled)
        deviation = rows.std(dim=0)
        if bool((deviation[: self.n_labels] <= MIN_DEVIATION).all()):
            warnings.warn(
                f"The {len(rows)} images have equal scores, so all standardized scores are 0. "
                "Fit on images that differ, or use the method zero_shot.",
                stacklevel=3,  # past no_grad
            )
        self.mean.copy_(rows.mean(dim=0))
        self.deviation.copy_(torch.where(deviation > MIN_DEVIATION, deviation, 1.0))
        self.weights.copy_(principal_component_of_standardized(self._sorted_columns(rows)))
        self.n_images.fill_(len(rows))

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.pooled`` ``(n, d)``.

        Raises:
            NotFitted: If ``fit_unlabelled`` was not called before.
        """
        if not torch.compiler.is_exporting() and not self.n_images:
            raise NotFitted(
                "standardized must be fitted on images before images are scored; labels are not "
                "needed. Call fit(images) first."
            )
        columns = self._sorted_columns(self._row_standardized_scores(features.pooled))
        return ((columns * self.weights).sum(dim=-1) + columns[..., -1]) / 2

    def _row_standardized_scores(self, vectors: Tensor) -> Tensor:
        """Return row-standardized scores of c labels and of k pairs per label, ``(n, c + c k)``."""
        labels = standardize_rows_of_labels_and_pairs(self.label_scorer(vectors), self.row_length)[
            :, : self.n_labels
        ]
        if self.pair_scorer is None:
            return labels
        pairs = standardize_rows_of_labels_and_pairs(self.pair_scorer(vectors), self.row_length)[
            :, self.row_length :
        ]
        return torch.cat([labels, pairs], dim=1)

    def _sorted_columns(self, rows: Tensor) -> Tensor:
        """Return the k sorted pair scores of each label, then its score, ``(n, c, k + 1)``.

        All scores are standardized per column.
        """
        columns = (rows - self.mean) / self.deviation
        labels, pairs = columns[:, : self.n_labels], columns[:, self.n_labels :]
        ascending = pairs.view(rows.shape[0], self.n_labels, -1).sort(dim=-1).values
        return torch.cat([ascending, labels[..., None]], dim=-1)


def nearest_labels_for_standardized(texts: Tensor, count: int) -> list[list[int]]:
    """Return for each label the indices of the labels with the most similar texts, nearest first.

    Args:
        texts: Unit text vectors of the labels, ``(c, d)``.
        count: Number of neighbours per label. The number is reduced if there are fewer other
            labels, or if there would be more than 2,000 pairs in total.

    Example:
        >>> nearest_labels_for_standardized(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), 1)
        [[1], [0], [1]]
    """
    n_labels = len(texts)
    count = min(count, n_labels - 1, MAX_PAIRS // n_labels)
    cosines = (texts @ texts.T).fill_diagonal_(-torch.inf)
    order = cosines.argsort(dim=1, descending=True, stable=True)
    neighbours: list[list[int]] = order[:, :count].tolist()
    return neighbours


def standardize_rows_of_labels_and_pairs(scores: Tensor, reference_columns: int) -> Tensor:
    """Standardize each row with the mean and the standard deviation of its first columns.

    Args:
        scores: Scores of n images in m columns, ``(n, m)``.
        reference_columns: Number of first columns from which the mean and the standard deviation
            are computed.

    Returns:
        Standardized scores ``(n, m)``. If the standard deviation of the first columns of a row is
        at most 1e-6, all scores of the row are 0.

    Example:
        >>> standardize_rows_of_labels_and_pairs(torch.tensor([[1.0, 2.0, 3.0, 7.0]]), 3)
        tensor([[-1.,  0.,  1.,  5.]])
    """
    reference = scores[:, :reference_columns]
    deviation = reference.std(dim=1, keepdim=True)
    centred = scores - reference.mean(dim=1, keepdim=True)
    standardized = centred / deviation.clamp(min=MIN_DEVIATION)
    return torch.where(deviation > MIN_DEVIATION, standardized, 0.0)


def principal_component_of_standardized(columns: Tensor) -> Tensor:
    """Return the first principal component of the scores of each label, with L1 norm 1.

    Args:
        columns: ``k`` scores of ``n`` images for each of ``c`` labels, ``(n, c, k)``.

    Returns:
        Weights with a positive mean, ``(c, k)``. If all scores of a label are constant, the weights
        of the label are equal.

    Example:
        >>> columns = torch.tensor([[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]]])
        >>> principal_component_of_standardized(columns)
        tensor([[0.5000, 0.5000]])
    """
    centred = (columns - columns.mean(dim=0)).double()
    scatter = torch.einsum("nck,ncl->ckl", centred, centred)
    eigenvalues, eigenvectors = torch.linalg.eigh(scatter)
    component = eigenvectors[..., -1]
    component = torch.where(eigenvalues[..., -1:] > MIN_DEVIATION**2, component, 1.0)
    sign = torch.where(component.mean(dim=-1, keepdim=True) < 0, -1.0, 1.0)
    component = component * sign
    return (component / component.abs().sum(dim=-1, keepdim=True)).to(columns.dtype)
