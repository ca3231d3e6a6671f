import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(48, 6)).astype(np.float32)  # 3 colours of 4 by 4 places, to 6 numbers


@pytest.fixture
def onnx_file(tmp_path):
    """Write an encoder of images of 8 by 8 pixels: largest values of 4 by 4 places."""

    def write(
        *,
        shape=("n", 3, 8, 8),
        kind=TensorProto.FLOAT,
        nodes=(),
        outputs=("features",),
        matrix=MATRIX,
        inputs=("image",),
        name="tiny.onnx",
        **saving,
    ):
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        first = list(shape) != ["n", 8, 8, 3]
        steps = (
            [] if first else [helper.make_node("Transpose", ["image"], ["t"], perm=[0, 3, 1, 2])]
        )
        steps += [
            helper.make_node(
                "MaxPool",
                ["image" if first else "t"],
                ["largest"],
                kernel_shape=[2, 2],
                strides=[2, 2],
            ),
            helper.make_node("Flatten", ["largest"], ["flat"]),
            helper.make_node("MatMul", ["flat", "matrix"], ["features"]),
            *nodes,
        ]
        graph = helper.make_graph(
            steps,
            "tiny",
            [helper.make_tensor_value_info(i, kind, list(shape)) for i in inputs],
            [helper.make_tensor_value_info(o, kind, None) for o in outputs],
            [numpy_helper.from_array(matrix.astype(dtype), "matrix")],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
        onnx.save(model, tmp_path / name, **saving)
        return tmp_path / name

    return write


def by_hand(images):
    """Return the vectors of that encoder for ``(n, 3, 8, 8)``, computed with loops."""
    vectors = np.zeros((len(images), 48))
    for n, image in enumerate(images):
        for colour in range(3):
            for down in range(4):
                for across in range(4):
                    place = image[colour, 2 * down : 2 * down + 2, 2 * across : 2 * across + 2]
                    vectors[n, 16 * colour + 4 * down + across] = float(place.max())
    return vectors @ MATRIX.astype(np.float64)


@pytest.fixture
def expected():
    return by_hand
