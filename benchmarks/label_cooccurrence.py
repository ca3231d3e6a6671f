"""Compare shifts of log-odds by the co-occurrence of labels, with and without annotated images.

    python benchmarks/label_cooccurrence.py [--scores SCORES.npz]

The images are those of the collection scenes-80. Three tables are printed:

forms    compares forms of the shift and of the counts without labels, for scores of ``zero_shot``
         and ``tiles`` on validation images. The strength of a form is fitted on pseudo-labels.
test     has the differences of the calibrator ``cooccurrence`` from ``beta`` on test images. They
         are fitted on 1,000 training images without labels, and on the first 100, the first 500 and
         all 1,500 training images with labels.
scores   has these differences for scores of CLIP RN50x64 on VOC 2012 (the file of ``fusion.py``).
         Calibrators are fitted on one half of the images and evaluated on the other half.

Intervals are 95 % intervals of the difference over 200 bootstrap samples of images.
"""

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from surelabel.arrays import Array
from surelabel.bench.resampling import bench_resampling_weights
from surelabel.calibration import Beta, Calibrator, Cooccurrence
from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import prompt_templates, reference_names
from surelabel.features import encode_image_files, encode_views
from surelabel.methods.text_scoring.text_scorer import BACKGROUNDS
from surelabel.metrics import brier_skill, log_loss_of_logits, mean_average_precision
from surelabel.pseudolabels import part_presence_probabilities
from surelabel.recognizer import Recognizer
from surelabel.recognizer.calibrating import WINDOWS
from surelabel.views import center_relative_scores, mean_fusion_of_standardized

ENCODERS, METHODS = ("tiny-vit", "tiny-rn"), ("zero_shot", "tiles")
UNLABELLED, LABELLED = 1_000, (100, 500, 1_500)
PSEUDO_COUNT, RESAMPLES = 10.0, 200

Shift = Callable[[Array, Array], Array]


def pointwise_mutual_information(p: Array, positive: Array) -> Array:
    """Return Σ_k p_k · log(P(c | k) / pi_c), over all other labels k."""
    return p @ np.log(ratios(positive))


def most_probable_anchor(p: Array, positive: Array) -> Array:
    """Return p_k · log(P(c | k) / pi_c) of the most probable other label k."""
    rows, order = np.arange(len(p)), np.argsort(-p, axis=1)[:, :2]
    first, second = order.T
    table = np.log(ratios(positive))
    shift = p[rows, first][:, None] * table[first]
    shift[rows, first] = p[rows, second] * table[second, first]
    return shift


def naive_bayes(p: Array, positive: Array) -> Array:
    """Return the sum over all labels k of the expected log-likelihood ratios."""
    present = positive.sum(axis=0)
    prior = PSEUDO_COUNT * rates(positive)[:, None]
    both = positive.T @ positive
    given = (both + prior) / (present + PSEUDO_COUNT)
    otherwise = (present[:, None] - both + prior) / (len(positive) - present + PSEUDO_COUNT)
    seen, unseen = np.log(given / otherwise), np.log((1 - given) / (1 - otherwise))
    for table in (seen, unseen):
        np.fill_diagonal(table, 0.0)
    return p @ seen + (1 - p) @ unseen


def mean_conditional(p: Array, positive: Array) -> Array:
    """Return the shift of ``Cooccurrence`` with all labels as anchors."""
    return mean_conditional_of_anchors(p, positive, anchor=0.0)


def mean_conditional_of_anchors(p: Array, positive: Array, anchor: float = 0.3) -> Array:
    """Return the shift of ``Cooccurrence``: the mean of P(c | k) over the anchors k."""
    weights, rate = np.where(p > anchor, p, 0.0), rates(positive)
    conditional = rate * ratios(positive)
    np.fill_diagonal(conditional, 0.0)
    total = weights.sum(axis=1, keepdims=True) - weights
    q = (weights @ conditional + np.maximum(1 - total, 0) * rate) / np.maximum(total, 1)
    return logit(q.clip(1e-9, 1 - 1e-9)) - logit(rate)


