"""What every method must do. A new line in METHODS is tested here with no more work."""

import re
from dataclasses import replace
from zlib import crc32

import pytest
import torch
import torch.nn.functional as F

from surelabel.backbones import load_backbone
from surelabel.data import FeatureCache
from surelabel.encoding import remembering
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.links import Sigmoid
from surelabel.losses import binary
from surelabel.methods import METHODS, of_patches
from surelabel.records import Features
from surelabel.tables import settings
from surelabel.training import Labelled, Objective, fit, of_elements

NAMES = ["lion", "guitar", "pizza", "bus"]
GRID = (3, 4)
DENSE = {"patches", "self_aware", "attention"}


def those(condition):
    """Run a test over the methods for which a condition holds."""
    chosen = [pytest.param(m, id=name) for name, m in METHODS.items() if condition(m)]
    return pytest.mark.parametrize("method", chosen)


def relative(method):
    """Whether names are held against each other unless one asks for something else."""
    held = settings(method).get("domain") not in (None, "reference")
    return held or hasattr(method, "learn") or "transport" in settings(method)


every = those(lambda method: True)
with_domains = those(lambda method: "domain" in settings(method))
with_views = those(lambda method: "views" in method.needs)
of_vectors = those(lambda method: not set(method.needs) - {"views", "pixels"})
of_open_vocabulary = those(lambda method: method.open_vocabulary and not relative(method))
learning = those(lambda method: method.learns_from == "labels")
learning_at_once = those(lambda method: hasattr(method, "learn"))
of_pixels = those(lambda method: "pixels" in method.needs)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return remembering(load_backbone("tiny-vit"), FeatureCache(tmp_path_factory.mktemp("texts")))


