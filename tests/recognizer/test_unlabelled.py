import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.backbones import load_backbone
from surelabel.config import load_run
from surelabel.data import FeatureCache, collection
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.pseudolabels import tailored
from surelabel.recognizer.unlabelled import pseudolabelled, taught

SCENES = collection("scenes-80", split="train")
NAMES = list(SCENES.names[:5])
SMALL = ["method.name=tailor", "method.side=24", "method.width=16", "teacher.name=zero_shot"]
SMALL += ["epochs=1"]


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return FeatureCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def learn(backbone, cache):
    def call(paths=SCENES.paths[:10], *overrides, names=NAMES, **options):
        run = load_run(overrides=[*SMALL, *overrides])
        return taught(run, backbone, names, list(paths), cache=cache, workers=0, **options)

    return call


def test_ten_pictures_teach_a_student(learn, backbone):
    got = learn()
    assert len(got.first.paths) == 10
    assert got.first.targets.shape == got.last.targets.shape == (10, 5)
    seen = backbone.at(24).trunk(torch.zeros(2, 3, 24, 24))
    assert not got.method.training
    assert got.method(seen).isfinite().all()


def test_the_same_seed_teaches_the_same(learn):
    first, second, other = learn(), learn(), learn(SCENES.paths[:10], "seed=1")
    for name, value in first.method.state_dict().items():
        assert torch.equal(second.method.state_dict()[name], value)
    assert torch.equal(first.last.targets, second.last.targets)
    assert not torch.equal(first.method.decoder.weight, other.method.decoder.weight)


def test_pseudolabels_are_the_rule_of_the_teachers_softmax(backbone, cache):
    paths, run = list(SCENES.paths[:6]), load_run(overrides=[*SMALL, "pseudolabels.top=2"])
    got = pseudolabelled(run, backbone, NAMES, paths, cache=cache)
    pixels = [backbone.prepare(Image.open(path)) for path in paths]
    pooled = backbone.images(torch.stack(pixels)).pooled
    texts = backbone.texts(NAMES, ["a photo of a {}"])
    z = backbone.scale / 2 * pooled @ texts.T
    p = z.softmax(dim=1)
    expected = tailored((p / (1 - p)).log(), top=2)
    assert got.paths == paths
    assert torch.allclose(got.targets, expected, atol=0.02)  # the cache holds half precision


def test_labels_move_towards_the_student_unless_they_rest(learn):
    moved, resting = learn(), learn(SCENES.paths[:10], "sewing.rate=0")
    assert not torch.allclose(moved.first.targets, moved.last.targets, atol=1e-4)
    assert torch.allclose(resting.first.targets, resting.last.targets, atol=1e-5)


def test_pictures_that_cannot_be_read_are_left_out(learn, tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    with pytest.warns(UserWarning, match="1 of 4 pictures cannot be read"):
        got = learn([SCENES.paths[0], str(tmp_path / "broken.jpg"), *SCENES.paths[1:3]])
    assert got.last.paths == [SCENES.paths[0], *SCENES.paths[1:3]]
    with pytest.raises(DataError, match="None of 1 pictures could be read"):
        learn([str(tmp_path / "broken.jpg")])


def test_pictures_that_are_all_alike_teach_without_an_accident(learn, tmp_path):
    for i in range(4):
        Image.new("RGB", (30, 20), "grey").save(tmp_path / f"{i}.png")
    got = learn([str(tmp_path / f"{i}.png") for i in range(4)])
    assert torch.equal(got.first.targets, got.first.targets[:1].expand(4, -1))
    assert all(value.isfinite().all() for value in got.method.state_dict().values())


def test_one_picture_is_enough(learn):
    assert learn(SCENES.paths[:1]).last.targets.shape == (1, 5)


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_names_are_refused_with_the_remedy(learn, count):
    with pytest.raises(ConfigError, match=rf"3 names or more. Got {count}; add names .*=tiles"):
        learn(names=NAMES[:count])


def test_a_teacher_of_another_domain_is_refused(learn):
    with pytest.raises(ConfigError, match=r"leave teacher\.domain out, or set it to softmax"):
        learn(SCENES.paths[:10], "teacher.domain=reference")


@pytest.mark.parametrize(
    ("name", "setting"),
    [("tiles", "fusion=mean"), ("crops", "amount=0.5"), ("region_statistics", "share=0.5")],
)
def test_a_setting_of_the_teacher_that_would_change_nothing_is_refused(learn, name, setting):
    with pytest.raises(ConfigError, match=rf"leave teacher\.{setting.partition('=')[0]} out"):
        learn(["no/such.png"], f"teacher.name={name}", f"teacher.{setting}")


def test_too_many_places_are_told_before_a_picture_is_read(learn):
    with pytest.raises(InputError, match=r"50 places down and across at most\. Got 51 by 51"):
        learn(["no/such.png"], "method.side=612")


def test_a_setting_of_sewing_out_of_its_range_is_told_before_a_picture_is_read(learn):
    with pytest.raises(ConfigError, match=r"side must be in \(0, 1\]"):
        learn(["no/such.png"], "sewing.side=2.0")


def test_stopped_learning_goes_on_and_is_the_same_in_the_end(learn, tmp_path):
    kept, steps = tmp_path / "kept", []

    def stop(done, total):
        steps.append((done, total))
        if len(steps) == 3:  # encoded, then once a pass
            raise InterruptedError("enough")

    three = (SCENES.paths[:10], "epochs=3")
    with pytest.raises(InterruptedError, match="enough"):
        learn(*three, checkpoint=kept, progress=stop)
    assert kept.exists()
    got, whole = learn(*three, checkpoint=kept), learn(*three)
    assert torch.equal(got.last.targets, whole.last.targets)
    for name, value in whole.method.state_dict().items():
        assert torch.equal(got.method.state_dict()[name], value)
    assert not kept.exists()


def test_the_checkpoint_of_other_pictures_is_refused(learn, tmp_path):
    kept, seen = tmp_path / "kept", []

    def stop(done, total):
        seen.append(done)
        if len(seen) == 3:
            raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        learn(SCENES.paths[:10], "epochs=2", checkpoint=kept, progress=stop)
    with pytest.raises(DataError, match="belongs to another run"):
        learn(SCENES.paths[10:20], "epochs=2", checkpoint=kept)


def test_a_name_that_no_picture_shows_stays_low(learn, tmp_path):
    draws = np.random.default_rng(0)
    for i in range(3):
        noise = draws.integers(256, size=(32, 32, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / f"{i}.png")
    got = learn([*SCENES.paths[:6], *(str(tmp_path / f"{i}.png") for i in range(3))])
    assert got.last.targets.isfinite().all()
    assert ((got.last.targets > 0) & (got.last.targets < 1)).all()
