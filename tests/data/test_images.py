import io
import os
import socket
import struct
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from surelabel.data.image_memory import image_memory_limit
from surelabel.data.images import open_image, to_upright_rgb_image
from surelabel.errors import DataError, InputError

RED, GREEN, WHITE = (255, 0, 0), (0, 255, 0), (255, 255, 255)


@pytest.fixture(autouse=True)
def _no_warning_leaks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def saved(image, path, **options):
    image.save(path, **options)
    return path


def opened(path, min_side=100_000):
    image = open_image(path, min_side=min_side)
    assert image.mode == "RGB"
    return image


def halves(mode="RGB", size=(64, 32), left=RED, right=GREEN):
    image = Image.new(mode, size, left)
    image.paste(right, (size[0] // 2, 0, *size))
    return image


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif", ".webp"])
def test_every_exif_orientation_comes_out_upright(tmp_path, orientation, suffix):
    image = halves(size=(64, 32))
    image.paste((0, 0, 255), (0, 0, 32, 16))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(image, tmp_path / f"turned{suffix}", exif=exif)
    with Image.open(path) as plain:
        expected = ImageOps.exif_transpose(plain).convert("RGB")
    assert expected.size == ((32, 64) if orientation >= 5 else (64, 32))
    assert np.array_equal(np.asarray(opened(path)), np.asarray(expected))


def test_grey_becomes_rgb(tmp_path):
    path = saved(Image.new("L", (5, 4), 77), tmp_path / "grey.png")
    assert opened(path).getpixel((2, 2)) == (77, 77, 77)


def test_black_and_white_becomes_rgb(tmp_path):
    path = saved(Image.new("1", (5, 4), 1), tmp_path / "bits.png")
    assert opened(path).getpixel((2, 2)) == WHITE


def test_cmyk_jpeg_keeps_its_colours(tmp_path):
    path = saved(halves().convert("CMYK"), tmp_path / "print.jpg", quality=100)
    left, right = (opened(path).getpixel((x, 16)) for x in (8, 56))
    assert np.allclose(left, RED, atol=6)
    assert np.allclose(right, GREEN, atol=6)


def test_transparent_palette_entry_is_white(tmp_path):
    image = Image.new("P", (4, 4), 0)
    image.putpalette([255, 0, 0, 0, 255, 0])
    image.putpixel((1, 1), 1)
    path = saved(image, tmp_path / "palette.png", transparency=0)
    assert opened(path).getpixel((0, 0)) == WHITE
    assert opened(path).getpixel((1, 1)) == GREEN


def test_half_transparent_red_over_white_is_pink(tmp_path):
    path = saved(Image.new("RGBA", (4, 4), (*RED, 128)), tmp_path / "half.png")
    assert opened(path).getpixel((0, 0)) == (255, 127, 127)


def test_grey_with_alpha_lies_on_white(tmp_path):
    path = saved(Image.new("LA", (4, 4), (0, 0)), tmp_path / "veil.png")
    assert opened(path).getpixel((0, 0)) == WHITE


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path, suffix):
    deep = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    path = saved(Image.fromarray(deep), tmp_path / f"deep{suffix}")
    assert np.asarray(opened(path))[0, :, 0].tolist() == [0, 1, 128, 255]


def test_floats_in_the_unit_range_keep_that_range(tmp_path):
    path = saved(Image.fromarray(np.float32([[0.2, 0.4]])), tmp_path / "unit.tif")
    assert np.asarray(opened(path))[0, :, 0].tolist() == [51, 102]


def test_other_deep_pixels_are_stretched_from_least_to_greatest(tmp_path):
    path = saved(Image.fromarray(np.float32([[-10, 0, 10]])), tmp_path / "depth.tif")
    assert np.asarray(opened(path))[0, :, 0].tolist() == [0, 128, 255]
    path = saved(Image.fromarray(np.int32([[0, 1_000_000]])), tmp_path / "counts.tif")
    assert np.asarray(opened(path))[0, :, 0].tolist() == [0, 255]


def test_pixels_that_are_not_numbers_are_refused(tmp_path):
    path = saved(Image.fromarray(np.float32([[0, np.nan]])), tmp_path / "nan.tif")
    with pytest.raises(DataError, match=r"nan\.tif: damaged file \(pixel values must be finite"):
        opened(path)


def test_a_constant_deep_image_is_black_and_warns_of_nothing(tmp_path):
    path = saved(Image.fromarray(np.float32([[7, 7]])), tmp_path / "flat.tif")
    assert np.asarray(opened(path)).max() == 0


def test_an_image_in_memory_is_treated_alike():
    image = halves("RGBA", left=(*RED, 0), right=(*GREEN, 255))
    image.getexif()[0x0112] = 6
    turned = to_upright_rgb_image(image)
    assert (turned.mode, turned.size, image.size) == ("RGB", (32, 64), (64, 32))
    assert (turned.getpixel((16, 0)), turned.getpixel((16, 63))) == (WHITE, GREEN)
    with pytest.raises(InputError, match="pixel values must be finite; got NaN"):
        to_upright_rgb_image(Image.fromarray(np.float32([[np.nan]])))


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png"])
def test_the_first_frame_of_an_animation_is_taken(tmp_path, suffix):
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, GREEN)]
    path = tmp_path / f"moving{suffix}"
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=50, lossless=True)
    assert opened(path).getpixel((4, 4)) == RED


