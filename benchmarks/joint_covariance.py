"""Measure class covariance in contrastive training on images and captions of scenes-80.

    python benchmarks/joint_covariance.py

Two-layer residual networks, one for the image vectors and one for the caption vectors, and the
scale of the similarities are fitted with the loss `info_nce` in both directions and with
`class_covariance_of_softmax`. The vectors are those of the frozen encoder. A batch has 64 training
images with two captions each, which mention all objects. Equal texts are positive for all their
images. *long* is a fit with more epochs and a higher learning rate, which overfits.

The metrics are computed on the test images, in two blocks of 500 with one caption per image: R@k
from image to text, the log loss, and the ECE (15 bins) of the largest softmax probability over the
texts of the block. A decision is correct if the first text is the caption of the image. For the
calibrated columns, logits are divided by a temperature that is fitted on the 500 validation images.

The script prints the mean over seeds without regularizer, and for each other row the mean of the
paired changes. ± is the larger half-width of two 95 % intervals: over seeds (t distribution) and
over images (bootstrap). A change is bold if it exceeds this half-width. The row `permuted` uses the
similarities of other captions as a control. Fits are cached, so the same command resumes.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from photograph_covariance import change_cell
from scipy.optimize import minimize_scalar
from scipy.special import logit
from torch import nn
from torch.nn import functional

from surelabel.bench.resampling import BenchResampling, bench_resampling_weights
from surelabel.bench.result_cache import ResultCache
from surelabel.data import read_scenes
from surelabel.data.bundled_collections import bundled_collection_folder
from surelabel.encoders import load_encoder
from surelabel.features import FeatureCache, default_feature_cache_folder, encode_image_files
from surelabel.losses import info_nce
from surelabel.records import TrainingStep
from surelabel.regularizers import class_covariance_of_softmax

WEIGHTS = (0.05, 0.1, 0.3, 1.0)
FITS = {"20 epochs": (20, 0.003), "long": (40, 0.01)}  # epochs and learning rate
ROWS = {  # similarity and weight, by fit
    "20 epochs": [
        ("none", 0.0),
        *(("cosine", weight) for weight in WEIGHTS),
        *((form, 1.0) for form in ("permuted", "centered")),
    ],
    "long": [("none", 0.0), ("cosine", 0.1), ("cosine", 1.0)],
}
HIDDEN, BATCH, BLOCK, RESAMPLES = 64, 64, 500, 300
FULL_CAPTIONS = [2, 4]  # captions of a scene that mention all objects, among its five captions
COLUMNS = ["R@1, %", "R@5, %", "R@10, %", "raw log loss, mnat", "raw ECE, %"]
COLUMNS += ["calibrated log loss, mnat", "calibrated ECE, %"]


class Pairs(NamedTuple):
    """Vectors of n images and of their two captions, with numbers of the texts."""

    images: torch.Tensor  # (n, d)
    captions: torch.Tensor  # (n, 2, d)
    texts: torch.Tensor  # (n, 2), equal numbers for equal texts


def load_pairs(encoder, split):
    """Return the pairs of a split of scenes-80."""
    scenes = read_scenes(bundled_collection_folder("scenes-80", split=split))
    cache = FeatureCache(default_feature_cache_folder())
    images = encode_image_files(encoder, scenes.images.paths, cache=cache, strict=True)
    texts = [captions[k].text for captions in scenes.captions for k in FULL_CAPTIONS]
    number_of_text = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    with torch.no_grad():
        vectors = encoder.encode_sentences(list(number_of_text))
    numbers = torch.tensor([number_of_text[text] for text in texts]).view(-1, len(FULL_CAPTIONS))
    return Pairs(images.features.pooled, vectors[numbers], numbers)


class JointAdapter(nn.Module):
    """Residual networks for image and caption vectors, which start at zero-shot scores."""

    def __init__(self, width, scale):
        super().__init__()
        layers = ((nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, width)) for _ in range(2))
        self.networks = nn.ModuleList(nn.Sequential(*of_tower) for of_tower in layers)
        for network in self.networks:
            nn.init.zeros_(network[-1].weight)
            nn.init.zeros_(network[-1].bias)
        self.log_scale = nn.Parameter(torch.tensor(scale).log())

    def forward(self, images, captions):
        x, t = (
            functional.normalize(vectors + network(vectors), dim=1)
            for vectors, network in zip((images, captions), self.networks, strict=True)
        )
        return self.log_scale.exp() * x @ t.T


def fit(pairs, scale, epochs, learning_rate, row, seed):
    """Return the adapter after training; ``row`` has the similarity and the weight."""
    form, weight = row
    torch.manual_seed(seed)
    adapter = JointAdapter(pairs.images.shape[1], scale)
    prior = pairs.captions
    if form == "permuted":
        order = torch.randperm(len(prior), generator=torch.Generator().manual_seed(seed))
        prior = prior[order]
    regularizer = partial(
        class_covariance_of_softmax, similarity="centered" if form == "centered" else "cosine"
    )
    optimizer = torch.optim.AdamW(adapter.parameters(), lr=learning_rate, weight_decay=0.01)
    n_batches = len(pairs.images) // BATCH
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * n_batches)
    for _ in range(epochs):
        for rows in torch.randperm(len(pairs.images))[: n_batches * BATCH].split(BATCH):
            numbers = pairs.texts[rows]
            targets = (numbers[:, :, None] == numbers.flatten()).any(dim=1).float()
            known = torch.ones_like(targets, dtype=torch.bool)
            scores = adapter(pairs.images[rows], pairs.captions[rows].flatten(0, 1))
            loss = info_nce(scores, targets, known) + info_nce(scores.T, targets.T, known.T)
            step = TrainingStep(scores, None, targets, known, prior[rows].flatten(0, 1))
            penalty = weight * regularizer(step) if weight else 0.0
            optimizer.zero_grad()
            (loss / 2 + penalty).backward()
            optimizer.step()
            schedule.step()
    return adapter


@torch.no_grad()
def block_scores(adapter, pairs):
    """Return for each block of images the scores of its texts, and the column of each caption."""
    blocks = []
    for start in range(0, len(pairs.images), BLOCK):
        numbers = pairs.texts[start : start + BLOCK, 0]
        texts, columns = numbers.unique(return_inverse=True)
        first_rows = (numbers == texts[:, None]).int().argmax(dim=1)
        captions = pairs.captions[start : start + BLOCK, 0][first_rows]
        scores = adapter(pairs.images[start : start + BLOCK], captions)
        blocks.append((scores.double(), columns))
    return blocks


def image_values(adapter, validation, test):
    """Return hits at 1, 5 and 10, log losses and confidences of each test image, (7, n)."""
    [(scores, columns)] = block_scores(adapter, validation)

    def validation_loss(log_temperature):
        return float(functional.cross_entropy(scores / np.exp(log_temperature), columns))

    temperature = np.exp(minimize_scalar(validation_loss, bounds=(-3, 3), method="bounded").x)
    values = []
    for test_scores, test_columns in block_scores(adapter, test):
        ranking = test_scores.argsort(dim=1, descending=True) == test_columns[:, None]
        of_block = [ranking[:, :k].any(dim=1).double() for k in (1, 5, 10)]
        for readout in (test_scores, test_scores / temperature):
            of_block.append(functional.cross_entropy(readout, test_columns, reduction="none"))
            of_block.append(readout.softmax(dim=1).amax(dim=1))
        values.append(torch.stack(of_block))
    return torch.cat(values, dim=1).numpy()


def resampled_columns(values):
    """Return the ``COLUMNS`` on the test images and on resamples of them, (7, 1 + resamples)."""
    hits, log_losses, confidences = 100 * values[:3], 1000 * values[[3, 5]], values[[4, 6]]
    weights = bench_resampling_weights(values.shape[1], resamples=RESAMPLES)
    means = np.vstack([hits, log_losses]) @ (weights / weights.sum(axis=1, keepdims=True)).T
    first = BenchResampling(values[0][:, None], resamples=RESAMPLES)
    errors = [
        100 * first.metrics(logit(np.clip(p, 1e-12, 1 - 1e-12))[:, None])["ece"]
        for p in confidences
    ]
    return np.array([*means[:4], errors[0], means[4], errors[1]])


def print_table(title, zero_shot, measured):
    """Print the zero-shot row, and the changes of the other rows from no regularizer."""
    print(f"\n{title}\n\n| similarity | λ |", " | ".join(COLUMNS), "|")
    print("|", "---|" * (len(COLUMNS) + 2), sep="")
    print("| zero-shot | |", " | ".join(f"{column[0]:.2f}" for column in zero_shot), "|")
    rows = iter(measured.items())
    (name, _), reference = next(rows)
    means = reference[:, :, 0].mean(axis=0)
    print(f"| {name} | 0 |", " | ".join(f"{mean:.2f}" for mean in means), "|")
    for (name, weight), values in rows:
        pairs = zip(values.swapaxes(0, 1), reference.swapaxes(0, 1), strict=True)
        print(f"| {name} | {weight:g} |", " | ".join(change_cell(*pair) for pair in pairs), "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--encoders", nargs="+", default=["tiny-vit", "tiny-rn"])
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds, 2 or more")
    default_folder = default_feature_cache_folder() / "joint_covariance"
    parser.add_argument("--cache", type=Path, default=default_folder, help="folder of results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cache = ResultCache(arguments.cache)
    for name in arguments.encoders:
        encoder = load_encoder(name)
        train, *held_out = (load_pairs(encoder, split) for split in ("train", "validation", "test"))
        zero_shot = image_values(JointAdapter(train.images.shape[1], encoder.scale), *held_out)

        def measure(*choice, train=train, scale=encoder.scale, held_out=held_out):
            return {"values": image_values(fit(train, scale, *choice), *held_out)}

        for title, settings in FITS.items():
            measured = {}
            for row in ROWS[title]:
                choices = [(*settings, row, seed) for seed in range(arguments.seeds)]
                values = [
                    cache.load_or_compute_arrays(
                        *(name, HIDDEN, BATCH, choice),
                        shapes={"values": zero_shot.shape},
                        compute=partial(measure, *choice),
                    )["values"]
                    for choice in choices
                ]
                measured[row] = np.array([resampled_columns(of_seed) for of_seed in values])
            print_table(f"{name}, {title}", resampled_columns(zero_shot), measured)


if __name__ == "__main__":
    main()
