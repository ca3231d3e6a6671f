"""Speed of decoding 12-megapixel photographs, compared with plain Pillow in the same run.

The images are generated: gradients, edges and noise, with 3 to 4 MB like those of a phone. Both
sides produce the input of an encoder: upright RGB with a shorter side of ``SIDE`` pixels.

    python benchmarks/decoding.py [IMAGES]
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from surelabel.data.images import open_image

WIDTH, HEIGHT, SIDE, ROUNDS = 4000, 3000, 224, 3


def generate_photograph(seed: int) -> Image.Image:
    """Generate smooth gradients, some hard edges and sensor noise, 12 megapixels."""
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
    """Decode at full resolution, rotate upright and convert to RGB."""
    with Image.open(path) as image:
        return ImageOps.exif_transpose(image).convert("RGB")


def decode_with_surelabel(path: Path) -> Image.Image:
    """Decode at the lowest resolution whose shorter side is at least ``SIDE`` pixels."""
    return open_image(path, min_side=SIDE)


def resize(image: Image.Image) -> Image.Image:
    """Resize the shorter side to ``SIDE`` pixels."""
    ratio = SIDE / min(image.size)
    size = (round(image.width * ratio), round(image.height * ratio))
    return image.resize(size, Image.Resampling.BICUBIC)


def seconds_per_image(step: Callable[[Path], object], paths: list[Path]) -> float:
    """Return the lowest processor time per image of ``ROUNDS`` rounds, in seconds."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for path in paths:
            step(path)
        rounds.append((time.process_time() - start) / len(paths))
    return min(rounds)


def main(count: int) -> None:
    """Generate the images, time both sides and print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.jpg" for seed in range(count)]
        for seed, path in enumerate(paths):
            generate_photograph(seed).save(path, quality=88)
        megabytes = sum(path.stat().st_size for path in paths) / count / 1e6
        print(
            f"{count} JPEGs of {WIDTH}x{HEIGHT}, {megabytes:.1f} MB each; processor time per image"
        )
        steps: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
            "decoded": (decode_with_pillow, decode_with_surelabel),
            f"decoded and resized to {SIDE}": (
                lambda path: resize(decode_with_pillow(path)),
                lambda path: resize(decode_with_surelabel(path)),
            ),
        }
        for name, (pillow, surelabel) in steps.items():
            slow, fast = seconds_per_image(pillow, paths), seconds_per_image(surelabel, paths)
            print(
                f"{name}: Pillow {slow * 1e3:.0f} ms, surelabel {fast * 1e3:.0f} ms, "
                f"{slow / fast:.1f} x faster"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
