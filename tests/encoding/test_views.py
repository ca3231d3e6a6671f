import math
import shutil

import pytest
import torch
from PIL import Image

from surelabel.backbones import load_backbone
from surelabel.data import FeatureCache, collection
from surelabel.data.cache import content_hash
from surelabel.encoding import encode_views
from surelabel.encoding.views import content_of
from surelabel.errors import ConfigError, InputError
from surelabel.views import Crops, Regions, Tiles, cut_out


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


@pytest.fixture(scope="module")
def paths():
    return list(collection("scenes-80", split="test").paths[:6])


@pytest.fixture
def photograph(tmp_path):
    """A JPEG far larger than the encoder's pictures."""
    noise = torch.rand(3, 30, 40, generator=torch.Generator().manual_seed(0)).mul(255).byte()
    picture = Image.fromarray(noise.permute(1, 2, 0).numpy()).resize((1600, 1200))
    picture.save(tmp_path / "photograph.jpg", quality=95)
    return str(tmp_path / "photograph.jpg")


def by_hand(backbone, path, cut):
    with Image.open(path) as opened:
        picture = opened.convert("RGB")
    rows = []
    for box in cut.boxes(picture.size, content_hash(path)):
        seen = backbone.prepare(cut_out(picture, box, size=(96, 96)))
        rows.append(backbone.images(seen[None]).pooled[0])
    return torch.stack(rows)


class Watched:
    """A real encoder that notes how many pictures it saw at once, and how large they came."""

    def __init__(self, backbone):
        self._real, self.batches, self.sizes = backbone, [], []

    def __getattr__(self, name):
        return getattr(self._real, name)

    def images(self, pixels):
        self.batches.append(len(pixels))
        return self._real.images(pixels)

    def prepare(self, picture):
        self.sizes.append(picture.size)
        return self._real.prepare(picture)


@pytest.mark.parametrize("cut", [Tiles(2, 3), Crops(count=3), Regions([(0, 0, 0.4, 0.6)])])
def test_vectors_are_those_of_the_parts_each_encoded_alone(backbone, paths, cut):
    found = encode_views(backbone, paths[:3], cut)
    expected = torch.stack([by_hand(backbone, path, cut) for path in paths[:3]])
    torch.testing.assert_close(found.views, expected, atol=1e-3, rtol=0)
    assert found.counts.tolist() == [expected.shape[1]] * 3
    assert not found.unread


def test_workers_and_batches_change_nothing(backbone, paths):
    cut = Tiles(5, 2)
    alone = encode_views(backbone, paths[:3], cut).views
    for how in ({"workers": 2}, {"batch": 3}, {"workers": 2, "batch": 1}):
        found = encode_views(backbone, paths[:3], cut, **how)
        torch.testing.assert_close(found.views, alone, atol=1e-3, rtol=0)


def test_the_second_time_nothing_is_opened(backbone, paths, tmp_path):
    cache, file = FeatureCache(tmp_path / "cache"), tmp_path / "a.jpg"
    shutil.copy(paths[0], file)
    hashes = [content_hash(file)]
    first = encode_views(backbone, [str(file)], Tiles(), cache=cache)
    file.unlink()
    cache = FeatureCache(tmp_path / "cache")
    second = encode_views(backbone, [str(file)], Tiles(), cache=cache, hashes=hashes)
    assert torch.equal(first.views, second.views)
    assert (first.cached, second.cached) == (0, 1)
    assert second.model_seconds == second.decode_seconds == 0
    other = encode_views(backbone, [str(file)], Tiles(2, 2), cache=cache, hashes=hashes)
    assert other.unread == {0: "no such file or directory"}


def test_each_picture_may_have_its_own_cut_or_none(backbone, paths, tmp_path):
    cuts = [Tiles(1, 2), None, Regions([(0, 0, 0.5, 0.5)]), Tiles(1, 2)]
    for _ in range(2):
        cache = FeatureCache(tmp_path)
        found = encode_views(backbone, paths[:4], cuts, cache=cache)
        assert found.counts.tolist() == [2, 0, 1, 2]
        assert found.views.shape == (4, 2, 128)
        assert not found.views[1].any()
        assert not found.views[2, 1].any()
        for row in (0, 2, 3):
            expected = by_hand(backbone, paths[row], cuts[row])
            seen = found.views[row, : len(expected)]
            torch.testing.assert_close(seen, expected, atol=1e-3, rtol=0)
    assert found.cached == 3
    nothing = encode_views(backbone, paths[:2], [None, None], cache=cache)
    assert nothing.views.shape == (2, 0, 128)


def test_pictures_that_are_the_same_are_looked_at_once(backbone, paths):
    watched = Watched(backbone)
    found = encode_views(watched, [paths[0]] * 10, Crops(count=4), batch=4)
    assert watched.batches == [4]
    assert found.counts.tolist() == [4] * 10
    assert torch.equal(found.views, found.views[:1].expand(10, -1, -1))


