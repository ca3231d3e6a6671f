"""Evaluate scores of another program as given, calibrated, and as input of a linear head.

    python benchmarks/score_tables.py SCORES.npz

SCORES.npz is the file of benchmarks/fusion.py with scores of CLIP RN50x64 for VOC2012 train. The
probabilities are the softmax at scale 100 of the whole image, with six decimals as in a table. The
cosines, centred for each image, have two views: the whole image and the maximum over its tiles. The
recognizers are calibrated or fitted on random annotated images, and evaluated on all other images.

The table has the mean over the seeds. The column "own images" has the log loss of the cross-fitted
probabilities of the annotated images.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from fusion import read_scores

from surelabel.config import Choice, Run
from surelabel.recognizer import Recognizer, basic_evaluation_run
from surelabel.records import LabelledScores

N_IMAGES = (50, 300)
SEEDS = range(5)
FOLDS = 5


def read_inputs(file: str) -> dict[str, LabelledScores]:
    """Return the probabilities and the cosines of all images, with labels."""
    image, tiles, labels = read_scores(file)
    columns = [f"label {number}" for number in range(labels.shape[1])]
    softmax = (100 * image).softmax(dim=1).numpy().round(6)
    cosines = np.stack([image.numpy(), tiles.numpy()], axis=1)
    paths = [f"image {row}" for row in range(len(labels))]
    return {
        kind: LabelledScores(values, kind, columns=columns, targets=labels, paths=paths)
        for kind, values in (("probabilities", softmax), ("cosines", cosines))
    }


def calibrated(scores: LabelledScores) -> Recognizer:
    """Return a recognizer that is calibrated on scores."""
    recognizer = Recognizer.from_scores(scores.kind, scores.columns, views=scores.views)
    return recognizer.calibrate(scores)


def fitted(scores: LabelledScores) -> Recognizer:
    """Return a linear head on the scores of all labels, calibrated by cross-validation."""
    settings = {"columns": list(scores.columns), "views": scores.views}
    run = Run(encoder=Choice(f"scores:{scores.kind}", settings), method=Choice("linear"))
    return Recognizer(replace(run, seed=0), scores.names).fit(scores, folds=FOLDS)


def given(scores: LabelledScores) -> Recognizer:
    """Return a recognizer whose probabilities are the unchanged scores."""
    return Recognizer.from_scores(scores.kind, scores.columns)


def print_row(
    name: str, n_images: int, scores: LabelledScores, make: Callable[[LabelledScores], Recognizer]
) -> None:
    """Print the mean metrics over the seeds of one way to use scores."""
    rows = []
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(scores))
        own, others = scores.take(order[:n_images]), scores.take(order[n_images:])
        recognizer = make(own)
        summary = basic_evaluation_run(recognizer, others).summary
        own_loss = basic_evaluation_run(recognizer, own).summary["log_loss"]
        metrics = ("mean_average_precision", "brier_skill", "log_loss", "ece")
        rows.append([*(summary[metric] for metric in metrics), own_loss])
    precision, skill, loss, ece, own_loss = np.mean(rows, axis=0)
    deviation = np.std(rows, axis=0, ddof=1)[2]
    print(
        f"| {n_images} | {scores.kind} | {name} | {100 * precision:.1f} | {100 * skill:.1f} | "
        f"{loss:.4f} ± {deviation:.4f} | {100 * ece:.2f} | {own_loss:.4f} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", help="SCORES.npz of benchmarks/fusion.py")
    inputs = read_inputs(parser.parse_args().scores)
    warnings.simplefilter("ignore")
    print(
        "| annotated images | scores | used | mAP % | Brier skill % | log loss ± deviation | "
        "ECE (points) | own images |\n|---|---|---|---|---|---|---|---|"
    )
    for n_images in N_IMAGES:
        print_row("as given", n_images, inputs["probabilities"], given)
        for scores in inputs.values():
            print_row("calibrated", n_images, scores, calibrated)
            print_row("`linear` fitted", n_images, scores, fitted)


if __name__ == "__main__":
    main()
