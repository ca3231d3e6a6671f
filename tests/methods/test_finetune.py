import numpy as np
import pytest
import torch
from torch import nn

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, NotFitted
from surelabel.links import Sigmoid
from surelabel.losses import binary
from surelabel.methods import METHODS, FineTune
from surelabel.recognizer import Recognizer
from surelabel.records import Features
from surelabel.training import Batch, Objective, objective_mean_over_known, run_training_loop

NAMES = ["whale", "guitar", "truck"]
TARGETS = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 0]])
KNOWN = TARGETS >= 0
TINY = "timm:test_vit"  # 0.4 million weights


class Noise:
    """Six images of noise, as a source that decodes nothing."""

    def __init__(self, side):
        generator = torch.Generator().manual_seed(0)
        self.pixels = torch.randn(6, 3, side, side, generator=generator)

    def parameters(self):
        return []

    def batches(self, _, skip=0):
        yield Batch(Features(torch.zeros(6, 0), pixels=self.pixels), TARGETS, KNOWN)

    def __len__(self):
        return 1


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(TINY, pretrained=False, size=32)


@pytest.fixture(scope="module")
def train():
    return collection("scenes-80", split="train").take(range(16))


def started(encoder):
    torch.manual_seed(0)
    it = FineTune(encoder, NAMES)
    it.initialize(Features(torch.zeros(6, encoder.width)), TARGETS, KNOWN, Sigmoid())
    return it


def trained(encoder, epochs=30):
    it, noise = started(encoder), Noise(32)
    history = run_training_loop(
        it,
        noise,
        objective=Objective(objective_mean_over_known(binary)),
        epochs=epochs,
        learning_rate=0.003,
    )
    return it, noise, history


def unfitted(*settings):
    given = ["method.name=finetune", "epochs=3", "batch_size=8", "micro_batch_size=4", *settings]
    return Recognizer(load_run(overrides=given), NAMES)


def test_pixels_go_through_the_network_and_the_head(encoder):
    it, noise = started(encoder), Noise(32)
    nn.init.normal_(it.head.weight)
    found = it(Features(torch.zeros(6, 0), pixels=noise.pixels))
    expected = it.head(encoder.encode_images(noise.pixels))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_it_learns_noise_by_heart_and_leaves_the_frozen_encoder_alone(encoder):
    before = {k: v.clone() for k, v in encoder.model.state_dict().items()}
    it, noise, history = trained(encoder)
    assert torch.equal(it(Features(torch.zeros(6, 0), pixels=noise.pixels)) > 0, TARGETS > 0)
    assert history[-1].loss < history[0].loss / 5
    assert all(torch.equal(v, before[k]) for k, v in encoder.model.state_dict().items())
    assert not any(p.requires_grad for p in encoder.model.parameters())


def test_all_of_the_network_takes_part(encoder):
    it, _, _ = trained(encoder, epochs=3)  # the head is 0 in the first step and passes nothing on
    pairs = zip(it.network.parameters(), encoder.model.parameters(), strict=True)
    moved = [not torch.equal(a, b) for a, b in pairs]
    assert sum(moved) > 0.9 * len(moved)


def test_permuting_the_names_permutes_what_is_learnt(encoder):
    it, noise, _ = trained(encoder, epochs=3)
    torch.manual_seed(0)
    other, order = FineTune(encoder, NAMES[::-1]), [2, 1, 0]
    other.initialize(Features(torch.zeros(6, encoder.width)), TARGETS[:, order], KNOWN, Sigmoid())
    noise.batches = lambda _, skip=0: (
        Batch(Features(torch.zeros(6, 0), pixels=noise.pixels), TARGETS[:, order], KNOWN)
        for _ in range(1)
    )
    run_training_loop(
        other,
        noise,
        objective=Objective(objective_mean_over_known(binary)),
        epochs=3,
        learning_rate=0.003,
    )
    seen = Features(torch.zeros(6, 0), pixels=noise.pixels)
    torch.testing.assert_close(other(seen)[:, order], it(seen), atol=1e-3, rtol=1e-3)


