"""Compare expected and achieved precision and recall of operating points, without shrinkage too.

The data are simulated, with 80 labels of prevalence 0.4 to 20 % and varying difficulty. The
log-odds are calibrated, or each label has a random offset of standard deviation 0.5. Thresholds
from 300 or 1,000 images are evaluated on 20,000 other images. `python
benchmarks/operating_points.py` takes a minute.
"""

import numpy as np
from scipy.special import logit

from surelabel.decisions import OPERATING_POINTS, ValidationRecord, record_validation

GOALS = {"precision": {"at_least": 0.8}, "recall": {"at_least": 0.8}, "f1": {}}
LABELS, TEST_IMAGES, SEEDS = 80, 20_000, 6


def simulate(rng, images, prevalence, skill, offset) -> ValidationRecord:
    """Return the validation record of simulated images."""
    targets = rng.random((images, LABELS)) < prevalence
    evidence = rng.normal(size=targets.shape) + skill * targets
    logits = skill * evidence - skill**2 / 2 + logit(prevalence) + offset
    return record_validation(logits, targets)


def mean_outcome(thresholds, test: ValidationRecord) -> list[float]:
    """Return the means over labels of expected and achieved precision and recall, and of F1."""
    columns = np.searchsorted(test.thresholds, thresholds.values)
    rows = np.arange(LABELS)
    true_positives = test.true_positives[rows, columns]
    predicted = test.predicted_positives[rows, columns]
    nan = np.full(LABELS, np.nan)
    precision = np.divide(true_positives, predicted, out=nan, where=predicted > 0)
    recall = true_positives / test.support
    f1 = 2 * true_positives / (predicted + test.support)
    values = (thresholds.precision, precision, thresholds.recall, recall, f1)
    return [float(np.nanmean(value)) for value in values]


def main() -> None:
    """Print one line for each operating point and shrinkage."""
    print(
        "images  offset  goal       shrinkage  precision: expected, achieved  "
        "recall: expected, achieved  F1"
    )
    for images in (300, 1000):
        for deviation in (0.0, 0.5):
            rows: dict[tuple[str, float], list[list[float]]] = {}
            for seed in range(SEEDS):
                rng = np.random.default_rng(seed)
                prevalence = np.exp(rng.uniform(np.log(0.004), np.log(0.2), LABELS))
                labels = prevalence, rng.uniform(1, 4, LABELS), deviation * rng.normal(size=LABELS)
                record = simulate(rng, images, *labels)
                test = simulate(rng, TEST_IMAGES, *labels)
                for goal, setting in GOALS.items():
                    for weight in (0.0, 5.0, 10.0, 20.0, 50.0):
                        thresholds = OPERATING_POINTS[goal](record, shrinkage=weight, **setting)
                        rows.setdefault((goal, weight), []).append(mean_outcome(thresholds, test))
            for (goal, weight), values in sorted(rows.items()):
                cells = "  ".join(f"{v:.3f}" for v in np.mean(values, axis=0))
                print(f"{images:8}  {deviation:6}  {goal:9}  {weight:9}  {cells}", flush=True)


if __name__ == "__main__":
    main()
