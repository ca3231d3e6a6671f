"""Synthetic evaluations: random images, and targets sampled from the probabilities."""

from dataclasses import replace
from functools import cache
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageColor
from scipy.special import expit

from surelabel import metrics
from surelabel.calibration import Platt
from surelabel.evaluation import (
    NOISE_FLOOR_METRICS,
    Evaluation,
    Example,
    ExampleLabel,
    RegionMaps,
    UncalibratedMetrics,
    compare_predictions,
    estimate_calibration_budget,
)
from surelabel.records import LabelledImages, Predictions

RANKING = ("mean_average_precision", "mean_average_precision_per_image", "average_precision")
OTHERS = ("brier_skill", "brier", "log_loss", "ece", "ece_of_candidates", "ace", "mce")


def example(path, names, values, targets, known):
    order = np.argsort(-values)
    tags = [
        ExampleLabel(names[c], float(values[c]), bool(targets[c]) if known[c] else None)
        for c in order[:6]
    ]
    missed = [names[c] for c in order[6:] if targets[c] and known[c]]
    rows = np.linspace(-1, 1, 49).reshape(7, 7)
    maps = {tag.name: rows * np.cos(i + rows.T * 3) for i, tag in enumerate(tags)}
    most = np.stack(list(maps.values())).argmax(axis=0)
    seen = RegionMaps(maps, np.array(list(maps))[most])
    return Example(path, tuple(tags), tuple(missed), loss=0.1, regions=seen)


def evaluation(paths, names, *, seed=0, calibrated=True, sharpness=2.0, claimed=1.0, unknown=0.0):
    """Calibrated if ``claimed`` is 1: the targets are sampled from the probabilities."""
    random = np.random.default_rng(seed)
    shape = (len(paths), len(names))
    offset = random.normal(-3, 1, len(names))
    logits = (offset + random.normal(0, sharpness, shape)).clip(-40, 40)
    targets = (random.random(shape) < expit(logits)).astype(float)
    known = random.random(shape) >= unknown
    made = Predictions(
        paths,
        names,
        scores=logits.astype(np.float32),
        logits=(claimed * logits).astype(np.float32),
        calibration="platt on 500 labelled images" if calibrated else None,
        model="tiny-vit-0f3a",
    )
    summary = {m: metrics.METRICS[m](logits, targets, known) for m in RANKING}
    per_class = {"average_precision": metrics.average_precision_per_class(logits, targets, known)}
    floor = {}
    if calibrated:
        p = made.probabilities
        summary |= {m: metrics.METRICS[m](p, targets, known) for m in OTHERS}
        per_class |= {m: metrics.PER_CLASS[m](p, targets, known) for m in OTHERS}
        floor = {
            m: metrics.noise_floor(metrics.METRICS[m], p, known, resamples=3)
            for m in NOISE_FLOOR_METRICS
        }
    values = made.probabilities if calibrated else logits
    shown = [
        example(path, names, *row)
        for path, *row in zip(paths[:12], values, targets, known, strict=False)
    ]
    return Evaluation(
        predictions=made,
        targets=targets,
        known=known,
        summary=summary,
        per_class=per_class,
        undefined_classes={m: int(np.isnan(values).sum()) for m, values in per_class.items()},
        noise_floor=floor,
        class_noise_floor={m: 2 * v for m, v in floor.items()},
        worst_examples=tuple(shown[:6]),
        best_examples=tuple(shown[6:]),
    )


def before_calibration(found):
    """Add uncalibrated logits of twice the size."""
    bold = UncalibratedMetrics(2.0 * found.predictions.logits.astype(float), {})
    for name in ("brier_skill", "log_loss", "ece", "ace", "mce"):
        judge = metrics.METRICS[name]
        bold.summary[name] = judge(bold.probabilities, found.targets, found.known)
    return replace(found, uncalibrated=bold)


