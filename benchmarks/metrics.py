"""Compare the speed of metrics with other libraries, for 40,137 images × 80 labels.

The libraries are torchmetrics and scikit-learn. All functions receive the same float64
probabilities (mean 0.04, as in COCO) and 0/1 targets, run in one process on one thread, and must
return equal values. The peer of each metric is the faster of the two libraries. The peer of mAP@x
is the label ranking average precision of scikit-learn on the images with a positive target. Times
are processor seconds, the best of several alternating rounds. The memory is the peak minus the
memory of the data.

    python benchmarks/metrics.py [--quick]
"""

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn.metrics
import torch
from scipy.special import expit
from sklearn.calibration import calibration_curve
from torchmetrics.functional import classification

from surelabel import metrics

IMAGES, LABELS, BINS, K = 40_137, 80, 15, 3
GOAL, GOAL_OF_EACH_CLASS = 25, 20

random = np.random.default_rng(0)
P = expit(random.normal(random.normal(-4.6, 1.0, LABELS), 1.8, (IMAGES, LABELS)))
Y = (random.random(P.shape) < P).astype(np.int64)
LABELLED = Y.any(axis=1)

Side = Callable[[], object]
Floats = np.ndarray


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    """Return probabilities and targets as tensors."""
    return torch.from_numpy(P), torch.from_numpy(Y)


def flat_tensors() -> tuple[torch.Tensor, torch.Tensor]:
    """Return all probabilities and targets in one dimension."""
    return torch.from_numpy(P.ravel()), torch.from_numpy(Y.ravel())


def top_k_predictions() -> torch.Tensor:
    """Return an array with 1 for the ``K`` most probable labels of every image, and 0 otherwise."""
    p = torch.from_numpy(P)
    return torch.zeros(p.shape).scatter_(1, p.topk(K, dim=1).indices, 1.0)


def peer_ace() -> float:
    """Return the mean absolute calibration error over the bins that are not empty."""
    accuracy, confidence = calibration_curve(Y.ravel(), P.ravel(), n_bins=BINS)
    return float(np.abs(accuracy - confidence).mean())


SIDES: dict[str, tuple[Side, Side]] = {
    "average precision of each class": (
        lambda: metrics.average_precision_per_class(P, Y),
        lambda: sklearn.metrics.average_precision_score(Y, P, average=None),
    ),
    "mAP@x": (
        lambda: metrics.mean_average_precision_per_image(P, Y),
        lambda: sklearn.metrics.label_ranking_average_precision_score(Y[LABELLED], P[LABELLED]),
    ),
    "ECE": (
        lambda: metrics.ece(P, Y),
        lambda: classification.binary_calibration_error(
            *flat_tensors(), n_bins=BINS, norm="l1"
        ).item(),
    ),
    "MCE": (
        lambda: metrics.mce(P, Y),
        lambda: classification.binary_calibration_error(
            *flat_tensors(), n_bins=BINS, norm="max"
        ).item(),
    ),
    "ACE": (lambda: metrics.ace(P, Y), peer_ace),
    "Brier": (
        lambda: metrics.brier(P, Y),
        lambda: sklearn.metrics.brier_score_loss(Y.ravel(), P.ravel()),
    ),
    "log loss": (
        lambda: metrics.log_loss(P, Y),
        lambda: sklearn.metrics.log_loss(Y.ravel(), P.ravel()),
    ),
    "precision@3": (
        lambda: metrics.precision_at_k(P, Y, k=K),
        lambda: classification.multilabel_precision(
            top_k_predictions(), tensors()[1], LABELS, average="micro"
        ).item(),
    ),
    "recall@3": (
        lambda: metrics.recall_at_k(P, Y, k=K),
        lambda: classification.multilabel_recall(
            top_k_predictions(), tensors()[1], LABELS, average="micro"
        ).item(),
    ),
    "F1@3": (
        lambda: metrics.f1_at_k(P, Y, k=K),
        lambda: classification.multilabel_f1_score(
            top_k_predictions(), tensors()[1], LABELS, average="micro"
        ).item(),
    ),
}


def measure_sides(sides: tuple[Side, Side], rounds: int) -> tuple[list[object], Floats, Floats]:
    """Return the values of both sides, their lowest processor seconds, and their peak MiB."""
    values: list[object] = [None, None]
    seconds, memory = np.full(2, np.inf), np.zeros(2)
    for turn in [0, 1] * rounds:
        memory_before, start = peak_memory_mib(reset=True), time.process_time()
        values[turn] = sides[turn]()
        seconds[turn] = min(seconds[turn], time.process_time() - start)
        memory[turn] = max(memory[turn], peak_memory_mib() - memory_before)
    return values, seconds, memory


def peak_memory_mib(*, reset: bool = False) -> float:
    """Return the peak memory of this process since the last reset, in MiB."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> None:
    """Print one line for each metric, and the ratio of the totals."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rounds = 2 if "--quick" in sys.argv else 7
    totals, peaks = np.zeros(2), np.zeros(2)
    print(f"{IMAGES} × {LABELS}, {Y.mean():.3f} positive{'':9}ours s   peer s   ratio  MiB, MiB")
    for name, sides in SIDES.items():
        values, seconds, memory = measure_sides(sides, rounds)
        np.testing.assert_allclose(values[0], values[1], rtol=1e-4)
        totals += seconds
        peaks = np.maximum(peaks, memory)
        print(
            f"{name:34} {seconds[0]:8.3f} {seconds[1]:8.3f} {seconds[1] / seconds[0]:7.1f}  "
            f"{memory[0]:.0f}, {memory[1]:.0f}"
        )
    ratio = totals[1] / totals[0]
    print(
        f"{'all':34} {totals[0]:8.3f} {totals[1]:8.3f} {ratio:7.1f}  {peaks[0]:.0f}, {peaks[1]:.0f}"
    )
    print(f"goal: all {GOAL} × or more, average precision {GOAL_OF_EACH_CLASS} × or more")


if __name__ == "__main__":
    main()
