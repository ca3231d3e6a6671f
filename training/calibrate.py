"""Fit the calibration that an embedded encoder ships with: `python training/calibrate.py NAME`.

Its three numbers are shared by all labels, so that they hold for names never seen here.
"""

import json
import sys
from pathlib import Path

import torch

from encoded_scenes import encode_scenes
from surelabel.backbones import load_backbone
from surelabel.calibration import Beta
from surelabel.data.words import vocabulary
from surelabel.methods import ZeroShot

WEIGHTS = Path(__file__).parents[1] / "src" / "surelabel" / "backbones" / "weights"
SEED, COUNT = 2, 5000


@torch.no_grad()
def main() -> None:
    for name in sys.argv[1:] or ["tiny-vit", "tiny-rn"]:
        backbone = load_backbone(name)
        scenes = encode_scenes(backbone, vocabulary("scenes-80"), seed=SEED, count=COUNT)
        names = [w.name for w in scenes.words]
        fitted = {}
        for templates in ("one", "ensemble"):
            scores = ZeroShot(backbone, names, templates=templates)(scenes.features).numpy()
            fitted[templates] = {
                "calibrator": "beta",
                "state": Beta().fit(scores, scenes.targets).state(),
                "about": f"beta, shared by all names, on {COUNT:,} generated scenes of 80 words",
            }
            print(name, templates, fitted[templates]["state"])
        stored = {"fingerprint": backbone.fingerprint, "templates": fitted}
        text = json.dumps(stored, indent=2) + "\n"
        (WEIGHTS / f"{name}.calibration.json").write_text(text)


if __name__ == "__main__":
    main()
