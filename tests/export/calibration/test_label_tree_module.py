import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.calibration import isotonic_logits
from surelabel.encoders.engines.conversion import exported_program, onnx_model_of_program
from surelabel.export.calibration.label_tree_module import LabelTreeModule
from surelabel.records import NO_PARENT

PARENTS = np.array([2, NO_PARENT, 1, 1, 5, NO_PARENT, NO_PARENT, 1])


@st.composite
def trees(draw):
    size = draw(st.integers(1, 12))
    parents = [draw(st.integers(NO_PARENT, column - 1)) for column in range(size)]
    if draw(st.booleans()):  # children before parents
        parents = [p if p == NO_PARENT else size - 1 - p for p in reversed(parents)]
    return np.array(parents)


def random_logits(n_labels, seed=0):
    logits = np.random.default_rng(seed).normal(size=(64, n_labels)) * 8
    return logits.clip(-40, 40).astype(np.float32)


@settings(max_examples=60)
@given(parents=trees(), seed=st.integers(0, 1000))
def test_the_module_computes_the_projection_of_numpy(parents, seed):
    logits = random_logits(len(parents), seed)
    found = LabelTreeModule(parents)(torch.from_numpy(logits)).numpy()
    np.testing.assert_allclose(found, isotonic_logits(logits, parents), atol=2e-5)
    children = [column for column, parent in enumerate(parents) if parent != NO_PARENT]
    assert all((found[:, parents[c]] >= found[:, c]).all() for c in children)


def test_logits_that_satisfy_the_tree_are_unchanged():
    logits = np.sort(random_logits(len(PARENTS)), axis=1)
    ordered = logits[:, [2, 7, 4, 3, 0, 5, 1, 6]]  # animal is above dog, which is above puppy
    assert (LabelTreeModule(PARENTS)(torch.from_numpy(ordered)).numpy() == ordered).all()


@pytest.fixture(scope="module")
def onnx_session():
    program = exported_program(LabelTreeModule(PARENTS).eval(), (torch.zeros(2, len(PARENTS)),))
    model = onnx_model_of_program(program, input_names=["logits"], output_names=["projected"])
    return onnxruntime.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("n_rows", [1, 64])
def test_an_exported_graph_computes_the_projection(onnx_session, n_rows):
    logits = random_logits(len(PARENTS))[:n_rows]
    (found,) = onnx_session.run(["projected"], {"logits": logits})
    np.testing.assert_allclose(found, isotonic_logits(logits, PARENTS), atol=2e-5)
