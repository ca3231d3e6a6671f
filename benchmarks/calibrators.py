"""Measure each calibrator by number of annotated images: `python benchmarks/calibrators.py`.

The data are simulated, so that the true probabilities are known. There are 80 labels. The true
log-odds t have the standard deviation 2 around the log-odds of the prevalence of the label, which
is log-uniform in 0.1 % to 20 %. The model predicts x:

    stretched   x = 1.7 t + 1
    bent        x of stretched, halved below 0 and increased by half above 0
    differing   t is first replaced by (t - b) / a, with an offset b (standard deviation 1 nat) and
                a slope a (30 %) for each label
    both        differing, then bent

The script prints the mean over the seeds of two values: the calibrated log loss on 10,000 other
images minus that of the true probabilities, in 1/10,000 nats per decision, and the pooled ECE in
points.
"""

import argparse

import numpy as np
from scipy.special import expit, logit

from surelabel.calibration import CALIBRATORS, Beta, UsesImageVectors, Vector
from surelabel.metrics import ece, log_loss_of_logits

LABELS, HELD_OUT = 80, 10_000
IMAGES = (50, 200, 1000, 5000)
SIMULATIONS = {
    "stretched": (False, False),
    "bent": (False, True),
    "differing": (True, False),
    "both": (True, True),
}


def simulate(images, seed, *, differing, bent):
    """Return predicted log-odds, targets and true log-odds, ``(n, c)`` each."""
    rng = np.random.default_rng(seed)
    levels = logit(10 ** rng.uniform(-3, np.log10(0.2), LABELS))
    true_logits = levels + 2 * rng.normal(size=(images, LABELS))
    targets = rng.random(true_logits.shape) < expit(true_logits)
    slope, shift = np.exp(0.3 * rng.normal(size=LABELS)), rng.normal(size=LABELS)
    logits = (true_logits - shift) / slope if differing else true_logits
    logits = 1.7 * logits + 1
    return np.where(logits < 0, 0.5, 1.5) * logits if bent else logits, targets, true_logits


class BetaThenVector:
    """Beta calibration of all labels, followed by vector scaling of each label."""

    def fit(self, logits, targets):
        self.first = Beta().fit(logits, targets)
        self.second = Vector().fit(self.first.logits(logits), targets)
        return self

    def logits(self, logits):
        return self.second.logits(self.first.logits(logits))


def measure_errors(logits, true_logits, targets):
    """Return the log loss minus the lowest possible log loss, and the ECE."""
    p = expit(true_logits)
    excess = log_loss_of_logits(logits, p) - log_loss_of_logits(true_logits, p)
    return 1e4 * excess, 100 * ece(expit(logits), targets)


ENTRIES = {  # the simulated images have no vectors
    **{key: e for key, e in CALIBRATORS.items() if not issubclass(e, UsesImageVectors)},
    "beta, then vector": BetaThenVector,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    for name, (differing, bent) in SIMULATIONS.items():
        errors = {}
        for seed in range(seeds):
            x, y, t = simulate(max(IMAGES) + HELD_OUT, seed, differing=differing, bent=bent)
            test = slice(max(IMAGES), None)
            uncalibrated = [measure_errors(x[test], t[test], y[test])] * 4
            errors.setdefault("uncalibrated", []).append(uncalibrated)
            for key, make in ENTRIES.items():
                logits = [make().fit(x[:n], y[:n]).logits(x[test]) for n in IMAGES]
                errors.setdefault(key, []).append(
                    [measure_errors(z, t[test], y[test]) for z in logits]
                )
        print(f"{name}, from {IMAGES} images")
        for key, values in errors.items():
            cells = [f"{loss:8.1f} ({error:.2f})" for loss, error in np.mean(values, axis=0)]
            print(f"{key:22}", *cells, flush=True)


if __name__ == "__main__":
    main()
