import math
import os
import shutil
import signal

import pytest
import torch
from PIL import Image

from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError
from surelabel.features import FeatureCache, encode_views
from surelabel.features.cache import content_hash_for_cache
from surelabel.features.view_features import image_hash_for_view_features
from surelabel.views import CropLayout, RegionLayout, TileLayout, crop_and_resize_box


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


@pytest.fixture(scope="module")
def paths():
    return list(collection("scenes-80", split="test").paths[:6])


@pytest.fixture
def photograph(tmp_path):
    """A JPEG far larger than the encoder's images."""
    noise = torch.rand(3, 30, 40, generator=torch.Generator().manual_seed(0)).mul(255).byte()
    image = Image.fromarray(noise.permute(1, 2, 0).numpy()).resize((1600, 1200))
    image.save(tmp_path / "photograph.jpg", quality=95)
    return str(tmp_path / "photograph.jpg")


def by_hand(encoder, path, cut):
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    rows = []
    for box in cut.boxes(image.size, content_hash_for_cache(path)):
        seen = encoder.preprocess(crop_and_resize_box(image, box, size=(96, 96)))
        rows.append(encoder.encode_images(seen[None]).pooled[0])
    return torch.stack(rows)


class Watched:
    """A real encoder that notes how many images it saw at once, and how large they came."""

    def __init__(self, encoder):
        self._real, self.batches, self.sizes = encoder, [], []

    def __getattr__(self, name):
        return getattr(self._real, name)

    def encode_images(self, pixels):
        self.batches.append(len(pixels))
        return self._real.encode_images(pixels)

    def preprocess(self, image):
        self.sizes.append(image.size)
        return self._real.preprocess(image)


@pytest.mark.parametrize(
    "cut", [TileLayout(2, 3), CropLayout(count=3), RegionLayout([(0, 0, 0.4, 0.6)])]
)
def test_vectors_are_those_of_the_parts_each_encoded_alone(encoder, paths, cut):
    found = encode_views(encoder, paths[:3], cut)
    expected = torch.stack([by_hand(encoder, path, cut) for path in paths[:3]])
    torch.testing.assert_close(found.views, expected, atol=1e-3, rtol=0)
    assert found.counts.tolist() == [expected.shape[1]] * 3
    assert not found.unreadable


def test_workers_and_batches_change_nothing(encoder, paths):
    cut = TileLayout(5, 2)
    alone = encode_views(encoder, paths[:3], cut).views
    for how in ({"workers": 2}, {"batch_size": 3}, {"workers": 2, "batch_size": 1}):
        found = encode_views(encoder, paths[:3], cut, **how)
        torch.testing.assert_close(found.views, alone, atol=1e-3, rtol=0)


def test_views_that_are_encoded_at_once_have_the_same_features(encoder, paths, set_threads):
    mixed = [*paths[:4], "there-is-no-such.jpg", *paths[2:6]]
    expected = encode_views(encoder, mixed, TileLayout(1, 3), batch_size=4)
    set_threads(2)
    for workers in (0, 2):
        progress = []
        found = encode_views(
            encoder,
            mixed,
            TileLayout(1, 3),
            batch_size=4,
            workers=workers,
            progress=lambda n_done, n, progress=progress: progress.append((n_done, n)),
        )
        assert torch.equal(found.views, expected.views)
        assert found.counts.tolist() == expected.counts.tolist() == [3] * 4 + [0] + [3] * 4
        assert found.unreadable == expected.unreadable
        assert progress == sorted(progress)
        assert progress[-1] == (9, 9)


def test_the_second_time_nothing_is_opened(encoder, paths, tmp_path):
    cache, file = FeatureCache(tmp_path / "cache"), tmp_path / "a.jpg"
    shutil.copy(paths[0], file)
    hashes = [content_hash_for_cache(file)]
    first = encode_views(encoder, [str(file)], TileLayout(), cache=cache)
    file.unlink()
    cache = FeatureCache(tmp_path / "cache")
    second = encode_views(encoder, [str(file)], TileLayout(), cache=cache, hashes=hashes)
    assert torch.equal(first.views, second.views)
    assert (first.n_cached, second.n_cached) == (0, 1)
    assert second.model_seconds == second.decode_seconds == 0
    other = encode_views(encoder, [str(file)], TileLayout(2, 2), cache=cache, hashes=hashes)
    assert other.unreadable == {0: "no such file or directory"}


