"""Compare methods that learn from texts with zero-shot: `python benchmarks/texts.py`.

The methods are fitted on the captions of the training split of scenes-80, which are searched for
the first 40 labels. They are evaluated on the test images, with these labels and with the other 40
labels. The calibrator is fitted on the validation images, with the labels of the fit. The script
prints the mean and the range of three seeds.
"""

import sys

from methods import format_mean_and_range

from surelabel.config import load_run
from surelabel.data import collection, label_captions, read_captions
from surelabel.data.bundled_collections import bundled_collection_folder
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer, basic_evaluation_run

N_FIT_LABELS = 40
SEEDS = range(3)
COLUMNS = (
    "mAP %",
    "mAP of new labels %",
    *("Brier skill %", "ECE, points", "calibrated: Brier skill %", "calibrated: ECE, points"),
)


def metrics_of_texts_method(model: str, method: str, seed: int) -> list[float]:
    """Return the values of ``COLUMNS`` of one method with one seed."""
    test, validation = (collection("scenes-80", split=split) for split in ("test", "validation"))
    fit_labels, new_labels = test.names[:N_FIT_LABELS], test.names[N_FIT_LABELS:]
    settings = [f"encoder.name={model}", f"method.name={method}", f"seed={seed}"]
    run = load_run(overrides=[*settings, "calibrator.name=beta"])
    recognizer = Recognizer(run, fit_labels)
    if METHODS[method].learns_from == "texts":
        folder = bundled_collection_folder("scenes-80", split="train")
        recognizer.fit(label_captions(read_captions(folder / "scenes.jsonl"), fit_labels))
    before = basic_evaluation_run(recognizer, test).summary
    new = basic_evaluation_run(recognizer.with_names(new_labels), test).summary
    after = basic_evaluation_run(recognizer.calibrate(validation), test).summary
    ratios = [before["mean_average_precision"], new["mean_average_precision"]]
    ratios += [values[metric] for values in (before, after) for metric in ("brier_skill", "ece")]
    return [100 * ratio for ratio in ratios]


def main(models: list[str]) -> None:
    """Print the table for the given encoders."""
    print(f"| encoder | method | {' | '.join(COLUMNS)} |")
    print("|---|---|" + "---|" * len(COLUMNS))
    for model in models:
        for method in ("zero_shot", *(n for n, m in METHODS.items() if m.learns_from == "texts")):
            seeds = SEEDS if METHODS[method].learns_from == "texts" else SEEDS[:1]
            runs = [metrics_of_texts_method(model, method, seed) for seed in seeds]
            cells = [format_mean_and_range(list(values)) for values in zip(*runs, strict=True)]
            print(f"| {model} | {method} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["tiny-vit", "tiny-rn"])
