"""The graph of a recognizer: link, calibration, labels, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from open_clip.model import CLIP
from torch import nn

from surelabel.config import Choice, Run
from surelabel.data import collection
from surelabel.encoders import OpenClipEncoder
from surelabel.encoders.engines import EngineSettings
from surelabel.encoders.engines.conversion import exported_program
from surelabel.errors import ConfigError, NotFitted
from surelabel.export.recognizer_graph import RecognizerGraph
from surelabel.links import fold_link
from surelabel.recognizer import Recognizer
from surelabel.records import LabelTree

SAVED = Path(__file__).parents[1] / "saved" / "0.1.0" / "recognizers"
NAMES = ["lion", "guitar", "car"]


@pytest.fixture(scope="module")
def images():
    return collection("scenes-80", split="test").take(range(4))


def pixels_of(graph, images):
    from PIL import Image

    from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor

    preprocess = ImagePreprocessor(graph.preprocess_cfg)
    return torch.stack([preprocess(Image.open(path).convert("RGB")) for path in images.paths])


@pytest.mark.parametrize("name", ["clip_adapter_spa", "zero_shot_moved", "linear"])
def test_logits_are_those_of_the_recognizer(name, images):
    recognizer = Recognizer.load(SAVED / name)
    graph = RecognizerGraph(recognizer)
    assert (graph.input_name, graph.output_name) == ("pixels", "logits")
    assert (graph.input_shape, graph.views, graph.differences) == ((3, 96, 96), None, ())
    expected = recognizer.predict(images).logits
    np.testing.assert_allclose(graph(pixels_of(graph, images)), expected, atol=0.01)


@pytest.mark.parametrize("name", ["clip_adapter_spa", "zero_shot_moved", "linear"])
def test_logits_are_projected_to_the_tree_of_the_labels(name, images):
    recognizer = Recognizer.load(SAVED / name)
    first, second, *_ = recognizer.names
    recognizer.label_tree = LabelTree({first: second})
    graph = RecognizerGraph(recognizer)
    expected = recognizer.predict(images).logits
    found = graph(pixels_of(graph, images)).numpy()
    np.testing.assert_allclose(found, expected, atol=0.01)
    for logits in (found, expected):
        assert (logits[:, 1] >= logits[:, 0]).all()


def test_a_program_contains_a_convolutional_tower(random_encoder):
    tower = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 8}
    config = {**random_encoder.config, "vision_cfg": tower | {"patch_size": None}}
    encoder = OpenClipEncoder(
        CLIP(**config),
        random_encoder.tokenizer,
        name="convolutional",
        config=config,
        preprocess_cfg={**random_encoder.preprocess_cfg, "size": 64},
    )
    run = Run(encoder=Choice("convolutional"), method=Choice("zero_shot"))
    graph = RecognizerGraph(Recognizer(run, NAMES, encoder=encoder))
    pixels = torch.rand(3, *graph.input_shape)
    program = exported_program(graph, (pixels[:2],))
    torch.testing.assert_close(program.module()(pixels), graph(pixels), atol=1e-5, rtol=1e-5)


def test_scores_without_calibration_and_link_are_named_scores(images):
    recognizer = Recognizer.zero_shot("tiny-vit", NAMES, templates="a {} in a scene")
    graph = RecognizerGraph(recognizer)
    assert recognizer.calibration is None
    assert graph.output_name == "scores"
    expected = recognizer.predict(images).scores
    np.testing.assert_allclose(graph(pixels_of(graph, images)), expected, atol=0.01)


def test_logits_are_clipped(sigmoid_checkpoint):
    recognizer = Recognizer.zero_shot(f"local-dir:{sigmoid_checkpoint}", NAMES)
    graph = RecognizerGraph(recognizer)
    assert graph.output_name == "logits"
    graph.method = Constant(torch.tensor([[-1e6, 1.0, 1e6]]))
    outputs = graph(torch.zeros(1, *graph.input_shape))[0].tolist()
    assert [outputs[0], outputs[2]] == [-40, 40]
    assert outputs[1] == pytest.approx(1 + recognizer.link.bias)


class Constant(nn.Module):
    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def forward(self, features):
        return self.scores


def test_other_labels_are_exported(images):
    recognizer = Recognizer.load(SAVED / "recover_match").with_names(["coffee", "lion", "rocket"])
    graph = RecognizerGraph(recognizer)
    expected = recognizer.predict(images).logits
    np.testing.assert_allclose(graph(pixels_of(graph, images)), expected, atol=0.02)
    assert "at most 100 Sinkhorn steps" in graph.differences[0]


def test_the_recognizer_is_not_changed_and_shares_its_weights(images):
    recognizer = Recognizer.load(SAVED / "clip_adapter")
    before = recognizer.fingerprint
    graph = RecognizerGraph(recognizer)
    assert recognizer.fingerprint == before
    assert recognizer.method.bias is graph.method.bias
    weights = {id(weight) for weight in recognizer.encoder.model.visual.parameters()}
    assert weights < {id(weight) for weight in graph.parameters()}


def test_windows_are_a_difference():
    graph = RecognizerGraph(Recognizer.load(SAVED / "dense_regions"))
    assert graph.input_shape == (3, 240, 240)
    assert graph.preprocess_cfg["size"] == [240, 240]
    assert "240 by 240" in graph.differences[0]
    run = Run(encoder=Choice("tiny-vit"), method=Choice("dense_regions", {"windows": 0}))
    without = RecognizerGraph(Recognizer(run, NAMES))
    assert (without.input_shape, without.differences) == ((3, 96, 96), ())


def refused(recognizer, message):
    with pytest.raises(ConfigError, match=message):
        RecognizerGraph(recognizer)


def test_a_link_is_folded_once():
    recognizer = Recognizer.load(SAVED / "clip_adapter")
    recognizer.method = fold_link(recognizer.method, recognizer.link)
    refused(recognizer, "must not be folded before an export")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("linear_vectors", "computed by another program"),
        ("linear_onnx", "its network is not a PyTorch module"),
    ],
)
def test_an_encoder_without_a_pytorch_network_is_refused(name, message):
    refused(Recognizer.load(SAVED / name), message)


def test_scores_are_refused():
    refused(Recognizer.from_scores("logits", NAMES), "computed by another program")


def test_a_recognizer_without_labels_is_refused():
    run = Run(encoder=Choice("tiny-vit"), method=Choice("cosine_projection"))
    recognizer = Recognizer(run, [])
    recognizer.is_fitted = True
    refused(recognizer, "needs labels; this recognizer .cosine_projection.")


def test_another_engine_is_refused():
    recognizer = Recognizer.zero_shot("tiny-vit", NAMES).with_engine("torch", "bf16")
    assert recognizer.encoder.engine == EngineSettings("torch", "bf16")
    refused(recognizer, "got torch bf16")


def test_a_recognizer_must_be_fitted():
    run = Run(encoder=Choice("tiny-vit"), method=Choice("linear"))
    with pytest.raises(NotFitted, match="linear"):
        RecognizerGraph(Recognizer(run, NAMES))
