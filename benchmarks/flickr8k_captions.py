"""Compare methods for the retrieval of images and captions, on 1,000 images of Flickr8k.

    python benchmarks/flickr8k_captions.py flickr8k_1000 mobilenet_v2_1.0_224_quant.onnx

The folder contains `captions_8091_images.csv` (`image,caption`), and the images in `images.zip`, or
their vectors in `mobilenetv2_feats.npz` (`names`, `pool_u8`, `pool_scale_zero`), or both. Captions
of other images are left out. The ONNX graph computes the image vectors, from the same part of the
images as in the file of vectors. If images and file exist, the cosine of both vectors is printed.
Sentence vectors are TF-IDF of words and pairs of words with a truncated SVD, fitted on the training
captions.

For each seed, the images are split at random into 800 for training, 100 for validation and 100 for
testing. The tables have these rows, on the same vectors:

- `variational` with its default losses, and with `detach_trunk=true`
- `cosine_projection` with the contrastive loss and with the sigmoid loss
- `probabilistic_embedding`
- canonical correlation analysis (CCA) with a ridge: cosine of the canonical variates, weighted by
  their correlations
- chance: a random order

Each row has seven candidate fits per split. They differ in learning rate, width of the SVD, whether
the training means are subtracted from the vectors, epochs and weight decay. The fits of CCA, which
subtracts the means, differ in ridge, width of the SVD and number of components. One setting after
the other is selected by RSUM on the validation images of the split. The common space of the learned
projections has 96 dimensions, and a batch has 32 captions. Only the selected fit is evaluated on
the test images.

The script prints the recalls and the median rank as mean ± standard deviation over the splits. It
prints paired differences with 95 % t intervals over the splits, bold if an interval excludes 0. It
also prints how well the uncertainty, the negative score and the negative margin predict errors at
rank 1. The correlation over ten bins is for captions as queries, because 100 images are too few for
ten bins. Splits share images, so the intervals are approximate. Fits are cached; the same command
resumes an interrupted run.
"""

import argparse
import math
import time
import warnings
from functools import partial
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import torch
from PIL import Image
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from surelabel.bench.result_cache import ResultCache, result_cache_digest
from surelabel.bench.rows import difference_over_seeds
from surelabel.config import load_run
from surelabel.data import read_captions
from surelabel.encoders import load_encoder
from surelabel.evaluation import evaluate_pair_scores
from surelabel.features import default_feature_cache_folder, encode_images_in_memory
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer, score_pairs
from surelabel.records import PairFeatures
from surelabel.tables import table_entry_settings

WIDTH, MAX_TEXT_WIDTH = 1280, 512
TRAINING, HELD_OUT = 800, 100  # images for training; for validation, and for testing
RESIZED, CROPPED = 256, 224  # pixels, as in the training of the network
FIXED = ("method.width=96", "batch_size=32")
CONTRASTIVE, SIGMOID, CCA, CHANCE = "contrastive", "sigmoid", "CCA", "chance"
VARIATIONAL, DETACHED, PROBABILISTIC = "variational", "variational, detached", "probabilistic"
ROWS = {  # settings of the runs, by row
    VARIATIONAL: ("method.name=variational",),
    DETACHED: ("method.name=variational", "method.detach_trunk=true"),
    CONTRASTIVE: ("method.name=cosine_projection", "loss.name=contrastive"),
    SIGMOID: ("method.name=cosine_projection", "loss.name=binary"),
    PROBABILISTIC: ("method.name=probabilistic_embedding",),
}
START = {
    "learning_rate": 0.002,
    "text_width": MAX_TEXT_WIDTH,
    "centered": False,
    "epochs": 4,
    "weight_decay": 0.0001,
}
CANDIDATES = {
    "learning_rate": (0.005, 0.01),
    "text_width": (256,),
    "centered": (True,),
    "epochs": (6,),
    "weight_decay": (1.0,),
}
CCA_START = {"ridge": 1.0, "text_width": MAX_TEXT_WIDTH, "components": 64}
CCA_CANDIDATES = {"ridge": (0.3, 3.0, 10.0), "text_width": (256,), "components": (32, 128)}
METRICS = {"recall_at_1": "R@1", "recall_at_5": "R@5", "recall_at_10": "R@10"}
METRICS |= {"median_rank": "median rank"}
DIRECTIONS = {"image_to_caption": "i2t", "caption_to_image": "t2i"}
QUANTITIES = ("uncertainty", "minus_score", "minus_margin")


def computed_vectors(archive, network, names):
    """Return the unit vectors of the images of a ZIP file, computed by an ONNX graph."""
    encoder = load_encoder(f"onnx:{network}", interpolation="bilinear")
    with ZipFile(archive) as file:
        images = [center_crop(file.read(name)) for name in names]
    return encode_images_in_memory(encoder, images, strict=True).features.pooled.numpy()


