import math
import os
import signal

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from surelabel.data import open_image
from surelabel.encoders import load_encoder
from surelabel.errors import InputError
from surelabel.losses import binary
from surelabel.pseudolabels import CutAndSew
from surelabel.training import (
    Checkpoint,
    CutAndSewSource,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)
from surelabel.training.cut_and_sew_source import augment_for_cut_and_sew_source
from surelabel.views import (
    paste_sewing_overlays,
    sample_sewing_overlay_boxes,
    sample_sewing_overlays,
)

SIDE = 48  # 4 by 4 tokens
LABELS = torch.randn(5, 3, generator=torch.Generator().manual_seed(9)) * 3


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit").with_image_size(SIDE)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, draws = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for i in range(5):
        pixels = draws.integers(256, size=(40 + 5 * i, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.png")
    return [str(folder / f"{i}.png") for i in range(5)]


@pytest.fixture
def source(encoder, files):
    def make(labels=LABELS, patches=(1, 3, 4), size=2, workers=0, **settings):
        return CutAndSewSource(
            files,
            labels,
            torch.tensor(patches),
            encoder=encoder,
            sewing=CutAndSew(**settings),
            batch_size=size,
            workers=workers,
        )

    return make


def one_pass(source, seed=0):
    return list(source.batches(torch.Generator().manual_seed(seed)))


def canvases_of(batch):
    return [
        [int(batch.estimator_batch.rows[p]) for p in canvas]
        for canvas in batch.estimator_batch.canvases
    ]


@pytest.mark.parametrize(
    "settings", [{}, {"max_overlays": 3, "overlay_probability": 0.3, "variant": "paper"}]
)
def test_a_canvas_is_what_sewing_makes_of_its_images(source, encoder, files, settings):
    for seed in range(4):
        rows, views = source(overlay_scale=0.5, **settings).make_canvas(2, seed)
        draws = torch.Generator().manual_seed(seed)
        most = settings.get("max_overlays", 1)
        places = sample_sewing_overlays(
            3, generator=draws, **({"max_overlays": most} | _without_overlays(settings))
        )
        main, *rest = images = [open_image(files[r], min_side=SIDE) for r in rows]
        assert rows == [2, *((1, 3, 4)[place] for place in places)]
        boxes = sample_sewing_overlay_boxes(
            main.size,
            [image.size for image in rest],
            generator=draws,
            overlay_scale=0.5,
            max_overlays=most,
            variant=settings.get("variant", "code"),
        )
        by_hand = paste_sewing_overlays(main, rest, boxes)
        assert np.array_equal(views[0], encoder.preprocess(by_hand))
        assert len(images) == len(boxes) + 1


def _without_overlays(settings):
    return {key: value for key, value in settings.items() if key != "max_overlays"}


def test_every_image_is_the_canvas_once_a_pass(source):
    batches = one_pass(source())
    assert len(batches) == len(source()) == 3
    assert sorted(c[0] for b in batches for c in canvases_of(b)) == [0, 1, 2, 3, 4]


def test_targets_are_the_greatest_of_the_images_on_a_canvas(source):
    for batch in one_pass(source(max_overlays=2, overlay_probability=0.2)):
        canvases = canvases_of(batch)
        for row, canvas in enumerate(canvases):
            for c in range(3):
                greatest = max(float(LABELS[r, c]) for r in canvas)
                target = 1 / (1 + math.exp(-greatest))
                assert float(batch.targets[row, c]) == pytest.approx(target, abs=1e-6)
                assert batch.targets[len(canvases) + row, c] == batch.targets[row, c]


def test_a_batch_holds_weak_views_then_strong_ones_with_their_weight(source, encoder):
    it = source(strong_view_weight=0.3)
    batch = one_pass(it)[0]
    assert batch.weights.tolist() == pytest.approx([1, 1, 0.3, 0.3])
    assert batch.known.all()
    assert batch.features.layers[-1].shape == (4, 16, encoder.trunk_width)
    assert not batch.targets.requires_grad
    draws = torch.Generator().manual_seed(0)
    order = torch.randperm(5, generator=draws).tolist()
    seeds = torch.randint(2**62, (5,), generator=draws).tolist()
    views = [it.make_canvas(order[i], seeds[i])[1] for i in range(2)]
    pixels = torch.from_numpy(np.stack([views[0][0], views[1][0], views[0][1], views[1][1]]))
    assert torch.equal(encoder.encode_trunk_tokens(pixels).layers[-1], batch.features.layers[-1])


def test_without_weight_there_is_no_strong_view_and_without_overlays_no_sewing(source, encoder):
    it = source(strong_view_weight=0.0, max_overlays=0)
    for batch in one_pass(it):
        assert batch.weights.tolist() == [1.0] * len(batch.targets)
        for row, (only,) in enumerate(canvases_of(batch)):
            assert torch.equal(batch.targets[row], LABELS[only].sigmoid())


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_seed_gives_the_same_steps_however_many_workers(source, workers):
    for alone, several in zip(one_pass(source()), one_pass(source(workers=workers)), strict=True):
        assert torch.equal(alone.features.layers[-1], several.features.layers[-1])
        assert torch.equal(alone.targets, several.targets)


def test_a_canvas_whose_processes_are_killed_is_left_out_and_the_others_stay(
    source, files, monkeypatch
):
    whole = one_pass(source(workers=0))

    def open_unless_marked(path, *, min_side):
        if path == files[2]:  # no overlay candidate: on one canvas only
            os.kill(os.getpid(), signal.SIGKILL)
        return open_image(path, min_side=min_side)

    monkeypatch.setattr("surelabel.training.cut_and_sew_source.open_image", open_unless_marked)
    with pytest.warns(UserWarning, match=r"2\.png \(with .*[134]\.png\) is left out") as caught:
        batches = one_pass(source(workers=1))
    assert len(caught) == 1
    for batch, complete in zip(batches, whole, strict=True):
        canvases = canvases_of(complete)
        keep = [i for i, canvas in enumerate(canvases) if canvas[0] != 2]
        keep_views = [*keep, *(i + len(canvases) for i in keep)]
        assert torch.equal(batch.targets, complete.targets[keep_views])
        if keep:
            assert canvases_of(batch) == [canvases[i] for i in keep]
            torch.testing.assert_close(
                batch.features.layers[-1], complete.features.layers[-1][keep_views]
            )


def test_the_strong_view_is_mirrored_about_half_the_time_and_always_the_same():
    edge = Image.fromarray(np.repeat(np.array([[0] * 32 + [255] * 32], np.uint8), 64, 0))
    image, before = edge.convert("RGB"), torch.random.get_rng_state()
    varied = [augment_for_cut_and_sew_source(image, side=64, seed=seed) for seed in range(60)]
    assert torch.equal(torch.random.get_rng_state(), before)
    darker_left = sum(np.asarray(v)[:, :32].mean() < np.asarray(v)[:, 32:].mean() for v in varied)
    assert 15 < darker_left < 45
    assert all(v.size == (64, 64) for v in varied)
    again = augment_for_cut_and_sew_source(image, side=64, seed=7)
    assert np.array_equal(np.asarray(again), np.asarray(varied[7]))


def test_a_large_image_is_reduced_before_it_is_varied():
    assert augment_for_cut_and_sew_source(Image.new("RGB", (300, 120)), side=60, seed=0).size == (
        150,
        60,
    )
    assert augment_for_cut_and_sew_source(Image.new("RGB", (30, 12)), side=60, seed=0).size == (
        30,
        12,
    )


def by_hand(labels, steps, rate, decay):
    """Labels after Adam's steps of single rows, in plain loops."""
    z = labels.double().numpy().copy()
    mean, square, count = np.zeros_like(z), np.zeros_like(z), np.zeros(len(z))
    for canvases, said in steps:
        gradient = np.zeros_like(z)
        for canvas, row in zip(canvases, said, strict=True):
            for c in range(z.shape[1]):
                source = max(canvas, key=lambda r, c=c: z[r, c])
                pull = 1 / (1 + np.exp(-z[source, c])) - 1 / (1 + np.exp(-row[c]))
                gradient[source, c] += pull / said.size
        for r in sorted({r for canvas in canvases for r in canvas}):
            count[r] += 1
            mean[r] = 0.9 * mean[r] + 0.1 * gradient[r]
            square[r] = 0.999 * square[r] + 0.001 * gradient[r] ** 2
            fair_mean = mean[r] / (1 - 0.9 ** count[r])
            fair_square = square[r] / (1 - 0.999 ** count[r])
            z[r] = (1 - rate * decay) * z[r] - rate * fair_mean / (np.sqrt(fair_square) + 1e-8)
    return z


def test_labels_learn_as_plain_loops_say(source):
    it = source(
        LABELS.double(),
        label_learning_rate=0.2,
        label_weight_decay=0.5,
        max_overlays=2,
        overlay_probability=0.3,
    )
    draws, steps = torch.Generator().manual_seed(1), []
    for seed in range(3):
        for batch in it.batches(torch.Generator().manual_seed(seed)):
            scores = torch.randn(*batch.targets.shape, generator=draws)
            it.update_targets(batch, scores)
            half = len(batch.estimator_batch.canvases)
            steps.append((canvases_of(batch), scores[:half].double().numpy()))
    expected = by_hand(LABELS, steps, rate=0.2, decay=0.5)
    np.testing.assert_allclose(it.estimator.log_odds.numpy(), expected, atol=1e-6)
    assert abs(expected - LABELS.double().numpy()).max() > 0.3


def test_with_a_rate_of_0_labels_stay_as_they_are(source):
    it = source(label_learning_rate=0.0)
    for batch in one_pass(it):
        it.update_targets(batch, torch.ones_like(batch.targets))
    assert torch.equal(it.estimator.log_odds, LABELS)


class Student(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.head = nn.Linear(width, 3)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, features):
        return self.head(features.layers[-1].mean(dim=1))


def test_a_stopped_run_goes_on_with_the_labels_it_had(source, encoder, tmp_path):
    common = {
        "objective": Objective(objective_mean_over_known(binary)),
        "epochs": 3,
        "learning_rate": 0.01,
    }
    kept = Checkpoint(tmp_path / "kept", run_id="a test")

    def stop(done, _):
        if done == 2:
            raise InterruptedError("enough")

    whole, its = Student(encoder.trunk_width), source(label_learning_rate=0.1)
    run_training_loop(whole, its, **common)
    with pytest.raises(InterruptedError, match="enough"):
        run_training_loop(
            Student(encoder.trunk_width),
            source(label_learning_rate=0.1),
            checkpoint=kept,
            progress=stop,
            **common,
        )
    again, other = Student(encoder.trunk_width), source(label_learning_rate=0.1)
    run_training_loop(again, other, checkpoint=kept, **common)
    assert torch.equal(again.head.weight, whole.head.weight)
    for name, value in its.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)
    assert not torch.equal(other.estimator.log_odds, LABELS)


def test_the_rest_of_a_pass_is_what_would_have_come(source):
    whole, rest = (list(source().batches(torch.Generator(), skip)) for skip in (0, 1))
    assert len(rest) == len(whole) - 1
    for there, then in zip(rest, whole[1:], strict=True):
        assert torch.equal(there.features.layers[-1], then.features.layers[-1])
        assert canvases_of(there) == canvases_of(then)


def test_progress_counts_canvases(encoder, files):
    seen = []
    it = CutAndSewSource(
        files,
        LABELS,
        torch.tensor([0]),
        encoder=encoder,
        sewing=CutAndSew(),
        batch_size=3,
        workers=0,
        progress=lambda *done: seen.append(done),
    )
    one_pass(it)
    assert seen == [(3, 5), (5, 5)]


def test_there_must_be_labels_for_every_image(encoder, files):
    with pytest.raises(InputError, match=r"one row for each of 5 images; got 4"):
        CutAndSewSource(
            files, LABELS[:4], torch.tensor([0]), encoder=encoder, sewing=CutAndSew(), batch_size=2
        )