def noise(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Pictures:
    """Noise in the place of pictures: what a method asks of each, fixed by its number.

    In every other picture there is nothing to find: its parts look like the whole.
    """

    def __init__(self, backbone):
        self.width, self.trunk_width = backbone.width, backbone.trunk_width
        self.tower_width = backbone.upper(1).width

    def __call__(self, it, rows):
        """Features of the pictures with these numbers: what the method needs, and no more."""
        needs, p = set(it.needs), GRID[0] * GRID[1]
        features = Features(
            pooled=self._units(rows, "whole"),
            patches=self._units(rows, "patches", p) if needs & DENSE else None,
            grid=GRID if needs & (DENSE | {"trunk", "ladder"}) else None,
            attention=self._all(rows, "looks", p, p).softmax(-1) if "attention" in needs else None,
            layers=self._layers(it, rows, p),
            beside=self._all(rows, "beside", p, self.tower_width) if "ladder" in needs else None,
        )
        while "views" in needs and (cut := it.cut(features)) is not None:
            cuts = cut if isinstance(cut, list) else [cut] * len(rows)
            assert len(cuts) == len(rows)
            features = replace(features, views=self._more(rows, cuts, features))
        return features

    def _layers(self, it, rows, p):
        """Tokens of the trunk, or those that enter the last blocks."""
        if "ladder" in it.needs:
            return {-1 - it.ladder[1]: self._all(rows, "entering", 1 + p, self.tower_width)}
        return {-1: self._all(rows, "tokens", p, self.trunk_width)} if "trunk" in it.needs else None

    def _more(self, rows, cuts, features):
        """Views seen so far and those that are asked for; what a picture lacks is the whole."""
        seen = [
            [self._part(row, box) for box in cut.boxes((96, 64), str(row))] if cut else []
            for row, cut in zip(rows, cuts, strict=True)
        ]
        most = max(len(parts) for parts in seen)
        assert most, "a method that wants no more says None"
        filled = [
            torch.stack(parts + [whole] * (most - len(parts)))
            for parts, whole in zip(seen, features.pooled, strict=True)
        ]
        before = [] if features.views is None else [features.views]
        return torch.cat([*before, torch.stack(filled)], dim=1)

    def _part(self, row, box):
        same = row % 2 == 0
        return self._units([row], "whole" if same else repr(box))[0]

    def _units(self, rows, what, *shape):
        return F.normalize(self._all(rows, what, *shape, self.width), dim=-1)

    def _all(self, rows, what, *shape):
        return torch.stack([noise(crc32(f"{row} {what}".encode()), *shape) for row in rows])


@pytest.fixture
def pictures(backbone):
    return Pictures(backbone)


def made(method, backbone, names=NAMES):
    """A method that has seen the pictures it learns from without labels, if it does."""
    torch.manual_seed(0)
    it = method(backbone, names).eval()
    if hasattr(it, "learn"):
        it.learn(Pictures(backbone)(it, range(100, 130)))
    return it


def scores(it, pictures, rows=range(8)):
    """Scores of the pictures with these numbers."""
    with torch.no_grad():
        return it(pictures(it, list(rows)))


def complaint(method, backbone, names):
    """What it says of these names; nothing where it takes them."""
    try:
        made(method, backbone, names)
    except (ConfigError, InputError) as error:
        return str(error)
    return ""


def trained(method, backbone, pictures):
    it = made(method, backbone)
    targets = torch.zeros(8, len(NAMES))
    targets[[0, 1, 2, 3, 3, 4, 4], [0, 1, 2, 0, 1, 1, 2]] = 1
    source = Labelled(pictures(it, range(8)), targets, targets == targets, size=8)
    epochs = 40 if "ladder" in it.needs else 400  # blocks of the tower are run again
    fit(it, source, objective=Objective(of_elements(binary)), epochs=epochs, learning_rate=0.03)
    return it, targets


@every
def test_one_finite_score_a_picture_and_name(method, backbone, pictures):
    found = scores(made(method, backbone), pictures)
    assert found.shape == (8, len(NAMES))
    assert found.isfinite().all()


@every
def test_pictures_in_another_order_get_the_same_scores(method, backbone, pictures):
    it, order = made(method, backbone), [3, 0, 7, 1, 6, 2, 5, 4]
    torch.testing.assert_close(scores(it, pictures, order), scores(it, pictures)[order])


@every
def test_each_picture_is_scored_on_its_own(method, backbone, pictures):
    it = made(method, backbone)
    alone = torch.cat([scores(it, pictures, [row]) for row in range(8)])
    torch.testing.assert_close(scores(it, pictures), alone)


@every
def test_identical_pictures_get_identical_scores(method, backbone, pictures):
    found = scores(made(method, backbone), pictures, [1, 1, 1])
    torch.testing.assert_close(found, found[:1].expand(3, -1))


@every
def test_the_same_pictures_get_the_same_scores_again(method, backbone, pictures):
    it = made(method, backbone)
    assert torch.equal(scores(it, pictures), scores(it, pictures))


@every
def test_permuting_the_names_permutes_the_columns(method, backbone, pictures):
    it, other = made(method, backbone), made(method, backbone, NAMES[::-1])
    torch.testing.assert_close(scores(it, pictures).flip(1), scores(other, pictures))


@of_open_vocabulary
def test_a_name_keeps_its_score_when_others_are_added(method, backbone, pictures):
    alone, among = made(method, backbone, NAMES[:1]), made(method, backbone)
    torch.testing.assert_close(scores(alone, pictures), scores(among, pictures)[:, :1])


@with_domains
@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:2]], ids=len)
def test_one_or_two_names_are_scored_or_refused_in_words(method, names, backbone, pictures):
    told = complaint(method, backbone, names)
    if told:
        assert re.search("needs? 3 (names )?or more", told)
    else:
        assert scores(made(method, backbone, names), pictures).isfinite().all()


@with_domains
@pytest.mark.parametrize("domain", ["softmax", "centred", "standardised"])
def test_two_names_within_the_list_are_refused(method, domain, backbone):
    with pytest.raises(ConfigError, match="needs 3 or more"):
        method(backbone, NAMES[:2], domain=domain)


@with_domains
def test_names_that_contain_each_other_are_two_names(method, backbone, pictures):
    names = ["cat", "cat food", "food", "dog|hot dog"]
    found = scores(made(method, backbone, names), pictures)
    assert found.isfinite().all()
    assert not torch.equal(found[:, 0], found[:, 1])


@of_vectors
def test_patches_are_scored_like_pictures(method, backbone, pictures):
    it = made(method, backbone)
    pooled = pictures._units(range(8), "whole")
    patches = Features(pooled[:2], pooled.view(2, 4, -1), (2, 2))
    torch.testing.assert_close(
        of_patches(it, patches).view(8, len(NAMES)), it(Features(pooled=pooled))
    )


@every
def test_the_state_alone_gives_the_same_scores_again(method, backbone, pictures):
    it = made(method, backbone)
    torch.manual_seed(0)
    other = method(backbone, NAMES).eval()
    with torch.no_grad():
        for p in it.parameters():
            p += 0.1
    other.load_state_dict(it.state_dict())
    assert torch.equal(scores(it, pictures), scores(other, pictures))


@every
def test_the_encoder_is_left_as_it_is(method, backbone, pictures):
    before = {k: v.clone() for k, v in backbone.model.state_dict().items()}
    scores(made(method, backbone), pictures)
    assert all(torch.equal(v, before[k]) for k, v in backbone.model.state_dict().items())
    assert not any(p.requires_grad for p in backbone.model.parameters())


