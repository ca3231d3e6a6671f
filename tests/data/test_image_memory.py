import io
import json
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image
from pillow_heif import from_bytes

from surelabel.data.heif_images import is_heif_image, open_heif_image
from surelabel.data.image_memory import (
    check_image_memory,
    image_decoding_bytes,
    image_memory_limit,
    max_image_memory,
)
from surelabel.data.images import open_image
from surelabel.errors import DataError, InputError

SIZE = (1600, 1250)
N_PIXELS = SIZE[0] * SIZE[1]
TOLERANCE = 6e6  # bytes of bands, tables and of the process itself


def adam7_png(pixels):
    """An interlaced PNG file, which Pillow cannot write: seven images of some of the pixels."""
    passes = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4)]
    passes += [(2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]
    rows = [row for y, dy, x, dx in passes for row in pixels[y::dy, x::dx]]
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 1)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 1)
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def blocks(mode="RGB"):
    """An image of colored blocks, which all formats compress well."""
    small = np.random.default_rng(0).integers(0, 255, (25, 32, 3), dtype=np.uint8)
    image = Image.fromarray(small).resize(SIZE, Image.Resampling.NEAREST)
    if mode == "P":
        return image.quantize(200)
    return image.convert(mode)


def deep(dtype):
    return Image.fromarray(np.asarray(blocks("L")).astype(dtype) * dtype(100))


def rotated():
    image = blocks()
    image.getexif()[0x0112] = 6
    return image


def with_alpha():
    image = blocks("RGBA")
    image.putalpha(blocks("L"))
    return image


CASES = {  # file: (image, options of the format, bytes per pixel)
    "baseline.jpg": (blocks, {}, 4),
    "rotated.jpg": (rotated, {}, 8),
    "progressive.jpg": (blocks, {"progressive": True, "subsampling": "4:2:0"}, 7),
    "progressive-444.jpg": (blocks, {"progressive": True, "subsampling": "4:4:4"}, 10),
    "cmyk.jpg": (lambda: blocks("CMYK"), {}, 8),
    "rgb.png": (blocks, {}, 4),
    "rgba.png": (with_alpha, {}, 8),
    "palette.png": (lambda: blocks("P"), {"transparency": 3}, 5),
    "grey-16-bits.png": (lambda: deep(np.uint16), {}, 6),
    "animation.gif": (lambda: blocks("P"), {"save_all": True, "disposal": 2}, 6),
    "grey-16-bits.ppm": (lambda: deep(np.uint16), {}, 8),
    "strips.tif": (blocks, {"compression": "tiff_lzw"}, None),
    "one-strip.tif": (blocks, {"compression": "packbits", "strip_size": 10 * N_PIXELS}, None),
    "float.tif": (lambda: deep(np.float32), {"compression": "tiff_lzw"}, None),
    "lossy.webp": (blocks, {"method": 0}, None),
    "alpha.webp": (with_alpha, {"lossless": True, "method": 0, "quality": 0}, None),
    "alpha.avif": (with_alpha, {"speed": 10, "subsampling": "4:4:4"}, None),
    "alpha.jp2": (with_alpha, {}, 32),
}


ROTATION = Image.Exif()
ROTATION[0x0112] = 6
HEIC_CASES = {  # file: (mode, options of the format, bytes per pixel)
    "420.heic": ("RGB", {"chroma": 420}, 10),
    "tiles.heic": ("RGB", {"chroma": 420, "tile_size": 512}, 10),
    "rotated.heic": ("RGB", {"chroma": 420, "exif": ROTATION.tobytes()}, 10),
    "grey.heic": ("L", {}, 8),
    "alpha.heic": ("RGBA", {"chroma": 444}, 20),
    "10-bits.heic": ("RGB;16", {"chroma": 444}, 22),
}


def saved_heic(folder, name):
    mode, options, _ = HEIC_CASES[name]
    fast = {"quality": 50, "enc_params": {"preset": "ultrafast"}}
    n_bytes = N_PIXELS * len(mode.partition(";")[0]) * (2 if mode.endswith("16") else 1)
    from_bytes(mode, SIZE, b"\x80" * n_bytes).save(folder / name, **fast, **options)
    return folder / name


def saved(folder, name):
    make, options, _ = CASES[name]
    image = make()
    if options.get("save_all"):
        options = {**options, "append_images": [image.rotate(180)]}
    if "exif" not in options and len(image.getexif()):
        options = {**options, "exif": image.getexif()}
    image.save(folder / name, **options)
    return folder / name


def bound(path):
    with path.open("rb") as stream:
        is_heif = is_heif_image(stream)
        with open_heif_image(stream) if is_heif else Image.open(stream) as image:
            return image_decoding_bytes(image, stream)


