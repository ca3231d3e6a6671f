"""Fit out-of-distribution detectors: `python training/out_of_distribution.py [NAME …]`.

Run it after the training of an embedded encoder, because a detector belongs to its weights.
"""

import sys
from pathlib import Path

from encoded_scenes import encode_scenes
from surelabel.data.scene_words import all_scene_words
from surelabel.encoders import ENCODERS
from surelabel.encoders.embedded.embedded_weights import encoder_from_embedded_weights_folder
from surelabel.encoders.image_inputs.out_of_distribution import (
    SET_SIZES,
    fit_ood_detector,
    save_ood_detector,
)

WEIGHTS = Path(__file__).parents[1] / "src" / "surelabel" / "encoders" / "weights"
FIT_SEED, LIMIT_SEED, COUNT = 2, 3, 4096


def main() -> None:
    """Fit and write the detector of each encoder."""
    words = all_scene_words()
    names = dict.fromkeys(word.theme for word in words)
    themes = [[word for word in words if word.theme == name] for name in names]
    for name in sys.argv[1:] or ENCODERS:
        encoder = encoder_from_embedded_weights_folder(WEIGHTS, name)
        scenes = encode_scenes(encoder, words, seed=FIT_SEED, count=COUNT)
        by_theme = [
            encode_scenes(encoder, theme, seed=LIMIT_SEED, count=max(SET_SIZES)) for theme in themes
        ]
        detector = fit_ood_detector(
            scenes.features.pooled, [theme.features.pooled for theme in by_theme]
        )
        save_ood_detector(detector, encoder.fingerprint, WEIGHTS / f"{name}.world.safetensors")
        (WEIGHTS / f"{name}.world.safetensors").chmod(0o644)
        limits = ", ".join(f"{limit:.2f}" for limit in detector.limits)
        print(f"{name}: weights {encoder.fingerprint}, limits {limits}", flush=True)


if __name__ == "__main__":
    main()
