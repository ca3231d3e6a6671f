"""Uncertainty of tags: how well it predicts the errors of accepted labels and of images.

    python benchmarks/tag_uncertainty.py

Compares the uncertainties of `variational_tagger` with 4p(1 - p) of a plain head. The plain head
computes the same function of the product of image and text vector, without variances, divergence
and sampling. Its hidden layer has 385 units instead of 256, so both heads have the same number of
parameters. Both are fitted on the 1,500 training images of scenes-80 with the same seeds, epochs
and learning rate, and calibrated by Platt scaling on the 500 validation images.

Evaluated on the 1,000 test images, and on 1,000 test images of each domain shift. A label is
accepted if its probability is 0.5 or more. Its error is 1 if the target is negative; the error of
an image is the fraction of its labels whose decision is wrong. AURC is the area under the curve of
risk against coverage, and *risk at 80 %* is the risk without the most uncertain 20 %. *AUROC* is
that of the errors over all labels of all images. If a fit has fewer than 100 accepted labels in a
domain, their risk is not computed.

Prints the mean over seeds. A gain is the risk of a reference minus that of the uncertainty: the
references are 4p(1 - p) of the plain head, and 4p(1 - p) of the tagger. ± is the larger half-width
of two paired 95 % intervals: over seeds (t distribution) and over images (bootstrap). A bold gain
exceeds it. The last table states where an uncertainty fulfils the condition of a default: both
gains are above 0 on scenes-80 (photo), and below 0 in no domain. Fits are cached, so the same
command resumes.
"""

import argparse
from collections.abc import Mapping
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import expit
from torch import Tensor

from surelabel.arrays import Array
from surelabel.bench.feature_splits import FeatureSplits, load_scene_feature_splits
from surelabel.bench.image_splits import render_benchmark_scenes
from surelabel.bench.resampling import (
    BenchResampling,
    bench_resampling_difference_intervals,
    bench_resampling_mean_average_precision,
    bench_resampling_weights,
)
from surelabel.bench.result_cache import ResultCache
from surelabel.bench.rows import RowDifference, difference_over_seeds
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
from surelabel.links import Link, Sigmoid
from surelabel.losses import binary
from surelabel.methods.variational_tagger import POSTERIOR_RATE, VariationalTagger
from surelabel.metrics import ConfidenceInterval
from surelabel.recognizer.uncertainty import compute_uncertainty
from surelabel.records import UNCERTAINTY_KINDS, Features
from surelabel.training import (
    FeatureBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)

DOMAINS = ("photo", "sketch", "night", "blur", "noise")  # the first is that of scenes-80
DOMAIN_IMAGES, RESAMPLES = 1000, 300
MIN_ACCEPTED_LABELS = 100  # with fewer labels in one fit, the risk of accepted labels is left out
PLAIN_HIDDEN_WIDTH = 385  # as many parameters as the tagger with 256 hidden units
EPOCHS = 20  # selected by the log loss on the validation images
OWN, PLAIN = UNCERTAINTY_KINDS[0], "plain head, 4p(1 - p)"
ROWS = (PLAIN, *UNCERTAINTY_KINDS)
RISKS, DECISIONS = ("AURC", "risk at 80 %"), ("accepted labels", "images")
HEAD_COLUMNS = ["mAP, %", "Brier skill, %", "log loss, mnat", "ECE, %", "accepted labels"]
Statistics = dict[str, Array]  # by row, for seeds and resamples of the images


