"""What every method must do. A new line in METHODS is tested here with no more work."""

import re
from copy import deepcopy
from dataclasses import replace
from functools import cache
from zlib import crc32

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.features import FeatureCache, add_text_feature_cache
from surelabel.links import Sigmoid
from surelabel.losses import binary
from surelabel.methods import (
    METHODS,
    SCORE_DOMAINS,
    AddsTrainingLosses,
    EstimatesPairUncertainty,
    FitsTargets,
    LearnsFromImages,
    LearnsFromTargets,
    LocalizesLabels,
    MatchesRegions,
    Method,
    ScalesLearningRates,
    ScoresPairs,
    TrainsEncoder,
    TrainsSeveralHeads,
    TunesTexts,
    UsesLadder,
    UsesViews,
    check_method_contract,
    copy_method_fit,
    score_patches_with_any_method,
)
from surelabel.records import Features
from surelabel.tables import table_entry_settings
from surelabel.training import (
    FeatureBatches,
    Objective,
    PairBatches,
    objective_mean_over_known,
    run_training_loop,
)
from surelabel.transport import TRANSPORTS

NAMES = ["lion", "guitar", "pizza", "bus"]
GRID = (3, 4)
DENSE = {"patches", "self_aware", "attention", "multi_layer"}


def those(condition):
    """Run a test over the methods for which a condition holds."""
    chosen = [pytest.param(m, id=name) for name, m in METHODS.items() if condition(m)]
    return pytest.mark.parametrize("method", chosen)


def settings_of_open_vocabulary():
    """Return each open-vocabulary method with defaults, each score domain and each transport."""
    tables = {"domain": SCORE_DOMAINS, "transport": TRANSPORTS}
    for name, method in METHODS.items():
        if not method.open_vocabulary:
            continue
        yield pytest.param(method, {}, id=name)
        for setting, table in tables.items():
            for value in table if setting in table_entry_settings(method) else ():
                settings = {setting: value}
                if value == "cosine" and "background" in table_entry_settings(method):
                    settings["background"] = "none"  # refused otherwise
                yield pytest.param(method, settings, id=f"{name}-{value}")


every = those(lambda method: True)
with_domains = those(lambda method: "domain" in table_entry_settings(method))
with_views = those(lambda method: "views" in method.needs)
of_vectors = those(lambda method: not set(method.needs) - {"views", "pixels"})
of_open_vocabulary = pytest.mark.parametrize(
    ("method", "settings"), list(settings_of_open_vocabulary())
)
with_independent_labels = those(
    lambda method: (
        method.open_vocabulary and table_entry_settings(method).get("domain") in (None, "reference")
    )
)
learning = those(
    lambda method: method.learns_from == "labels" and not issubclass(method, FitsTargets)
)
fitted_at_once = those(lambda method: issubclass(method, FitsTargets))
learning_from_texts = those(lambda method: method.learns_from == "texts")
learning_from_pairs = those(lambda method: method.learns_from == "pairs")
learning_at_once = those(lambda method: issubclass(method, LearnsFromImages))
with_heads = those(lambda method: issubclass(method, TrainsSeveralHeads))
of_pixels = those(lambda method: "pixels" in method.needs)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return add_text_feature_cache(
        load_encoder("tiny-vit"), FeatureCache(tmp_path_factory.mktemp("texts"))
    )


@pytest.fixture(scope="module")
def weights(encoder):
    """Copy the weights of the encoder."""
    return {k: v.clone() for k, v in encoder.model.state_dict().items()}


