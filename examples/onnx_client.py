"""Tag images with an ONNX file that `surelabel export` wrote: `python onnx_client.py FILE IMAGE…`.

The script needs only onnxruntime, Pillow and numpy. It prints the tags of `surelabel tag`.
"""

import json
import math
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
metadata = json.loads(session.get_modelmeta().custom_metadata_map["surelabel"])
settings, min_side = metadata["preprocessing"], metadata["min_side"]
down, across = settings["size"]
grids = metadata["views"]["grids"] if metadata["views"] else []


def read_image(path, side):
    """Return an upright RGB image; a JPEG is decoded at a lower resolution of at least `side`."""
    image = Image.open(path)
    image.draft(None, (side, side))
    image = ImageOps.exif_transpose(image)
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image.convert("RGB")


def resize(image):
    """Return the resized image; the shortest side is cropped, or the longest side is padded."""
    mode, bilinear = settings["resize_mode"], settings["interpolation"] == "bilinear"
    resampling = Image.Resampling.BILINEAR if bilinear else Image.Resampling.BICUBIC
    if mode == "squash":
        return image.resize((across, down), resampling)
    w, h = image.size
    fits_height = (w * down < h * across) == (mode == "longest")
    a, b = (down, h) if fits_height else (across, w)  # the side b is resized to a
    rounded = math.floor if mode == "shortest" and down == across else round
    size = [side * a // b if side == b else rounded(side * a / b) for side in (w, h)]
    image = image.resize(size, resampling)
    canvas = Image.new("RGB", (across, down), (settings["fill_color"] or 0,) * 3)
    rest = [n - m for n, m in zip(size, (across, down), strict=True)]
    left, top = (-round(n / 2) if n >= 0 else -n // 2 for n in rest)
    canvas.paste(image, (left, top))
    return canvas


def tiles(path, rows, columns):
    """Yield the tiles of a grid, from the top left, row by row."""
    image = read_image(path, min_side * max(rows, columns))
    w, h = image.size
    n_rows, n_columns = min(rows, h), min(columns, w)
    for r in range(rows):
        for c in range(columns):
            i, j = r * n_rows // rows, c * n_columns // columns
            top, bottom = round(i * h / n_rows), round((i + 1) * h / n_rows)
            left, right = round(j * w / n_columns), round((j + 1) * w / n_columns)
            tile = image.crop((left, top, right, bottom))
            yield tile.resize((across, down), Image.Resampling.BICUBIC)


def graph_input(path):
    """Return the input of the graph for one image."""
    if metadata["preprocessing_in_graph"]:
        side = min_side * max([1, *(max(grid) for grid in grids)])
        return np.array(read_image(path, side))[None]
    views = [read_image(path, min_side), *(tile for grid in grids for tile in tiles(path, *grid))]
    levels = np.stack([resize(view) for view in views]).astype(np.float32)
    pixels = (levels / 255 - np.float32(settings["mean"])) / np.float32(settings["std"])
    pixels = pixels.transpose(0, 3, 1, 2)
    return pixels[None] if grids else pixels


for path in sys.argv[2:]:
    (outputs,) = session.run(None, {metadata["input_name"]: graph_input(path)})
    values = outputs[0].astype(float)
    order = np.argsort(-values, kind="stable")
    if metadata["output"] == "logits":
        values = 1 / (1 + np.exp(-values))
        thresholds = np.array(metadata["thresholds"])
        order = [k for k in order if thresholds[k] <= values[k] and thresholds[k] < 1]
    else:
        order = order[:5]  # scores only rank labels
    tags = ", ".join(f"{metadata['names'][k]} {values[k]:.2f}" for k in order)
    print(f"{path}: {tags or '-'}")
