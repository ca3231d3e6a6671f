"""Every calibrator and every link computes the same in a graph; new entries are tested here."""

from dataclasses import replace
from functools import cache

import numpy as np
import onnxruntime
import pytest
import torch
from scipy.special import expit
from torch import nn

from surelabel.calibration import (
    CALIBRATORS,
    LabelTexts,
    UsesImageVectors,
    UsesLabelTexts,
    calibrator_for_images,
)
from surelabel.encoders.engines.conversion import (
    exported_program,
    onnx_model_of_program,
    openvino_model_of_onnx,
)
from surelabel.errors import ConfigError
from surelabel.export.calibration import CALIBRATOR_MODULES, calibration_module
from surelabel.links import LINKS
from surelabel.package_imports import import_without_telemetry
from surelabel.recognizer.calibration_record import CalibrationRecord
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.recognizer.recalibration_map import RecalibrationMap

TOLERANCE = 1e-4  # in logits
N_LABELS = 3
N_GRAPH_LABELS = 2
SHIFT = (0.4, -1.5, 6.0)
PARENT_COLUMNS = (-1, 0, 0)
RECALIBRATION = (1.5, -0.5, (0.2, 0.0, -0.3))
EXPORTED = [name for name, entry in CALIBRATORS.items() if entry in CALIBRATOR_MODULES]
WITH_RAW_SCORES = [name for name in EXPORTED if CALIBRATORS[name].accepts_raw_scores]
every = pytest.mark.parametrize("name", EXPORTED)


@cache
def images():
    """Return float32 logits, targets and unit vectors, in which the targets are visible.

    The labels of an image depend on each other, which the logits show only in part.
    """
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(300, N_LABELS)) + 2 * rng.normal(size=(300, 1)) + (-1, 0, -2)
    targets = (rng.random(truth.shape) < expit(truth)).astype(float)
    vectors = targets @ rng.normal(size=(N_LABELS, 24)) + rng.normal(size=(300, 24)) * 0.7
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return (
        (3 * truth + 6 * rng.normal(size=truth.shape)).astype(np.float32),
        targets,
        vectors.astype(np.float32),
    )


@cache
def fitted_record(name, *, of_cosines=False, changed=False, rounded=False):
    """Return a calibration; if ``changed``, with a recalibration, a label shift and a label tree.

    If the scores are rounded, the calibrator has few steps and labels, so that its graph is small.
    """
    logits, targets, vectors = images()
    scores = cosines(logits) if of_cosines else logits
    if rounded:
        scores, targets = 12 * (scores / 12).round(), targets[:, :N_GRAPH_LABELS]
        scores = scores[:, :N_GRAPH_LABELS]
    calibrator = calibrator_for_images(CALIBRATORS[name](), vectors).fit(scores, targets)
    if isinstance(calibrator, UsesLabelTexts):
        texts = np.random.default_rng(1).normal(size=(3, targets.shape[1], 8))
        calibrator = calibrator.with_label_texts(
            LabelTexts(texts[0], texts[0]), LabelTexts(texts[1], texts[2])
        )
    record = CalibrationRecord(name, calibrator, "fitted on synthetic images")
    if not changed:
        return record
    n_labels = targets.shape[1]
    scale, shift, label_shifts = RECALIBRATION
    recalibration = RecalibrationMap(scale, shift, label_shifts[:n_labels])
    tree = LabelTreeProjection(PARENT_COLUMNS[:n_labels])
    return replace(record, shift=SHIFT[:n_labels], recalibration=recalibration, tree=tree)


def cosines(logits):
    return (0.3 + logits / 100).astype(np.float32)


def scores_and_vectors(low, high, known):
    """Return a grid, the scores of the fit and their float32 neighbours, with image vectors."""
    grid = np.linspace(low, high, 1200, dtype=np.float32)
    values = known.ravel()
    values = np.concatenate(
        [grid, values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)]
    )
    rng = np.random.default_rng(2)
    scores = np.stack([rng.permutation(values) for _ in range(N_LABELS)], axis=1)
    scores = np.concatenate([scores, np.repeat(grid[:, None], N_LABELS, axis=1)])
    return scores, images()[2][rng.integers(0, 300, len(scores))]


def largest_difference(record, scores, vectors):
    found = calibration_module(record)(torch.from_numpy(scores), torch.from_numpy(vectors))
    assert found.dtype == torch.float32
    assert (found.abs() <= 40).all()
    return np.abs(found.numpy() - record.logits(scores, vectors)).max()


