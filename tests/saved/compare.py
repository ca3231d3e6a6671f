"""Compare the results of the commands of this version with those of 0.1.0, on one machine.

    python tests/saved/compare.py OLD NEW

Both folders hold ``demo.json``, ``evaluate.json`` and ``bench-*.json``, as ``results/`` of a frozen
version does. Numbers must be equal to the last digit. Keys are mapped by the tables below. Times,
memory and texts are not compared. A missing or an additional key is a difference.
"""

import json
import math
import sys
from pathlib import Path

EVERYWHERE = {
    "pictures": "images",
    "over_pictures": "over_images",
    "values": "metrics",
    "floor": "noise_floor",
    "class_floor": "class_noise_floor",
}
RENAMED = {  # by file: key of 0.1.0, or PARENT/KEY, to the key of today
    "demo": {},
    "evaluate": {},
    "bench-calibrated": {
        "material": "dataset",
        "steps": "min_steps",
        "budget": "settings_per_head",
        "longest": "max_query_length",
        "exact": "max_exact_length",
        "sample": "queries_per_shape",
        "chosen": "settings",
        "batch": "batch_size",
        "error": "standard_error",
        "judged": "evaluated",
        "empty": "unfulfilled",
    },
    "bench-label-free": {
        "pictures": "dataset",
        "best": "best_one_pass",
        "labelled": "probe_images",
        "taught": "student_images",
        "epochs": "student_epochs",
        "students": "student_seeds",
        "seeds": "crop_seeds",
        "crops": "crop_counts",
        "redrawn": "reseeded_crop_count",
        "corrected": "correction_top_k",
        "margins": "fusion_margins",
        "labels_shown": "expected_labels",
        "labels_there": "true_labels",
        "within_pictures": "within_images",
        "of_student": "student_map",
        "of_labels": "pseudolabel_map",
    },
    "bench-open-vocabulary": {
        "pictures": "dataset",
        "ceilings": "perfect_ranking",
        "exchange": "vocabulary_change",
        "drawn": "train_candidates",
        "exchanged": "vocabulary_change_images",
        "added": "added_names",
        "timed": "timed_images",
        "draws": "resamples",
        "zsl_empty": "zsl_labels_without_positives",
        "gzsl_empty": "gzsl_labels_without_positives",
        "zsl_map_filled": "zsl_map_zero_filled",
        "gzsl_map_filled": "gzsl_map_zero_filled",
        "met": "names_with_trained_tokens",
        "exchange/ece": "ece_before",
        "moved": "ece_change",
        "logits": "logit_change_median",
        "most": "logit_change_95th_percentile",
        "exchange/map": "map_after",
        "costs/train": "train_images_per_second",
        "costs/test": "predict_images_per_second",
        "costs/train_memory": "train_memory_mib",
        "costs/test_memory": "predict_memory_mib",
        "Beside others": "Comparison with other methods",
        "Learnt tokens in each text layer (table 9)": (
            "Learned prompt tokens per text layer (table 9)"
        ),
        "Where the ladder begins (figure 11)": "Depth of the ladder (figure 11)",
    },
}
REMOVED = {"ace_of_filled", "mce_of_filled"}  # entries that became settings of ace and mce
MEASURED_TIMES = {  # times and memory of this run, by the key of today
    "seconds",
    "train_images_per_second",
    "predict_images_per_second",
    "train_memory_mib",
    "predict_memory_mib",
}


def renamed_suffix(key):
    return key.replace("_by_chance", "_noise_floor")


def differences(old, new, names, where=""):
    """Yield one line for each difference between two JSON values."""
    if isinstance(old, dict) and isinstance(new, dict):
        parent = where.rpartition("/")[2].partition("[")[0]
        mapped = {
            names.get(f"{parent}/{key}", names.get(key, renamed_suffix(key))): (key, value)
            for key, value in old.items()
            if key not in REMOVED
        }
        for key in sorted(mapped.keys() ^ new.keys()):
            yield f"{where}/{key}: only in the {'old' if key in mapped else 'new'} results"
        for key in (mapped.keys() & new.keys()) - MEASURED_TIMES:
            before, value = mapped[key]
            yield from differences(value, new[key], names, f"{where}/{before}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{where}: {len(old)} elements before, {len(new)} now"
        for number, (before, now) in enumerate(zip(old, new, strict=False)):
            yield from differences(before, now, names, f"{where}[{number}]")
    elif isinstance(old, float) and isinstance(new, float) and math.isnan(old):
        if not math.isnan(new):
            yield f"{where}: nan before, {new!r} now"
    elif isinstance(old, str) and isinstance(new, str):
        return
    elif old != new or type(old) is not type(new):
        yield f"{where}: {old!r} before, {new!r} now"


def numbers(value):
    """Return how many numbers a JSON value holds."""
    if isinstance(value, dict):
        return sum(map(numbers, value.values()))
    if isinstance(value, list):
        return sum(map(numbers, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def main(old_folder, new_folder):
    n_different = 0
    for file in sorted(Path(old_folder).glob("*.json")):
        old = json.loads(file.read_text(encoding="utf-8"))
        new = json.loads((Path(new_folder) / file.name).read_text(encoding="utf-8"))
        names = EVERYWHERE | RENAMED[file.stem]
        found = list(differences(old, new, names))
        print(f"{file.name}: {numbers(old)} numbers, {len(found)} differences")
        for line in found[:40]:
            print("  ", line)
        n_different += len(found)
    return 1 if n_different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
