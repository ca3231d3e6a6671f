import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from scipy.special import log_expit
from torch import nn

from surelabel.encoders.engines.accurate_operators import accurate_program
from surelabel.encoders.engines.conversion import exported_program, onnx_model_of_program

SMALL = np.logspace(-12, 0, 400)
NEGATIVE = np.concatenate([-SMALL * 0.999, np.linspace(-90, 0, 400)])


class Operators(nn.Module):
    def forward(self, x):
        return (
            torch.expm1(x),
            torch.log1p(x.clamp(min=-0.999)),
            F.logsigmoid(x),
            torch.logaddexp(x, 2 * x),
        )


NAMES = ["expm1", "log1p", "logsigmoid", "logaddexp"]


@pytest.fixture(scope="module")
def outputs_and_inputs():
    """Return the outputs of ONNX Runtime by name, and the inputs in float64."""
    x = np.concatenate([NEGATIVE, SMALL, [20.0, 80.0]]).astype(np.float32)
    program = exported_program(Operators().eval(), (torch.zeros(2),))
    model = onnx_model_of_program(program, input_names=["x"], output_names=NAMES)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return dict(zip(NAMES, session.run(NAMES, {"x": x}), strict=True)), x.astype(float)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("expm1", np.expm1),
        ("log1p", lambda x: np.log1p(x.clip(np.float32(-0.999)))),
        ("logsigmoid", log_expit),
        ("logaddexp", lambda x: np.logaddexp(x, 2 * x)),
    ],
)
def test_an_operator_is_precise_in_its_whole_range(name, expected, outputs_and_inputs):
    found, x = outputs_and_inputs
    np.testing.assert_allclose(found[name], expected(x), rtol=1e-6, atol=1e-7 * (name[0] != "e"))


def test_a_program_without_these_operators_is_returned_unchanged():
    program = exported_program(nn.Linear(3, 2).eval(), (torch.zeros(2, 3),))
    assert accurate_program(program) is program
