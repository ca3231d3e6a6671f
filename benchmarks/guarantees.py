"""Count refusals and violations of `at_most_wrong`, and of its rule in version 0.1.0.

The simulated recognizers have 10 labels. Their log-odds are calibrated (normal, or normal given
each target), or twice as large (overconfident). A guarantee is refused if it is not reached or
predicts fewer than 0.1 labels per image. A guarantee is violated if the true risk of its threshold,
computed from 100,000 images, is above the level. `python benchmarks/guarantees.py [DRAWS]` takes 8
minutes for 1,000 draws.
"""

import sys
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom

from surelabel.decisions import ValidationRecord, at_most_wrong, record_validation

LABELS, TEST_IMAGES, MIN_LABELS_PER_IMAGE = 10, 100_000, 0.1
SETTINGS = [  # recognizer, labelled images, level, confidence; the first is the main setting
    ("log-odds N(-1.5, 2.25)", 300, 0.1, 0.9),
    ("log-odds N(-1, 2)", 300, 0.1, 0.9),
    ("prevalence 0.2, skill 2", 300, 0.1, 0.9),
    ("log-odds N(-3, 3)", 300, 0.1, 0.9),
    ("prevalence 0.1, skill 2.4", 300, 0.1, 0.9),
    ("rare: prevalence 0.05, skill 2.9", 300, 0.1, 0.9),
    ("rare: prevalence 0.03, skill 4", 300, 0.1, 0.9),
    ("log-odds N(-1, 2)", 100, 0.1, 0.9),
    ("log-odds N(-1, 2)", 1000, 0.1, 0.9),
    ("log-odds N(-1, 2)", 300, 0.05, 0.9),
    ("prevalence 0.1, skill 2.4", 300, 0.05, 0.9),
    ("log-odds N(-1, 2)", 1000, 0.05, 0.9),
    ("log-odds N(-1, 2)", 100, 0.2, 0.9),
    ("log-odds N(-1, 2)", 300, 0.2, 0.9),
    ("log-odds N(-1, 2)", 300, 0.1, 0.8),
    ("log-odds N(-1, 2)", 300, 0.1, 0.95),
    ("overconfident", 100, 0.2, 0.8),
    ("overconfident", 300, 0.1, 0.9),
    ("overconfident", 1000, 0.2, 0.9),
    ("risk just above the level", 300, 0.1, 0.9),
    ("risk just above the level", 300, 0.1, 0.8),
    ("risk just above the level", 1000, 0.05, 0.9),
]


def simulate(
    rng: np.random.Generator, recognizer: str, images: int, level: float
) -> ValidationRecord:
    """Return the validation record of simulated images."""
    shape = (images, LABELS)
    if recognizer == "risk just above the level":  # one label per image; random scores
        logits = np.full(shape, -9.0)
        logits[:, 0] = rng.normal(2.5, 1.5, images)
        targets = np.zeros(shape)
        targets[:, 0] = rng.random(images) > 1.05 * level
        return record_validation(logits, targets)
    if "skill" in recognizer:
        prevalence, skill = (float(part.split()[-1]) for part in recognizer.split(","))
        targets = rng.random(shape) < prevalence
        evidence = rng.normal(size=shape) + skill * targets
        return record_validation(skill * evidence - skill**2 / 2 + logit(prevalence), targets)
    is_overconfident = recognizer == "overconfident"
    values = "-1, 2" if is_overconfident else recognizer.partition("(")[2].rstrip(")")
    mean, deviation = map(float, values.split(","))
    logits = rng.normal(mean, deviation, shape)
    targets = rng.random(shape) < expit(logits)
    return record_validation(logits * (2 if is_overconfident else 1), targets)


def threshold_of_0_1_0(record: ValidationRecord, level: float, confidence: float) -> float:
    """Return the threshold of the rule of 0.1.0, one sequence of Hoeffding-Bentkus tests."""
    index, threshold = int(np.searchsorted(record.thresholds, 1 - level)), 1.0
    while index >= 0:
        n, total = record.images_with_predictions[index], record.false_discovery_sum[index]
        r = min(total / max(n, 1), level)
        divergence = (r * np.log(r / level) if r else 0) + (1 - r) * np.log((1 - r) / (1 - level))
        bentkus = np.e * binom.cdf(np.ceil(total - 1e-6), n, level)
        if n == 0 or min(np.exp(-n * divergence), bentkus) > 1 - confidence:
            break
        threshold, index = float(record.thresholds[index]), index - 1
    return threshold


def threshold_of_today(record: ValidationRecord, level: float, confidence: float) -> float:
    """Return the threshold of `at_most_wrong`, or 1 if the guarantee is not reached."""
    return at_most_wrong(record, level=level, confidence=confidence).threshold


def outcome(
    threshold: float, record: ValidationRecord, test: ValidationRecord, level: float
) -> tuple[bool, bool, float]:
    """Return whether a guarantee is refused, whether it is violated, and its labels per image."""
    index = int(np.searchsorted(record.thresholds, threshold))
    labels_per_image = float(record.predicted_positives[:, index].sum()) / record.images
    if labels_per_image < MIN_LABELS_PER_IMAGE:
        return True, False, 0.0
    risk = test.false_discovery_sum[index] / test.images_with_predictions[index]
    return False, bool(risk > level), labels_per_image


def main(draws: int) -> None:
    """Print one line for each setting and rule."""
    rules: dict[str, Callable[[ValidationRecord, float, float], float]] = {
        "0.1.0": threshold_of_0_1_0,
        "today": threshold_of_today,
    }
    print(f"{draws} draws; the intervals are 2 standard errors")
    print(
        f"{'recognizer':34}images  level  confidence  rule   refused         violated        labels"
    )
    for recognizer, images, level, confidence in SETTINGS:
        test = simulate(np.random.default_rng(1), recognizer, TEST_IMAGES, level)
        rng = np.random.default_rng(0)
        records = [simulate(rng, recognizer, images, level) for _ in range(draws)]
        for name, rule in rules.items():
            outcomes = [
                outcome(rule(record, level, confidence), record, test, level) for record in records
            ]
            refused, violated, labels = np.mean(outcomes, axis=0)
            cells = "  ".join(
                f"{share:.3f} ± {2 * np.sqrt(share * (1 - share) / draws):.3f} "
                for share in (refused, violated)
            )
            print(
                f"{recognizer:34}{images:6}  {level:5}  {confidence:10}  {name}  {cells}"
                f"{labels:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
