"""Decode mutated images of all formats: `python tests/robustness/mutated_images.py [--long]`.

Each image is decoded by the same function as images of users. The outcome must be pixels or a
reason of one line, without any other error, within a time and within a memory. The short form is
part of the suite. The long form decodes 1,000 images with the default limit of memory, and then
encodes them as files in worker processes.
"""

import argparse
import io
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from PIL import Image
from pillow_heif import from_bytes

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from dng_files import dng_file, jpeg_file

from surelabel.data.image_memory import DEFAULT_IMAGE_MEMORY, MEGABYTE, image_memory_limit
from surelabel.data.images import open_image
from surelabel.errors import DataError

SIDE = 48
SECONDS = 20  # per image
OVERHEAD = 100  # megabytes of bands, tables and of the process itself, above the limit
OPTIONS = {  # file format: options of different encodings
    "JPEG": [{}, {"progressive": True}, {"subsampling": 0, "quality": 100}],
    "PNG": [{}, {"save_all": True}],
    "GIF": [{}, {"save_all": True, "disposal": 2}],
    "BMP": [{}],
    "TIFF": [{"compression": c} for c in (None, "tiff_lzw", "jpeg", "packbits", "zstd")],
    "WEBP": [{}, {"lossless": True}, {"save_all": True}],
    "AVIF": [{"speed": 10}],
    "JPEG2000": [{}, {"tile_size": (16, 16)}],
    "PPM": [{}],
    "MPO": [{"save_all": True}],
    "HEIF": [{}, {"chroma": 444}, {"thumbnails": [16]}],
    "DNG": [{}, {"order": ">"}],
}
MODES = ["RGB", "L", "P", "RGBA", "LA", "CMYK", "I;16", "F", "1"]


def intact_images():
    """Return the content of image files of all formats, encodings and modes."""
    rng = np.random.default_rng(0)
    color = Image.fromarray(rng.integers(0, 255, (SIDE, SIDE + 7, 3), dtype=np.uint8))
    files = []
    for file_format, variants in OPTIONS.items():
        for options in variants:
            for mode in MODES:
                grey = np.asarray(color.convert("L"))
                deep = {"I;16": grey.astype(np.uint16) * 200, "F": grey.astype(np.float32)}
                image = Image.fromarray(deep[mode]) if mode in deep else color.convert(mode)
                more = {"append_images": [image]} if options.get("save_all") else {}
                image.getexif()[0x0112] = 6
                buffer = io.BytesIO()
                try:
                    save_image(image, buffer, file_format, **options, **more)
                except (OSError, ValueError, SystemError, RuntimeError, TypeError, KeyError):
                    continue  # the format has no such mode
                files.append((file_format, buffer.getvalue()))
    return files


def save_image(image, buffer, file_format, **options):
    if file_format == "HEIF":
        fast = {"enc_params": {"preset": "ultrafast"}, "exif": image.getexif().tobytes()}
        from_bytes(image.mode, image.size, image.tobytes()).save(buffer, **fast, **options)
    elif file_format == "DNG":
        preview = jpeg_file(image) if image.mode in ("RGB", "L") else np.asarray(image)
        buffer.write(dng_file(preview, orientation=6, **options))
    else:
        image.save(buffer, file_format, **options, exif=image.getexif())


def flip_bits(content, rng, others):
    mutated = bytearray(content)
    for _ in range(rng.choice([1, 3, 20])):
        mutated[rng.randrange(len(mutated))] ^= 1 << rng.randrange(8)
    return bytes(mutated)


def edit_header(content, rng, others):
    """Replace one to four consecutive bytes near the start by extreme values."""
    start, length = rng.randrange(min(120, len(content))), rng.choice([1, 2, 4])
    value = rng.choice([b"\0", b"\xff", b"\x7f", b"\x80", b"\1"]) * length
    return content[:start] + value + content[start + length :]


def truncate(content, rng, others):
    return content[: rng.randrange(len(content))]


def concatenate(content, rng, others):
    other = rng.choice(others)
    return content[: rng.randrange(len(content))] + other[rng.randrange(len(other)) :]