def test_the_tuned_encoder_and_the_head_give_what_was_learnt(encoder):
    it, noise, _ = trained(encoder, epochs=3)
    learnt = it(Features(torch.zeros(6, 0), pixels=noise.pixels))
    tuned = it.finetuned_encoder()
    assert tuned.fingerprint != encoder.fingerprint
    assert tuned.name == f"{TINY} (fine-tuned)"
    torch.testing.assert_close(it(tuned.encode_images(noise.pixels)), learnt, atol=1e-4, rtol=1e-4)
    assert it.network is None


def test_pixels_before_the_start_and_a_network_taken_twice_are_refused(encoder):
    it = FineTune(encoder, NAMES)
    with pytest.raises(NotFitted, match="call initialize"):
        it(Features(torch.zeros(1, 0), pixels=torch.zeros(1, 3, 32, 32)))
    with pytest.raises(NotFitted, match="There is no trained network"):
        it.finetuned_encoder()


def test_a_recognizer_learns_whole_is_saved_and_loads(train, tmp_path):
    recognizer = unfitted("optimizer.name=adamw", "learning_rate=0.001")
    frozen = recognizer.encoder
    recognizer.fit(train)
    assert recognizer.encoder.fingerprint != frozen.fingerprint
    assert frozen.fingerprint == load_encoder("tiny-vit").fingerprint
    truth = recognizer.align_labels(train).targets
    found = recognizer.predict(train)
    assert found.scores[truth == 1].mean() > found.scores[truth == 0].mean()
    recognizer.save(tmp_path / "saved")
    again = Recognizer.load(tmp_path / "saved")
    assert again.fingerprint == recognizer.fingerprint
    np.testing.assert_array_equal(again.predict(train).scores, found.scores)
    assert again.calibrate(train).predict(train).probabilities.shape == (16, 3)


def test_a_stopped_fit_ends_as_an_unbroken_one(train, tmp_path):
    class Stop(Exception):
        pass

    def stop(done, total):
        if (done, total) == (1, 3):
            raise Stop("enough")

    small = [f"encoder.name={TINY}", "encoder.pretrained=false", "encoder.size=32"]
    whole = unfitted(*small).fit(train)
    with pytest.raises(Stop, match="enough"):
        unfitted(*small).fit(train, checkpoint=tmp_path / "kept", progress=stop)
    passes = []
    resumed = unfitted(*small).fit(
        train, checkpoint=tmp_path / "kept", progress=lambda *done: passes.append(done)
    )
    assert passes[-2:] == [(2, 3), (3, 3)]
    assert resumed.fingerprint == whole.fingerprint
    assert (tmp_path / "kept").exists()  # until the recognizer is saved


@pytest.mark.parametrize("name", ["features:16", "onnx"])
def test_an_encoder_that_cannot_be_trained_is_refused(name, tmp_path):
    if name == "onnx":
        pytest.importorskip("onnxruntime")
        name = f"onnx:{saved_graph(tmp_path)}"
    run = load_run(overrides=["method.name=finetune", f"encoder.name={name}"])
    recognizer = Recognizer(run, NAMES)
    with pytest.raises(ConfigError, match=r"cannot be trained\. Use a method that does not train"):
        recognizer.fit(collection("scenes-80", split="train"))


def saved_graph(folder):
    from onnx import TensorProto, helper, save

    shapes = {"pixels": [1, 3, 8, 8], "features": [1, 192]}
    values = {k: helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in shapes.items()}
    node = helper.make_node("Flatten", ["pixels"], ["features"])
    graph = helper.make_graph([node], "flat", [values["pixels"]], [values["features"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, folder / "m.onnx")
    return folder / "m.onnx"


def test_its_recipe_is_a_run():
    recipe, run = METHODS["finetune"].recipe, load_run(overrides=["method.name=finetune"])
    assert run.batch_size % run.micro_batch_size == 0
    assert run.learning_rate == recipe.learning_rate
    assert run.entry("optimizer") is not None