class PlainHead(VariationalTagger):
    """Head with the scores of ``VariationalTagger``, without variances, divergence and sampling."""

    def __init__(self, encoder: Encoder, names: list[str]):
        super().__init__(encoder, names, hidden_width=PLAIN_HIDDEN_WIDTH, components=1)
        del self.posterior.log_variance_heads, self.match_head
        self.learning_rate_scales = {"posterior": POSTERIOR_RATE}

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Start with calibrated cosines."""
        self.level.initialize(features.pooled @ self.texts.T, targets, known, link)
        scale, bias = float(self.level.log_slope.exp()), float(self.level.bias)
        self.posterior.start_with_cosines(scale=scale, bias=bias)

    def forward(self, features: Features) -> Tensor:
        """Return the scores, ``(n, c)``."""
        images, texts = self.projection(features.pooled, self.texts)
        self._cosines = images @ texts.T
        hidden = self.posterior.hidden(images, texts)
        scores: Tensor = self.posterior.decoder(self.posterior.mean_heads(hidden))
        return scores.squeeze(-1)

    def training_scores(self, features: Features, targets: Tensor, known: Tensor) -> Tensor:
        """Return the scores of the only head, ``(1, n, c)``."""
        return self(features)[None]

    def training_losses(self, targets: Tensor, known: Tensor) -> Tensor:
        """Return the weighted loss of the cosines, as in ``VariationalTagger``."""
        losses = F.binary_cross_entropy_with_logits(self.level(self._cosines), targets)
        return self.cosine_weight * losses

    def train(self, mode: bool = True) -> "PlainHead":
        """Set training or evaluation mode; there is no noise to check."""
        torch.nn.Module.train(self, mode)
        return self


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


def difference(first: Array, second: Array) -> RowDifference:
    """Return ``first`` - ``second`` with paired intervals; both are (seeds, 1 + resamples).

    If a value of a seed is NaN, the difference is NaN.
    """
    if np.isnan([first[:, 0], second[:, 0]]).any():
        undefined = ConfidenceInterval(np.nan, np.nan, np.nan)
        return RowDifference(np.nan, undefined, undefined)
    over_seeds = difference_over_seeds(first[:, 0], second[:, 0])
    means = ({"": values.mean(axis=0)} for values in (first, second))
    over_images = bench_resampling_difference_intervals(*means)[""]
    return RowDifference(over_seeds.value, over_seeds, over_images)


def difference_cell(change: RowDifference) -> str:
    """Return a difference and its half-width as text, bold if both intervals exclude 0."""
    if np.isnan(change.value):
        return "–"
    intervals = (change.over_seeds, change.over_images)
    half_width = max(abs(x - change.value) for i in intervals for x in (i.low, i.high))
    text = f"{change.value:+.2f} ± {half_width:.2f}".replace("-", "−")
    return f"**{text}**" if abs(change.value) > half_width else text


def print_risks(statistics: Mapping[str, dict[str, Statistics]], decisions: str) -> None:
    """Print the risks of accepted labels or of images in all domains."""
    columns = [f"{risk}{suffix}" for risk in RISKS for suffix in ("", ": over plain", ": over own")]
    print(f"\nRisk of {decisions}, %\n\n| domain | uncertainty |", " | ".join(columns), "|")
    print("|", "---|" * (len(columns) + 2), sep="")
    for domain, found in statistics.items():
        for row, risks in found[decisions].items():
            cells = []
            for k in range(len(RISKS)):
                mean = risks[:, k, 0].mean()
                cells.append("–" if np.isnan(mean) else f"{mean:.2f}")
                for reference in (PLAIN, OWN):
                    change = gain(found[decisions], reference, row, k)
                    cells.append(difference_cell(change) if is_compared(row, reference) else "")
            print(f"| {domain} | {row} |", " | ".join(cells), "|")


def print_auroc(statistics: Mapping[str, dict[str, Statistics]]) -> None:
    """Print the AUROC of errors over all labels in all domains."""
    print("\nAUROC of errors over all labels, %\n\n| uncertainty |", " | ".join(statistics), "|")
    print("|", "---|" * (len(statistics) + 1), sep="")
    for row in ROWS:
        cells = [f"{found['AUROC'][row].mean():.1f}" for found in statistics.values()]
        print(f"| {row} |", " | ".join(cells), "|")


def print_heads(statistics: Mapping[str, dict[str, Array]]) -> None:
    """Print the metrics of both heads in all domains, and their differences."""
    print("\n| domain | head |", " | ".join(HEAD_COLUMNS), "|")
    print("|", "---|" * (len(HEAD_COLUMNS) + 2), sep="")
    for domain, found in statistics.items():
        for head, values in found.items():
            means = values[:, :, 0].mean(axis=0)
            cells = [f"{mean:,.2f}".replace("-", "−") for mean in means]
            print(f"| {domain} | {head} |", " | ".join(cells), "|")
        pairs = zip(*(values.swapaxes(0, 1) for values in found.values()), strict=True)
        cells = [difference_cell(difference(*pair)) for pair in pairs]
        print(f"| {domain} | difference |", " | ".join(cells), "|")


def print_conditions(statistics: Mapping[str, Mapping[str, dict[str, Statistics]]]) -> None:
    """Print the domains in which the gains of the uncertainties exclude 0, by encoder."""
    print("\nGains whose intervals exclude 0: + above 0, − below 0\n")
    print("| uncertainty | gain over | decisions | encoder |", " | ".join(RISKS), "| fulfilled |")
    print("|", "---|" * (len(RISKS) + 5), sep="")
    for kind, reference in product(UNCERTAINTY_KINDS, (PLAIN, OWN)):
        if not is_compared(kind, reference):
            continue
        for decisions, encoder in product(DECISIONS, statistics):
            cells, is_fulfilled = [], True
            for k in range(len(RISKS)):
                gains = {
                    domain: gain(found[decisions], reference, kind, k)
                    for domain, found in statistics[encoder].items()
                }
                above, below = (
                    [d for d, g in gains.items() if g.excludes_zero and sign * g.value > 0]
                    for sign in (1, -1)
                )
                signs = {"+": above, "−": below}
                cells.append("; ".join(f"{s} {', '.join(d)}" for s, d in signs.items() if d))
                is_fulfilled &= DOMAINS[0] in above and not below
            print(
                f"| {kind} | {'own' if reference == OWN else 'plain'} | {decisions} | {encoder} |",
                " | ".join(cells),
                f"| {'yes' if is_fulfilled else 'no'} |",
            )


def is_compared(row: str, reference: str) -> bool:
    """Return whether an uncertainty is compared with a reference."""
    return row not in (PLAIN, reference)


def gain(risks: Statistics, reference: str, row: str, k: int) -> RowDifference:
    """Return how much smaller a risk of an uncertainty is than that of a reference."""
    return difference(risks[reference][:, k], risks[row][:, k])


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