@cache
def noise(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Images:
    """Noise in the place of images: what a method asks of each, fixed by its number.

    In every other image there is nothing to find: its parts look like the whole.
    """

    def __init__(self, encoder):
        self.width, self.trunk_width = encoder.width, encoder.trunk_width
        self.tower_width = encoder.last_blocks(1).width
        self.multi_layer_shape = encoder.multi_layer_shape

    def __call__(self, it, rows):
        """Features of the images with these numbers: what the method needs, and no more."""
        needs, p = set(it.needs), GRID[0] * GRID[1]
        features = Features(
            pooled=self._units(rows, "whole"),
            patches=self._units(rows, "patches", p) if needs & DENSE else None,
            grid=GRID if needs & (DENSE | {"trunk", "ladder"}) else None,
            attention=self._all(rows, "looks", p, p).softmax(-1) if "attention" in needs else None,
            layers=self._layers(it, rows, p),
            multi_layer=self._all(rows, "outputs", p, *self.multi_layer_shape)
            if "multi_layer" in needs
            else None,
            self_aware_sum=self._all(rows, "beside", p, self.tower_width)
            if "ladder" in needs
            else None,
        )
        while "views" in needs and (cut := it.next_views(features)) is not None:
            cuts = cut if isinstance(cut, list) else [cut] * len(rows)
            assert len(cuts) == len(rows)
            features = replace(features, views=self._more(rows, cuts, features))
        return features

    def _layers(self, it, rows, p):
        """Tokens of the trunk, or those that enter the last blocks."""
        if "ladder" in it.needs:
            return {-1 - it.ladder_blocks[1]: self._all(rows, "entering", 1 + p, self.tower_width)}
        return {-1: self._all(rows, "tokens", p, self.trunk_width)} if "trunk" in it.needs else None

    def _more(self, rows, cuts, features):
        """Views seen so far and those that are asked for; what an image lacks is the whole."""
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


images_of = cache(Images)  # its widths come from passes of the encoder


@pytest.fixture(scope="module")
def images(encoder):
    return images_of(encoder)


def made(method, encoder, names=NAMES, **settings):
    """A method that has seen the images it is fitted on at once, if it is."""
    if issubclass(method, FitsTargets) and not settings:
        return deepcopy(fitted_once(method, encoder, tuple(names)), {id(encoder): encoder})
    torch.manual_seed(0)
    it = method(encoder, names, **settings).eval()
    if isinstance(it, LearnsFromImages):
        it.fit_unlabelled(images_of(encoder)(it, range(100, 130)))
    return it


@cache
def fitted_once(method, encoder, names):
    """Fit a method at once on targets of its names. Tests get copies, so they may change them."""
    torch.manual_seed(0)
    it = method(encoder, list(names)).eval()
    of_names = [(noise(crc32(name.encode()), 30) > 0.5).float() for name in names]
    targets = torch.stack(of_names, dim=1)
    it.fit_targets(images_of(encoder)(it, range(100, 130)), targets, targets >= 0, seed=0)
    return it


def scores(it, images, rows=range(8)):
    """Scores of the images with these numbers."""
    with torch.no_grad():
        return it(images(it, list(rows)))


def complaint(method, encoder, names):
    """What it says of these names; nothing where it takes them."""
    try:
        made(method, encoder, names)
    except (ConfigError, InputError) as error:
        return str(error)
    return ""


def objective_of(it):
    """Return binary cross-entropy, with the additional losses of the method."""
    losses = it if isinstance(it, AddsTrainingLosses) else None
    return Objective(objective_mean_over_known(binary), method=losses)


def trained(method, encoder, images, epochs, learning_rate=0.03):
    it = made(method, encoder)
    targets = torch.zeros(8, len(NAMES))
    targets[[0, 1, 2, 3, 3, 4, 4], [0, 1, 2, 0, 1, 1, 2]] = 1
    source = FeatureBatches(images(it, range(8)), targets, targets == targets, batch_size=8)
    run_training_loop(
        it,
        source,
        objective=objective_of(it),
        epochs=epochs,
        learning_rate=learning_rate,
    )
    return it, targets


@pytest.mark.parametrize("name", METHODS)
def test_an_entry_has_every_member_that_its_use_requires(name):
    assert check_method_contract(name, METHODS[name]) is None


@every
def test_abilities_are_those_that_needs_and_data_ask_for(method, encoder):
    it = made(method, encoder)
    assert isinstance(it, Method)
    assert isinstance(it, UsesViews) == ("views" in it.needs)
    assert isinstance(it, UsesLadder) == ("ladder" in it.needs)
    assert isinstance(it, TrainsEncoder) == ("pixels" in it.needs)
    learns = [isinstance(it, LearnsFromTargets), isinstance(it, LearnsFromImages)]
    learns.append(isinstance(it, FitsTargets))
    learns.append(it.learns_from == "pairs" and isinstance(it, ScoresPairs))
    assert sum(learns) == (it.learns_from != "nothing")
    learns_from_targets = isinstance(it, LearnsFromTargets | FitsTargets)
    assert it.learns_from not in ("labels", "texts") or learns_from_targets
    assert it.learns_from == "labels" or not isinstance(it, FitsTargets)
    assert not isinstance(it, MatchesRegions) or isinstance(it, LocalizesLabels)


@every
def test_scaled_learning_rates_name_modules_of_the_method(method, encoder):
    it = made(method, encoder)
    scales = it.learning_rate_scales if isinstance(it, ScalesLearningRates) else {}
    assert scales.keys() <= dict(it.named_modules()).keys()


@every
def test_every_method_can_localize(method, encoder, images):
    it = made(method, encoder)
    if isinstance(it, LocalizesLabels):
        maps = it.heat_maps(images(it, range(8)))
        assert maps.shape[:2] == (8, len(NAMES))
        if set(it.needs) & (DENSE | {"trunk", "ladder"}):  # else: the grid of the views
            assert maps.shape[2:] == GRID
    else:
        pooled = images._units(range(8), "whole")
        patches = Features(pooled[:2], pooled.view(2, 4, -1), (2, 2))
        maps = score_patches_with_any_method(it, patches)
        assert maps.shape == (2, 4, len(NAMES))
    assert maps.isfinite().all()


@with_heads
def test_every_head_has_one_finite_score_an_image_and_name(method, encoder, images):
    it = made(method, encoder)
    features, targets = images(it, range(8)), torch.ones(8, len(NAMES))
    heads = it.training_scores(features, targets, targets > 0)
    assert heads.shape[1:] == targets.shape
    assert heads.isfinite().all()


@every
def test_one_finite_score_an_image_and_name(method, encoder, images):
    found = scores(made(method, encoder), images)
    assert found.shape == (8, len(NAMES))
    assert found.isfinite().all()


@every
def test_images_in_another_order_get_the_same_scores(method, encoder, images):
    it, order = made(method, encoder), [3, 0, 7, 1, 6, 2, 5, 4]
    torch.testing.assert_close(scores(it, images, order), scores(it, images)[order])


@every
def test_each_image_is_scored_on_its_own(method, encoder, images):
    it = made(method, encoder)
    alone = torch.cat([scores(it, images, [row]) for row in range(8)])
    torch.testing.assert_close(scores(it, images), alone)


@every
def test_identical_images_get_identical_scores(method, encoder, images):
    found = scores(made(method, encoder), images, [1, 1, 1])
    torch.testing.assert_close(found, found[:1].expand(3, -1))


@every
def test_the_same_images_get_the_same_scores_again(method, encoder, images):
    it = made(method, encoder)
    assert torch.equal(scores(it, images), scores(it, images))


@every
def test_permuting_the_names_permutes_the_columns(method, encoder, images):
    it, other = made(method, encoder), made(method, encoder, NAMES[::-1])
    torch.testing.assert_close(scores(it, images).flip(1), scores(other, images))


@of_open_vocabulary
def test_added_labels_change_the_scores_of_other_labels_only_if_the_method_declares_it(
    method, settings, encoder, images
):
    few = made(method, encoder, **settings)
    many = made(method, encoder, ["cow", *NAMES, "sky", "coffee"], **settings)
    copy_method_fit(few, many, encoder)
    before, after = scores(few, images), scores(many, images)[:, 1 : 1 + len(NAMES)]
    is_equal = torch.allclose(before, after, rtol=0, atol=1e-5)
    assert is_equal != few.scores_depend_on_other_labels
    assert many.scores_depend_on_other_labels == few.scores_depend_on_other_labels


@with_independent_labels
def test_a_label_of_the_fit_keeps_its_score_without_the_others(method, encoder, images):
    it = made(method, encoder)
    one = made(method, encoder, NAMES[2:3])
    copy_method_fit(it, one, encoder)
    torch.testing.assert_close(scores(one, images), scores(it, images)[:, 2:3], rtol=0, atol=1e-5)


@with_domains
@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:2]], ids=len)
def test_one_or_two_names_are_scored_or_refused_in_words(method, names, encoder, images):
    told = complaint(method, encoder, names)
    if told:
        assert re.search("needs? 3 (labels )?or more", told)
    else:
        assert scores(made(method, encoder, names), images).isfinite().all()