def test_a_copy_stands_in_for_a_file_that_is_gone(backbone, paths, tmp_path):
    hashes = [content_hash(paths[0])] * 2
    found = encode_views(backbone, [str(tmp_path / "gone.jpg"), paths[0]], Tiles(), hashes=hashes)
    assert not found.unread
    assert torch.equal(found.views[0], found.views[1])


def test_what_is_gone_bad_or_another_picture_by_now_is_named(backbone, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    given = [paths[0], str(tmp_path / "gone.jpg"), str(tmp_path / "bad.jpg"), paths[1]]
    found = encode_views(backbone, given, Tiles())
    assert sorted(found.unread) == [1, 2]
    assert found.unread[1] == "no such file or directory"
    assert found.unread[2].startswith("not a picture of a known kind")
    assert found.counts.tolist() == [9, 0, 0, 9]
    stale = encode_views(backbone, paths[:2], Tiles(), hashes=[content_hash(paths[0]), "00"])
    assert stale.unread == {1: "changed while it was being read"}
    torch.testing.assert_close(stale.views[0], found.views[0])


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (3, 400)])
def test_a_tiny_picture_has_as_many_parts_as_any(backbone, tmp_path, size):
    Image.new("RGB", size, "teal").save(tmp_path / "tiny.png")
    for cut in (Tiles(), Crops(), Regions([(0.4, 0.4, 0.6, 0.6)])):
        found = encode_views(backbone, [str(tmp_path / "tiny.png")], cut)
        count = len(cut.boxes((300, 300), ""))
        assert found.counts.tolist() == [count]
        torch.testing.assert_close(
            found.views.norm(dim=-1), torch.ones(1, count), atol=1e-3, rtol=0
        )


def test_a_photograph_is_decoded_as_finely_as_its_smallest_part_needs(backbone, photograph):
    for cut in (Tiles(), Regions([(0.2, 0.2, 0.3, 0.3)])):
        opened = []

        class Noting(type(cut)):
            def boxes(self, size, content, seen=opened):
                seen.append(size)
                return super().boxes(size, content)

        encode_views(backbone, [photograph], Noting(**vars(cut)))
        (side,) = {min(size) for size in opened}
        assert side >= 96 / cut.finest > side / 2 or side == 1200
    assert math.isclose(opened[0][0] / opened[0][1], 4 / 3, rel_tol=0.01)


def test_no_more_than_a_batch_or_so_is_encoded_at_once(backbone, paths):
    watched = Watched(backbone)
    encode_views(watched, paths[:3], Tiles(4, 5), batch=10)
    assert sum(watched.batches) == 3 * 20
    assert max(watched.batches) < 10 + 8
    assert set(watched.sizes) == {(96, 96)}


def test_a_run_that_is_stopped_keeps_what_it_has(backbone, paths, tmp_path):
    cache = FeatureCache(tmp_path)

    def stop(done, total):
        if done >= 3:
            raise KeyboardInterrupt("stopped here")

    with pytest.raises(KeyboardInterrupt, match="stopped here"):
        encode_views(backbone, paths, Tiles(), cache=cache, batch=9, progress=stop)
    again = encode_views(backbone, paths, Tiles(), cache=FeatureCache(tmp_path))
    assert again.cached == 3


def test_progress_counts_pictures_and_ends_at_the_total(backbone, paths, tmp_path):
    cache, seen = FeatureCache(tmp_path), []
    encode_views(backbone, paths[:2], Tiles(), cache=cache)
    encode_views(
        backbone, paths, Tiles(), cache=cache, batch=18, progress=lambda *a: seen.append(a)
    )
    assert seen == [(4, 6), (6, 6), (6, 6)]


def test_pictures_in_memory_are_seen_like_files(backbone, paths):
    opened = [Image.open(path) for path in paths[:2]]
    files = encode_views(backbone, paths[:2], Tiles())
    memory = encode_views(backbone, opened, Tiles(), workers=2)
    torch.testing.assert_close(memory.views, files.views, atol=1e-3, rtol=0)
    crops = encode_views(backbone, opened, Crops()).views
    assert torch.equal(crops, encode_views(backbone, opened, Crops()).views)


def test_the_content_of_a_picture_in_memory_is_what_it_shows():
    wide, tall = Image.new("RGB", (6, 4), "teal"), Image.new("RGB", (4, 6), "teal")
    assert content_of(wide) == content_of(Image.new("RGB", (6, 4), "teal"))
    assert content_of(wide) == content_of(Image.new("RGBA", (6, 4), "teal"))
    assert len({content_of(p) for p in (wide, tall, Image.new("RGB", (6, 4), "red"))}) == 3


def test_cuts_that_do_not_fit_the_pictures_are_refused(backbone, paths):
    with pytest.raises(InputError, match=r"one cut for all or one each\. Got 2 pictures and 1 cut"):
        encode_views(backbone, paths[:2], [Tiles()])
    with pytest.raises(InputError, match=r"one picture or more.* Got 0 pictures"):
        encode_views(backbone, [], Tiles())


def test_what_takes_no_pictures_says_so():
    with pytest.raises(ConfigError, match="takes ready-made vectors of 8 numbers"):
        encode_views(load_backbone("features:8"), ["no.jpg"], Tiles(), hashes=["00"])