def test_a_file_of_several_jpegs_gives_the_first(tmp_path):
    path = tmp_path / "stereo.mpo"
    Image.new("RGB", (64, 64), RED).save(
        path, save_all=True, append_images=[Image.new("RGB", (64, 64), GREEN)]
    )
    assert np.allclose(opened(path).getpixel((4, 4)), RED, atol=2)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".bmp"])
def test_one_pixel_is_an_image(tmp_path, suffix):
    path = saved(Image.new("RGB", (1, 1), WHITE), tmp_path / f"dot{suffix}")
    assert opened(path, min_side=224).size == (1, 1)


def test_a_long_strip_is_not_shrunk_below_its_short_side(tmp_path):
    path = saved(Image.new("RGB", (20_000, 10)), tmp_path / "strip.jpg")
    assert opened(path, min_side=10).size == (20_000, 10)
    assert opened(path, min_side=1).size == (2_500, 2)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 700), st.integers(1, 700), st.integers(1, 300), st.booleans())
def test_a_shrunk_jpeg_keeps_the_minimum_side(tmp_path_factory, width, height, min_side, turned):
    exif = Image.Exif()
    exif[0x0112] = 6 if turned else 1
    path = tmp_path_factory.getbasetemp() / "any-size.jpg"
    Image.new("RGB", (width, height)).save(path, exif=exif)
    sides = sorted(opened(path, min_side).size)
    assert sides[0] >= min(min_side, width, height)
    shrinks = [-(-min(width, height) // by) for by in (1, 2, 4, 8)]
    assert sides[0] in shrinks


def test_a_large_jpeg_is_shrunk_and_looks_the_same(tmp_path):
    wave = np.sin(np.linspace(0, 9, 1600))[None] * np.cos(np.linspace(0, 7, 1200))[:, None]
    whole = Image.fromarray((wave * 100 + 128).astype(np.uint8)).convert("RGB")
    path = saved(whole, tmp_path / "large.jpg", quality=95)
    shrunk = opened(path, min_side=224)
    assert shrunk.size == (400, 300)
    difference = np.abs(np.asarray(whole.resize((400, 300)), float) - np.asarray(shrunk, float))
    assert difference.max() < 6


def jpeg(side=256):
    noise = np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8)
    data = io.BytesIO()
    Image.fromarray(noise).save(data, "JPEG")
    return data.getvalue()


@pytest.mark.parametrize("kept", [0.3, 0.9])
@pytest.mark.parametrize("min_side", [16, 256])
def test_a_truncated_jpeg_is_refused_and_never_filled_up(tmp_path, kept, min_side):
    path, data = tmp_path / "cut.jpg", jpeg()
    path.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(DataError, match=r"cut\.jpg: truncated file$"):
        open_image(path, min_side=min_side)


def test_a_truncated_png_is_refused(tmp_path):
    path = saved(Image.effect_noise((200, 200), 80), tmp_path / "cut.png")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(DataError, match=r"cut\.png: truncated file$"):
        opened(path)


def test_what_is_no_image_is_refused_with_the_reason(tmp_path):
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "words.jpg").write_text("not an image, whatever its name says")
    (tmp_path / "run.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    for name, reason in {
        "empty.jpg": "empty file$",
        "words.jpg": "not an image of a supported format",
        "run.eps": "not an image of a supported format",
        "missing.jpg": "no such file",
        "": "expected a regular file; got a folder",
    }.items():
        with pytest.raises(DataError, match=rf"{name}: {reason}"):
            opened(tmp_path / name)


def huge_png(width, height):
    def chunk(kind, body):
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * 1000)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


@pytest.mark.parametrize("limit", [Image.MAX_IMAGE_PIXELS, None])
@pytest.mark.parametrize("side", [25_000, 60_000])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path, side, limit, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    path = tmp_path / "bomb.png"
    path.write_bytes(huge_png(side, side))
    with pytest.raises(
        DataError, match=rf"bomb\.png: decoding {side} × {side} pixels \(PNG, 1\) takes .* MB"
    ):
        opened(path)
    assert limit == Image.MAX_IMAGE_PIXELS