@with_domains
@pytest.mark.parametrize("domain", ["softmax", "centred", "standardized"])
def test_two_names_within_the_list_are_refused(method, domain, encoder):
    with pytest.raises(ConfigError, match="needs 3 or more"):
        method(encoder, NAMES[:2], domain=domain)


@with_domains
def test_names_that_contain_each_other_are_two_names(method, encoder, images):
    names = ["cat", "cat food", "food", "dog|hot dog"]
    found = scores(made(method, encoder, names), images)
    assert found.isfinite().all()
    assert not torch.equal(found[:, 0], found[:, 1])


@of_vectors
def test_patches_are_scored_like_images(method, encoder, images):
    it = made(method, encoder)
    pooled = images._units(range(8), "whole")
    patches = Features(pooled[:2], pooled.view(2, 4, -1), (2, 2))
    torch.testing.assert_close(
        score_patches_with_any_method(it, patches).view(8, len(NAMES)), it(Features(pooled=pooled))
    )


@every
def test_the_state_alone_gives_the_same_scores_again(method, encoder, images):
    it = made(method, encoder)
    torch.manual_seed(0)
    other = method(encoder, NAMES).eval()
    with torch.no_grad():
        for p in it.parameters():
            p += 0.1
    other.load_state_dict(it.state_dict())
    assert torch.equal(scores(it, images), scores(other, images))


