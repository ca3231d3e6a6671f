"""Every method can be exported with equal scores, or is refused with a reason."""

from functools import cache

import pytest
import torch

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.encoders.engines.conversion import (
    exported_program,
    onnx_model_of_program,
    openvino_model_of_onnx,
)
from surelabel.errors import ConfigError
from surelabel.export.graphs import fixed_step_matching
from surelabel.export.graphs.refused_methods import REFUSED_METHODS
from surelabel.export.recognizer_graph import RecognizerGraph
from surelabel.methods import METHODS, LearnsFromImages
from surelabel.recognizer import Recognizer

NAMES = ["lion", "guitar", "sofa|couch"]
SETTINGS = {"recover_match": ["method.depth=1"], "dense_regions": ["method.windows=1"]}
KINDS_OF_GRAPHS = ("dense_regions", "ml_decoder", "recover_match")  # windows, tiles, steps
exported = [name for name in METHODS if name not in REFUSED_METHODS]


@pytest.fixture(scope="module")
def recognizer(random_checkpoint):
    """Return a recognizer of each method, with random weights instead of a fit."""
    encoder = load_encoder(f"local-dir:{random_checkpoint}")

    @cache
    def make(name):
        run = load_run(overrides=[f"method.name={name}", *SETTINGS.get(name, [])])
        it = Recognizer(run, NAMES, encoder=encoder)
        generator = torch.Generator().manual_seed(0)
        if isinstance(it.method, LearnsFromImages):
            it.fit(collection("scenes-80", split="validation").paths[:4])
        with torch.no_grad():
            for weight in it.method.parameters():
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
        it.is_fitted = True
        return it

    return make


@pytest.fixture
def program(recognizer, monkeypatch):
    """Return the graph of a method, its program, and the input and the scores of 5 images."""
    monkeypatch.setattr(fixed_step_matching, "SINKHORN_STEPS", 3)

    def make(name):
        graph = RecognizerGraph(recognizer(name))
        pixels = torch.randn(5, *graph.input_shape, generator=torch.Generator().manual_seed(1))
        return graph, exported_program(graph, (pixels[:3],)), pixels, graph(pixels)

    return make


@pytest.mark.parametrize("name", exported)
def test_the_program_of_a_method_returns_the_scores_of_any_number_of_images(name, program):
    _, program, pixels, scores = program(name)
    run = program.module()
    assert scores.shape == (5, len(NAMES))
    assert scores.std(dim=0).min() > 0  # they depend on the image
    for count in (1, 5):
        torch.testing.assert_close(run(pixels[:count]), scores[:count], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", KINDS_OF_GRAPHS)
def test_onnxruntime_and_openvino_return_the_scores_of_the_graph(name, program):
    import onnxruntime
    import openvino

    graph, program, pixels, scores = program(name)
    model = onnx_model_of_program(
        program, input_names=[graph.input_name], output_names=[graph.output_name]
    )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    compiled = openvino.Core().compile_model(
        openvino_model_of_onnx(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    for count in (1, 5):
        array = pixels[:count].numpy()
        for output in (session.run(None, {graph.input_name: array})[0], compiled(array)[0]):
            torch.testing.assert_close(torch.from_numpy(output), scores[:count], atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", REFUSED_METHODS)
def test_a_refused_method_is_named_with_the_reason(name, recognizer):
    with pytest.raises(ConfigError, match=f"method {name} cannot be exported: ") as refusal:
        RecognizerGraph(recognizer(name))
    assert REFUSED_METHODS[name] in str(refusal.value)


def test_at_most_one_of_three_methods_is_refused():
    assert set(REFUSED_METHODS) < set(METHODS)
    assert 3 * len(REFUSED_METHODS) <= len(METHODS)
