"""Measure the effect of regularizers on linear and adapter heads on vectors of photographs.

    python benchmarks/photographs.py voc12_animals photographs.npz
    python benchmarks/photograph_covariance.py photographs.npz clip_text.npy coco80_names.txt

`photographs.npz` has MobileNetV2 vectors, which are in no joint space with texts. The similarities
of the labels are those of published CLIP text vectors: `clip_text.npy` has one vector for each line
of the file of names. The word list of the package finds the COCO name of a VOC label.

For each seed, a random fifth of the training images is held out, to select weights and to fit the
Platt calibrator that all labels share. The heads are fitted on the other images, or on a few-shot
sample of the other images. The script prints a table for each head and number of shots: the mean
over seeds on the test images for weight 0, and for each other row the mean of the paired changes.
± is the larger half-width of two 95 % intervals: over seeds (t distribution) and over images
(bootstrap). A change is bold if it exceeds this half-width. A mark shows the weight of a
regularizer with the lowest log loss on the held-out images: * without calibration, † if each half
of these images is calibrated on the other half. The second table of each setting repeats some rows
with new seeds: the selected weights of `class_covariance` in its default form, of the best form
with its control, and of `mdca`. Fits are cached.
"""

import argparse
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from scipy.special import expit
from torch import nn

from surelabel.bench.resampling import (
    BenchResampling,
    bench_resampling_difference_intervals,
    bench_resampling_mean_average_precision,
    bench_resampling_weights,
)
from surelabel.bench.result_cache import ResultCache
from surelabel.bench.rows import difference_over_seeds
from surelabel.calibration import Platt
from surelabel.data import read_feature_archive, sample_shots
from surelabel.data.text_labels.phrase_matching import split_words
from surelabel.data.text_labels.word_lists import read_word_list
from surelabel.encoders import load_encoder
from surelabel.features import default_feature_cache_folder, normalize_precomputed_vectors
from surelabel.links import Sigmoid
from surelabel.losses import binary
from surelabel.methods.linear import Linear
from surelabel.metrics import log_loss_of_logits
from surelabel.records import Features
from surelabel.regularizers import REGULARIZERS
from surelabel.training import (
    FeatureBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)

FORMS = (  # forms of class covariance: regularizer and similarity
    *(("class_covariance", similarity) for similarity in ("cosine", "centered", "minmax")),
    *(("class_covariance_of_logits", similarity) for similarity in ("cosine", "centered")),
    ("class_covariance_pairwise", "cosine"),
    ("class_second_moment", "cosine"),
)
CONTROLS = (
    *(("class_covariance_shuffled", similarity) for similarity in ("cosine", "centered")),
    ("mdca", None),
)
WEIGHTS = dict.fromkeys((*FORMS, *CONTROLS), (0.1, 1.0))
WEIGHTS |= dict.fromkeys((FORMS[0], FORMS[1], *CONTROLS[1:]), (0.05, 0.1, 0.3, 1.0))
NONE = ("none", None, 0.0)
ROWS = [NONE, *((*form, weight) for form, weights in WEIGHTS.items() for weight in weights)]
EPOCHS = {  # by head and shots; selected on held-out images with weight 0, seeds 0 to 2
    ("linear", 16): 120,
    ("linear", None): 30,
    ("adapter", 16): 45,
    ("adapter", None): 10,
}
RATIO, REDUCTION, RESAMPLES = 0.1, 32, 300
METRICS = {"brier_skill": ("Brier skill, %", 100), "log_loss": ("log loss, mnat", 1000)}
METRICS |= {"ece": ("ECE, %", 100)}
COLUMNS = [
    "mAP, %",
    *(f"{k} {title}" for k in ("raw", "calibrated") for title, _ in METRICS.values()),
]


