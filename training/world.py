"""Measure what is familiar to the embedded encoders: `python training/world.py [NAME …]`.

Run it after new weights: pictures that look like nothing an encoder was trained on are told by it.
"""

import sys
from pathlib import Path

from encoded_scenes import encode_scenes
from surelabel.backbones import BACKBONES
from surelabel.backbones.embedded import from_weights
from surelabel.backbones.familiarity import SIZES, familiarity, save_familiarity
from surelabel.data.words import all_words

WEIGHTS = Path(__file__).parents[1] / "src" / "surelabel" / "backbones" / "weights"
FIT_SEED, LIMIT_SEED, COUNT = 2, 3, 4096


def main() -> None:
    words = all_words()
    themes = [[w for w in words if w.theme == theme] for theme in {w.theme: 0 for w in words}]
    for name in sys.argv[1:] or BACKBONES:
        towers = from_weights(WEIGHTS, name)
        everything = encode_scenes(towers, words, seed=FIT_SEED, count=COUNT)
        by_theme = [encode_scenes(towers, t, seed=LIMIT_SEED, count=max(SIZES)) for t in themes]
        known = familiarity(everything.features.pooled, [s.features.pooled for s in by_theme])
        save_familiarity(known, towers.fingerprint, WEIGHTS / f"{name}.world.safetensors")
        (WEIGHTS / f"{name}.world.safetensors").chmod(0o644)
        limits = ", ".join(f"{limit:.2f}" for limit in known.limits)
        print(f"{name}: weights {towers.fingerprint}, limits {limits}", flush=True)


if __name__ == "__main__":
    main()