MEASURE = """
import json, os, sys, types
from pathlib import Path
import surelabel

package = types.ModuleType("surelabel.data")  # without its other modules, which import PyTorch
package.__path__ = [os.path.join(surelabel.__path__[0], "data")]
sys.modules["surelabel.data"] = package

import pillow_heif  # the memory of the package itself is not counted
from surelabel.data.images import open_image

def memory(kind):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(kind))

for path in sys.argv[2:]:
    if not os.fork():  # a process with an empty heap for each image
        open_image(sys.argv[1], min_side=1)
        before = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts at the current memory
        open_image(path, min_side=10_000)
        print(json.dumps([os.path.basename(path), memory("VmHWM") - before]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    (folder / "interlaced.png").write_bytes(adam7_png(np.asarray(blocks())))
    heic_files = {name: saved_heic(folder, name) for name in HEIC_CASES}
    return (
        {name: saved(folder, name) for name in CASES}
        | heic_files
        | {"interlaced.png": folder / "interlaced.png"}
    )


@pytest.fixture(scope="module")
def measured(files, tmp_path_factory):
    """Peak of the memory that another process needs to open each image, in bytes."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("needs /proc of Linux")
    small = tmp_path_factory.mktemp("small") / "small.png"
    Image.new("I;16", (9, 9)).save(small)
    command = [sys.executable, "-c", MEASURE, small, *files.values()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    return dict(map(json.loads, result.stdout.splitlines()))


@pytest.mark.parametrize("name", [*CASES, *HEIC_CASES, "interlaced.png"])
def test_the_bound_is_not_below_the_measured_memory_and_not_far_above(files, measured, name):
    assert measured[name] - TOLERANCE < bound(files[name]) < 3 * measured[name]


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_a_number_of_bytes_per_pixel(files, name):
    per_pixel = CASES[name][2]
    assert per_pixel is None or bound(files[name]) == per_pixel * N_PIXELS


@pytest.mark.parametrize("name", HEIC_CASES)
def test_the_bound_of_heic_is_a_number_of_bytes_per_pixel_and_the_file_twice(files, name):
    n_bytes = HEIC_CASES[name][2] * N_PIXELS + 2 * files[name].stat().st_size
    assert bound(files[name]) == n_bytes


def test_an_interlaced_png_needs_its_pixels_only(files):
    path = files["interlaced.png"]
    assert np.array_equal(np.asarray(open_image(path, min_side=1)), np.asarray(blocks()))
    assert bound(path) == 4 * N_PIXELS


def jpeg_header(width, height, *, start_of_frame=0xC0, n_components=3, n_in_scan=3):
    """The header of a JPEG file of any size, without the pixels."""
    components = b"".join(bytes([i + 1, 0x11, 0]) for i in range(n_components))
    frame = struct.pack(">BHHB", 8, height, width, n_components) + components
    scan = bytes([n_in_scan]) + bytes([1, 0] * n_in_scan) + b"\0\x3f\0"
    segments = [(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"), (0xDB, bytes([0, *[1] * 64]))]
    segments += [(start_of_frame, frame), (0xDA, scan)]
    return b"\xff\xd8" + b"".join(
        struct.pack(">BBH", 0xFF, code, len(body) + 2) + body for code, body in segments
    )


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_baseline_jpeg_of_100_megapixels_passes_the_default_and_one_of_many_scans_does_not():
    for options, n_bytes in (
        ({}, 400e6),
        ({"n_in_scan": 1}, 1000e6),
        ({"start_of_frame": 0xC2}, 1000e6),
        ({"n_components": 1, "n_in_scan": 1}, 500e6),
        ({"n_components": 4, "n_in_scan": 4}, 800e6),
    ):
        stream = io.BytesIO(jpeg_header(10_000, 10_000, **options))
        with Image.open(stream) as image:
            assert image_decoding_bytes(image, stream) == n_bytes
            if n_bytes <= 512e6:
                check_image_memory(image, stream, min_side=224)
            else:
                with pytest.raises(DataError, match=rf"takes {n_bytes / 1e6:.0f} MB of memory"):
                    check_image_memory(image, stream, min_side=224)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_downscaled_jpeg_needs_less_unless_it_has_many_scans():
    for options, n_bytes in (({}, 400e6 / 64), ({"start_of_frame": 0xC2}, 600e6 + 400e6 / 64)):
        stream = io.BytesIO(jpeg_header(10_000, 10_000, **options))
        with Image.open(stream) as image:
            image.draft(None, (224, 224))
            assert image.size == (1250, 1250)
            assert image_decoding_bytes(image, stream) == n_bytes


def test_the_limit_ends_with_its_block_and_must_be_positive():
    with image_memory_limit(7):
        with image_memory_limit(9):
            assert max_image_memory() == 9
        assert max_image_memory() == 7
    assert max_image_memory() == 512
    with (
        pytest.raises(InputError, match=r"megabytes must be 1 or more; got 0\."),
        image_memory_limit(0),
    ):
        pass