@every
def test_the_encoder_is_left_as_it_is(method, encoder, weights, images):
    scores(made(method, encoder), images)
    assert all(torch.equal(v, weights[k]) for k, v in encoder.model.state_dict().items())
    assert not any(p.requires_grad for p in encoder.model.parameters())


@with_views
def test_every_view_has_its_own_scores(method, encoder, images):
    it = made(method, encoder)
    features = images(it, range(8))
    found = it.view_scores(features)
    assert found.shape == (8, 1 + features.views.shape[1], len(NAMES))
    assert found.isfinite().all()


@with_views
def test_the_largest_number_of_views_is_known_before_an_image_is_encoded(method, encoder, images):
    it = made(method, encoder)
    n_views = images(it, range(8)).views.shape[1]
    assert min(it.max_views, len(NAMES)) <= n_views <= it.max_views  # each window has another label


@with_views
def test_what_to_look_at_belongs_to_the_image(method, encoder, images):
    it = made(method, encoder)
    together, alone = images(it, range(8)), images(it, [5])
    t = alone.views.shape[1]
    assert torch.equal(together.views[5:6, :t], alone.views)


@learning_at_once
def test_nothing_is_scored_before_images_were_seen(method, encoder, images):
    it = method(encoder, NAMES)
    with pytest.raises(NotFitted, match="fit"):
        it(images(it, range(2)))


@learning_at_once
def test_ten_images_are_enough_to_learn_from(method, encoder, images):
    it = method(encoder, NAMES)
    it.fit_unlabelled(images(it, range(10)))
    assert scores(it, images).isfinite().all()


@learning_at_once
def test_what_is_learnt_does_not_hang_on_the_order_of_the_images(method, encoder, images):
    it, other = method(encoder, NAMES), method(encoder, NAMES)
    it.fit_unlabelled(images(it, range(20)))
    other.fit_unlabelled(images(other, range(19, -1, -1)))
    torch.testing.assert_close(scores(it, images), scores(other, images), atol=1e-4, rtol=1e-4)


@learning_at_once
@pytest.mark.filterwarnings("ignore:The 10 images have equal scores")
def test_learning_from_identical_images_gives_finite_scores(method, encoder, images):
    it = method(encoder, NAMES)
    it.fit_unlabelled(images(it, [1] * 10))
    assert scores(it, images).isfinite().all()


TARGETS_OF_EIGHT = torch.zeros(8, len(NAMES)).index_put(
    (torch.tensor([0, 1, 2, 3, 3, 4, 4]), torch.tensor([0, 1, 2, 0, 1, 1, 2])), torch.tensor(1.0)
)


def fitted(method, encoder, images, known=None, seed=0, targets=TARGETS_OF_EIGHT):
    it = method(encoder, NAMES)
    known = torch.ones(8, len(NAMES), dtype=torch.bool) if known is None else known
    it.fit_targets(images(it, range(8)), targets, known, seed)
    return it


@fitted_at_once
def test_a_fit_at_once_predicts_eight_images_and_has_log_odds(method, encoder, images):
    found = scores(fitted(method, encoder, images), images)
    assert torch.equal(found > 0, TARGETS_OF_EIGHT > 0)
    assert found.abs().max() <= 40


@fitted_at_once
def test_nothing_is_scored_before_targets_were_seen(method, encoder, images):
    it = method(encoder, NAMES)
    with pytest.raises(NotFitted, match="fit"):
        it(images(it, range(2)))


