"""Compute embeddings of `a & !b`: sentences, arithmetic and optimization."""

import numpy as np

from surelabel.arrays import Array, ColumnIndices
from surelabel.bench.negation.encoder_outputs import NegationEncoder


def negation_sentences(names: tuple[str, ...], template: str, pairs: ColumnIndices) -> list[str]:
    """Return the sentence of each query.

    Args:
        names: Labels, length c.
        template: Sentence with ``{a}`` for the wanted and ``{b}`` for the excluded label.
        pairs: Columns of the wanted and of the excluded label of each query, ``(q, 2)``.

    Example:
        >>> negation_sentences(("cat", "dog"), "a {a} but no {b}.", np.array([[1, 0]]))
        ['a dog but no cat.']
    """
    return [template.format(a=names[a], b=names[b]) for a, b in pairs.tolist()]


def sentence_embeddings(encoder: NegationEncoder, template: str, pairs: ColumnIndices) -> Array:
    """Return the vectors of the sentences of all queries, ``(q, d)``.

    Args:
        encoder: Encoder with its labels.
        template: Sentence with ``{a}`` for the wanted and ``{b}`` for the excluded label.
        pairs: Columns of the wanted and of the excluded label of each query, ``(q, 2)``.
    """
    return encoder.sentence_vectors(negation_sentences(encoder.names, template, pairs))


def arithmetic_embeddings(label_vectors: Array, pairs: ColumnIndices, weight: float) -> Array:
    """Return the normalized t_a - w t_b of each query, ``(q, d)``.

    Args:
        label_vectors: Unit vectors of the labels, ``(c, d)``.
        pairs: Columns of the wanted and of the excluded label of each query, ``(q, 2)``.
        weight: Weight w of the excluded label, >= 0.
    """
    return _unit_vectors(label_vectors[pairs[:, 0]] - weight * label_vectors[pairs[:, 1]])


def optimized_embeddings(
    start: Array,
    positives: Array,
    negatives: Array,
    *,
    steps: int,
    step_size: float,
    negative_weight: float,
    start_weight: float,
) -> Array:
    """Optimize query embeddings towards positive texts and away from negative texts.

        L(e) = - mean_k cos(e, p_k) + v · mean_k cos(e, n_k) + u/2 · |e - e_0|²

    Here e_0 is the embedding at the start, and p_k and n_k are the vectors of the positive and of
    the negative texts. The negative weight is v, and the weight of the start is u. After each step,
    the embedding is normalized. In the gradient, cos is the dot product.

    Args:
        start: Unit vectors e_0, ``(q, d)``.
        positives: Unit vectors of the positive texts, ``(q, k, d)``.
        negatives: Unit vectors of the negative texts, ``(q, k, d)``.
        steps: Number of gradient steps, >= 0.
        step_size: Factor of the gradient, > 0.
        negative_weight: Weight v, >= 0.
        start_weight: Weight u, >= 0.

    Source:
        Lee et al., DEO: Training-Free Direct Embedding Optimization for Negation-Aware Retrieval,
        2026, arXiv:2603.09185, for the optimization of an embedding over positive and negative
        parts of the query.

    Differs:
        The parts are the labels of the query, not the output of a language model. The loss and
        the optimizer are ours. The steps and the weights are selected on validation queries.
    """
    attraction = positives.mean(axis=1) - negative_weight * negatives.mean(axis=1)
    embeddings = start
    for _ in range(steps):
        gradient = start_weight * (embeddings - start) - attraction
        embeddings = _unit_vectors(embeddings - step_size * gradient)
    return embeddings


def _unit_vectors(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
