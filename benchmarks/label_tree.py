"""Measure the effect of a tree of labels on generated scenes.

    surelabel scenes FOLDER --count 4000
    OMP_NUM_THREADS=1 python benchmarks/label_tree.py FOLDER [--seeds 5]

The 80 objects of the scenes are the leaves, and their 16 themes are the parents. A theme is
positive if the image has one of its objects. Recognizers of all 96 labels use vectors of tiny-vit.
For each seed, the scenes are split at random: half of the scenes for the fit, 15 % for the
calibrator, and 35 % for the test, where all targets are known.

First part: all targets are known. The method ``linear`` is fitted, and ``zero_shot`` is not; most
names of the themes contain tokens that tiny-vit was not trained on. Each calibrator is evaluated
with and without the last step, the projection of the logits to the tree.

Second part: the method ``linear`` and the default calibrator with incomplete annotations of the
images for the fit and for the calibrator. The other group of labels is always annotated.

    leaves in 20 %                  Leaves are annotated in a random part of the images.
    parents in 20 %                 Parents are annotated in a random part of the images.
    leaves of positive parents      A leaf is annotated if its parent is positive.
    parents without positive leaf   A parent is annotated if none of its leaves is positive.

The targets are used as annotated; extended by those that follow from the tree and do not distort
the frequencies of labels, which is what a recognizer with a tree does; or all extended.

    log loss     Mean over all images and labels of the group, in nats.
    Brier skill  1 - Brier score / Brier score of the prevalence of each label.
    ECE          Expected calibration error in points.
    bias         Mean probability - mean target, in points.
    pairs        Fraction of pairs of an image and a leaf with p(leaf) > p(parent).

Intervals are 95 % t intervals over the seeds. Differences are paired: the same seed, and therefore
the same split and annotations. The metrics of each seed are stored in FOLDER/label_tree, and the
same command resumes a stopped run.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from seed_tables import print_table

from surelabel.arrays import Array
from surelabel.config import Choice, load_run
from surelabel.data import read_scenes
from surelabel.data.scene_words import all_scene_words
from surelabel.encoders import Encoder, load_encoder
from surelabel.features import FeatureCache
from surelabel.files import atomic_file
from surelabel.metrics import METRICS
from surelabel.recognizer import Recognizer
from surelabel.records import NO_PARENT, LabelledImages, LabelTree

METHODS = ("linear", "zero_shot")
CALIBRATORS = ("cross_validated", "hierarchical", "vector", "isotonic_per_class")
GROUPS = ("leaves", "parents")
FRACTION = 0.2  # of the images in which a group is annotated
CASES = (
    "leaves in 20 %",
    "parents in 20 %",
    "leaves of positive parents",
    "parents without positive leaf",
)  # the first word is the group that is not always annotated
TARGETS = ("as annotated", "extended", "all extended")
STEPS = ("not projected", "projected")
PART_ENDS = (0.5, 0.65)  # fractions of the scenes: end of the fit, end of the calibrator
FORMAT = 4  # of the stored metrics

Metrics = dict[str, dict[str, float]]  # metrics of each group of labels


def main() -> None:
    """Evaluate the recognizers of each seed, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    benchmark = LabelTreeBenchmark(options.folder)
    seeds = [benchmark.seed_metrics(seed) for seed in range(options.seeds)]
    for group in GROUPS:
        rows = {row: [seed[row][group] for seed in seeds] for row in seeds[0]}
        first = [row for row in rows if not row.startswith(GROUPS)]
        second = [row for row in rows if row.startswith(GROUPS)]
        print_table(f"{group}, complete annotations", {row: rows[row] for row in first})
        print_differences(f"{group}: projected - not projected", rows, first, STEPS)
        print_table(f"{group}, incomplete annotations", {row: rows[row] for row in second})
        print_differences(f"{group}: projected - not projected", rows, second, STEPS)
        for targets in TARGETS[1:]:
            title = f"{group}: {targets} - {TARGETS[0]}"
            print_differences(title, rows, second, (TARGETS[0], targets))


