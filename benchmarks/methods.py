"""Every method on the shipped collection, as a table: `python benchmarks/methods.py`.

Fitted on the training split, calibrated on validation, measured on test; five seeds, of which the
mean and the range are printed. Settings are the defaults, which were chosen on validation.
"""

from statistics import mean

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.evaluation import Evaluation
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer, judged

SEEDS = range(5)
SHOWN = {"mAP %": "mean_average_precision", "Brier skill %": "brier_skill", "ECE points": "ece"}


def measured(model: str, method: str, seed: int, *, calibrated: bool) -> Evaluation:
    """One row for one seed."""
    train, held_out, test = (
        collection("scenes-80", split=split) for split in ("train", "validation", "test")
    )
    run = load_run(overrides=[f"backbone.name={model}", f"method.name={method}", f"seed={seed}"])
    recognizer = Recognizer(run, test.names)
    if METHODS[method].learns_from == "labels":
        recognizer.fit(train)
    if calibrated:
        recognizer.calibrate(held_out)
    return judged(recognizer, test)


def cell(values: list[float]) -> str:
    """Mean, and the range where there is one."""
    low, high, middle = min(values), max(values), mean(values)
    return f"{middle:.2f}" if high - low < 0.005 else f"{middle:.2f} ({low:.2f}–{high:.2f})"


def main() -> None:
    print("| encoder | method | calibrated on 500 | " + " | ".join(SHOWN) + " | ECE by chance |")
    print("|---|---|---|" + "---|" * (len(SHOWN) + 1))
    for model in ("tiny-vit", "tiny-rn"):
        for method in ("zero_shot", "clip_adapter", "linear"):
            for calibrated in (False, True):
                seeds = SEEDS if METHODS[method].learns_from == "labels" else SEEDS[:1]
                found = [measured(model, method, s, calibrated=calibrated) for s in seeds]
                cells = [cell([100 * e.summary[m] for e in found]) for m in SHOWN.values()]
                chance = cell([100 * e.floor["ece"] for e in found])
                yes = "yes" if calibrated else "no"
                print(
                    f"| {model} | {method} | {yes} | {' | '.join(cells)} | {chance} |", flush=True
                )


if __name__ == "__main__":
    main()