def test_the_limit_of_pillow_does_not_apply_to_images_within_our_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    image = Image.effect_noise((40, 30), 90)
    for name in ("a.png", "a.jpg", "a.webp", "a.gif", "a.tif", "a.bmp", "a.avif"):
        path = saved(image, tmp_path / name)
        assert opened(path).size == (40, 30)
    assert Image.MAX_IMAGE_PIXELS == 100


def test_an_image_over_the_limit_of_memory_is_refused_with_the_numbers(tmp_path):
    path = saved(Image.new("RGBA", (600, 500)), tmp_path / "large.png")
    with (
        image_memory_limit(2),
        pytest.raises(
            DataError,
            match=r"large\.png: decoding 600 × 500 pixels \(PNG, RGBA\) takes 3 MB of memory; "
            r"--max-image-memory is 2 MB$",
        ),
    ):
        opened(path, min_side=10)
    with image_memory_limit(3):
        assert opened(path, min_side=10).size == (600, 500)


def test_an_image_that_is_too_long_to_be_resized_is_refused(tmp_path):
    path = saved(Image.new("L", (1, 200_000)), tmp_path / "line.png")
    with image_memory_limit(100), pytest.raises(DataError, match=r"line\.png: .* takes 180 MB"):
        opened(path, min_side=224)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["RGBA", "P", "LA", "CMYK", "I;16"])
def test_an_image_of_several_bands_is_converted_as_a_whole(mode, orientation, monkeypatch):
    monkeypatch.setattr("surelabel.data.images.PIXELS_PER_BAND", 700)
    size = (60, 50)  # bands of 11 rows, and one of 6
    grey = Image.linear_gradient("L").resize(size)
    if mode == "I;16":
        image = Image.fromarray(np.asarray(grey).astype(np.uint16) * 200)
        rgb = Image.fromarray(np.rint(np.asarray(image) / 257).astype(np.uint8)).convert("RGB")
    else:
        image = Image.merge("RGB", [grey, grey.rotate(180), grey]).convert(mode)
        if mode in ("RGBA", "LA"):
            image.putalpha(grey)
        over_white = Image.alpha_composite(Image.new("RGBA", size, "white"), image.convert("RGBA"))
        rgb = over_white.convert("RGB") if mode in ("RGBA", "LA") else image.convert("RGB")
    image.getexif()[0x0112] = rgb.getexif()[0x0112] = orientation
    upright = np.asarray(to_upright_rgb_image(image))
    assert np.array_equal(upright, np.asarray(ImageOps.exif_transpose(rgb)))


def test_a_truncated_progressive_jpeg_is_refused(tmp_path):
    image = Image.open(io.BytesIO(jpeg()))
    path = saved(image, tmp_path / "cut.jpg", progressive=True)
    data = path.read_bytes()
    for fraction in (0.1, 0.5, 0.95):
        path.write_bytes(data[: int(fraction * len(data))])
        with pytest.raises(DataError, match=r"cut\.jpg: truncated file$"):
            opened(path)


@pytest.mark.usefixtures("deadline")
def test_special_files_are_refused_at_once(tmp_path):
    special_files = {"pipe.jpg": "a named pipe", "socket.jpg": "a socket", "zero.jpg": "a device"}
    os.mkfifo(tmp_path / "pipe.jpg")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.jpg"))
    (tmp_path / "zero.jpg").symlink_to("/dev/zero")
    for name, kind in special_files.items():
        with pytest.raises(DataError, match=rf"{name}: expected a regular file; got {kind}$"):
            opened(tmp_path / name)
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    with pytest.raises(DataError, match=r"loop\.jpg: too many levels of symbolic links$"):
        opened(tmp_path / "loop.jpg")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_file_gives_an_image_or_our_error(tmp_path_factory, data):
    kind = data.draw(st.sampled_from(["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM"]))
    buffer = io.BytesIO()
    halves(size=(24, 16)).save(buffer, kind)
    damaged = bytearray(buffer.getvalue())
    places = st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255))
    for place, value in data.draw(st.lists(places, min_size=1, max_size=8)):
        damaged[place] = value
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(damaged)
    try:
        outcome = opened(path)
    except DataError as error:
        outcome = error
    assert isinstance(outcome, Image.Image) or str(outcome).startswith(f"{path}: ")


def test_the_minimum_side_must_be_a_pixel(tmp_path):
    with pytest.raises(InputError, match=r"min_side must be 1 pixel or more; got 0\."):
        open_image(tmp_path / "any.jpg", min_side=0)


def test_a_damaged_tiff_is_refused_without_a_message_of_libtiff(capfd):
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "TIFF", compression="tiff_lzw")
    content = bytearray(file.getvalue())
    content[100:5000] = bytes(4900)
    with pytest.raises(DataError, match=r"^damaged file \(decoder error -2\)$"):
        open_image(bytes(content), min_side=1)
    os.write(2, b"from another library")
    assert capfd.readouterr().err == "from another library"
