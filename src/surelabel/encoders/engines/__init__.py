"""Define the engines that run the image towers of encoders.

An engine prepares a module that computes the features of images. To add an engine, add one line to
``ENGINES``.
"""

from surelabel.encoders.engines.interface import TORCH_FP32, Engine, EngineSettings
from surelabel.encoders.engines.onnx_engine import OnnxEngine
from surelabel.encoders.engines.openvino_engine import OpenVINOEngine
from surelabel.encoders.engines.torch_engine import TorchEngine

__all__ = ["ENGINES", "TORCH_FP32", "Engine", "EngineSettings"]

ENGINES: dict[str, Engine] = {
    "torch": TorchEngine(),
    "onnx": OnnxEngine(),
    "openvino": OpenVINOEngine(),
}
