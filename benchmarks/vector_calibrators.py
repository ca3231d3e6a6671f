"""Compare calibrators that use vectors, dac and adaptive_temperature, with platt on scenes-80.

For dac, which uses text vectors of labels, coop is fitted on a random half of the labels and
calibrated on validation images; the other half of the labels is new. For adaptive_temperature,
which uses image vectors, zero-shot scores of all labels are calibrated on random validation images.
The log loss and the ECE are computed on the test images. The change of the log loss from platt is
in 1/10,000 nats, with its standard error over the seeds.

    python benchmarks/vector_calibrators.py
"""

import argparse
import warnings

import numpy as np
from scipy.special import expit

from surelabel.calibration import Platt
from surelabel.config import load_run
from surelabel.data import collection
from surelabel.metrics import ece, log_loss_of_logits
from surelabel.recognizer import Recognizer

ENCODERS = ("tiny-vit", "tiny-rn")
TRAINING_IMAGES = (64, 640)
CALIBRATION_IMAGES = (100, 250, 400)


def errors(logits, targets):
    """Return the log loss in nats and the ECE in percentage points, for each decision."""
    return log_loss_of_logits(logits, targets), 100 * ece(expit(logits), targets)


def print_errors(results):
    """Print the mean errors, and the change of the log loss with its standard error."""
    for name, values in results.items():
        loss, points = np.mean(values, axis=0)
        changes = 1e4 * (np.array(values) - results["platt"])[:, 0]
        error = changes.std(ddof=1) / len(changes) ** 0.5
        print(f"  {name}: {loss:.4f} · {points:.2f}, change {changes.mean():.1f} ± {error:.1f}")


def compare_dac(encoder, n_images, seeds):
    """Print the errors of platt and dac on new labels of a recognizer with learned prompts."""
    train, validation, test = (collection("scenes-80", split=s) for s in SPLITS)
    factors, results = [], {"platt": [], "dac": [], "dac without level": []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(train.names))
        fit_names, new_names = ([train.names[i] for i in half] for half in np.split(order, 2))
        overrides = [f"encoder.name={encoder}", f"seed={seed}", "calibrator.name=dac", *COOP]
        run = load_run(overrides=overrides)
        rows = rng.permutation(len(train))[:n_images]
        fitted = Recognizer(run, fit_names).fit(train.take(rows)).calibrate(validation)
        more = fitted.with_names(new_names)
        calibrator = more.calibration.calibrator
        raw = more.logits_of(more.predict(test).scores)
        targets = more.align_labels(test).targets
        results["platt"].append(errors(calibrator.shared_.logits(raw), targets))
        results["dac"].append(errors(calibrator.logits(raw), targets))
        results["dac without level"].append(errors(calibrator.factors * raw, targets))
        factors.extend(calibrator.factors)
    shown = f"{np.mean(factors):.3f}, {np.min(factors):.3f} to {np.max(factors):.3f}"
    print(f"{encoder}, coop on {n_images} images, factors of new labels {shown}")
    print_errors(results)


def compare_adaptive_temperature(encoder, n_images, seeds):
    """Print the errors of platt and adaptive_temperature on zero-shot scores of all labels."""
    _, validation, test = (collection("scenes-80", split=s) for s in SPLITS)
    run = load_run(
        overrides=[
            f"encoder.name={encoder}",
            "method.name=zero_shot",
            "calibrator.name=adaptive_temperature",
        ]
    )
    recognizer = Recognizer(run, validation.names)
    known, new = recognizer.predict(validation), recognizer.predict(test)
    adaptive = run.entry("calibrator")
    results = {"platt": [], "adaptive_temperature": []}
    for seed in range(seeds):
        rows = np.random.default_rng(seed).permutation(len(validation))[:n_images]
        x, y = recognizer.logits_of(known.scores)[rows], validation.targets[rows]
        fitted = adaptive().with_image_vectors(known.features[rows]).fit(x, y)
        raw = recognizer.logits_of(new.scores)
        logits = fitted.with_image_vectors(new.features).logits(raw)
        results["platt"].append(errors(Platt().fit(x, y).logits(raw), test.targets))
        results["adaptive_temperature"].append(errors(logits, test.targets))
    print(f"{encoder}, zero_shot, calibrated on {n_images} images")
    print_errors(results)


SPLITS = ("train", "validation", "test")
COOP = ("method.name=coop", "method.initial_context=a photo of a", "learning_rate=0.002")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds, 2 or more")
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    for encoder in ENCODERS:
        for n_images in CALIBRATION_IMAGES:
            compare_adaptive_temperature(encoder, n_images, seeds)
    for n_images in TRAINING_IMAGES:
        compare_dac("tiny-vit", n_images, seeds)
