"""Measure how well the uncertainty of tags predicts the errors of accepted labels and of images.

    python benchmarks/tag_uncertainty.py

The script compares the uncertainties of `variational_tagger` with 4p(1 - p) of a plain head. The
plain head computes the same function of the product of image and text vector, without variances,
divergence and sampling. Its hidden layer has 386 units instead of 256, so both heads have the same
number of parameters. Both heads are fitted on the 1,500 training images of scenes-80 with the same
seeds, epochs and learning rate, and calibrated by Platt scaling on the 500 validation images.

The heads are evaluated on the 1,000 test images, and on 1,000 test images of each domain shift. A
label is accepted if its probability is 0.5 or more. The error of an accepted label is 1 if its
target is negative. The error of an image is the fraction of its labels whose decision is wrong.
AURC is the area under the risk-coverage curve, and *risk at 80 %* is the risk without the most
uncertain 20 %. *AUROC* measures how the uncertainty ranks the errors over all labels of all images.
If a fit has fewer than 100 accepted labels in a domain, the risk of accepted labels is not
computed.

The script prints the mean over seeds. A gain is the risk of a reference minus that of the
uncertainty. The references are 4p(1 - p) of the plain head, and 4p(1 - p) of the tagger. ± is the
larger half-width of two paired 95 % intervals: over seeds (t distribution) and over images
(bootstrap). A gain is bold if it exceeds this half-width. The last table states whether an
uncertainty fulfils the condition of a default: both gains are above 0 on scenes-80 (photo), and
below 0 in no domain. Fits are cached, so the same command resumes.
"""

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from plain_head import PlainHead
from scipy.special import expit
from uncertainty_tables import (
    DECISIONS,
    DOMAINS,
    OWN,
    PLAIN,
    RISKS,
    ROWS,
    Statistics,
    print_auroc,
    print_conditions,
    print_heads,
    print_risks,
)

from surelabel.arrays import Array
from surelabel.bench.feature_splits import FeatureSplits, load_scene_feature_splits
from surelabel.bench.image_splits import render_benchmark_scenes
from surelabel.bench.resampling import (
    BenchResampling,
    bench_resampling_mean_average_precision,
    bench_resampling_weights,
)
from surelabel.bench.result_cache import ResultCache
from surelabel.calibration import Platt
from surelabel.decisions import error_auroc, risk_coverage_of_errors
from surelabel.encoders import Encoder, load_encoder
from surelabel.evaluation.label_uncertainty import (
    THRESHOLD,
    SelectiveDecisions,
    accepted_label_decisions,
    image_decisions,
)
from surelabel.features import FeatureCache, default_feature_cache_folder, encode_image_files
from surelabel.links import Sigmoid
from surelabel.losses import binary
from surelabel.methods.variational_tagger import VariationalTagger
from surelabel.recognizer.uncertainty import compute_uncertainty
from surelabel.records import UNCERTAINTY_KINDS, Features
from surelabel.training import (
    FeatureBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)

DOMAIN_IMAGES, RESAMPLES = 1000, 300
MIN_ACCEPTED_LABELS = 100  # minimum number in each fit for the risk of accepted labels
EPOCHS = 20  # selected by the log loss on the validation images


HEADS = {"tagger": VariationalTagger, "plain head": PlainHead}


def load_domains(encoder: Encoder, splits: FeatureSplits) -> dict[str, tuple[Array, Array]]:
    """Return vectors and targets of the test images, and of those of each domain shift."""
    domains = {DOMAINS[0]: (splits.test.features, splits.test.targets)}
    cache = FeatureCache(default_feature_cache_folder())
    for domain in DOMAINS[1:]:
        images = render_benchmark_scenes("test", domain=domain, count=DOMAIN_IMAGES)
        encoded = encode_image_files(encoder, images.paths, cache=cache, strict=True)
        domains[domain] = encoded.features.pooled.numpy(), images.targets
    return domains


def fit(head: str, encoder: Encoder, splits: FeatureSplits, seed: int) -> VariationalTagger:
    """Return a head that is fitted on the training images."""
    features = Features(torch.from_numpy(splits.train.features).float())
    targets = torch.from_numpy(splits.train.targets).float()
    known = torch.ones_like(targets, dtype=torch.bool)
    torch.manual_seed(seed)
    method = HEADS[head](encoder, splits.train.names)
    method.initialize(features, targets, known, Sigmoid())
    recipe = method.recipe
    run_training_loop(
        method,
        FeatureBatches(features, targets, known, batch_size=recipe.batch_size),
        objective=Objective(objective_mean_over_known(binary), link=Sigmoid(), method=method),
        epochs=EPOCHS,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        seed=seed,
    )
    return method