def ridge_regression(p: Array, positive: Array) -> Array:
    """Return log-odds of a ridge regression of each label on the probabilities of the others."""
    rate = rates(positive)
    centred = positive - positive.mean(axis=0)
    scatter = centred.T @ centred
    precision = np.linalg.pinv(scatter + np.diag(np.diag(scatter)))
    weights = -precision / np.maximum(np.diag(precision), 1e-12)
    np.fill_diagonal(weights, 0.0)
    return logit((rate + (p - rate) @ weights).clip(0.02 * rate, 0.98)) - logit(rate)


FORMS: dict[str, Shift] = {
    "sum of pointwise mutual information": pointwise_mutual_information,
    "most probable anchor only": most_probable_anchor,
    "naive Bayes over all labels": naive_bayes,
    "ridge regression": ridge_regression,
    "mean conditional, all labels": mean_conditional,
    "mean conditional, anchors above 0.3": mean_conditional_of_anchors,
}


def rates(positive: Array) -> Array:
    """Return the smoothed fraction of positives of each label, ``(c,)``."""
    return (positive.sum(axis=0) + 0.5) / (len(positive) + 1)


def ratios(positive: Array) -> Array:
    """Return P(c | k) / pi_c of anchor k (row) and label c, shrunk towards 1; the diagonal is 1."""
    prior, both = PSEUDO_COUNT * rates(positive), positive.T @ positive
    table = (both + prior) / (positive.sum(axis=0)[:, None] + PSEUDO_COUNT) / rates(positive)
    np.fill_diagonal(table, 1.0)
    return table


def values(logits: Array, targets: Array) -> Array:
    """Return mAP and Brier skill in percent, and the log loss in 1/10,000 nats."""
    return np.array(
        [
            100 * mean_average_precision(logits, targets),
            100 * brier_skill(expit(logits), targets),
            1e4 * log_loss_of_logits(logits, targets),
        ]
    )


def print_difference(title: str, before: Array, after: Array, targets: Array) -> None:
    """Print the metrics of both logits, and their difference with its bootstrap interval."""
    first, second = values(before, targets), values(after, targets)
    weights = bench_resampling_weights(len(targets), resamples=RESAMPLES)[1:].astype(int)
    rows = [np.repeat(np.arange(len(targets)), weight) for weight in weights]
    differences = [values(after[i], targets[i]) - values(before[i], targets[i]) for i in rows]
    low, high = np.nanquantile(differences, (0.025, 0.975), axis=0)
    cells = [
        f"{a:.2f} → {b:.2f} ({b - a:+.2f}, {start:+.2f} to {end:+.2f})"
        for a, b, start, end in zip(first, second, low, high, strict=True)
    ]
    print(f"{title:44} mAP {cells[0]} · skill {cells[1]} · log loss {cells[2]}", flush=True)


def pseudo_labels(recognizer: Recognizer, paths: Sequence[str]) -> Array:
    """Return the targets that ``calibrate`` computes for images without labels, ``(n, c)``."""
    encoder, templates = recognizer.encoder, prompt_templates("one")
    images = encode_image_files(encoder, paths, cache=recognizer.cache)
    windows = encode_views(encoder, paths, WINDOWS, hashes=images.hashes, cache=recognizer.cache)
    vectors = torch.cat([images.features.pooled[:, None], windows.views], dim=1)
    words = dict.fromkeys((*reference_names(), *BACKGROUNDS["usual"]))
    others = [word for word in words if word not in recognizer.names]
    similarities = (
        encoder.scale * (vectors @ encoder.encode_labels(texts, templates).T).double()
        for texts in (recognizer.names, others)
    )
    return part_presence_probabilities(*similarities).numpy()


def compare_forms(train: Array, pseudo: Array, validation: Array, targets: Array) -> None:
    """Print the mAP, the Brier skill and the log loss of each form and of each kind of counts."""
    beta = Beta().fit(train, pseudo)
    z, new = beta.logits(train), beta.logits(validation)
    first = values(new, targets)
    print(f"  beta: mAP {first[0]:.2f} · skill {first[1]:.2f} · log loss {first[2]:.1f}")
    counted = {
        "calibrated probabilities": expit(z),
        "pseudo-labels": pseudo,
        "pseudo-labels above 0.5": (pseudo > 0.5).astype(float),
    }
    for name, form in FORMS.items():
        for kind, positive in counted.items():
            shift = form(expit(z), positive)
            strength = float(
                minimize_scalar(
                    lambda s, shift=shift: log_loss_of_logits(z + s * shift, pseudo),
                    bounds=(0, 1),
                    method="bounded",
                ).x
            )
            change = values(new + strength * form(expit(new), positive), targets) - first
            print(
                f"  {name:36} {kind:26} strength {strength:.2f}: mAP {change[0]:+.2f} · "
                f"skill {change[1]:+.2f} · log loss {change[2]:+.1f}",
                flush=True,
            )