@pytest.fixture
def whole(judged):
    """Return a function that makes an evaluation with all optional parts."""

    def made(count=120, **settings):
        found = before_calibration(judged(count, **settings))
        p, y, known = found.predictions.probabilities, found.targets, found.known
        budget = estimate_calibration_budget(Platt, found.uncalibrated.logits, y, known, repeats=2)
        spread = {"ece": metrics.bootstrap_interval(metrics.ece, p, y, known, resamples=5)}
        alone = judged(count, **(settings | {"seed": 1})).predictions
        return replace(found, calibration_budget=budget, intervals=spread, zero_shot_baseline=alone)

    return made


@pytest.fixture(scope="session")
def pixels():
    """The colours of a PNG file."""

    def read(png):
        image = Image.open(BytesIO(png))
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB")).astype(int)

    return read


@pytest.fixture(scope="session")
def share_of(pixels):
    """How much of a plot is about some colour."""

    def share(colour, png):
        return (np.abs(pixels(png) - ImageColor.getrgb(colour)).max(axis=2) < 12).mean()

    return share


@pytest.fixture(scope="session")
def evaluation_of():
    """``evaluation``, for fixtures that live longer than a test."""
    return evaluation


@cache
def noise_files(side):
    """Return the contents of twelve PNG files of noise, some of them oblong."""
    random, files = np.random.default_rng(1), []
    for i in range(12):
        pixels = random.integers(0, 256, (8, 8 + i % 3 * 4, 3), dtype=np.uint8)
        size, file = (side + i % 3 * side // 2, side), BytesIO()
        Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC).save(file, "PNG")
        files.append(file.getvalue())
    return files


@pytest.fixture
def images(tmp_path):
    """Makes files of noise, some of them oblong."""

    def drawn(count, side=64):
        (tmp_path / "images").mkdir(exist_ok=True)
        paths = [tmp_path / "images" / f"{i:04}.png" for i in range(count)]
        for path, content in zip(paths, noise_files(side), strict=False):
            path.write_bytes(content)
        return [str(path) for path in paths]

    return drawn


@pytest.fixture
def judged(images):
    """Return a function that makes an evaluation; its first twelve images are on disk."""

    def made(count=60, labels=8, **settings):
        names = settings.pop("names", None) or [f"label {i}" for i in range(labels)]
        return evaluation(images(count), names, **settings)

    return made


@pytest.fixture
def elsewhere():
    """Makes the same evaluation with other paths."""

    def moved(found, paths):
        swap = dict(zip(found.predictions.paths, paths, strict=False))
        ends = {
            end: tuple(replace(e, path=swap.get(e.path, e.path)) for e in getattr(found, end))
            for end in ("worst_examples", "best_examples")
        }
        return replace(found, predictions=replace(found.predictions, paths=paths), **ends)

    return moved


@cache
def comparison(n_labels, calibrations, swapped):
    """Compare a weak model A with a strong model B, on labels of which the last is rare."""
    random = np.random.default_rng(0)
    targets = random.random((80, n_labels)) < 0.4
    targets[:, -1] = np.arange(80) < 2
    paths, names = [f"{row}.jpg" for row in range(80)], [f"label {c}" for c in range(n_labels)]
    names[0] = "<script> | *"
    logits = [random.normal(s * (2 * targets - 1), 1).astype("f4") for s in (0.3, 2)]
    first, second = (
        Predictions(paths, names, x, x, c) for x, c in zip(logits, calibrations, strict=True)
    )
    if swapped:
        first, second = second, first
    labelled = LabelledImages(paths, names, targets.astype(float))
    return compare_predictions(first, second, labelled, titles=("one", "two"), resamples=30)


@pytest.fixture(scope="session")
def compared():
    """Return a function that compares two models; model B is better."""

    def made(*, n_labels=6, calibrations=("platt", "platt"), swapped=False, left_out=False):
        found = comparison(n_labels, calibrations, swapped)
        others = {"images_without_first": 2, "images_without_second": 1, "unannotated_images": 3}
        return replace(found, **others, labels_of_first_only=["fox"]) if left_out else found

    return made
