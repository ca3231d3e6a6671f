"""Compare the speed of `variational` on all pairs of images and texts with a plain network.

    python benchmarks/all_pairs.py [--quick] [--full] [--shortlist] [--threads N]

The vectors are random unit vectors, and the network is untrained, with d = h = 512 and K = 2, in
float32. Each solver returns the logit and the mean log variance of each pair:

plain        computes 128 × 128 pairs at once: products of the elements, hidden layer, means and log
             variances of all components, decoder; with one large matrix product per layer.
surelabel    is `all_pair_scores`, with folded heads and a first layer without the products.

The 25,000 texts are divided into parts, and both solvers compute each part before the next part.
Processor seconds are sums over the parts. The range of the ratio is the range over the parts.

--quick      uses 2,000 texts instead of 25,000.
--full       computes only 5,000 × 25,000 pairs with surelabel, block by block, and keeps the 10
             best texts of each image. It prints the seconds, and the peak memory minus the memory
             before.
--shortlist  measures only the recall of shortlists by cosine, after a fit on the captions of
             scenes-80 with `tiny-vit`. The recall is the fraction of the exact best 1 and 10 texts
             of each test image, and of the best images of each test text, among the k items with
             the highest cosine.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from surelabel.data import read_scenes
from surelabel.data.bundled_collections import bundled_collection_folder
from surelabel.encoders import load_encoder
from surelabel.features import FeatureCache, default_feature_cache_folder, encode_image_files
from surelabel.losses import binary
from surelabel.methods import METHODS
from surelabel.methods.variational.all_pairs import (
    all_pair_scores,
    compute_pair_blocks,
    pair_block_sizes,
    shortlist_by_cosine,
)
from surelabel.methods.variational.folded_heads import fold_posterior_heads
from surelabel.methods.variational.pair_posterior import PairPosterior
from surelabel.optimizers import OPTIMIZERS
from surelabel.records import Features
from surelabel.training import Objective, PairBatches, objective_mean_over_known, run_training_loop

WIDTH, COMPONENTS, IMAGES, TEXTS, FULL_IMAGES = 512, 2, 100, 25_000, 5_000
PART, CHUNK = 1_000, 128
SHORTLISTS, EPOCHS, BATCH = (10, 20, 50, 100, 200), 5, 32
GOAL = "5 × the speed of the plain network or more, equal to 1e-5"


def random_unit_vectors(count: int, seed: int) -> Tensor:
    """Return random unit vectors, ``(count, WIDTH)``."""
    generator = torch.Generator().manual_seed(seed)
    return functional.normalize(torch.randn(count, WIDTH, generator=generator), dim=1)


def untrained_posterior() -> PairPosterior:
    """Return a network with random log variances, whose logits are near 10 · cosine."""
    torch.manual_seed(0)
    posterior = PairPosterior(WIDTH, components=COMPONENTS)
    posterior.start_with_cosines(scale=10.0, bias=0.0)
    torch.nn.init.normal_(posterior.mixture_logits)
    return posterior.eval()


@torch.no_grad()
def plain_pair_scores(
    posterior: PairPosterior, images: Tensor, texts: Tensor
) -> tuple[Tensor, Tensor]:
    """Return logits and log variances of all pairs, computed for 128 × 128 pairs at once."""
    logits, log_variances = (torch.empty(len(images), len(texts)) for _ in range(2))
    for i in range(0, len(images), CHUNK):
        for j in range(0, len(texts), CHUNK):
            part = slice(i, i + CHUNK), slice(j, j + CHUNK)
            hidden = posterior.hidden(images[part[0]], texts[part[1]])
            means = posterior.mean_heads(hidden).unflatten(-1, (COMPONENTS, WIDTH))
            mean = torch.einsum("nskd,k->nsd", means, posterior.mixture_logits.softmax(dim=0))
            logits[part] = posterior.decoder(mean)[..., 0]
            log_variances[part] = posterior.mean_log_variances(hidden)
    return logits, log_variances


def print_comparison(n_texts: int) -> None:
    """Print the processor seconds of both solvers, their ratio, and the largest difference."""
    posterior, images = untrained_posterior(), random_unit_vectors(IMAGES, 1)
    texts, heads = random_unit_vectors(n_texts, 2), fold_posterior_heads(posterior)
    all_pair_scores(heads, images[:8], texts[:CHUNK])
    plain_pair_scores(posterior, images[:8], texts[:CHUNK])
    seconds, difference = [], 0.0
    for part in texts.split(PART):
        start = time.process_time()
        expected = plain_pair_scores(posterior, images, part)
        between = time.process_time()
        results = all_pair_scores(heads, images, part)
        seconds.append((between - start, time.process_time() - between))
        for result, reference in zip(results, expected, strict=True):
            difference = max(difference, float(np.abs(result - reference.numpy()).max()))
    plain, ours = np.sum(seconds, axis=0)
    ratios = [slow / fast for slow, fast in seconds]
    pairs = IMAGES * n_texts
    print(f"{IMAGES} × {n_texts:,} pairs, d = h = {WIDTH}, K = {COMPONENTS}")
    for name, total in (("plain", plain), ("surelabel", ours)):
        print(f"{name:10}{total:8.1f} s{1e6 * total / pairs:8.2f} µs per pair")
    print(
        f"surelabel is {plain / ours:.2f} × faster ({min(ratios):.2f} to {max(ratios):.2f}); "
        f"largest difference {difference:.1e} (goal: {GOAL})"
    )


def print_full() -> None:
    """Print the seconds and the peak memory of 5,000 × 25,000 pairs."""
    heads = fold_posterior_heads(untrained_posterior())
    images, texts = random_unit_vectors(FULL_IMAGES, 1), random_unit_vectors(TEXTS, 2)
    before, start, wall = peak_memory_mib(reset=True), time.process_time(), time.monotonic()
    n_blocks = 0
    for block in compute_pair_blocks(heads, images, texts):
        torch.from_numpy(block.logits).topk(10, dim=1)
        n_blocks += 1
    memory = peak_memory_mib() - before
    sizes = pair_block_sizes(TEXTS, heads)
    print(
        f"{FULL_IMAGES:,} × {TEXTS:,} pairs, {n_blocks} blocks of {sizes.images:,} images at most: "
        f"{time.monotonic() - wall:.0f} s, {time.process_time() - start:.0f} processor seconds, "
        f"{memory:.0f} MiB above the memory before"
    )


def peak_memory_mib(*, reset: bool = False) -> float:
    """Return the peak memory of this process since the last reset, in MiB."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def scene_features(encoder, split: str) -> tuple[Features, Features, Tensor, Tensor]:
    """Return features of images and of different texts, and the rows of image and text."""
    scenes = read_scenes(bundled_collection_folder("scenes-80", split=split))
    cache = FeatureCache(default_feature_cache_folder())
    images = encode_image_files(encoder, scenes.images.paths, cache=cache, strict=True)
    captions = [caption.text for captions in scenes.captions for caption in captions]
    row_of_text = {text: row for row, text in enumerate(dict.fromkeys(captions))}
    image_rows = [row for row, captions in enumerate(scenes.captions) for _ in captions]
    return (
        Features(images.features.pooled.float()),
        Features(encoder.encode_sentences(list(row_of_text)).float()),
        torch.tensor(image_rows),
        torch.tensor([row_of_text[text] for text in captions]),
    )


