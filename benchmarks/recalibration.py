"""Measure the recalibration on a small random sample with simulated annotators.

    python benchmarks/recalibration.py --draws 200

The recognizer is tiny-vit (zero_shot), calibrated by the calibrator ``vector`` on 3,000 generated
scenes with 80 labels. The population has 3,000 other scenes. The scores are computed once, and
stored in the cache folder. The log-odds of the miscalibrated recognizer are 2z + 1 for the
log-odds z of the calibrated one.

In each draw, annotators record corrections in a file, through the class that the server uses:

random          They check all labels of a random sample of the images.
random, clicks  They also search five labels, look at 50 hits of each, and correct wrong hits.
clicks          They only correct wrong hits of these searches.
naive           The scale and the shift are fitted on the corrected hits, as if these were random.
                The program never does this.

The table has the number of checked images; the labels; the share of draws in which the
recalibration is applied; the change of the log loss on all other images in percent, which is 0 if
the calibration is kept, with the 95 % interval of its mean; the share of draws in which an applied
recalibration increases the log loss; and the share of draws in which the upper end of the interval
of the change is at least the true change of the fitted map (nominal: 97.5 %). Seeds: the numbers of
the draws.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from scipy.special import expit, stdtrit

from surelabel.arrays import Array
from surelabel.bench.image_splits import render_benchmark_scenes
from surelabel.calibration import CALIBRATORS, fit_scale_and_shift
from surelabel.data.correction_log import CorrectionLog
from surelabel.data.labels.resolution.correction_history import target_array
from surelabel.evaluation import evaluate_recalibration
from surelabel.evaluation.recalibration import MIN_RECALIBRATION_IMAGES
from surelabel.features import default_feature_cache_folder
from surelabel.metrics import log_loss_of_logits
from surelabel.recognizer import Recognizer
from surelabel.records import RANDOM_ROW

N_SCENES = 3000
SEARCHES, HITS = 5, 50
RECOGNIZERS = {"calibrated": (1.0, 0.0), "miscalibrated": (2.0, 1.0)}
ANNOTATORS = ("random", "random, clicks", "clicks", "naive")


def read_population() -> tuple[Array, Array]:
    """Return calibrated log-odds and targets of the scenes that did not calibrate the recognizer.

    Returns:
        Log-odds and targets, each ``(n, c)``.
    """
    scores = {}
    for split in ("validation", "test"):
        file = default_feature_cache_folder() / f"recalibration-{split}-{N_SCENES}.npz"
        if not file.exists():
            images = render_benchmark_scenes(split, domain="photo", count=N_SCENES)
            predictions = Recognizer.zero_shot("tiny-vit", images.names).predict(images)
            np.savez(file, scores=predictions.scores, targets=images.targets)
        with np.load(file) as arrays:
            scores[split] = arrays["scores"], arrays["targets"].astype(float)
    calibrator = CALIBRATORS["vector"]().fit(*scores["validation"])
    return calibrator.logits(scores["test"][0]), scores["test"][1]


def record_corrections(
    file: Path, annotator: str, logits: Array, targets: Array, sample: list[int], seed: int
) -> CorrectionLog:
    """Write the corrections of an annotator to a file.

    Args:
        file: New file.
        annotator: Key of the annotator.
        logits: Log-odds of the population, ``(n, c)``.
        targets: Targets of the population, ``(n, c)``.
        sample: Rows of the random sample.
        seed: Seed of the searched labels.
    """
    log, random = CorrectionLog(file), np.random.default_rng([2, seed])
    clicks = []
    if annotator != "random":
        for column in random.permutation(logits.shape[1])[:SEARCHES].tolist():
            hits = np.argsort(-logits[:, column])[:HITS].tolist()
            clicks += [(row, column) for row in hits if targets[row, column] == 0]
    for row, column in clicks:
        log.record(f"/{row}.jpg", {str(column): 0.0}, chosen_by="query", query=str(column))
    if annotator.startswith("random"):
        log.append_sample([f"/{row}.jpg" for row in sample], len(sample) / len(logits))
        for row in sample:
            values = {str(c): float(v) for c, v in enumerate(targets[row])}
            log.record(f"/{row}.jpg", values, chosen_by=RANDOM_ROW)
    return log


def measure_draw(
    annotator: str, logits: Array, targets: Array, n_images: int, seed: int
) -> tuple[float, bool, float, bool]:
    """Return the change as applied, whether it was applied, the change of the map, and coverage.

    Changes are fractions of the log loss on all images outside of the random sample. Coverage is
    True if the upper end of the interval is at least the true change of the fitted map.
    """
    sample = np.random.default_rng([1, seed]).permutation(len(logits))[:n_images].tolist()
    names = [str(column) for column in range(logits.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        log = record_corrections(
            Path(folder) / "corrections.csv", annotator, logits, targets, sample, seed
        )
        history = CorrectionLog(log.path).history()  # read from the file
    is_other = np.ones(len(logits), bool)
    is_other[sample] = False
    z, y = logits[is_other], targets[is_other]
    before = log_loss_of_logits(z, y)
    if annotator == "naive":
        paths = list(history.targets)
        rows = [int(path[1:-4]) for path in paths]
        corrected = target_array(history.targets, paths, names)
        scale, shift = fit_scale_and_shift(logits[rows], corrected)
        change = log_loss_of_logits(scale * z + shift, y) / before - 1
        return change, True, change, False
    paths = history.complete_paths(names)
    if len(paths) < MIN_RECALIBRATION_IMAGES:
        return 0.0, False, 0.0, True
    rows = [int(path[1:-4]) for path in paths]
    checked = target_array(history.sample_targets, paths, names)
    result = evaluate_recalibration(logits[rows], checked, seed=seed)
    change = log_loss_of_logits(result.scale * z + result.shift, y) / before - 1
    is_covered = result.log_loss_change.high >= change * before
    return change if result.is_improvement else 0.0, result.is_improvement, change, is_covered


def print_row(
    recognizer: str,
    annotator: str,
    population: tuple[Array, Array],
    n_images: int,
    n_labels: int,
    draws: int,
) -> None:
    """Print one row of the table in Markdown."""
    scale, shift = RECOGNIZERS[recognizer]
    values = []
    for seed in range(draws):
        columns = np.random.default_rng([3, seed]).permutation(population[0].shape[1])[:n_labels]
        logits, targets = (array[:, np.sort(columns)] for array in population)
        values.append(measure_draw(annotator, scale * logits + shift, targets, n_images, seed))
    changes, is_applied, of_map, is_covered = (np.array(v) for v in zip(*values, strict=True))
    percent = 100 * changes
    half = stdtrit(draws - 1, 0.975) * percent.std(ddof=1) / np.sqrt(draws)
    wrong = 100 * np.mean(is_applied & (changes > 0))
    coverage = f"{100 * is_covered.mean():.1f}" if annotator.startswith("random") else "–"
    print(
        f"| {recognizer} | {annotator} | {n_images} | {n_labels} | {100 * is_applied.mean():.1f} | "
        f"{percent.mean():+.2f} ({percent.mean() - half:+.2f} to {percent.mean() + half:+.2f}) | "
        f"{100 * of_map.mean():+.2f} | {wrong:.1f} | {coverage} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=200, help="number of simulated samples")
    parser.add_argument("--images", type=int, nargs="+", default=[20, 30, 60])
    parser.add_argument("--labels", type=int, nargs="+", default=[80, 5])
    arguments = parser.parse_args()
    population = read_population()
    loss = log_loss_of_logits(*population)
    scale, shift = fit_scale_and_shift(*population)
    mean, rate = 100 * expit(population[0]).mean(), 100 * population[1].mean()
    print(
        f"Log loss of the population {loss:.4f}; mean probability {mean:.2f} %, positive targets "
        f"{rate:.2f} %; scale {scale:.3f} and shift {shift:+.3f} on the whole population."
    )
    print(
        "\n| recognizer | annotators | images | labels | applied, % | change as applied, % | "
        "change of the map, % | harmful, % | covered, % |"
    )
    print("|---" * 9 + "|")
    for n_labels in arguments.labels:
        for recognizer in RECOGNIZERS:
            for n_images in arguments.images:
                print_row(recognizer, "random", population, n_images, n_labels, arguments.draws)
            if n_labels == max(arguments.labels):
                for annotator in ANNOTATORS[1:]:
                    print_row(recognizer, annotator, population, 30, n_labels, arguments.draws)


if __name__ == "__main__":
    main()
