from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import helper

from surelabel.encoders.image_only.exported_graph import ExportedGraph
from surelabel.errors import DataError

FORMATS = ("tagger.onnx", "tagger.xml")


@pytest.mark.parametrize("name", FORMATS)
def test_any_number_of_images_is_computed(exported_file, name):
    graph = ExportedGraph(exported_file(name))
    images = np.random.default_rng(0).normal(size=(5, 3, 8, 8)).astype(np.float32)
    outputs = graph(images)
    np.testing.assert_allclose(outputs, 9 * images.mean((2, 3)), atol=1e-5)
    assert outputs.dtype == np.float32
    for row, image in enumerate(images):
        np.testing.assert_allclose(graph(image[None])[0], outputs[row], atol=1e-6)
    assert graph.n_parameters > 0


@pytest.mark.parametrize("name", FORMATS)
def test_several_threads_share_a_graph(exported_file, name):
    graph = ExportedGraph(exported_file(name))
    batches = [np.full((2, 3, 8, 8), value, np.float32) for value in range(16)]
    with ThreadPoolExecutor(4) as executor:
        outputs = list(executor.map(graph, batches))
    for value, output in enumerate(outputs):
        np.testing.assert_allclose(output, 9 * value, atol=1e-4)


@pytest.mark.parametrize("name", FORMATS)
def test_an_output_of_another_shape_or_that_is_not_finite_is_refused(exported_file, name):
    labels = {"names": ["red", "green"], "names_with_aliases": ["red", "green"]}
    graph = ExportedGraph(exported_file(name, **labels, thresholds=[0.5, 0.5]))
    with pytest.raises(DataError, match=r"must have the shape \(1, 2\) and float32 values"):
        graph(np.zeros((1, 3, 8, 8), np.float32))
    graph = ExportedGraph(exported_file(name))
    with pytest.raises(DataError, match="must be finite; got NaN or infinity"):
        graph(np.full((1, 3, 8, 8), np.nan, np.float32))
    refusal = r"cannot process images of shape \(1, 3, 9, 9\)|must have the shape \(1, 3\)"
    with pytest.raises(DataError, match=refusal):
        graph(np.zeros((1, 3, 9, 9), np.float32))


@pytest.mark.parametrize("name", FORMATS)
def test_other_inputs_and_outputs_than_those_of_the_metadata_are_refused(exported_file, name):
    with pytest.raises(DataError, match="must have only the input 'image' of its metadata; got"):
        ExportedGraph(exported_file(name, input_name="image"))


def test_the_weights_of_onnx_may_not_be_outside_of_the_folder(exported_file):
    file = exported_file()
    model = onnx.load(file)
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../etc/passwd")
    onnx.save(model, file)
    with pytest.raises(DataError, match=r"External weights of .* must be a file in the folder"):
        ExportedGraph(file)


def test_an_unknown_operation_is_refused_by_each_runtime(exported_file):
    file = exported_file()
    model = onnx.load(file)
    model.graph.node.append(helper.make_node("Magic", ["logits"], ["more"]))
    onnx.save(model, file)
    with pytest.raises(DataError, match="cannot be loaded by onnxruntime"):
        ExportedGraph(file)
    file = exported_file("tagger.xml")
    file.write_text(file.read_text().replace('type="ReduceMean"', 'type="Magic"'))
    with pytest.raises(DataError, match=r"cannot be loaded by OpenVINO .* Copy both files again"):
        ExportedGraph(file)


def test_missing_or_damaged_weights_of_openvino_are_refused(exported_file):
    file = exported_file("tagger.xml")
    weights = file.with_suffix(".bin")
    content = weights.read_bytes()
    weights.write_bytes(content[:2])
    with pytest.raises(DataError, match="cannot be loaded by OpenVINO"):
        ExportedGraph(file)
    weights.unlink()
    with pytest.raises(DataError, match=r"tagger\.bin .*Copy both files of the model"):
        ExportedGraph(file)