@fitted_at_once
def test_the_same_seed_gives_the_same_fit_whatever_was_fitted_before(method, encoder, images):
    first, again = (fitted(method, encoder, images, seed=3) for _ in range(2))
    again.fit_targets(images(again, range(4)), TARGETS_OF_EIGHT[:4], TARGETS_OF_EIGHT[:4] >= 0, 1)
    again.fit_targets(images(again, range(8)), TARGETS_OF_EIGHT, TARGETS_OF_EIGHT >= 0, 3)
    other, new_images = fitted(method, encoder, images, seed=4), range(8, 16)
    assert torch.equal(scores(first, images, new_images), scores(again, images, new_images))
    assert not torch.equal(scores(first, images, new_images), scores(other, images, new_images))


@fitted_at_once
def test_unknown_targets_of_a_fit_at_once_have_no_influence(method, encoder, images):
    known = TARGETS_OF_EIGHT.roll(1, dims=0) == 0
    known[:, 0], known[6] = True, False
    one = fitted(method, encoder, images, known)
    changed = torch.where(known, TARGETS_OF_EIGHT, 1 - TARGETS_OF_EIGHT)
    other = fitted(method, encoder, images, known, targets=changed)
    assert torch.equal(scores(one, images), scores(other, images))


@fitted_at_once
def test_a_label_with_one_class_or_none_has_the_log_odds_of_its_smoothed_prevalence(
    method, encoder, images
):
    targets, known = TARGETS_OF_EIGHT.clone(), TARGETS_OF_EIGHT >= 0
    targets[:, 1], targets[:, 2], known[:, 3] = 1, 0, False
    for is_complete in (False, True):
        known[:, 3] = is_complete
        found = scores(fitted(method, encoder, images, known, targets=targets), images)
        assert torch.equal(found[:, 1:] - found[:1, 1:], torch.zeros(8, 3))
        assert found[0, 1] > 2
        assert found[0, 2] < -2
        assert is_complete or found[0, 3] == 0


@learning
def test_learns_eight_images_by_heart_and_leaves_the_texts_and_the_encoder_alone(
    method, encoder, images
):
    before = encoder.encode_labels(NAMES, ["a photo of a {}."]).clone()
    tunes_texts = isinstance(made(method, encoder), TunesTexts)
    for epochs in (20, 80):  # most methods need few
        it, targets = trained(method, encoder, images, epochs, 0.15 if tunes_texts else 0.03)
        if torch.equal(scores(it, images) > 0, targets.bool()):
            break
    assert torch.equal(scores(it, images) > 0, targets.bool())
    assert torch.equal(encoder.encode_labels(NAMES, ["a photo of a {}."]), before)
    for name, buffer in it.named_buffers():
        if re.search("running_|num_batches", name):  # batch norms count along
            continue
        assert torch.equal(buffer, dict(made(method, encoder).named_buffers())[name])


@learning
def test_same_seed_same_answer(method, encoder, images):
    first, second = (trained(method, encoder, images, epochs=4)[0] for _ in range(2))
    assert torch.equal(scores(first, images), scores(second, images))
    assert not torch.allclose(scores(first, images), scores(made(method, encoder), images))


SENTENCES = {  # texts to learn from, with the columns of their labels
    "a lion.": [0],
    "the guitar on a hill": [1],
    "a photo of a pizza.": [2],
    "the bus stops": [3],
    "a lion beside a guitar": [0, 1],
    "a large pizza and a small bus": [2, 3],
    "a guitar, and nothing else": [1],
    "a lion eats a pizza in the bus.": [0, 2, 3],
}


def trained_on_texts(method, encoder, epochs):
    it, features = made(method, encoder), encoder.encode_sentence_tokens(list(SENTENCES))
    targets = torch.zeros(8, len(NAMES))
    for row, columns in enumerate(SENTENCES.values()):
        targets[row, columns] = 1
    it.initialize(features, targets, targets == targets, Sigmoid())
    run_training_loop(
        it,
        FeatureBatches(features, targets, targets == targets, batch_size=8),
        objective=objective_of(it),
        epochs=epochs,
        learning_rate=0.02,
    )
    return it, features, targets


@learning_from_texts
def test_learns_eight_sentences_by_heart(method, encoder):
    it, features, targets = trained_on_texts(method, encoder, epochs=25)
    known = targets == targets
    with torch.no_grad():
        heads = (
            it.training_scores(features, targets, known)
            if isinstance(it, TrainsSeveralHeads)
            else it(features)[None]
        )
    assert torch.equal(heads.mean(0) > 0, targets.bool())


