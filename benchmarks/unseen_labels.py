"""Measure unseen labels for methods that learn from image parts.

    python benchmarks/unseen_labels.py

The methods are fitted on 48 labels, on the training scenes of scenes-80 without any of 17 other
labels. They are evaluated with these 17 unseen labels on the test scenes with at least one of them.
The script prints the mAP in percent: the mean of three seeds, and half of the range. With the
domain `reference`, which is the default, the scores of labels are compared with the reference list.
With `softmax`, they are compared with each other.
"""

from unittest.mock import patch

import numpy as np
import torch

from surelabel.arrays import ColumnIndices
from surelabel.bench.image_splits import load_benchmark_scenes
from surelabel.config import Choice, Run
from surelabel.data.vocabularies import VOCABULARIES
from surelabel.methods.text_scoring.text_scorer import TextScorer
from surelabel.metrics import mean_average_precision
from surelabel.recognizer import Recognizer
from surelabel.recognizer.inputs import encode_recognizer_input
from surelabel.records import LabelledImages

METHODS = ("multiple_instance_tiles", "multiple_instance_patches")
SEEDS = range(3)


def select_labels(
    images: LabelledImages, rows: ColumnIndices, names: tuple[str, ...]
) -> LabelledImages:
    """Return the selected images with the selected labels."""
    columns = np.array([images.names.index(name) for name in names])
    paths = [images.paths[row] for row in rows]
    return LabelledImages(paths, list(names), images.targets[np.ix_(rows, columns)])


def fitted_precision(run: Run, seen: LabelledImages, unseen: LabelledImages) -> float:
    """Return the mAP of unseen labels, in percent, after a fit on the seen labels."""
    recognizer = Recognizer(run, seen.names).fit(seen).with_names(unseen.names)
    predictions = recognizer.predict(unseen, strict=True)
    return 100 * float(mean_average_precision(predictions.scores, unseen.targets))


@torch.no_grad()
def unfitted_precision(run: Run, unseen: LabelledImages) -> float:
    """Return the mAP of unseen labels, in percent, of a method with its initial values."""
    recognizer = Recognizer(run, unseen.names)
    method, encoder = recognizer.method.eval(), recognizer.encoder
    features = encode_recognizer_input(unseen, method, encoder, recognizer.cache).features
    return 100 * float(mean_average_precision(method(features).numpy(), unseen.targets))


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    vocabulary = VOCABULARIES["scenes-48-17"]
    train, test = (load_benchmark_scenes(split, quick=True).images for split in ("train", "test"))
    has_unseen = [
        images.targets[:, [images.names.index(name) for name in vocabulary.unseen]].any(axis=1)
        for images in (train, test)
    ]
    seen = select_labels(train, np.flatnonzero(~has_unseen[0]), tuple(vocabulary.seen))
    unseen = select_labels(test, np.flatnonzero(has_unseen[1]), tuple(vocabulary.unseen))
    print(f"{len(seen)} training scenes, {len(unseen)} test scenes\n")
    print("| encoder | method | domain | not fitted | fitted |\n|---|---|---|---|---|")
    for encoder in ("tiny-vit", "tiny-rn"):
        for method in METHODS:
            for domain in ("reference", "softmax"):
                with patch.dict(TextScorer.__init__.__kwdefaults__, {"domain": domain}):
                    runs = [
                        Run(encoder=Choice(encoder), method=Choice(method), seed=seed)
                        for seed in SEEDS
                    ]
                    before = unfitted_precision(runs[0], unseen)
                    values = [fitted_precision(run, seen, unseen) for run in runs]
                half_range = (max(values) - min(values)) / 2
                after = f"{np.mean(values):.1f} ± {half_range:.1f}"
                print(f"| {encoder} | `{method}` | {domain} | {before:.1f} | {after} |", flush=True)


if __name__ == "__main__":
    main()