@pytest.mark.parametrize("workers", [0, 2])
def test_times_are_sums_over_views_and_over_passes(encoder, paths, tmp_path, timed, workers):
    cache, layout = FeatureCache(tmp_path), TileLayout(2, 5)
    options = {"cache": cache, "batch_size": 1, "workers": workers}  # a pass for each view
    some = encode_views(timed(encoder), paths[:1], layout, **options)
    assert (some.n_cached, some.decode_seconds, some.model_seconds) == (0, 10 * 10, 10 * 1000)
    rest = encode_views(timed(encoder), paths[:4], layout, **options)
    assert (rest.n_cached, rest.decode_seconds, rest.model_seconds) == (1, 30 * 10, 30 * 1000)


def test_each_image_may_have_its_own_cut_or_none(encoder, paths, tmp_path):
    cuts = [TileLayout(1, 2), None, RegionLayout([(0, 0, 0.5, 0.5)]), TileLayout(1, 2)]
    for _ in range(2):
        cache = FeatureCache(tmp_path)
        found = encode_views(encoder, paths[:4], cuts, cache=cache)
        assert found.counts.tolist() == [2, 0, 1, 2]
        assert found.views.shape == (4, 2, 128)
        assert not found.views[1].any()
        assert not found.views[2, 1].any()
        for row in (0, 2, 3):
            expected = by_hand(encoder, paths[row], cuts[row])
            seen = found.views[row, : len(expected)]
            torch.testing.assert_close(seen, expected, atol=1e-3, rtol=0)
    assert found.n_cached == 3
    nothing = encode_views(encoder, paths[:2], [None, None], cache=cache)
    assert nothing.views.shape == (2, 0, 128)


def test_images_that_are_the_same_are_looked_at_once(encoder, paths):
    watched = Watched(encoder)
    found = encode_views(watched, [paths[0]] * 10, CropLayout(count=4), batch_size=4)
    assert watched.batches == [4]
    assert found.counts.tolist() == [4] * 10
    assert torch.equal(found.views, found.views[:1].expand(10, -1, -1))


def test_a_copy_stands_in_for_a_file_that_is_gone(encoder, paths, tmp_path):
    hashes = [content_hash_for_cache(paths[0])] * 2
    found = encode_views(
        encoder, [str(tmp_path / "gone.jpg"), paths[0]], TileLayout(), hashes=hashes
    )
    assert not found.unreadable
    assert torch.equal(found.views[0], found.views[1])


def test_what_is_gone_bad_or_another_image_by_now_is_named(encoder, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    given = [paths[0], str(tmp_path / "gone.jpg"), str(tmp_path / "bad.jpg"), paths[1]]
    found = encode_views(encoder, given, TileLayout())
    assert sorted(found.unreadable) == [1, 2]
    assert found.unreadable[1] == "no such file or directory"
    assert found.unreadable[2].startswith("not an image of a supported format")
    assert found.counts.tolist() == [9, 0, 0, 9]
    stale = encode_views(
        encoder, paths[:2], TileLayout(), hashes=[content_hash_for_cache(paths[0]), "00"]
    )
    assert stale.unreadable == {1: "changed while it was being read"}
    torch.testing.assert_close(stale.views[0], found.views[0])


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (3, 400)])
def test_a_tiny_image_has_as_many_parts_as_any(encoder, tmp_path, size):
    Image.new("RGB", size, "teal").save(tmp_path / "tiny.png")
    for cut in (TileLayout(), CropLayout(), RegionLayout([(0.4, 0.4, 0.6, 0.6)])):
        found = encode_views(encoder, [str(tmp_path / "tiny.png")], cut)
        count = len(cut.boxes((300, 300), ""))
        assert found.counts.tolist() == [count]
        torch.testing.assert_close(
            found.views.norm(dim=-1), torch.ones(1, count), atol=1e-3, rtol=0
        )


def test_a_photograph_is_decoded_as_finely_as_its_smallest_part_needs(encoder, photograph):
    for cut in (TileLayout(), RegionLayout([(0.2, 0.2, 0.3, 0.3)])):
        opened = []

        class Noting(type(cut)):
            def boxes(self, size, content, seen=opened):
                seen.append(size)
                return super().boxes(size, content)

        encode_views(encoder, [photograph], Noting(**vars(cut)))
        (side,) = {min(size) for size in opened}
        assert side >= 96 / cut.min_side_share > side / 2 or side == 1200
    assert math.isclose(opened[0][0] / opened[0][1], 4 / 3, rel_tol=0.01)