def test_at_most_one_in_three_calibrators_is_refused():
    assert set(CALIBRATOR_MODULES) <= set(CALIBRATORS.values())
    assert len(EXPORTED) >= 2 / 3 * len(CALIBRATORS)


@every
@pytest.mark.parametrize("changed", [False, True], ids=["calibrator", "with later steps"])
def test_a_module_computes_the_logits_of_the_record(name, changed):
    record = fitted_record(name, changed=changed)
    scores, vectors = scores_and_vectors(-45, 45, images()[0])
    assert largest_difference(record, scores, vectors) < TOLERANCE


@pytest.mark.parametrize("name", WITH_RAW_SCORES)
def test_a_module_computes_the_logits_of_cosines(name):
    record = fitted_record(name, of_cosines=True)
    scores, vectors = scores_and_vectors(-0.3, 0.8, cosines(images()[0]))
    assert largest_difference(record, scores, vectors) < TOLERANCE


@every
def test_logits_are_clipped_before_a_shift_and_after_it(name):
    record = fitted_record(name, changed=True)
    scores = np.array([[-1e6] * N_LABELS, [1e6] * N_LABELS], np.float32)
    assert largest_difference(record, scores, images()[2][:2]) < TOLERANCE


@pytest.mark.parametrize(
    "name", [name for name in EXPORTED if issubclass(CALIBRATORS[name], UsesImageVectors)]
)
def test_what_uses_image_vectors_refuses_to_work_without_them(name):
    module = calibration_module(fitted_record(name))
    with pytest.raises(ConfigError, match="requires the vector of each image; got none"):
        module(torch.zeros(2, N_LABELS))


def test_a_calibrator_without_a_graph_is_refused_by_name():
    class Rounding(CALIBRATORS["platt"]):
        pass

    with pytest.raises(ConfigError, match="got Rounding, which has no graph"):
        calibration_module(CalibrationRecord("rounding", Rounding(), "not fitted"))


class CalibrationsAndLinks(nn.Module):
    """Compute all calibrations and all links in one graph.

    The first calibration is recalibrated, shifted and projected to a label tree.
    """

    def __init__(self):
        super().__init__()
        self.calibrations = nn.ModuleList(
            calibration_module(fitted_record(name, changed=index == 0, rounded=True))
            for index, name in enumerate(EXPORTED)
        )

    def forward(self, scores, vectors):
        links = (make().logits(scores) for make in LINKS.values())
        return (*(calibration(scores, vectors) for calibration in self.calibrations), *links)


@pytest.fixture(scope="module")
def graph():
    """Return a module, the ONNX model of the module, and the names of its outputs."""
    module = CalibrationsAndLinks().eval()
    outputs = [*EXPORTED, *(f"link {name}" for name in LINKS)]
    program = exported_program(module, (torch.zeros(2, N_GRAPH_LABELS), torch.zeros(2, 24)))
    model = onnx_model_of_program(program, input_names=["scores", "vectors"], output_names=outputs)
    return module, model, outputs


def run_in_onnxruntime(model, outputs, batches):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return [session.run(outputs, batch) for batch in batches]


def run_in_openvino(model, outputs, batches):
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    openvino = import_without_telemetry("openvino")
    compiled = openvino.compile_model(openvino_model_of_onnx(model), "CPU", settings)
    return [[results[name].copy() for name in outputs] for results in map(compiled, batches)]


@pytest.mark.parametrize("run", [run_in_onnxruntime, run_in_openvino])
def test_both_runtimes_compute_what_pytorch_computes(run, graph):
    module, model, outputs = graph
    scores, vectors = scores_and_vectors(-45, 45, 12 * (images()[0] / 12).round())
    scores = scores[:, :N_GRAPH_LABELS]
    scores = np.concatenate([scores, scores / 10 - 2.9])  # close to the step of the focal link
    vectors = np.concatenate([vectors, vectors])
    expected = module(torch.from_numpy(scores), torch.from_numpy(vectors))
    batches = [
        {"scores": scores, "vectors": vectors},
        {"scores": scores[:1], "vectors": vectors[:1]},
    ]
    batch, single = run(model, outputs, batches)
    differences = {
        name: float(np.abs(found - tensor.numpy()).max())
        for name, found, tensor in zip(outputs, batch, expected, strict=True)
    }
    assert all(value < TOLERANCE for value in differences.values()), differences
    for found, alone in zip(batch, single, strict=True):
        np.testing.assert_allclose(alone, found[:1], atol=TOLERANCE)
