"""Fit the default calibration of embedded encoders: `python training/default_calibration.py NAME`.

All labels share the three parameters of the calibration, so they also apply to labels that were
not in the fit.
"""

import json
import sys
from pathlib import Path

import torch

from encoded_scenes import encode_scenes
from surelabel.calibration import Beta
from surelabel.data.scene_words import read_scene_vocabulary
from surelabel.encoders import load_encoder
from surelabel.methods import ZeroShot

WEIGHTS = Path(__file__).parents[1] / "src" / "surelabel" / "encoders" / "weights"
SEED, COUNT = 2, 5000


@torch.no_grad()
def main() -> None:
    """Fit and write the calibration of each encoder."""
    for name in sys.argv[1:] or ["tiny-vit", "tiny-rn"]:
        encoder = load_encoder(name)
        scenes = encode_scenes(encoder, read_scene_vocabulary("scenes-80"), seed=SEED, count=COUNT)
        names = [word.name for word in scenes.words]
        calibrations = {}
        for templates in ("one", "ensemble"):
            scores = ZeroShot(encoder, names, templates=templates)(scenes.features).numpy()
            calibrations[templates] = {
                "calibrator": "beta",
                "state": Beta().fit(scores, scenes.targets).state(),
                "about": f"beta, shared by all names, on {COUNT:,} generated scenes of 80 words",
            }
            print(name, templates, calibrations[templates]["state"])
        content = {"fingerprint": encoder.fingerprint, "templates": calibrations}
        text = json.dumps(content, indent=2) + "\n"
        (WEIGHTS / f"{name}.calibration.json").write_text(text)


if __name__ == "__main__":
    main()
