import os
import shutil

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from surelabel.encoders.image_only.onnx_graph import OnnxGraph
from surelabel.errors import ConfigError, DataError, MissingPart

IMAGES = np.random.default_rng(1).normal(size=(5, 3, 8, 8)).astype(np.float32)


def node(kind, *inputs, **attributes):
    return helper.make_node(kind, list(inputs), ["found"], **attributes)


def test_it_gives_what_plain_loops_give(onnx_file, expected):
    found = OnnxGraph(onnx_file(), "features")(IMAGES)
    np.testing.assert_allclose(found, expected(IMAGES), rtol=1e-5, atol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("kind", "tolerance"), [(TensorProto.FLOAT16, 2e-2), (TensorProto.DOUBLE, 1e-6)]
)
def test_half_and_double_precision_give_the_same(onnx_file, expected, kind, tolerance):
    found = OnnxGraph(onnx_file(kind=kind), "features")(IMAGES)
    np.testing.assert_allclose(found, expected(IMAGES), atol=tolerance)
    assert found.dtype == np.float32


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_graph_for_a_fixed_number_of_images_takes_any_number(onnx_file, expected, size):
    graph = OnnxGraph(onnx_file(shape=(size, 3, 8, 8)), "features")
    assert graph.shape == [size, 3, 8, 8]
    np.testing.assert_allclose(graph(IMAGES), expected(IMAGES), rtol=1e-5, atol=1e-6)


def test_parameters_are_the_values_of_all_constants(onnx_file):
    axes = helper.make_node("Constant", [], ["axes"], value=numpy_helper.from_array(np.arange(2)))
    assert OnnxGraph(onnx_file(), "features").n_parameters == 48 * 6
    nodes = [axes, node("Unsqueeze", "features", "axes")]
    assert OnnxGraph(onnx_file(nodes=nodes), "features").n_parameters == 48 * 6 + 2


def test_no_images_give_no_vectors(onnx_file):
    for size in ("n", 2):
        none = OnnxGraph(onnx_file(shape=(size, 3, 8, 8)), "features")(IMAGES[:0])
        assert none.shape == (0, 6)


def test_axes_of_any_size_are_none(onnx_file, expected):
    graph = OnnxGraph(onnx_file(shape=("n", 3, "down", "across")), "features")
    assert graph.shape == [None, 3, None, None]
    np.testing.assert_allclose(graph(IMAGES), expected(IMAGES), rtol=1e-5, atol=1e-6)
    with pytest.raises(
        DataError, match=r"cannot process images of shape \(1, 3, 9, 32\).*encoder\.size"
    ):
        graph(np.zeros((1, 3, 9, 32), np.float32))


def test_vectors_with_two_more_axes_of_one_are_vectors(onnx_file, expected):
    axes = helper.make_node("Constant", [], ["axes"], value_ints=[2, 3])
    file = onnx_file(nodes=[axes, node("Unsqueeze", "features", "axes")], outputs=["found"])
    np.testing.assert_allclose(OnnxGraph(file, "found")(IMAGES), expected(IMAGES), atol=1e-5)


def test_an_output_that_is_not_there_is_answered_with_those_that_are(onnx_file):
    with pytest.raises(
        ConfigError, match=r"no output 'pooled'\. The outputs are features .*encoder\.output"
    ):
        OnnxGraph(onnx_file(), "pooled")


@pytest.mark.parametrize(
    "given",
    [
        {"outputs": ["largest"]},  # a map
        {"nodes": [node("Transpose", "features", perm=[1, 0])], "outputs": ["found"]},
        {"nodes": [node("ReduceSum", "features", keepdims=0)], "outputs": ["found"]},
        {"nodes": [node("Cast", "features", to=TensorProto.INT64)], "outputs": ["found"]},
    ],
)
def test_an_output_without_one_vector_an_image_is_refused(onnx_file, given):
    name = given["outputs"][0]
    with pytest.raises(DataError, match=rf"Output '{name}' of .* must contain one float vector"):
        OnnxGraph(untyped(onnx_file(**given)), name)(IMAGES)


def untyped(file):
    """The same graph, whose outputs have no stated type."""
    model = onnx.load(file)
    for output in model.graph.output:
        output.ClearField("type")
    inferred = onnx.shape_inference.infer_shapes(model)
    onnx.save(inferred, file)
    return file


def test_values_that_are_no_numbers_are_refused(onnx_file):
    file = onnx_file(nodes=[node("Log", "features")], outputs=["found"])
    with pytest.raises(DataError, match=r"'found' of .* must be finite; got NaN or infinity"):
        OnnxGraph(file, "found")(IMAGES)


def test_half_precision_that_overflows_is_refused_and_not_passed_on(onnx_file):
    graph = OnnxGraph(onnx_file(kind=TensorProto.FLOAT16), "features")
    with pytest.raises(DataError, match="Export the model in float32"):
        graph(np.full((1, 3, 8, 8), 6e4, np.float32))


def test_a_graph_of_images_and_texts_is_refused(onnx_file):
    with pytest.raises(DataError, match=r"must have one input.* got image .*, text .*"):
        OnnxGraph(onnx_file(inputs=("image", "text")), "features")


@pytest.mark.parametrize(
    ("kind", "shape", "came"),
    [
        (TensorProto.UINT8, ["n", 3, 8, 8], r"image .* of tensor\(uint8\)"),
        (TensorProto.FLOAT, ["n", 3, 8], r"image \['n', 3, 8\] of tensor\(float\)"),
        (TensorProto.FLOAT, None, r"image .* of tensor\(float\)"),
    ],
)
def test_a_graph_that_takes_no_float_images_is_refused(tmp_path, kind, shape, came):
    nodes = [
        helper.make_node("Cast", ["image"], ["cast"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["cast"], ["features"]),
    ]
    images = helper.make_tensor_value_info("image", kind, shape)
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "odd", [images], [features])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "o.onnx")
    with pytest.raises(DataError, match=rf"must have one input, float images.* got {came}"):
        OnnxGraph(tmp_path / "o.onnx", "features")


