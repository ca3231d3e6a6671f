"""Measure the bias of cross-fitted log loss: `python benchmarks/cross_fitting.py`.

The data are simulated, so that the true probabilities are known. There are 5 labels, whose true
log-odds z have the standard deviation 2 around the level of the label. The model predicts
x = (z + 1) / 1.5. The levels are

    frequent    -2 for all labels, which are positive in 22 % of the images
    rare        levels at which the labels are positive in 2, 3, 3, 4 and 5 % of the images

For each sampled set of n annotated images, the script computes

    shown   log loss of the cross-fitted logits (5 folds) on the targets of the n images
    true    expected log loss, on other images, of the calibrator that is fitted on all n images
    cost    mean expected log loss of the calibrators of the folds, each fitted on 80 % of the
            images, minus true

Expected values are integrals over the normal distribution of z, without sampling. The script prints
the mean of shown - true over the sets, with its standard error and its lower and upper one-sided
95 % bounds, and the mean cost, in 1/10,000 nats per decision. The lower bound must be at least -20,
and the upper bound at most the cost plus 20. The variance of the mean is reduced by a control
variate: the log loss, minus its expected value, of a calibrator that is fitted on the true
probabilities of 20,000 other images. Sets for which a fit raises an error are skipped, for example
sets without a positive target.
"""

import argparse
import time

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from surelabel.calibration import CALIBRATORS, UsesImageVectors, cross_fitted_logits
from surelabel.errors import InputError
from surelabel.metrics import log_loss_of_logits

KEYS = [key for key, entry in CALIBRATORS.items() if not issubclass(entry, UsesImageVectors)]
SPREAD, FOLDS, MARGIN = 2.0, 5, 0.002
STEPS = np.linspace(-8, 8, 801)  # points of the integral over z, in standard deviations
WEIGHTS = norm.pdf(STEPS) / norm.pdf(STEPS).sum()
PREVALENCES = np.array([0.02, 0.03, 0.03, 0.04, 0.05])
SETS = {50: 2000, 200: 1000, 1000: 400}  # number of sampled sets by number of images


def level_of_prevalence(prevalence):
    """Return the level at which a label is positive in the given fraction of the images."""
    return brentq(lambda m: WEIGHTS @ expit(m + SPREAD * STEPS) - prevalence, -15, 5)


SCENARIOS = {
    "frequent": np.full(5, -2.0),
    "rare": np.array([level_of_prevalence(p) for p in PREVALENCES]),
}


def predicted(true_logits):
    return (true_logits + 1) / 1.5


def sample(levels, images, rng):
    """Return the true log-odds and the targets of images, ``(n, c)`` each."""
    true_logits = levels + SPREAD * rng.normal(size=(images, len(levels)))
    return true_logits, (rng.random(true_logits.shape) < expit(true_logits)).astype(float)


def expected_log_loss(calibrator, levels):
    """Return the expected log loss of a calibrator on images that were not sampled."""
    true_logits = levels + SPREAD * STEPS[:, None]
    z, p = calibrator.logits(predicted(true_logits)), expit(true_logits)
    return float((WEIGHTS @ (np.logaddexp(0, z) - p * z)).mean())


def record_bias(key, levels, images, seed, limit):
    """Return shown minus true with the control variate, and the cost, of one sampled set."""
    true_logits, targets = sample(levels, images, np.random.default_rng([images, seed]))
    x, fold_calibrators = predicted(true_logits), []

    def make():
        fold_calibrators.append(CALIBRATORS[key]())
        return fold_calibrators[-1]

    true = expected_log_loss(CALIBRATORS[key]().fit(x, targets), levels)
    logits = cross_fitted_logits(make, x, targets, folds=FOLDS, seed=seed)
    control = log_loss_of_logits(limit.logits(x), targets) - expected_log_loss(limit, levels)
    fold_loss = np.mean([expected_log_loss(c, levels) for c in fold_calibrators])
    return log_loss_of_logits(logits, targets) - true - control, fold_loss - true


def measure(key, scenario, images, sets):
    """Return a line of the table with the means over the sets."""
    start, levels = time.perf_counter(), SCENARIOS[scenario]
    many, _ = sample(levels, 20_000, np.random.default_rng(0))
    limit = CALIBRATORS[key]().fit(predicted(many), expit(many))
    values = []
    for seed in range(sets):
        try:
            values.append(record_bias(key, levels, images, seed, limit))
        except InputError:  # there is only one class
            continue
    bias, cost = np.mean(values, axis=0)
    error = np.std(values, axis=0, ddof=1)[0] / len(values) ** 0.5
    lower, upper = bias + norm.ppf([0.05, 0.95]) * error
    met = lower >= -MARGIN and upper <= cost + MARGIN
    return (
        f"{scenario:9}{key:21}{images:5}{len(values):6}{1e4 * bias:10.1f}{1e4 * error:9.1f}"
        f"{1e4 * lower:9.1f}{1e4 * upper:9.1f}{1e4 * cost:9.1f}{'yes' if met else 'NO':>5}"
        f"{time.perf_counter() - start:6.0f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calibrators", nargs="+", default=KEYS, choices=KEYS)
    parser.add_argument("--images", nargs="+", type=int, default=[*SETS], choices=[*SETS])
    parser.add_argument("--scenarios", nargs="+", default=[*SCENARIOS], choices=[*SCENARIOS])
    parser.add_argument("--sets", type=float, default=1.0, help="factor for the number of sets")
    arguments = parser.parse_args()
    print(
        "levels   calibrator             n  sets shown-true    error    lower    upper     cost  "
        "met     s"
    )
    for scenario in arguments.scenarios:
        for key in arguments.calibrators:
            for images in arguments.images:
                sets = round(SETS[images] * arguments.sets)
                print(measure(key, scenario, images, sets), flush=True)


if __name__ == "__main__":
    main()
