"""Measure errors of formula probabilities that treat labels as independent given the image."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import expit

from surelabel.arrays import Array, Flags
from surelabel.bench.negation.plan import NegationPlan
from surelabel.bench.negation.query_sets import NegationQuery, sample_conjunctions
from surelabel.metrics import POOLED, ConfidenceInterval, noise_floor
from surelabel.metrics.resampling.bootstrap import shifted_bootstrap_interval

PAIR_BLOCK = 200  # pairs of labels whose probabilities are in memory at once


@dataclass(frozen=True)
class ConjunctionCalibration:
    """Calibration of the probabilities of sampled conjunctions of one length and kind.

    Attributes:
        length: Number of literals.
        with_unwanted: Whether at least one literal is unwanted.
        n_queries: Number of distinct conjunctions.
        n_unfulfilled: Number of conjunctions without a relevant test image.
        mean_probability: Mean probability over conjunctions and test images.
        relevance_rate: Share of relevant pairs of a conjunction and a test image.
        difference: Mean probability minus relevance rate, with its interval over test images.
        ratio: Mean probability divided by relevance rate, with its interval over test images.
        ece: Expected calibration error over conjunctions and test images, 15 bins.
        ece_noise_floor: Noise floor of the expected calibration error.
    """

    length: int
    with_unwanted: bool
    n_queries: int
    n_unfulfilled: int
    mean_probability: float
    relevance_rate: float
    difference: ConfidenceInterval
    ratio: ConfidenceInterval
    ece: float
    ece_noise_floor: float


@dataclass(frozen=True)
class PairCalibration:
    """Errors of P(a) P(b) as an estimate of the share of images with both labels, a and b.

    Attributes:
        is_frequent: Whether only pairs with enough validation images with both labels are included.
        n_pairs: Number of unordered pairs of labels.
        expected_share: Mean over pairs of P(a) P(b), averaged over test images.
        observed_share: Mean over pairs of the share of test images with both labels.
        signed_error: Mean over pairs of expected minus observed share, with its interval over test
            images.
        absolute_error: Mean over pairs of the absolute difference of both shares.
        absolute_error_noise_floor: Mean absolute error for targets that are sampled from P(a) P(b).
    """

    is_frequent: bool
    n_pairs: int
    expected_share: float
    observed_share: float
    signed_error: ConfidenceInterval
    absolute_error: float
    absolute_error_noise_floor: float


def conjunction_calibrations(
    logits: Array,
    is_positive: Flags,
    validation: Flags,
    weights: Array,
    plan: NegationPlan,
    *,
    seed: int,
) -> list[ConjunctionCalibration]:
    """Return the calibration of sampled conjunctions, by length and kind.

    Args:
        logits: Calibrated log-odds of the test images, ``(n, c)``.
        is_positive: True for positive targets of the test images, ``(n, c)``.
        validation: True for positive targets of the validation images, from which conjunctions are
            sampled, ``(m, c)``.
        weights: Number of times that each test image occurs in the original sample (first row) and
            in r resamples, ``(1 + r, n)``.
        plan: Plan with the numbers of conjunctions and literals.
        seed: Seed of the sampling.
    """
    rows = []
    for length, with_unwanted in product(range(1, plan.max_length + 1), (False, True)):
        if length == 1 and with_unwanted:
            continue
        conjunctions = sample_conjunctions(
            validation, length, plan.conjunctions, with_unwanted=with_unwanted, seed=seed
        )
        if conjunctions:
            rows.append(
                _calibration_of(conjunctions, expit(logits), is_positive, weights, plan, seed)
            )
    return rows


def pair_calibrations(
    logits: Array,
    is_positive: Flags,
    validation: Flags,
    weights: Array,
    plan: NegationPlan,
    *,
    seed: int,
) -> list[PairCalibration]:
    """Return the errors of P(a) P(b) for all pairs, and for frequent pairs.

    Args:
        logits: Calibrated log-odds of the test images, ``(n, c)``.
        is_positive: True for positive targets of the test images, ``(n, c)``.
        validation: True for positive targets of the validation images, ``(m, c)``.
        weights: Number of times that each test image occurs in the original sample (first row) and
            in r resamples, ``(1 + r, n)``.
        plan: Plan with the minimum number of images of frequent pairs.
        seed: Seed of the sampled targets.
    """
    p, y, v = expit(logits), is_positive.astype(float), validation.astype(float)
    first, second = np.triu_indices(p.shape[1], k=1)
    n_both = (v.T @ v)[first, second]
    rng, rows = np.random.default_rng(seed), []
    for is_frequent in (False, True):
        used = n_both >= (plan.min_pair_images if is_frequent else 0)
        if not used.any():
            continue
        a, b = first[used], second[used]
        expected, observed = (p.T @ p)[a, b] / len(p), (y.T @ y)[a, b] / len(y)
        error_sums, floors = np.zeros(len(p)), list[Array]()
        for block in _pair_blocks(len(a)):
            probabilities = p[:, a[block]] * p[:, b[block]]
            error_sums += (probabilities - y[:, a[block]] * y[:, b[block]]).sum(axis=1)
            floors += _sampled_absolute_errors(probabilities, plan.floor_resamples, rng)
        rows.append(
            PairCalibration(
                is_frequent=is_frequent,
                n_pairs=len(a),
                expected_share=float(expected.mean()),
                observed_share=float(observed.mean()),
                signed_error=_interval(weights @ error_sums / (len(p) * len(a))),
                absolute_error=float(np.abs(expected - observed).mean()),
                absolute_error_noise_floor=float(np.concatenate(floors).mean()),
            )
        )
    return rows


def _calibration_of(
    conjunctions: Sequence[NegationQuery],
    p: Array,
    is_positive: Flags,
    weights: Array,
    plan: NegationPlan,
    seed: int,
) -> ConjunctionCalibration:
    """Return the calibration of conjunctions of one length and kind."""
    probabilities = np.stack([c.probability(p) for c in conjunctions], axis=1)
    matches = np.stack([c.matches(is_positive) for c in conjunctions], axis=1).astype(float)
    expected, observed = (
        weights @ values.mean(axis=1) / len(p) for values in (probabilities, matches)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(observed > 0, expected / observed, np.nan)
    return ConjunctionCalibration(
        length=len(conjunctions[0].wanted) + len(conjunctions[0].unwanted),
        with_unwanted=bool(conjunctions[0].unwanted),
        n_queries=len(conjunctions),
        n_unfulfilled=int((matches.sum(axis=0) == 0).sum()),
        mean_probability=float(expected[0]),
        relevance_rate=float(observed[0]),
        difference=_interval(expected - observed),
        ratio=_interval(ratios),
        ece=POOLED["ece"](probabilities, matches),
        ece_noise_floor=float(
            noise_floor(POOLED["ece"], probabilities, resamples=plan.floor_resamples, seed=seed)
        ),
    )


def _interval(values: Array) -> ConfidenceInterval:
    """Return the first value with its 95 % interval from the other values."""
    return shifted_bootstrap_interval(float(values[0]), values[1:])


def _pair_blocks(n_pairs: int) -> list[slice]:
    """Return slices of at most ``PAIR_BLOCK`` pairs."""
    return [slice(start, start + PAIR_BLOCK) for start in range(0, n_pairs, PAIR_BLOCK)]


def _sampled_absolute_errors(
    probabilities: Array, resamples: int, rng: np.random.Generator
) -> list[Array]:
    """Return the absolute errors of shares for targets that are sampled from probabilities.

    Args:
        probabilities: Probabilities of n images and q pairs, ``(n, q)``.
        resamples: Number of arrays of errors, ``(q,)`` each.
        rng: Random generator.
    """
    shares = probabilities.mean(axis=0)
    return [
        np.abs((rng.random(probabilities.shape) < probabilities).mean(axis=0) - shares)
        for _ in range(resamples)
    ]