@pytest.mark.parametrize("kept", [0, 10, 300, -1])
def test_a_truncated_file_is_refused_without_a_line_of_its_own(onnx_file, capfd, kept):
    file = onnx_file()
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(DataError, match=r"tiny\.onnx (must be an ONNX|cannot be loaded|must have)"):
        OnnxGraph(file, "features")
    assert capfd.readouterr() == ("", "")


def test_what_is_no_onnx_file_is_refused(tmp_path):
    file = tmp_path / "image.onnx"
    with pytest.raises(DataError, match=r"image\.onnx cannot be read: No such file"):
        OnnxGraph(file, "features")
    with pytest.raises(DataError, match=r"cannot be read: .* got a folder"):
        OnnxGraph(tmp_path, "features")
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with pytest.raises(DataError, match=r"image\.onnx (must be an ONNX file|cannot be loaded)"):
        OnnxGraph(file, "features")


def test_unknown_operations_are_refused(onnx_file, capfd):
    odd = helper.make_node("Hypnotize", ["features"], ["found"], domain="org.example")
    with pytest.raises(DataError, match=r"cannot be loaded by onnxruntime .*Hypnotize"):
        OnnxGraph(onnx_file(nodes=[odd], outputs=["found"]), "found")
    assert capfd.readouterr() == ("", "")


def beside(onnx_file, location="weights.bin"):
    """The encoder with its matrix in a file of its own."""
    file = onnx_file(save_as_external_data=True, location="weights.bin", size_threshold=0)
    model = onnx.load(file, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    onnx.save(model, file)
    return file


def test_weights_beside_the_graph_are_read_and_named(onnx_file, expected):
    graph = OnnxGraph(beside(onnx_file), "features")
    assert [f.name for f in graph.files] == ["tiny.onnx", "weights.bin"]
    np.testing.assert_allclose(graph(IMAGES), expected(IMAGES), rtol=1e-5, atol=1e-6)


def test_weights_outside_the_folder_of_the_graph_are_refused(onnx_file, tmp_path):
    (tmp_path / "secret.bin").write_bytes(bytes(48 * 6 * 4))
    inside = tmp_path / "inside"
    inside.mkdir()
    for location in ("../secret.bin", str(tmp_path / "secret.bin")):
        file = beside(onnx_file, location).rename(inside / "tiny.onnx")
        with pytest.raises(DataError, match=r"must be a file in the folder .*got '.*secret\.bin'"):
            OnnxGraph(file, "features")
    shutil.copy(tmp_path / "secret.bin", inside)
    for location in ("../inside/secret.bin", str(inside / "secret.bin"), "\0secret.bin"):
        file = beside(onnx_file, location).rename(inside / "tiny.onnx")
        with pytest.raises(DataError, match=r"must be a file in the folder .*got '.*secret\.bin'"):
            OnnxGraph(file, "features")
    (inside / "link.bin").symlink_to(tmp_path / "secret.bin")
    file = beside(onnx_file, "link.bin").rename(inside / "tiny.onnx")
    with pytest.raises(DataError, match=r"must be a file in the folder .*got 'link\.bin'"):
        OnnxGraph(file, "features")


def test_a_graph_or_weights_that_are_a_named_pipe_are_refused_at_once(onnx_file, tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(DataError, match=r"pipe\.onnx cannot be read: .* got a named pipe"):
        OnnxGraph(tmp_path / "pipe.onnx", "features")
    file = beside(onnx_file, "pipe.onnx")
    with pytest.raises(DataError, match=r"must be a file in the folder .*got 'pipe\.onnx'"):
        OnnxGraph(file, "features")


def test_a_fixed_batch_that_does_not_fit_into_memory_is_refused(onnx_file):
    graph = OnnxGraph(onnx_file(shape=(10**9, 3, 8, 8)), "features")
    with pytest.raises(DataError, match=r"at most 536870912 values; got 1000000000 images of"):
        graph(IMAGES)


def test_weights_that_are_missing_are_named(onnx_file):
    file = beside(onnx_file)
    file.with_name("weights.bin").unlink()
    with pytest.raises(DataError, match=r"must be a file in the folder .*got 'weights\.bin'"):
        OnnxGraph(file, "features")


def test_weights_in_a_branch_inside_the_graph_are_found_as_well(onnx_file, tmp_path):
    file = onnx_file()
    model = onnx.load(file)
    hidden = helper.make_tensor("hidden", TensorProto.FLOAT, [1], [1.0])
    hidden.data_location = TensorProto.EXTERNAL
    hidden.ClearField("float_data")
    hidden.external_data.add(key="location", value="../hidden.bin")
    output = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [1])
    branch = helper.make_graph([], "branch", [], [output], [hidden])
    model.graph.node.append(
        helper.make_node("If", ["flag"], ["out"], then_branch=branch, else_branch=branch)
    )
    onnx.save(model, file)
    with pytest.raises(DataError, match=r"must be a file in the folder .*got '.*hidden\.bin'"):
        OnnxGraph(file, "features")


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_package_that_is_not_installed_is_named_with_its_pip_line(
    onnx_file, monkeypatch, package
):
    file = onnx_file()
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingPart, match=rf"{package}, .*pip install 'surelabel\[export\]'"):
        OnnxGraph(file, "features")


def test_it_takes_as_many_threads_as_torch(onnx_file):
    options = OnnxGraph(onnx_file(), "features")._session.get_session_options()
    assert options.intra_op_num_threads == torch.get_num_threads()