def print_shortlist_loss() -> None:
    """Print the recall of the exact best texts and images in shortlists by cosine."""
    encoder = load_encoder("tiny-vit")
    torch.manual_seed(0)
    method = METHODS["variational"](encoder, [])
    run_training_loop(
        method,
        PairBatches(*scene_features(encoder, "train"), batch_size=BATCH),
        objective=Objective(objective_mean_over_known(binary), method=method),
        epochs=EPOCHS,
        learning_rate=method.recipe.learning_rate,
        weight_decay=method.recipe.weight_decay,
        optimizer=OPTIMIZERS[method.recipe.optimizer],
    )
    images, texts, *_ = scene_features(encoder, "test")
    with torch.no_grad():
        sides = method.image_vectors(images), method.text_vectors(texts)
    scores = torch.from_numpy(all_pair_scores(method.folded_heads(), *sides)[0])
    names = f"{len(sides[0]):,} images", f"{len(sides[1]):,} texts"
    for title, (queries, items), exact in (
        (" → ".join(names), sides, scores),
        (" → ".join(names[::-1]), sides[::-1], scores.T),
    ):
        print(f"\n{title}\n{'k':>5}{'best 1, %':>12}{'best 10, %':>12}")
        best = exact.topk(10, dim=1).indices
        for k in SHORTLISTS:
            shortlist = shortlist_by_cosine(queries, items, count=k)
            is_listed = (best[:, :, None] == shortlist[:, None]).any(dim=2).float()
            recalls = 100 * is_listed[:, 0].mean(), 100 * is_listed.mean()
            print(f"{k:5}{recalls[0]:12.2f}{recalls[1]:12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2,000 texts")
    parser.add_argument("--full", action="store_true", help="5,000 × 25,000 pairs")
    parser.add_argument("--shortlist", action="store_true", help="recall of shortlists")
    parser.add_argument("--threads", type=int, default=1, help="number of threads, 1 or more")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.full:
        print_full()
    elif arguments.shortlist:
        print_shortlist_loss()
    else:
        print_comparison(2_000 if arguments.quick else TEXTS)


if __name__ == "__main__":
    main()