class Adapter(Linear):
    """Linear head on vectors to which the output of a two-layer network is added."""

    def __init__(self, encoder, names):
        super().__init__(encoder, names, centred=False, penalty_folds=0)
        self.down = nn.Linear(encoder.width, encoder.width // REDUCTION, bias=False)
        self.up = nn.Linear(encoder.width // REDUCTION, encoder.width, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, features):
        x = features.pooled
        return super().forward(Features(x + RATIO * self.up(self.down(x).relu())))


HEADS = {"linear": partial(Linear, centred=False, penalty_folds=0), "adapter": Adapter}


class Photographs:
    """Vectors, targets and text vectors; the training images are split anew for each seed."""

    def __init__(self, archive, texts, names):
        splits = read_feature_archive(archive).splits
        train, test = [splits["train"], splits["validation"]], splits["test"]
        self.x, self.y = self.vectors(train), np.vstack([split.targets for split in train])
        self.test_x, self.test_y = self.vectors([test]), test.targets
        self.texts = text_vectors(texts, names, test.names)

    @staticmethod
    def vectors(splits):
        features = np.vstack([split.features for split in splits])
        return normalize_precomputed_vectors(features, width=features.shape[1]).features.pooled

    def held_out(self, seed):
        """Return the rows that are held out, and the other rows."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        return order[: len(order) // 5], np.sort(order[len(order) // 5 :])

    def fitted_logits(self, head, shots, row, seed):
        """Return the log-odds of the held-out and of the test images after one fit."""
        name, similarity, weight = row
        settings = {} if similarity is None else {"similarity": similarity}
        held_out, rows = self.held_out(seed)
        if shots:
            rng = np.random.default_rng(seed)
            rows = rows[sample_shots(self.y[rows], None, shots, rng)]
        x, y = Features(self.x[rows]), torch.from_numpy(self.y[rows]).float()
        known = torch.ones_like(y, dtype=torch.bool)
        torch.manual_seed(seed)
        method = HEADS[head](load_encoder(f"features:{self.x.shape[1]}"), range(y.shape[1]))
        method.initialize(x, y, known, Sigmoid())
        regularizers = [(partial(REGULARIZERS[name], **settings), weight)] if weight else []
        recipe = method.recipe
        run_training_loop(
            method,
            FeatureBatches(x, y, known, batch_size=recipe.batch_size),
            objective=Objective(
                objective_mean_over_known(binary), regularizers, Sigmoid(), self.texts
            ),
            epochs=EPOCHS[head, shots],
            learning_rate=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            seed=seed,
        )
        with torch.no_grad():
            parts = {"held_out": self.x[held_out], "test": self.test_x}
            return {part: method(Features(v)).double().numpy() for part, v in parts.items()}


def text_vectors(path, names_path, labels):
    """Return the unit text vectors of labels, found by the synonyms of the names of the rows."""
    words = read_word_list(None)
    names = Path(names_path).read_text(encoding="utf-8").splitlines()
    rows = {words[tuple(split_words(name))].spellings: row for row, name in enumerate(names)}
    order = [rows[words[tuple(split_words(label))].spellings] for label in labels]
    return nn.functional.normalize(torch.from_numpy(np.load(path)[order]).float(), dim=1)


class Measurement:
    """Results of one row of a table, with fits from the cache."""

    def __init__(self, photographs, cache, head, shots, row, seeds):
        self.photographs, self.seeds = photographs, seeds
        self.held_out_targets = [photographs.y[photographs.held_out(seed)[0]] for seed in seeds]
        self.logits = [
            cache.load_or_compute_arrays(
                *(head, shots, row, seed, EPOCHS[head, shots], RATIO, REDUCTION),
                shapes={"held_out": y.shape, "test": photographs.test_y.shape},
                compute=partial(photographs.fitted_logits, head, shots, row, seed),
            )
            for seed, y in zip(seeds, self.held_out_targets, strict=True)
        ]

    @cached_property
    def held_out_loss(self):
        """Mean of the log loss on the held-out images over the seeds."""
        pairs = zip(self.logits, self.held_out_targets, strict=True)
        return np.mean([log_loss_of_logits(of_seed["held_out"], y) for of_seed, y in pairs])

    @cached_property
    def held_out_calibrated_loss(self):
        """Mean held-out log loss over the seeds, with each half calibrated on the other half."""
        losses = []
        for of_seed, y in zip(self.logits, self.held_out_targets, strict=True):
            halves = [(of_seed["held_out"][k::2], y[k::2]) for k in (0, 1)]
            for fit, (logits, targets) in zip(halves[::-1], halves, strict=True):
                platt = Platt().fit(*fit)
                losses.append(log_loss_of_logits(platt.slope_ * logits + platt.shift_, targets))
        return np.mean(losses)

    @cached_property
    def values(self):
        """Values of ``COLUMNS`` on the test images and on resamples, (seeds, columns, 1 + …)."""
        return np.array(
            [
                test_values(
                    self.photographs.test_y, of_seed["test"], Platt().fit(of_seed["held_out"], y)
                )
                for of_seed, y in zip(self.logits, self.held_out_targets, strict=True)
            ]
        )


def test_values(targets, logits, platt):
    """Return the values of ``COLUMNS`` on the test images and on resamples of them."""
    weights = bench_resampling_weights(len(targets), resamples=RESAMPLES)
    resampling = BenchResampling(targets, resamples=RESAMPLES)
    values = [100 * bench_resampling_mean_average_precision(expit(logits), targets == 1, weights)]
    for readout in (logits, platt.slope_ * logits + platt.shift_):
        metrics = resampling.metrics(readout)
        values += [factor * metrics[name] for name, (_, factor) in METRICS.items()]
    return values


def change_cell(first, second):
    """Return the change from ``second`` to ``first`` as text, bold if the interval excludes 0.

    Both arrays have the values of one metric, (seeds, 1 + resamples).
    """
    seeds = difference_over_seeds(first[:, 0], second[:, 0])
    means = ({"": values.mean(axis=0)} for values in (first, second))
    images = bench_resampling_difference_intervals(*means)[""]
    half_width = max(abs(x - seeds.value) for i in (seeds, images) for x in (i.low, i.high))
    text = f"{seeds.value:+.2f} ± {half_width:.2f}".replace("-", "−")
    return f"**{text}**" if abs(seeds.value) > half_width else text


def print_table(title, measured, marks):
    """Print the changes of the rows from weight 0; ``marks`` has marks of weights, by row."""
    reference = measured[NONE]
    print(f"\n{title}\n\n| regularizer | λ |", " | ".join(COLUMNS), "|")
    print("|", "---|" * (len(COLUMNS) + 2), sep="")
    means = reference.values[:, :, 0].mean(axis=0)
    print("| none | 0 |", " | ".join(f"{mean:.2f}" for mean in means), "|")
    for row, measurement in measured.items():
        name, similarity, weight = row
        if weight:
            columns = range(len(COLUMNS))
            pairs = [(measurement.values[:, c], reference.values[:, c]) for c in columns]
            cells = " | ".join(change_cell(*pair) for pair in pairs)
            form = f"`{name}`" + ("" if similarity in (None, "cosine") else f", {similarity}")
            print(f"| {form} | {weight:g}{marks.get(row, '')} | {cells} |", flush=True)


def selected_rows(measured, loss):
    """Return for each form and control the row for which the attribute ``loss`` is lowest."""
    return {
        form: min(((*form, w) for w in weights), key=lambda row: getattr(measured[row], loss))
        for form, weights in WEIGHTS.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("archive", help="photographs.npz")
    parser.add_argument("texts", help="text vectors, .npy")
    parser.add_argument("names", help="names of the rows of the text vectors, one per line")
    parser.add_argument("--heads", nargs="+", default=[*HEADS], choices=[*HEADS])
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds, 2 or more")
    default_folder = default_feature_cache_folder() / "photograph_covariance"
    parser.add_argument("--cache", type=Path, default=default_folder, help="folder of results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cache, n = ResultCache(arguments.cache), arguments.seeds
    photographs = Photographs(arguments.archive, arguments.texts, arguments.names)
    for head, shots in [key for key in EPOCHS if key[0] in arguments.heads]:
        measure = partial(Measurement, photographs, cache, head, shots)
        measured = {row: measure(row, range(n)) for row in ROWS}
        marks, again = {}, [NONE]
        for mark, loss in (("*", "held_out_loss"), ("†", "held_out_calibrated_loss")):
            selected = selected_rows(measured, loss)
            for row in selected.values():
                marks[row] = marks.get(row, "") + mark
            best = min((selected[form] for form in FORMS), key=lambda r: getattr(measured[r], loss))
            shuffled = ("class_covariance_shuffled", best[1], best[2])
            is_control = best[0].startswith("class_covariance") and shuffled in measured
            controls = [shuffled] if is_control else []
            again += [selected[FORMS[0]], best, *controls, selected["mdca", None]]
            gain = 1000 * (getattr(measured[NONE], loss) - getattr(measured[best], loss))
            print(
                f"\n{mark}: {best} has the lowest {loss}, {gain:.2f} mnat below that of weight 0."
            )
        title = f"{head}, {f'{shots} shots' if shots else 'all images'}"
        print_table(f"{title}, seeds 0 to {n - 1}", measured, marks)
        measured = {row: measure(row, range(n, 2 * n)) for row in dict.fromkeys(again)}
        print_table(f"{title}, new seeds {n} to {2 * n - 1}", measured, marks)


if __name__ == "__main__":
    main()
