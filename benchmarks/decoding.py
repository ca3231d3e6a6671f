"""Decoding 12-megapixel photographs: ours against plain Pillow, as a ratio in one run.

The pictures are made on the fly: gradients, edges and noise, at the 3-4 MB that a phone writes.
Both sides end at what an encoder takes: upright RGB whose shorter side is ``SIDE`` pixels.

    python benchmarks/decoding.py [PICTURES]
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from surelabel.data.pictures import open_picture

WIDTH, HEIGHT, SIDE, ROUNDS = 4000, 3000, 224, 3


def photograph(seed: int) -> Image.Image:
    """Smooth light, a few hard edges and the grain of a sensor, 12 megapixels."""
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


def plain(path: Path) -> Image.Image:
    """What most programs do: decode all, turn, convert."""
    with Image.open(path) as picture:
        return ImageOps.exif_transpose(picture).convert("RGB")


def ours(path: Path) -> Image.Image:
    """Decode at an eighth, as the shorter side stays above ``SIDE``."""
    return open_picture(path, least_side=SIDE)


def resized(picture: Image.Image) -> Image.Image:
    """The shorter side at ``SIDE`` pixels."""
    ratio = SIDE / min(picture.size)
    size = (round(picture.width * ratio), round(picture.height * ratio))
    return picture.resize(size, Image.Resampling.BICUBIC)


def seconds(step: Callable[[Path], object], paths: list[Path]) -> float:
    """The best of ``ROUNDS`` rounds, in processor seconds for one picture."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for path in paths:
            step(path)
        rounds.append((time.process_time() - start) / len(paths))
    return min(rounds)


def main(count: int) -> None:
    """Make the pictures, time both, print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.jpg" for seed in range(count)]
        for seed, path in enumerate(paths):
            photograph(seed).save(path, quality=88)
        megabytes = sum(path.stat().st_size for path in paths) / count / 1e6
        print(
            f"{count} JPEGs of {WIDTH}x{HEIGHT}, {megabytes:.1f} MB each; processor time a picture"
        )
        steps: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
            "decoded": (plain, ours),
            f"decoded and resized to {SIDE}": (
                lambda p: resized(plain(p)),
                lambda p: resized(ours(p)),
            ),
        }
        for name, (slow, fast) in steps.items():
            before, after = seconds(slow, paths), seconds(fast, paths)
            print(
                f"{name}: Pillow {before * 1e3:.0f} ms, ours {after * 1e3:.0f} ms, "
                f"{before / after:.1f} x faster"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
