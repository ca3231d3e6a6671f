import os
import subprocess
import sys
from importlib import import_module

import pytest

from surelabel.encoders.quantized.nncf_package import nncf_without_telemetry
from surelabel.errors import MissingPart

# Without these functions, openvino and nncf start processes that open connections.
PROGRAM = """
import os, sys

def report(event, arguments):
    if event.startswith("socket.") or event in ("urllib.Request", "os.fork", "os.posix_spawn"):
        os.write(1, f"{event} {arguments}\\n".encode())

import numpy as np
from importlib.util import find_spec, module_from_spec
for name in ("surelabel.encoders", "surelabel.encoders.engines", "surelabel.encoders.quantized"):
    sys.modules[name] = module_from_spec(find_spec(name))  # not run: its imports take seconds
from surelabel.encoders.quantized.nncf_package import nncf_without_telemetry
from surelabel.package_imports import import_without_telemetry

sys.addaudithook(report)
openvino = import_without_telemetry("openvino")
from openvino import opset13
with nncf_without_telemetry() as nncf:
    pixels = opset13.parameter([1, 8], np.float32)
    product = opset13.matmul(pixels, opset13.constant(np.eye(8, dtype=np.float32)), False, True)
    nncf.quantize(openvino.Model([product], [pixels]), nncf.Dataset([np.ones((1, 8), np.float32)]))
"""


def test_no_connection_is_opened_and_nothing_is_written_or_printed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "HOME": str(tmp_path), "CI": "", "NNCF_CI": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "nncf" not in done.stderr
    assert not list(tmp_path.glob("intel*"))


def test_an_import_of_another_program_sends_nothing_either(monkeypatch):
    with nncf_without_telemetry():
        decorator = import_module("nncf.telemetry.decorator")
    sent = []

    class Recorder:
        def __getattr__(self, name):
            return lambda *arguments, **options: sent.append(name)

    monkeypatch.setattr(decorator, "telemetry", Recorder())

    @decorator.tracked_function(category="test")
    def tracked():
        return 1

    with nncf_without_telemetry():
        assert tracked() == 1
    assert sent == []
    assert tracked() == 1
    assert sent == ["start_session", "end_session"]


def test_a_missing_package_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "nncf", None)
    message = r"nncf, .*pip install 'surelabel\[int8\]'"
    with pytest.raises(MissingPart, match=message), nncf_without_telemetry():
        pass