@learning_from_texts
def test_training_on_texts_leaves_the_encoder_alone_and_repeats(method, encoder, images):
    before = encoder.encode_labels(NAMES, ["a photo of a {}."]).clone()
    first, second = (trained_on_texts(method, encoder, epochs=3)[0] for _ in range(2))
    assert torch.equal(encoder.encode_labels(NAMES, ["a photo of a {}."]), before)
    assert torch.equal(scores(first, images), scores(second, images))
    assert not torch.allclose(scores(first, images), scores(made(method, encoder), images))


CAPTION_IMAGES = torch.tensor([0, 0, 1, 2, 3, 4, 5, 6])  # image of each sentence


def trained_on_pairs(method, encoder, images, epochs):
    it, texts = made(method, encoder), encoder.encode_sentence_tokens(list(SENTENCES))
    run_training_loop(
        it,
        PairBatches(images(it, range(7)), texts, CAPTION_IMAGES, torch.arange(8), batch_size=8),
        objective=objective_of(it),
        epochs=epochs,
        learning_rate=0.02,
    )
    return it, texts


@learning_from_pairs
@pytest.mark.filterwarnings("ignore:.*(variance|probabilit)")
def test_learns_eight_captions_by_heart(method, encoder, images):
    it, texts = trained_on_pairs(method, encoder, images, epochs=100)
    with torch.no_grad():
        found = it.pair_scores(images(it, range(7)), texts)
    assert torch.equal(found.argmax(0), CAPTION_IMAGES)


@learning_from_pairs
@pytest.mark.filterwarnings("ignore:.*(variance|probabilit)")
def test_training_on_pairs_leaves_the_encoder_alone_and_repeats(method, encoder, images):
    before = encoder.encode_labels(NAMES, ["a photo of a {}."]).clone()
    first, second = (trained_on_pairs(method, encoder, images, epochs=3)[0] for _ in range(2))
    assert torch.equal(encoder.encode_labels(NAMES, ["a photo of a {}."]), before)
    assert torch.equal(scores(first, images), scores(second, images))
    assert not torch.allclose(scores(first, images), scores(made(method, encoder), images))


@learning_from_pairs
def test_a_pair_is_scored_without_the_others(method, encoder, images):
    it, texts = made(method, encoder), encoder.encode_sentence_tokens(list(SENTENCES))
    both = [it.pair_scores]
    if isinstance(it, EstimatesPairUncertainty):
        both.append(it.pair_variances)
    short = Features(
        texts.pooled[1:3], patches=texts.patches[1:3], patch_mask=texts.patch_mask[1:3]
    )
    for function in both:
        with torch.no_grad():
            together = function(images(it, range(8)), texts)
            alone = function(images(it, [5]), short)
        assert together.shape == (8, 8)
        assert together.isfinite().all()
        torch.testing.assert_close(together[5:6, 1:3], alone, atol=1e-5, rtol=1e-5)


@learning_from_pairs
def test_labels_are_scored_like_their_sentences(method, encoder, images):
    it = made(method, encoder)
    sentences = [f"a photo of a {name}." for name in NAMES]
    with torch.no_grad():
        found = it.pair_scores(images(it, range(8)), encoder.encode_sentence_tokens(sentences))
    torch.testing.assert_close(found, scores(it, images), atol=2e-2, rtol=2e-2)


@learning_from_pairs
def test_pairs_can_be_learned_without_labels(method, encoder, images):
    it = method(encoder, [])
    assert scores(it, images).shape == (8, 0)
    assert it.pair_scores(images(it, [1]), encoder.encode_sentence_tokens(["a lion"])).numel() == 1


@pytest.fixture(scope="module")
def small():
    return load_encoder("timm:test_vit", pretrained=False, size=32)


@pytest.fixture
def pixels(small):
    drawn = noise(1, 8, 3, 32, 32)
    return Features(small.encode_images(drawn).pooled, pixels=drawn)


def started(method, small, pixels, names=NAMES):
    it, known = made(method, small, names), torch.ones(8, len(names), dtype=torch.bool)
    it.initialize(Features(pixels.pooled), known.float().tril(), known, Sigmoid())
    with torch.no_grad():
        for p in it.head.parameters():
            p += torch.arange(len(names)).view(-1, *[1] * (p.ndim - 1)) / 100
    return it


@of_pixels
def test_pixels_are_scored_image_by_image_as_their_vectors_are(method, small, pixels):
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
    tuned = it.finetuned_encoder()
    assert tuned.fingerprint != mark
    assert not any(p.requires_grad for p in tuned.model.parameters())
    torch.testing.assert_close(small.encode_images(pixels.pixels).pooled, pixels.pooled)
