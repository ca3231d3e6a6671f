"""Measure the coverage of the paired intervals of ``surelabel compare`` on simulated predictions.

    .venv/bin/python benchmarks/paired_intervals.py

The labels of an image are dependent: a latent vector of the image determines their log-odds, from
which the targets are sampled. Each model adds noise to the log-odds and multiplies them, so that
it is less accurate and miscalibrated. The expected difference is the mean over further draws.

The script prints three tables:

metrics     Share of draws whose 95 % interval contains the expected difference at this number of
            images, and the expected difference.
labels      Share of draws whose 95 % interval of a label contains its expected difference, by the
            number of positive targets of the label.
null        Share of draws in which a label is marked as different, and share of marked labels, for
            two models with equal noise. No label of these models has an expected difference.
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit

from surelabel.arrays import Array
from surelabel.evaluation import compare_predictions
from surelabel.metrics import PROBABILITY, PROBABILITY_PER_CLASS, RANKING, RANKING_PER_CLASS
from surelabel.records import LabelledImages, Predictions

LABELS, THEMES = 8, 3
RESAMPLES = 200
MODELS = {  # noise of A and B, and factor of the log-odds of A and B
    "different": ((1.0, 0.6), (1.0, 1.6)),
    "equal": ((0.8, 0.8), (1.0, 1.0)),
}
LABEL_METRICS = ("average_precision", "log_loss", "brier")
BANDS = ((5, 9), (10, 19), (20, 49), (50, 10_000))  # numbers of positive targets of a label


def draw_dataset(n_images: int, models: str, seed: int) -> tuple[Array, list[Array]]:
    """Return the targets of sampled images, and the log-odds of both models."""
    weights = np.random.default_rng(0).normal(size=(THEMES, LABELS))  # equal for all draws
    levels = np.linspace(-3, -0.5, LABELS)
    random = np.random.default_rng([1, seed])
    logits = levels + random.normal(size=(n_images, THEMES)) @ weights
    targets = (random.random(logits.shape) < expit(logits)).astype(float)
    predicted = [
        (factor * (logits + noise * random.normal(size=logits.shape))).clip(-40, 40)
        for noise, factor in zip(*MODELS[models], strict=True)
    ]
    return targets, predicted


def expected_differences(n_images: int, models: str, draws: int) -> dict[str, Array]:
    """Return the mean difference B − A of each metric over draws, pooled and for each label."""
    values = defaultdict[str, list[Array]](list)
    for seed in range(draws):
        targets, logits = draw_dataset(n_images, models, 1_000_000 + seed)
        pair = [(values, expit(values)) for values in logits]
        for name, metric in (RANKING | PROBABILITY).items():
            side = 0 if name in RANKING else 1
            first, second = (metric(values[side], targets) for values in pair)
            values[name].append(np.array(second - first))
        for name in LABEL_METRICS:
            side = 0 if name in RANKING_PER_CLASS else 1
            metric_per_class = (RANKING_PER_CLASS | PROBABILITY_PER_CLASS)[name]
            first, second = (metric_per_class(values[side], targets) for values in pair)
            values[f"{name} by label"].append(second - first)
    return {name: np.nanmean(np.stack(arrays), axis=0) for name, arrays in values.items()}


def measure_draws(n_images: int, models: str, draws: int, n_expected: int) -> None:
    """Print the coverage of one number of images and one pair of models."""
    expected = expected_differences(n_images, models, n_expected)
    covered = defaultdict[str, list[bool]](list)
    by_band = defaultdict[tuple[str, int], list[bool]](list)
    marked = defaultdict[str, list[float]](list)
    paths = [f"{row}.jpg" for row in range(n_images)]
    names = [f"label {column}" for column in range(LABELS)]
    for seed in range(draws):
        targets, logits = draw_dataset(n_images, models, seed)
        first, second = (
            Predictions(paths, names, scores, scores, "simulated")
            for scores in (values.astype(np.float32) for values in logits)
        )
        comparison = compare_predictions(
            first,
            second,
            LabelledImages(paths, names, targets),
            resamples=RESAMPLES,
            seed=seed,
        )
        for name, metric in comparison.metrics.items():
            interval = metric.difference
            covered[name].append(bool(interval.low <= expected[name] <= interval.high))
        for name, label in comparison.labels.items():
            is_covered = (label.low <= (truth := expected[f"{name} by label"])) & (
                truth <= label.high
            )
            for number, (low, high) in enumerate(BANDS):
                is_in_band = (comparison.n_positives >= low) & (comparison.n_positives <= high)
                by_band[name, number] += is_covered[is_in_band].tolist()
            marked[name].append(float(label.is_different.mean()))
    print_rows(n_images, models, expected, covered, by_band, marked)


def print_rows(
    n_images: int,
    models: str,
    expected: Mapping[str, Array],
    covered: Mapping[str, Sequence[bool]],
    by_band: Mapping[tuple[str, int], Sequence[bool]],
    marked: Mapping[str, Sequence[float]],
) -> None:
    """Print the rows of the three tables."""
    for name, flags in covered.items():
        print(f"M | {n_images} | {models} | {name} | {expected[name]:+.4f} | {percent(flags)} |")
    for name in LABEL_METRICS:
        cells = [percent(by_band[name, number]) for number in range(len(BANDS))]
        print(f"L | {n_images} | {models} | {name} | {' | '.join(cells)} |")
        shares = np.array(marked[name])
        print(
            f"N | {n_images} | {models} | {name} | {percent(shares > 0)} | "
            f"{100 * shares.mean():.1f} |",
            flush=True,
        )


def percent(flags: Sequence[bool] | Array) -> str:
    """Return a share in percent with two standard errors, or a dash for fewer than 100 values."""
    values = np.asarray(flags, dtype=float)
    if len(values) < 100:
        return "–"
    error = 200 * np.sqrt(values.mean() * (1 - values.mean()) / len(values))
    return f"{100 * values.mean():.1f} ± {error:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=500, help="number of simulated datasets")
    parser.add_argument("--images", type=int, nargs="+", default=[200])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--expected", type=int, default=1000, help="draws for the expectation")
    arguments = parser.parse_args()
    for n_images in arguments.images:
        for models in arguments.models:
            measure_draws(n_images, models, arguments.draws, arguments.expected)


if __name__ == "__main__":
    main()