def center_crop(content):
    """Return the central 224 × 224 pixels of an image after a resize of its shorter side to 256."""
    image = Image.open(BytesIO(content)).convert("RGB")
    factor = RESIZED / min(image.size)
    image = image.resize([round(factor * side) for side in image.size], Image.Resampling.BILINEAR)
    left, top = ((side - CROPPED) // 2 for side in image.size)
    return image.crop((left, top, left + CROPPED, top + CROPPED))


def stored_vectors(path):
    """Return the unit vectors of a file by name of the image."""
    with np.load(path, allow_pickle=False) as file:
        scale, zero = file["pool_scale_zero"].astype(np.float32)
        vectors = (file["pool_u8"].astype(np.float32) - zero) * scale
        return dict(zip((f"{name}.jpg" for name in file["names"]), unit(vectors), strict=True))


def image_vectors(folder, network, results):
    """Return the names of the images and their unit vectors, computed if the images exist."""
    archive, stored = folder / "images.zip", folder / "mobilenetv2_feats.npz"
    by_name = stored_vectors(stored) if stored.exists() else {}
    if not archive.exists():
        print(f"{len(by_name)} image vectors of {stored.name}")
        return list(by_name), np.stack(list(by_name.values()))
    with ZipFile(archive) as file:
        names = sorted(name for name in file.namelist() if name.endswith(".jpg"))
    computed = results.load_or_compute_arrays(
        *("image vectors", RESIZED, CROPPED, *(path.stat().st_size for path in (archive, network))),
        shapes={"vectors": (len(names), WIDTH)},
        compute=lambda: {"vectors": computed_vectors(archive, network, names)},
    )["vectors"]
    print(f"{len(names)} image vectors computed by {network.name}")
    if by_name:
        cosines = (computed * np.stack([by_name[name] for name in names])).sum(axis=1)
        print(
            f"cosine with {stored.name}: mean {cosines.mean():.4f}, median "
            f"{np.median(cosines):.4f}, lowest {cosines.min():.4f}"
        )
    return names, computed


def unit(vectors):
    """Return the vectors, scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Split:
    """Images and captions of one random split.

    Args:
        vectors: Unit vectors of the images, ``(n, 1280)``.
        texts: Texts of the captions, length s.
        image_rows: Row of the image of each caption, ``(s,)``.
        seed: Seed of the split and of all fits.
    """

    def __init__(self, vectors, texts, image_rows, seed):
        self.vectors, self.image_rows, self.seed = vectors, image_rows, seed
        order = np.random.default_rng(seed).permutation(len(vectors))
        train, validation, test = np.split(order[: TRAINING + 2 * HELD_OUT], [TRAINING, -HELD_OUT])
        self.parts = {"train": train, "validation": validation, "test": test}
        self.is_training = np.isin(image_rows, train)
        self.texts = self.sentence_vectors(texts)

    def sentence_vectors(self, texts):
        """Return the sentence vectors of the largest width, ``(s, 512)``."""
        weighting = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2))
        of_training = weighting.fit_transform(np.array(texts)[self.is_training])
        reduction = TruncatedSVD(MAX_TEXT_WIDTH, random_state=self.seed).fit(of_training)
        return reduction.transform(weighting.transform(texts)).astype(np.float32)

    def pairs(self, part, *, text_width=MAX_TEXT_WIDTH, centered=False, **_):
        """Return the images and captions of a part; ``centered`` subtracts the training means."""
        images, texts = self.vectors, unit(self.texts[:, :text_width])
        if centered:
            images = images - images[self.parts["train"]].mean(axis=0)
            texts = texts - texts[self.is_training].mean(axis=0)
        return PairFeatures(images, texts, self.image_rows).take(self.parts[part])


def learned_scores(split, row, settings):
    """Fit a method of the library, and return its scores of the held-out pairs."""
    run = run_of(split, row, settings)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recognizer = Recognizer(run, []).fit(split.pairs("train", **settings))
    values = {"seconds": time.process_time() - start}
    values["noise_inflation"] = any("noise inflation" in str(w.message) for w in caught)
    for part in ("validation", "test"):
        scored = score_pairs(recognizer, split.pairs(part, **settings))
        values[f"{part}_scores"] = scored.scores
        if scored.variances is not None:
            values[f"{part}_variances"] = scored.variances
    return values


def run_of(split, row, settings):
    """Return the run of one fit."""
    names = ("learning_rate", "epochs", "weight_decay")
    return load_run(
        None,
        [
            f"encoder.name=features:{WIDTH}",
            *ROWS[row],
            *FIXED,
            f"method.text_width={settings['text_width']}",
            *(f"{name}={settings[name]}" for name in names),
            f"seed={split.seed}",
        ],
    )


def cca_scores(split, settings):
    """Fit a CCA with a ridge, and return its scores of the held-out pairs.

    The ridge is relative to the mean variance of an element of the vectors.
    """
    start = time.process_time()
    train = split.pairs("train", **settings)
    means, maps = cca_maps(
        unit(train.image_vectors[train.image_rows]), unit(train.text_vectors), **settings
    )
    values = {"seconds": time.process_time() - start, "noise_inflation": False}
    for part in ("validation", "test"):
        pairs = split.pairs(part, **settings)
        images, texts = (
            unit((unit(vectors) - mean) @ projection)
            for vectors, mean, projection in zip(
                (pairs.image_vectors, pairs.text_vectors), means, maps, strict=True
            )
        )
        values[f"{part}_scores"] = images @ texts.T
    return values


def cca_maps(images, texts, *, ridge, components, **_):
    """Return the means of both kinds of vectors, and the maps to weighted canonical variates."""
    means = [vectors.mean(axis=0, dtype=np.float64) for vectors in (images, texts)]
    x, y = (vectors - mean for vectors, mean in zip((images, texts), means, strict=True))
    whiten_x, whiten_y = (inverse_square_root(v.T @ v / len(v), ridge) for v in (x, y))
    left, correlations, right = np.linalg.svd(
        whiten_x @ (x.T @ y / len(x)) @ whiten_y, full_matrices=False
    )
    weights = correlations[:components]
    maps = whiten_x @ left[:, :components] * weights, whiten_y @ right.T[:, :components] * weights
    return means, maps


def inverse_square_root(covariance, ridge):
    """Return the inverse square root of a covariance matrix with a relative ridge."""
    variances, vectors = np.linalg.eigh(covariance)
    return vectors / np.sqrt(variances.clip(min=0) + ridge * variances.mean()) @ vectors.T


def cached_scores(results, split, row, settings):
    """Return the scores of the held-out pairs of one fit, from the cache if they were cached."""
    n_captions = {part: len(split.pairs(part)) for part in ("validation", "test")}
    kinds = (
        ("scores", "variances") if row in (VARIATIONAL, DETACHED, PROBABILISTIC) else ("scores",)
    )
    shapes = {f"{part}_{k}": (HELD_OUT, s) for part, s in n_captions.items() for k in kinds}
    if row == CCA:
        key, compute = sorted(settings.items()), partial(cca_scores, split, settings)
    else:
        run = run_of(split, row, settings)
        defaults = table_entry_settings(METHODS[run.method.name])
        key = (repr(run), settings["centered"], defaults)
        compute = partial(learned_scores, split, row, settings)
    return results.load_or_compute_arrays(
        *(result_cache_digest(split.vectors, split.texts), row, split.seed, key),
        shapes=shapes | {"seconds": (), "noise_inflation": ()},
        compute=compute,
    )


def evaluation(split, values, part):
    """Return the evaluation of the scores of a part."""
    pairs = split.pairs(part)
    return evaluate_pair_scores(values[f"{part}_scores"], pairs, values.get(f"{part}_variances"))


def selected_fit(results, split, row):
    """Select one setting after the other by validation RSUM; return settings and scores."""
    selected = CCA_START if row == CCA else START
    for name, values in (CCA_CANDIDATES if row == CCA else CANDIDATES).items():
        candidates = [selected, *(selected | {name: value} for value in values)]
        rsums = [
            evaluation(split, cached_scores(results, split, row, candidate), "validation").rsum
            for candidate in candidates
        ]
        selected = candidates[int(np.argmax(rsums))]
    return selected, cached_scores(results, split, row, selected)


def test_metrics(evaluated):
    """Return all metrics of the tables by name; recalls and RSUM are in percent."""
    metrics = {"rsum": evaluated.rsum}
    for direction, short in DIRECTIONS.items():
        result = evaluated.directions[direction]
        for name in METRICS:
            factor = 100 if name.startswith("recall") else 1
            metrics[f"{short} {name}"] = factor * result.metrics[name]
        for quantity, prediction in result.error_predictions.items():
            metrics[f"{short} auroc {quantity}"] = prediction.auroc
            metrics[f"{short} bins {quantity}"] = prediction.bins.pearson_with_index
    return metrics


def chance_metrics(evaluated):
    """Return the expected recalls and the median rank of a random order, by name."""
    metrics = {"rsum": 0.0}
    for direction, short in DIRECTIONS.items():
        result = evaluated.directions[direction]
        for name, value in result.chance_recall.items():
            metrics[f"{short} {name}"] = 100 * value
            metrics["rsum"] += 100 * value
    captions, images = (evaluated.directions[name].n_items for name in DIRECTIONS)
    metrics["i2t median_rank"] = chance_median_rank(captions, captions // images)
    metrics["t2i median_rank"] = chance_median_rank(images, 1)
    return metrics


def chance_median_rank(n_items, n_relevant):
    """Return the median rank of the first relevant item in a random order."""
    orders = math.comb(n_items, n_relevant)
    return next(
        rank
        for rank in range(1, n_items + 1)
        if math.comb(n_items - rank, n_relevant) <= orders / 2
    )


def print_table(header, lines):
    """Print a table in Markdown."""
    print(f"\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for line in lines:
        print(f"| {' | '.join(line)} |")


def mean_cell(values, digits=1):
    """Return the mean and the standard deviation over splits as text."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def difference_cell(first, second, digits=1):
    """Return the mean difference with its interval as text, bold if the interval excludes 0."""
    d = difference_over_seeds(first, second)
    text = f"{d.value:+.{digits}f} ({d.low:+.{digits}f} to {d.high:+.{digits}f})".replace("-", "−")
    return f"**{text}**" if d.low > 0 or d.high < 0 else text


def print_results(measured, chance):
    """Print the tables.

    ``measured`` has the values of each metric over the splits, by row of the tables.
    """
    names = ["rsum", *(f"{short} {name}" for short in DIRECTIONS.values() for name in METRICS)]
    titles = ["RSUM", *(f"{s} {title}" for s in DIRECTIONS.values() for title in METRICS.values())]
    lines = [[row, *(mean_cell(m[name]) for name in names)] for row, m in measured.items()]
    chance_line = [CHANCE, *(f"{chance[name]:.1f}" for name in names)]
    print_table(["row", *titles], [*lines, chance_line])
    pairs = [(v, r) for v in (VARIATIONAL, DETACHED) for r in (CONTRASTIVE, SIGMOID, CCA)]
    print_table(
        ["difference", *titles],
        [
            [f"{v} − {r}", *(difference_cell(measured[v][n], measured[r][n]) for n in names)]
            for v, r in pairs
        ],
    )
    quantities = [f"{short} auroc {q}" for short in DIRECTIONS.values() for q in QUANTITIES]
    quantities += [f"t2i bins {q}" for q in QUANTITIES]
    print_table(
        ["row", *quantities],
        [
            [row, *(mean_cell(m[name], 2) if name in m else "" for name in quantities)]
            for row, m in measured.items()
        ],
    )
    others = [(short, q) for short in DIRECTIONS.values() for q in QUANTITIES[1:]]
    print_table(
        ["AUROC of the uncertainty minus that of", *(f"{s} {q}" for s, q in others)],
        [
            [
                row,
                *(
                    difference_cell(m[f"{s} auroc uncertainty"], m[f"{s} auroc {q}"], 2)
                    for s, q in others
                ),
            ]
            for row, m in measured.items()
            if "t2i auroc uncertainty" in m
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="flickr8k_1000")
    parser.add_argument("network", type=Path, help="MobileNetV2, .onnx")
    parser.add_argument("--seeds", type=int, default=5, help="number of splits, 2 or more")
    default_folder = default_feature_cache_folder() / "flickr8k_captions"
    parser.add_argument("--cache", type=Path, default=default_folder, help="folder of results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = ResultCache(arguments.cache)
    names, vectors = image_vectors(arguments.folder, arguments.network, results)
    row_of_image = {name: row for row, name in enumerate(names)}
    captions = read_captions(arguments.folder / "captions_8091_images.csv")
    paths = [Path(path).name for path in captions.paths]
    kept = [row for row, name in enumerate(paths) if name in row_of_image]
    texts = [captions.texts[row] for row in kept]
    image_rows = np.array([row_of_image[paths[row]] for row in kept])
    print(f"{len(texts)} of {len(captions)} captions belong to these images")
    measured = {row: [] for row in (*ROWS, CCA)}
    for seed in range(arguments.seeds):
        split = Split(vectors.astype(np.float32), texts, image_rows, seed)
        for row, of_seeds in measured.items():
            settings, values = selected_fit(results, split, row)
            evaluated = evaluation(split, values, "test")
            of_seeds.append(test_metrics(evaluated))
            text = ", ".join(f"{name} {value:g}" for name, value in settings.items())
            text += ", noise inflation" if values["noise_inflation"] else ""
            print(f"split {seed}, {row}: {text}, {values['seconds']:.1f} s", flush=True)
    by_metric = {
        row: {name: [m[name] for m in of_seeds] for name in of_seeds[0]}
        for row, of_seeds in measured.items()
    }
    print_results(by_metric, chance_metrics(evaluated))
    print(f"\n{time.process_time():.0f} s of processor time, {results.n_computed} new fits")


if __name__ == "__main__":
    main()
