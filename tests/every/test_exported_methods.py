"""Every method can be exported with equal scores, or is refused with a reason."""

from functools import cache

import pytest
import torch
from torch import nn

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
from surelabel.package_imports import openvino_core
from surelabel.recognizer import Recognizer

NAMES = ["lion", "guitar", "sofa|couch"]
SETTINGS = {"recover_match": ["method.depth=1"], "dense_regions": ["method.windows=1"]}
KINDS_OF_GRAPHS = ("dense_regions", "ml_decoder", "recover_match")  # windows, tiles, steps
PIXELS = (14, 3, 80, 80)  # the largest input: tiles of ml_decoder, and the size of dense_regions
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


class GivenFeatures(nn.Module):
    """Return features that were computed before."""

    def forward(self, pixels):
        return self.features


class MethodGraphs(nn.Module):
    """Compute the scores of several graphs, and the features that graphs share only once.

    Args:
        graphs: Graphs by the name of the method.
    """

    def __init__(self, graphs):
        super().__init__()
        self.graphs, self.groups = nn.ModuleDict(graphs), {}
        self.features = nn.ModuleList()
        for name, graph in graphs.items():
            features, graph.pixel_features = graph.pixel_features, GivenFeatures()
            key = (features.input_shape, *features.kinds)
            if key not in self.groups:
                self.features.append(features)
            self.groups.setdefault(key, []).append(name)
        self.eval()

    def forward(self, pixels):
        scores = {}
        for module, names in zip(self.features, self.groups.values(), strict=True):
            features = module(crop(pixels, module.input_shape))
            for name in names:
                self.graphs[name].pixel_features.features = features
                scores[name] = self.graphs[name](pixels)
        return tuple(scores[name] for name in self.graphs)


def crop(pixels, shape):
    """Return the first pixels and views of images ``(n, t, 3, h, w)``, for the input of a graph."""
    views = pixels if len(shape) == 4 else pixels[:, 0]
    return views[:, *map(slice, shape)]


@pytest.fixture(scope="module")
def tested(request):
    """Return the exported methods whose tests are selected in this run."""
    items = [item for item in request.session.items if item.path == request.path]
    names = {item.callspec.params.get("name") for item in items if hasattr(item, "callspec")}
    return [name for name in exported if name in names]


@pytest.fixture(scope="module")
def scores_and_programs(recognizer, tested):
    """Return the scores of 5 images by method, pixels, and a program for each group of methods.

    The programs are recorded without gradients. A change to this state is recorded too, although it
    has no effect, and takes a long time, so that it is left out.
    """
    scores, programs, graphs = {}, {}, {}
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(fixed_step_matching, "SINKHORN_STEPS", 3)
        for name in tested:
            graphs[name] = RecognizerGraph(recognizer(name))
        pixels = torch.randn(5, *PIXELS, generator=torch.Generator().manual_seed(1))
        for name, graph in graphs.items():
            scores[name] = graph(crop(pixels, graph.input_shape))
        alone = {(name,): graphs.pop(name) for name in KINDS_OF_GRAPHS if name in graphs}
        groups = {tuple(graphs): MethodGraphs(graphs)} if graphs else {}
        patch.setattr(torch.no_grad, "__enter__", lambda _: None)
        patch.setattr(torch.no_grad, "__exit__", lambda *_: None)
        for names, graph in {**alone, **groups}.items():
            example = crop(pixels, getattr(graph, "input_shape", PIXELS))
            programs[names] = exported_program(graph, (example[:3],))
    return scores, pixels, programs


@pytest.fixture(scope="module")
def outputs(scores_and_programs):
    """Return the outputs of the programs for 1 and for 5 images, by method."""
    scores, pixels, programs = scores_and_programs
    found = {name: [] for name in scores}
    for names, program in programs.items():
        run = program.module()
        for count in (1, 5):
            inputs = crop(pixels[:count], program.example_inputs[0][0].shape[1:])
            results = run(inputs)
            results = results if isinstance(results, tuple) else (results,)
            for name, result in zip(names, results, strict=True):
                found[name].append(result)
    return found


@pytest.mark.parametrize("name", exported)
def test_the_program_of_a_method_returns_the_scores_of_any_number_of_images(
    name, scores_and_programs, outputs
):
    scores = scores_and_programs[0][name]
    assert scores.shape == (5, len(NAMES))
    assert scores.std(dim=0).min() > 0  # they depend on the image
    one, five = outputs[name]
    torch.testing.assert_close(one, scores[:1], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(five, scores, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", KINDS_OF_GRAPHS)
def test_onnxruntime_and_openvino_return_the_scores_of_the_graph(name, scores_and_programs):
    import onnxruntime

    scores, pixels, programs = scores_and_programs
    program = programs[(name,)]
    model = onnx_model_of_program(program, input_names=["pixels"], output_names=["scores"])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    compiled = openvino_core().compile_model(
        openvino_model_of_onnx(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    for count in (1, 5):
        array = crop(pixels[:count], program.example_inputs[0][0].shape[1:]).numpy()
        for output in (session.run(None, {"pixels": array})[0], compiled(array)[0]):
            expected = scores[name][:count]
            torch.testing.assert_close(torch.from_numpy(output), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", REFUSED_METHODS)
def test_a_refused_method_is_named_with_the_reason(name, recognizer):
    with pytest.raises(ConfigError, match=f"method {name} cannot be exported: ") as refusal:
        RecognizerGraph(recognizer(name))
    assert REFUSED_METHODS[name] in str(refusal.value)


def test_at_most_one_of_three_methods_is_refused():
    assert set(REFUSED_METHODS) < set(METHODS)
    assert 3 * len(REFUSED_METHODS) <= len(METHODS)