@with_views
def test_every_view_has_its_own_scores(method, backbone, pictures):
    it = made(method, backbone)
    features = pictures(it, range(8))
    found = it.of_views(features)
    assert found.shape == (8, 1 + features.views.shape[1], len(NAMES))
    assert found.isfinite().all()


@with_views
def test_what_to_look_at_belongs_to_the_picture(method, backbone, pictures):
    it = made(method, backbone)
    together, alone = pictures(it, range(8)), pictures(it, [5])
    t = alone.views.shape[1]
    assert torch.equal(together.views[5:6, :t], alone.views)


@learning_at_once
def test_nothing_is_scored_before_pictures_were_seen(method, backbone, pictures):
    it = method(backbone, NAMES)
    with pytest.raises(NotFitted, match="fit"):
        it(pictures(it, range(2)))


@learning_at_once
def test_ten_pictures_are_enough_to_learn_from(method, backbone, pictures):
    it = method(backbone, NAMES)
    it.learn(pictures(it, range(10)))
    assert scores(it, pictures).isfinite().all()


@learning_at_once
def test_what_is_learnt_does_not_hang_on_the_order_of_the_pictures(method, backbone, pictures):
    it, other = method(backbone, NAMES), method(backbone, NAMES)
    it.learn(pictures(it, range(20)))
    other.learn(pictures(other, range(19, -1, -1)))
    torch.testing.assert_close(scores(it, pictures), scores(other, pictures), atol=1e-4, rtol=1e-4)


@learning_at_once
@pytest.mark.filterwarnings("ignore:These 10 pictures are alike")
def test_learning_from_identical_pictures_gives_finite_scores(method, backbone, pictures):
    it = method(backbone, NAMES)
    it.learn(pictures(it, [1] * 10))
    assert scores(it, pictures).isfinite().all()


@learning
def test_learns_eight_pictures_by_heart(method, backbone, pictures):
    it, targets = trained(method, backbone, pictures)
    assert torch.equal(scores(it, pictures) > 0, targets.bool())


@learning
def test_training_leaves_the_texts_and_the_encoder_alone(method, backbone, pictures):
    before = backbone.texts(NAMES, ["a photo of a {}."]).clone()
    it, _ = trained(method, backbone, pictures)
    assert torch.equal(backbone.texts(NAMES, ["a photo of a {}."]), before)
    for name, buffer in it.named_buffers():
        if re.search("running_|num_batches", name):  # batch norms count along
            continue
        assert torch.equal(buffer, dict(made(method, backbone).named_buffers())[name])


@learning
def test_same_seed_same_answer(method, backbone, pictures):
    first, second = (trained(method, backbone, pictures)[0] for _ in range(2))
    assert torch.equal(scores(first, pictures), scores(second, pictures))


@pytest.fixture(scope="module")
def small():
    return load_backbone("timm:test_vit", pretrained=False, size=32)


@pytest.fixture
def pixels(small):
    drawn = noise(1, 8, 3, 32, 32)
    return Features(small.images(drawn).pooled, pixels=drawn)


def started(method, small, pixels, names=NAMES):
    it, known = made(method, small, names), torch.ones(8, len(names), dtype=torch.bool)
    it.start(Features(pixels.pooled), known.float().tril(), known, Sigmoid())
    with torch.no_grad():
        for p in it.head.parameters():
            p += torch.arange(len(names)).view(-1, *[1] * (p.ndim - 1)) / 100
    return it


@of_pixels
def test_pixels_are_scored_picture_by_picture_as_their_vectors_are(method, small, pixels):
    it = started(method, small, pixels)
    together = it(pixels)
    alone = torch.cat([it(Features(pixels.pooled[:0], pixels=x[None])) for x in pixels.pixels])
    assert together.shape == (8, len(NAMES))
    torch.testing.assert_close(alone, together, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(it(Features(pixels.pooled)), together, atol=1e-4, rtol=1e-4)


@of_pixels
def test_a_network_is_trained_and_the_frozen_encoder_is_not(method, small, pixels):
    it, mark = started(method, small, pixels), small.fingerprint
    before = [p.detach().clone() for p in it.network.parameters()]
    it(pixels).square().mean().backward()
    torch.optim.SGD(it.parameters(), lr=0.1).step()
    after = it.network.parameters()
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    tuned = it.tuned()
    assert tuned.fingerprint != mark
    assert not any(p.requires_grad for p in tuned.model.parameters())
    torch.testing.assert_close(small.images(pixels.pixels).pooled, pixels.pooled)