def test_no_more_than_a_batch_or_so_is_encoded_at_once(encoder, paths):
    watched = Watched(encoder)
    encode_views(watched, paths[:3], TileLayout(4, 5), batch_size=10)
    assert sum(watched.batches) == 3 * 20
    assert max(watched.batches) < 10 + 8
    assert set(watched.sizes) == {(96, 96)}


def test_a_run_that_is_stopped_keeps_what_it_has(encoder, paths, tmp_path):
    cache = FeatureCache(tmp_path)

    def stop(done, total):
        if done >= 3:
            raise KeyboardInterrupt("stopped here")

    with pytest.raises(KeyboardInterrupt, match="stopped here"):
        encode_views(encoder, paths, TileLayout(), cache=cache, batch_size=9, progress=stop)
    again = encode_views(encoder, paths, TileLayout(), cache=FeatureCache(tmp_path))
    assert again.n_cached == 3


def test_progress_counts_images_and_ends_at_the_total(encoder, paths, tmp_path):
    cache, seen = FeatureCache(tmp_path), []
    encode_views(encoder, paths[:2], TileLayout(), cache=cache)
    encode_views(
        encoder, paths, TileLayout(), cache=cache, batch_size=18, progress=lambda *a: seen.append(a)
    )
    assert seen == [(4, 6), (6, 6), (6, 6)]


def test_images_in_memory_are_seen_like_files(encoder, paths):
    opened = [Image.open(path) for path in paths[:2]]
    files = encode_views(encoder, paths[:2], TileLayout())
    memory = encode_views(encoder, opened, TileLayout(), workers=2)
    torch.testing.assert_close(memory.views, files.views, atol=1e-3, rtol=0)
    crops = encode_views(encoder, opened, CropLayout()).views
    assert torch.equal(crops, encode_views(encoder, opened, CropLayout()).views)


def test_the_content_of_an_image_in_memory_is_what_it_shows():
    wide, tall = Image.new("RGB", (6, 4), "teal"), Image.new("RGB", (4, 6), "teal")
    assert image_hash_for_view_features(wide) == image_hash_for_view_features(
        Image.new("RGB", (6, 4), "teal")
    )
    assert image_hash_for_view_features(wide) == image_hash_for_view_features(
        Image.new("RGBA", (6, 4), "teal")
    )
    assert (
        len(
            {image_hash_for_view_features(p) for p in (wide, tall, Image.new("RGB", (6, 4), "red"))}
        )
        == 3
    )


def test_cuts_that_do_not_fit_the_images_are_refused(encoder, paths):
    with pytest.raises(InputError, match=r"one layout or one per image; got 2 images and 1 layout"):
        encode_views(encoder, paths[:2], [TileLayout()])
    with pytest.raises(InputError, match=r"at least one image.* got 0 images"):
        encode_views(encoder, [], TileLayout())


def test_what_takes_no_images_says_so():
    with pytest.raises(ConfigError, match="needs precomputed features of width 8"):
        encode_views(load_encoder("features:8"), ["no.jpg"], TileLayout(), hashes=["00"])


@pytest.mark.usefixtures("deadline")
def test_an_image_that_kills_its_worker_is_named_and_the_others_are_encoded(encoder, paths):
    class Deadly(Watched):
        def preprocess(self, image):
            if os.getpid() != main_process and image.tobytes() == deadly_view:
                os.kill(os.getpid(), signal.SIGKILL)
            return self._real.preprocess(image)

    main_process, layout = os.getpid(), TileLayout(4, 5)  # three messages per image
    with Image.open(paths[2]) as opened:
        image = opened.convert("RGB")
    box = layout.boxes(image.size, "")[13]
    deadly_view = crop_and_resize_box(image, box, size=(96, 96)).tobytes()
    found = encode_views(Deadly(encoder), paths[:4], layout, workers=2, batch_size=8)
    assert list(found.unreadable) == [2]
    assert found.unreadable[2].startswith("the decoding process was killed (SIGKILL)")
    assert found.counts.tolist() == [20, 20, 0, 20]
    expected = encode_views(encoder, paths[:4], layout).views
    expected[2] = 0
    torch.testing.assert_close(found.views, expected, atol=1e-3, rtol=0)
