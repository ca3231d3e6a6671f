"""How good each calibrator is, and from how many labels: `python benchmarks/calibrators.py`.

Simulated, so that the true probabilities are known: 80 labels, log-odds t of standard deviation 2
around a level of 0.1 % to 20 %, evenly spread in its logarithm. A model says x instead:

    stretched   x = 1.7 t + 1
    bent        the same, halved below 0 and half as much again above
    differing   first (t - b) / a with a level b (1 nat) and a slope a (30 %) of each label's own
    both        differing, then bent

Printed is what the calibrated log loss on 10,000 other pictures lies above that of the true
probabilities, in 1/10,000 nats a decision, and the pooled ECE in points; mean of the seeds.
"""

import argparse

import numpy as np
from scipy.special import expit, logit

from surelabel.calibration import CALIBRATORS, Beta, Vector
from surelabel.metrics import ece, log_loss_of_logits

LABELS, HELD_OUT = 80, 10_000
PICTURES = (50, 200, 1000, 5000)
WORLDS = {
    "stretched": (False, False),
    "bent": (False, True),
    "differing": (True, False),
    "both": (True, True),
}


def world(pictures, seed, *, differing, bent):
    """What the model says, what is there, and the true log-odds."""
    rng = np.random.default_rng(seed)
    levels = logit(10 ** rng.uniform(-3, np.log10(0.2), LABELS))
    truth = levels + 2 * rng.normal(size=(pictures, LABELS))
    targets = rng.random(truth.shape) < expit(truth)
    slope, shift = np.exp(0.3 * rng.normal(size=LABELS)), rng.normal(size=LABELS)
    said = (truth - shift) / slope if differing else truth
    said = 1.7 * said + 1
    return np.where(said < 0, 0.5, 1.5) * said if bent else said, targets, truth


class BetaThenVector:
    """One bend for all labels, then two numbers for each."""

    def fit(self, logits, targets):
        self.first = Beta().fit(logits, targets)
        self.second = Vector().fit(self.first.logits(logits), targets)
        return self

    def logits(self, logits):
        return self.second.logits(self.first.logits(logits))


def judged(logits, truth, targets):
    """Log loss above the least possible one, and ECE."""
    p = expit(truth)
    above = log_loss_of_logits(logits, p) - log_loss_of_logits(truth, p)
    return 1e4 * above, 100 * ece(expit(logits), targets)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    for name, (differing, bent) in WORLDS.items():
        found = {}
        for seed in range(seeds):
            x, y, t = world(max(PICTURES) + HELD_OUT, seed, differing=differing, bent=bent)
            rest = slice(max(PICTURES), None)
            found.setdefault("as said", []).append([judged(x[rest], t[rest], y[rest])] * 4)
            for key, make in (CALIBRATORS | {"beta, then vector": BetaThenVector}).items():
                logits = [make().fit(x[:n], y[:n]).logits(x[rest]) for n in PICTURES]
                found.setdefault(key, []).append([judged(z, t[rest], y[rest]) for z in logits])
        print(f"{name}, from {PICTURES} pictures")
        for key, numbers in found.items():
            cells = [f"{loss:8.1f} ({error:.2f})" for loss, error in np.mean(numbers, axis=0)]
            print(f"{key:22}", *cells, flush=True)


if __name__ == "__main__":
    main()