class LabelTreeBenchmark:
    """Recognizers of the objects and themes of a folder of scenes, and their metrics.

    Args:
        folder: Folder of generated scenes.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.data, self.tree = read_themes(folder)
        self.encoder: Encoder = load_encoder("tiny-vit")
        self.cache = FeatureCache(folder / "features")

    def seed_metrics(self, seed: int) -> dict[str, Metrics]:
        """Return the metrics of all recognizers of a seed; stored metrics are read."""
        settings: dict[str, Callable[[], dict[str, Metrics]]] = {
            method: lambda method=method: self.complete_metrics(method, seed) for method in METHODS
        }
        settings |= {case: lambda case=case: self.incomplete_metrics(case, seed) for case in CASES}
        results: dict[str, Metrics] = {}
        for setting, compute in settings.items():
            file = self.folder / "label_tree" / f"{setting.replace(' ', '-')}-{seed}.json"
            stored = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
            if stored.get("format") != FORMAT:
                stored = {"format": FORMAT, "metrics": compute()}
                with atomic_file(file) as path:
                    path.write_text(json.dumps(stored, indent=1), encoding="utf-8")
            print(f"seed {seed}, {setting}")
            results |= stored["metrics"]
        return results

    def complete_metrics(self, method: str, seed: int) -> dict[str, Metrics]:
        """Return the metrics of a method with each calibrator, if all targets are known."""
        fit, calibration, test = self.split(seed)
        recognizer = self.recognizer(method, seed)
        if method != "zero_shot":
            recognizer.fit(fit)
        results: dict[str, Metrics] = {}
        for calibrator in CALIBRATORS:
            recognizer.run = replace(recognizer.run, calibrator=Choice(calibrator))
            recognizer.label_tree = None
            recognizer.calibrate(calibration)
            results |= self.step_metrics(f"{method}, {calibrator}", recognizer, test)
        return results

    def incomplete_metrics(self, case: str, seed: int) -> dict[str, Metrics]:
        """Return the metrics of each kind of targets, if a group is not always annotated."""
        fit, calibration, test = self.split(seed)
        rng = np.random.default_rng([seed, CASES.index(case)])
        fit, calibration = (self.remove_targets(part, case, rng) for part in (fit, calibration))
        results: dict[str, Metrics] = {}
        for targets in TARGETS:
            recognizer = self.recognizer("linear", seed)
            recognizer.label_tree = self.tree if targets == "extended" else None
            parts = fit, calibration
            if targets == "all extended":
                parts = self.extend(fit), self.extend(calibration)
            recognizer.fit(parts[0]).calibrate(parts[1])
            results |= self.step_metrics(f"{case}, {targets}", recognizer, test)
        return results

    def step_metrics(
        self, row: str, recognizer: Recognizer, test: LabelledImages
    ) -> dict[str, Metrics]:
        """Return the metrics of a calibrated recognizer, without and with the projection."""
        results = {}
        for step, tree in zip(STEPS, (None, self.tree), strict=True):
            recognizer.label_tree = tree
            results[f"{row}, {step}"] = self.evaluate(recognizer.predict(test).probabilities, test)
        return results

    def evaluate(self, probabilities: Array, test: LabelledImages) -> Metrics:
        """Return the metrics of the probabilities of each group of labels, ``(n, c)``."""
        parents = self.tree.parent_columns(test.names)
        is_leaf = parents != NO_PARENT
        pairs = probabilities[:, is_leaf] > probabilities[:, parents[is_leaf]]
        return {
            group: {
                "log loss": METRICS["log_loss"](p, y),
                "Brier skill, %": 100 * METRICS["brier_skill"](p, y),
                "ECE, points": 100 * METRICS["ece"](p, y),
                "bias, points": 100 * float(p.mean() - y.mean()),
                "pairs, %": 100 * float(pairs.mean()),
            }
            for group, columns in zip(GROUPS, (is_leaf, ~is_leaf), strict=True)
            for p, y in [(probabilities[:, columns], test.targets[:, columns])]
        }

    def recognizer(self, method: str, seed: int) -> Recognizer:
        """Return a recognizer of all labels that is not fitted and has no tree."""
        overrides = ["encoder.name=tiny-vit", f"method.name={method}", f"seed={seed}"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # names of themes in unknown tokens
            return Recognizer(
                load_run(overrides=overrides),
                self.data.names,
                encoder=self.encoder,
                cache=self.cache,
            )

    def split(self, seed: int) -> list[LabelledImages]:
        """Return the scenes for the fit, the calibrator and the test."""
        n_images = len(self.data)
        order = np.random.default_rng(seed).permutation(n_images)
        return [
            self.data.take(rows)
            for rows in np.split(order, [round(end * n_images) for end in PART_ENDS])
        ]

    def remove_targets(
        self, images: LabelledImages, case: str, rng: np.random.Generator
    ) -> LabelledImages:
        """Return the images without the targets that are not annotated in a case."""
        parents = self.tree.parent_columns(images.names)
        is_leaf, known = parents != NO_PARENT, images.known.copy()
        if case.endswith("%"):
            is_removed = rng.permutation(len(images)) >= round(FRACTION * len(images))
            known[np.ix_(is_removed, is_leaf == case.startswith("leaves"))] = False
        elif case.startswith("leaves"):
            known[:, is_leaf] = images.targets[:, parents[is_leaf]] == 1
        else:
            known[:, ~is_leaf] = images.targets[:, ~is_leaf] == 0
        return LabelledImages(images.paths, images.names, images.targets, known)

    def extend(self, images: LabelledImages) -> LabelledImages:
        """Return the images with all targets that follow from the tree."""
        targets = np.where(images.known, images.targets, np.nan)
        implied = self.tree.implied_targets(targets, images.names)
        extended = np.where(np.isnan(targets), implied, targets)
        return LabelledImages(images.paths, images.names, extended)


def read_themes(folder: Path) -> tuple[LabelledImages, LabelTree]:
    """Return the scenes with the targets of objects and themes, and the tree of these labels."""
    images = read_scenes(folder).images
    theme_of = {word.name: word.theme for word in all_scene_words()}
    parents = {name: theme_of[name] for name in images.names}
    themes = list(dict.fromkeys(parents.values()))
    of_theme = np.array([[parents[name] == theme for theme in themes] for name in images.names])
    targets = np.concatenate([images.targets, images.targets @ of_theme > 0], axis=1)
    return LabelledImages(images.paths, [*images.names, *themes], targets), LabelTree(parents)


def print_differences(
    title: str,
    rows: dict[str, list[dict[str, float]]],
    names: Sequence[str],
    values: tuple[str, str],
) -> None:
    """Print the paired differences between rows that differ in one part of their names.

    Args:
        title: Title of the table.
        rows: Metrics of each seed, for each row.
        names: Names of the rows to compare.
        values: Part of the name of the first row, and of the row from which it is subtracted.
    """
    differences = {}
    for name in names:
        parts = name.split(", ")
        if values[0] not in parts:
            continue
        other = ", ".join(values[1] if part == values[0] else part for part in parts)
        label = ", ".join(part for part in parts if part != values[0])
        differences[label] = [
            {metric: after[metric] - before[metric] for metric in after}
            for before, after in zip(rows[name], rows[other], strict=True)
        ]
    print_table(title, differences)


if __name__ == "__main__":
    main()