def measure(
    head: str,
    encoder: Encoder,
    splits: FeatureSplits,
    domains: Mapping[str, tuple[Array, Array]],
    seed: int,
) -> dict[str, Array]:
    """Return calibrated log-odds and uncertainties of all domains, (domains, n, c) each."""
    method = fit(head, encoder, splits, seed).requires_grad_(False)
    validation = Features(torch.from_numpy(splits.validation.features).float())
    calibrator = Platt().fit(method(validation).numpy(), splits.validation.targets)
    vectors = [Features(torch.from_numpy(x).float()) for x, _ in domains.values()]
    logits = [calibrator.logits(method(x).numpy()).astype(np.float32) for x in vectors]
    kinds = UNCERTAINTY_KINDS if head == "tagger" else (OWN,)
    values = {
        kind: [
            compute_uncertainty(kind, method, *pair) for pair in zip(vectors, logits, strict=True)
        ]
        for kind in kinds
    }
    return {"logits": np.array(logits)} | {kind: np.array(v) for kind, v in values.items()}


def resampled_risks(decisions: SelectiveDecisions, weights: Array) -> Array:
    """Return the values of ``RISKS`` in percent on all resamples, (2, 1 + resamples)."""
    if len(decisions.error) < MIN_ACCEPTED_LABELS:
        return np.full((len(RISKS), len(weights)), np.nan)
    risks = []
    for counts in weights.astype(int):
        rows = np.arange(len(decisions.error)).repeat(counts[decisions.image_rows])
        curve = risk_coverage_of_errors(decisions.uncertainty[rows], decisions.error[rows])
        risks.append((100 * curve.area, 100 * curve.risk_at(0.8)))
    return np.array(risks).T


def risk_statistics(
    measured: Mapping[str, list[dict[str, Array]]], domain: int, targets: Array
) -> dict[str, Statistics]:
    """Return ``RISKS`` of each uncertainty for ``DECISIONS``, and the AUROC, in percent.

    The statistics of ``DECISIONS`` have the shape (seeds, 2, 1 + resamples), the AUROC (seeds,).
    """
    weights = bench_resampling_weights(len(targets), resamples=RESAMPLES)
    known = np.ones_like(targets, dtype=bool)
    found: dict[str, Statistics] = {name: {} for name in (*DECISIONS, "AUROC")}
    for row in ROWS:
        head, kind = ("plain head", OWN) if row == PLAIN else ("tagger", row)
        labels, images, auroc = [], [], []
        for arrays in measured[head]:
            p, values = expit(arrays["logits"][domain]), arrays[kind][domain]
            of_labels = accepted_label_decisions(p, targets, known, values)
            of_images = image_decisions(p, targets, known, values, kind=kind)
            labels.append(resampled_risks(of_labels, weights))
            images.append(resampled_risks(of_images, weights))
            is_error = (p >= THRESHOLD) != (targets > 0.5)
            auroc.append(100 * error_auroc(values.ravel(), is_error.ravel()))
        for name, values in zip(found, (labels, images, auroc), strict=True):
            found[name][row] = np.array(values)
    return found


def head_statistics(arrays: list[dict[str, Array]], domain: int, targets: Array) -> Array:
    """Return the values of ``HEAD_COLUMNS``, (seeds, 5, 1 + resamples)."""
    weights = bench_resampling_weights(len(targets), resamples=RESAMPLES)
    resampling = BenchResampling(targets, resamples=RESAMPLES)
    found = []
    for of_seed in arrays:
        logits = of_seed["logits"][domain]
        metrics = resampling.metrics(logits)
        found.append(
            [
                100 * bench_resampling_mean_average_precision(logits, targets > 0.5, weights),
                100 * metrics["brier_skill"],
                1000 * metrics["log_loss"],
                100 * metrics["ece"],
                weights @ (logits >= 0).sum(axis=1),
            ]
        )
    return np.array(found)


def main() -> None:
    """Print the tables of each encoder, and the conditions of a default."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--encoders", nargs="+", default=["tiny-vit", "tiny-rn"])
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds, 2 or more")
    default_folder = default_feature_cache_folder() / "tag_uncertainty"
    parser.add_argument("--cache", type=Path, default=default_folder, help="folder of results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cache = ResultCache(arguments.cache)
    statistics = {}
    for name in arguments.encoders:
        encoder, splits = load_encoder(name), load_scene_feature_splits(name, quick=True)
        domains = load_domains(encoder, splits)
        shape = (len(domains), DOMAIN_IMAGES, len(splits.test.names))
        measured = {
            head: [
                cache.load_or_compute_arrays(
                    *(splits.fingerprint, head, EPOCHS, seed),
                    shapes=dict.fromkeys(["logits", *kinds], shape),
                    compute=partial(measure, head, encoder, splits, domains, seed),
                )
                for seed in range(arguments.seeds)
            ]
            for head, kinds in (("tagger", UNCERTAINTY_KINDS), ("plain head", (OWN,)))
        }
        targets = [y for _, y in domains.values()]
        print(f"\n# {name}")
        print_heads(
            {
                domain: {head: head_statistics(measured[head], k, targets[k]) for head in HEADS}
                for k, domain in enumerate(domains)
            }
        )
        statistics[name] = {
            domain: risk_statistics(measured, k, targets[k]) for k, domain in enumerate(domains)
        }
        for decisions in DECISIONS:
            print_risks(statistics[name], decisions)
        print_auroc(statistics[name])
    print_conditions(statistics)


if __name__ == "__main__":
    main()
