r"""Measure every method on the bundled collection: `python benchmarks/methods.py`.

Each method is fitted on the training split, calibrated on the validation split, and evaluated on
the test split. The script prints the mean and the range of five seeds. The settings are the
defaults, which were selected on the validation split. This command repeats the rows of `linear`
that were measured before `linear` subtracted the training mean:

    python benchmarks/methods.py --method linear \
        --set method.centred=false --set method.penalty_folds=0
"""

import argparse
from collections.abc import Sequence
from statistics import mean

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.evaluation import Evaluation
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer, basic_evaluation_run

SEEDS = range(5)
NAMES = ("zero_shot", "clip_adapter", "linear", "multiple_instance_tiles")
METRICS = {"mAP %": "mean_average_precision", "Brier skill %": "brier_skill", "ECE points": "ece"}


def evaluate_method(
    model: str, method: str, seed: int, *, calibrated: bool, overrides: Sequence[str]
) -> Evaluation:
    """Fit, calibrate and evaluate one method with one seed; return its metrics."""
    train, validation, test = (
        collection("scenes-80", split=split) for split in ("train", "validation", "test")
    )
    settings = [f"encoder.name={model}", f"method.name={method}", f"seed={seed}"]
    run = load_run(overrides=[*settings, "calibrator.name=beta", *overrides])
    recognizer = Recognizer(run, test.names)
    if METHODS[method].learns_from == "labels":
        recognizer.fit(train)
    if calibrated:
        recognizer.calibrate(validation)
    return basic_evaluation_run(recognizer, test)


def format_mean_and_range(values: list[float]) -> str:
    """Format the mean, with the range if the values differ."""
    low, high, middle = min(values), max(values), mean(values)
    return f"{middle:.2f}" if high - low < 0.005 else f"{middle:.2f} ({low:.2f}–{high:.2f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--method", action="append", choices=NAMES, help="method (default: all)")
    parser.add_argument("--set", action="append", default=[], help="setting of all runs")
    arguments = parser.parse_args()
    print(
        "| encoder | method | calibrated on 500 | " + " | ".join(METRICS) + " | ECE noise floor |"
    )
    print("|---|---|---|" + "---|" * (len(METRICS) + 1))
    for model in ("tiny-vit", "tiny-rn"):
        for method in arguments.method or NAMES:
            for calibrated in (False, True):
                seeds = SEEDS if METHODS[method].learns_from == "labels" else SEEDS[:1]
                evaluations = [
                    evaluate_method(
                        model, method, seed, calibrated=calibrated, overrides=arguments.set
                    )
                    for seed in seeds
                ]
                cells = [
                    format_mean_and_range([100 * e.summary[metric] for e in evaluations])
                    for metric in METRICS.values()
                ]
                floor = format_mean_and_range([100 * e.noise_floor["ece"] for e in evaluations])
                row = [model, method, "yes" if calibrated else "no", *cells, floor]
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