def compare_on_scenes(encoder: str, method: str) -> None:
    """Print the tables ``forms`` and ``test`` of one method."""
    train, validation, test = (
        collection("scenes-80", split=split) for split in ("train", "validation", "test")
    )
    run = load_run(overrides=[f"encoder.name={encoder}", f"method.name={method}"])
    recognizer = Recognizer(run, train.names)
    raw = {
        name: recognizer.logits_of(recognizer.predict(images).scores)
        for name, images in (("train", train), ("validation", validation), ("test", test))
    }
    pseudo = pseudo_labels(recognizer, train.paths[:UNLABELLED])
    print(f"{encoder}, {method}, forms without labels on {len(validation)} validation images")
    compare_forms(raw["train"][:UNLABELLED], pseudo, raw["validation"], validation.targets)
    print(f"{encoder}, {method}, cooccurrence minus beta on {len(test)} test images")
    fits = {f"without labels, {UNLABELLED} images": (raw["train"][:UNLABELLED], pseudo)}
    fits |= {f"{n} labelled images": (raw["train"][:n], train.targets[:n]) for n in LABELLED}
    for title, (x, y) in fits.items():
        print_calibrators(f"  {title}", x, y, raw["test"], test.targets)


def print_calibrators(title: str, x: Array, y: Array, new: Array, targets: Array) -> None:
    """Fit both calibrators on ``x`` and ``y``, and print the difference on the logits ``new``."""
    calibrators: list[Calibrator] = [Beta().fit(x, y), Cooccurrence().fit(x, y)]
    before, after = (calibrator.logits(new) for calibrator in calibrators)
    print_difference(title, before, after, targets)


def compare_on_scores(file: str) -> None:
    """Print the differences for ``mean_of_standardized`` scores of CLIP RN50x64 on VOC 2012."""
    log_scale = math.log(100)
    with np.load(file) as arrays:
        targets = arrays["labels"].astype(float)
        image, tiles = (
            log_scale * torch.from_numpy(arrays[name]).double().log()
            for name in ("global_softmax", "alpha_tile_max")
        )
    tiles += log_scale * math.log(targets.shape[1])  # as in fusion.py
    image = center_relative_scores(image)
    scores = mean_fusion_of_standardized(image, tiles[:, None]).numpy()
    parts = torch.stack([image, tiles], dim=1)
    pseudo = part_presence_probabilities(100 * parts, parts[..., :0]).numpy()
    order = np.random.default_rng(0).permutation(len(targets))
    fit, evaluation = order[: len(order) // 2], order[len(order) // 2 :]
    print(f"RN50x64, VOC 2012, cooccurrence minus beta on {len(evaluation)} images")
    fits = {f"without labels, {len(fit)} images": (fit, pseudo)}
    fits |= {f"{n} labelled images": (fit[:n], targets) for n in (100, 500, len(fit))}
    for title, (rows, y) in fits.items():
        print_calibrators(
            f"  {title}", scores[rows], y[rows], scores[evaluation], targets[evaluation]
        )
    print("RN50x64, VOC 2012, cooccurrence minus beta on all images, both without labels")
    print_calibrators("  fitted on the same images", scores, pseudo, scores, targets)
    print("RN50x64, VOC 2012, forms without labels on the first half")
    compare_forms(scores[evaluation], pseudo[evaluation], scores[fit], targets[fit])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scores", help="file of fusion.py with scores of CLIP RN50x64")
    arguments = parser.parse_args()
    if arguments.scores:
        compare_on_scores(arguments.scores)
    for encoder in ENCODERS:
        for method in METHODS:
            compare_on_scenes(encoder, method)
