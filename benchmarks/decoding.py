"""Compare the processor time of decoding 12-megapixel JPEG files with plain Pillow.

    python benchmarks/decoding.py [FILE ...] [--images N] [--rounds ROUNDS]

If no files are given, the script generates images of gradients, edges and noise, with 3 MB each.
All decoders return the input of an encoder: upright RGB with a shorter side of at least ``SIDE``
pixels.

The entropy decoding of a JPEG file cannot be skipped at any resolution. The lower bound is the time
of libjpeg-turbo for the greyscale image at 1/8 of the size, which takes little more than entropy
decoding. This row and the row of simplejpeg need the package simplejpeg. In each round, the steps
run one after another.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from surelabel.data.images import open_image

WIDTH, HEIGHT, SIDE = 4000, 3000, 224
Step = Callable[[Path], object]


def main() -> None:
    """Generate the images, time all steps and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="JPEG files")
    parser.add_argument("--images", type=int, default=6, help="number of generated images")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = options.files or [Path(folder) / f"{seed}.jpg" for seed in range(options.images)]
        if not options.files:
            for seed, path in enumerate(paths):
                generate_photograph(seed).save(path, quality=88)
        megabytes = sum(path.stat().st_size for path in paths) / len(paths) / 1e6
        print(
            f"{len(paths)} JPEG files of {megabytes:.1f} MB on average, {options.rounds} rounds: "
            "median (lowest to highest) processor time per image\n"
        )
        print_table(measure_steps(decoding_steps(), paths, options.rounds), "Pillow")
        print()
        print_table(measure_steps(resizing_steps(), paths, options.rounds), "Pillow, resized")


def decoding_steps() -> dict[str, Step]:
    """Return functions that decode a file, by name."""
    steps: dict[str, Step] = {"Pillow": decode_with_pillow, "surelabel": decode_with_surelabel}
    if find_spec("simplejpeg"):
        steps["simplejpeg"] = lambda path: decode_with_simplejpeg(path, "rgb")
        steps["lower bound"] = lambda path: decode_with_simplejpeg(path, "gray")
    return steps


def resizing_steps() -> dict[str, Step]:
    """Return functions that decode a file and resize the shorter side to ``SIDE``, by name."""
    return {
        "Pillow, resized": lambda path: resize(decode_with_pillow(path)),
        "surelabel, resized": lambda path: resize(decode_with_surelabel(path)),
    }


def measure_steps(
    steps: dict[str, Step], paths: list[Path], n_rounds: int
) -> dict[str, list[float]]:
    """Return the processor time per image of each round in milliseconds, by name of the step."""
    for step in steps.values():
        step(paths[0])  # loads the modules before the measurement
    milliseconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(n_rounds):
        for name, step in steps.items():
            start = time.process_time()
            for path in paths:
                step(path)
            milliseconds[name].append(1e3 * (time.process_time() - start) / len(paths))
    return milliseconds


def print_table(milliseconds: dict[str, list[float]], reference: str) -> None:
    """Print the time of each step, and the time of the reference divided by this time."""
    print("| step | ms | times faster than Pillow |\n| --- | ---: | ---: |")
    for name, times in milliseconds.items():
        ratios = [r / t for r, t in zip(milliseconds[reference], times, strict=True)]
        cells = [
            f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"
            for values in (times, ratios)
        ]
        print(f"| {name} | {' | '.join(cells)} |")


def generate_photograph(seed: int) -> Image.Image:
    """Generate an image of 12 megapixels with smooth gradients, some hard edges and noise."""
    generator = np.random.default_rng(seed)
    across, down = np.meshgrid(np.linspace(0, 1, WIDTH), np.linspace(0, 1, HEIGHT))
    channels = [
        128 + 90 * np.sin(across * generator.uniform(2, 9) + down * generator.uniform(2, 9))
        for _ in range(3)
    ]
    pixels = np.stack(channels, -1) + generator.normal(0, 7, (HEIGHT, WIDTH, 1))
    for _ in range(12):
        x, y = generator.integers(0, WIDTH - 400), generator.integers(0, HEIGHT - 400)
        pixels[y : y + 400, x : x + 400] = pixels[y : y + 400, x : x + 400] * 0.6 + 40
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def decode_with_pillow(path: Path) -> Image.Image:
    """Decode an image at the full resolution, rotate it upright and convert it to RGB."""
    with Image.open(path) as image:
        return ImageOps.exif_transpose(image).convert("RGB")


def decode_with_surelabel(path: Path) -> Image.Image:
    """Decode an image at the lowest resolution with a shorter side of at least ``SIDE`` pixels."""
    return open_image(path, min_side=SIDE)


def decode_with_simplejpeg(path: Path, colorspace: str) -> np.ndarray:
    """Decode an image as ``decode_with_surelabel`` does, but without EXIF rotation."""
    pixels: np.ndarray = import_module("simplejpeg").decode_jpeg(
        path.read_bytes(), colorspace=colorspace, min_height=SIDE, min_width=SIDE
    )
    return pixels


def resize(image: Image.Image) -> Image.Image:
    """Return an image whose shorter side is resized to ``SIDE`` pixels."""
    ratio = SIDE / min(image.size)
    size = (round(image.width * ratio), round(image.height * ratio))
    return image.resize(size, Image.Resampling.BICUBIC)


if __name__ == "__main__":
    main()
