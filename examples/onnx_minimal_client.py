"""Tag images with a file of `surelabel export --preprocessing-in-graph`: FILE IMAGE…"""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
metadata = json.loads(session.get_modelmeta().custom_metadata_map["surelabel"])
for path in sys.argv[2:]:
    image = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
    (logits,) = session.run(None, {metadata["input_name"]: np.array(image)[None]})
    probabilities = 1 / (1 + np.exp(-logits[0].astype(float)))
    rows = zip(probabilities, metadata["names"], metadata["thresholds"], strict=True)
    tags = sorted(((p, name) for p, name, threshold in rows if p >= threshold), reverse=True)
    print(f"{path}:", ", ".join(f"{name} {p:.2f}" for p, name in tags) or "-")
