"""Measure metrics and cost of `tag` for each `--max-passes`: `python benchmarks/tag_passes.py`.

The test images of scenes-80 are tagged with the method that `tag` selects for a maximum number of
encoder passes. A method without calibration is calibrated on images without labels: on 100 or on
500 training images, at equal distances in their list. A method that learns from unlabelled images
is fitted on the test images, as in `tag`. Seconds are processor time of one thread for an image:
decoding, encoding and scores, without the calibration (mean over 60 images).
"""

import time
import warnings
from tempfile import TemporaryDirectory

import torch

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.features import FeatureCache, default_feature_cache_folder
from surelabel.methods import LearnsFromImages
from surelabel.recognizer import Recognizer, basic_evaluation_run
from surelabel.recognizer.feature_extraction import max_encoder_passes
from surelabel.recognizer.label_free_methods import best_label_free_recognizer
from surelabel.records import Images

LIMITS = (1, 2, 5, 6, 14)
CALIBRATION_IMAGES = (100, 500)
N_TIMED = 60  # fewer than 64 images are decoded in the same process


def selected_recognizer(
    model: str, names: list[str], limit: int, cache: FeatureCache
) -> Recognizer:
    """Return the recognizer that `tag` selects for a maximum number of encoder passes."""
    encoder = load_encoder(model)

    def make_recognizer(overrides: list[str]) -> Recognizer:
        run = load_run(overrides=[f"encoder.name={model}", *overrides])
        return Recognizer(run, names, encoder=encoder, cache=cache)

    return best_label_free_recognizer(model, make_recognizer, max_passes=limit, n_images=1000)


def seconds_per_image(recognizer: Recognizer, paths: list[str]) -> float:
    """Return the processor time of scoring one image, in seconds."""
    if isinstance(recognizer.method, LearnsFromImages):
        recognizer.fit(Images(paths[N_TIMED : 2 * N_TIMED]))
    recognizer.predict(Images(paths[-2:]))
    start = time.process_time()
    recognizer.predict(Images(paths[:N_TIMED]))
    return (time.process_time() - start) / N_TIMED


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    train, test = (collection("scenes-80", split=split) for split in ("train", "test"))
    header = ["encoder", "--max-passes", "method", "encoder passes", "calibrated on", "mAP (%)"]
    print("| " + " | ".join([*header, "Brier skill (%)", "ECE (%)", "seconds for an image"]) + " |")
    print("|---" * (len(header) + 3) + "|")
    cache = FeatureCache(default_feature_cache_folder())
    for model in ("tiny-vit", "tiny-rn"):
        for limit in LIMITS:
            with TemporaryDirectory() as folder:
                uncached = selected_recognizer(model, test.names, limit, FeatureCache(folder))
                seconds = seconds_per_image(uncached, test.paths)
            for n_images in CALIBRATION_IMAGES:
                recognizer = selected_recognizer(model, test.names, limit, cache)
                if isinstance(recognizer.method, LearnsFromImages):
                    recognizer.fit(Images(test.paths))
                calibrated_on = "shipped"
                if recognizer.calibration is None:
                    step = len(train.paths) // n_images
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", UserWarning)
                        recognizer.calibrate(Images(train.paths[::step][:n_images]))
                    calibrated_on = f"{n_images} without labels"
                summary = basic_evaluation_run(recognizer, test).summary
                values = [summary[m] for m in ("mean_average_precision", "brier_skill", "ece")]
                cells = [f"{100 * value:.1f}" for value in values[:2]]
                row = [model, limit, recognizer.run.method.name]
                row += [max_encoder_passes(recognizer.method), calibrated_on, *cells]
                row += [f"{100 * values[2]:.2f}", f"{seconds:.4f}"]
                print(f"| {' | '.join(map(str, row))} |", flush=True)
                if calibrated_on == "shipped":
                    break


if __name__ == "__main__":
    main()