def remove_part(content, rng, others):
    start = rng.randrange(len(content))
    return content[:start] + content[start + rng.randrange(1, 40) :]


MUTATIONS = [flip_bits, edit_header, truncate, concatenate, remove_part]


def mutated_images(count, seed=0):
    """Yield the format, the mutation and the content of ``count`` mutated image files."""
    rng, files = random.Random(seed), intact_images()
    by_format = {file_format: [c for f, c in files if f == file_format] for file_format in OPTIONS}
    contents = [content for _, content in files]
    for number in range(count):
        file_format = list(OPTIONS)[number % len(OPTIONS)]
        mutation = MUTATIONS[number // len(OPTIONS) % len(MUTATIONS)]
        content = rng.choice(by_format[file_format])
        yield file_format, mutation.__name__, mutation(content, rng, contents)


def outcome_of(content):
    """Return "decoded", or the reason why an image cannot be decoded.

    Raises:
        AssertionError: If the result is not an RGB image, or if the reason has several lines.
        TimeoutError: If decoding takes more than ``SECONDS``.
    """
    signal.alarm(SECONDS)
    try:
        image = open_image(content, min_side=224)
        assert image.mode == "RGB"
        image.resize((8, 8))
    except DataError as error:
        reason = str(error)
        assert reason.isprintable(), repr(reason)
        assert len(reason) < 300, reason
        return reason
    finally:
        signal.alarm(0)
    return "decoded"


def decode_all(count, seed, limit):
    """Decode mutated images; return the counts of the outcomes and the peak of the memory in MB."""
    signal.signal(signal.SIGALRM, _raise_timeout)
    counts = Counter()
    with image_memory_limit(limit):
        images = list(mutated_images(count, seed))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        for number, (file_format, mutation, content) in enumerate(images):
            try:
                outcome = outcome_of(content)
            except BaseException as error:
                raise AssertionError(f"image {number}, {file_format}, {mutation}") from error
            counts[file_format, "decoded" if outcome == "decoded" else "skipped"] += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return counts, (peak - before) / MEGABYTE


def encode_all(count, seed):
    """Encode mutated images as files; check that each one has features or a reason."""
    from surelabel.encoders import load_encoder
    from surelabel.features import encode_image_files

    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{number}.jpg" for number in range(count)]
        for path, (_, _, content) in zip(paths, mutated_images(count, seed), strict=True):
            Path(path).write_bytes(content)
        encoded = encode_image_files(load_encoder("tiny-vit"), paths, workers=2)
    assert all(image.reason.isprintable() for image in encoded.skipped)
    rows = {*encoded.rows, *(paths.index(image.path) for image in encoded.skipped)}
    assert rows == set(range(count))
    assert encoded.features.pooled.isfinite().all()
    return len(encoded.rows), len(encoded.skipped)


def _raise_timeout(*_):
    raise TimeoutError(f"decoding took more than {SECONDS} seconds")


def decode_in_another_process(count, *, seed, limit):
    """Return the result of ``decode_all``; a crash of a decoder does not end this process."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(decode_all(count, seed, limit)))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        raise AssertionError(f"the process ended with exit code {process.exitcode}") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="decode 1,000 images instead of 100")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start, count = time.perf_counter(), 1000 if options.long else 100
    counts, peak = decode_in_another_process(count, seed=options.seed, limit=DEFAULT_IMAGE_MEMORY)
    assert peak < DEFAULT_IMAGE_MEMORY + OVERHEAD, f"peak of the memory: {peak:.0f} MB"
    for file_format in OPTIONS:
        decoded, skipped = (counts[file_format, outcome] for outcome in ("decoded", "skipped"))
        print(f"{file_format:9} {decoded:4} decoded, {skipped:4} skipped")
    if options.long:
        n_encoded, n_skipped = encode_all(count, options.seed)
        print(f"features of {n_encoded} files, {n_skipped} skipped")
        assert n_encoded == sum(n for (_, outcome), n in counts.items() if outcome == "decoded")
    print(
        f"{count} images in {time.perf_counter() - start:.1f} s, peak of the memory {peak:.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
