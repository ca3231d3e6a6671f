import gc
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

from surelabel.package_imports import (
    TELEMETRY_PACKAGE,
    import_without_garbage_collection,
    import_without_telemetry,
)

INTERRUPTED_PROCESS = """
import signal
import numpy as np
from surelabel.package_imports import import_without_telemetry, openvino_core

operators = import_without_telemetry("openvino").opset13

def compile_model():
    value = operators.parameter([-1, 3], np.float32)
    model = import_without_telemetry("openvino").Model([operators.relu(value)], [value])
    return openvino_core().compile_model(model, "CPU")

first, second = compile_model(), compile_model()
del first
del second
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture
def module_name(tmp_path, monkeypatch):
    """Write a module that stores whether the collector is enabled while the module is imported."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "imported_once.py").write_text("import gc\nis_enabled = gc.isenabled()\n")
    yield "imported_once"
    sys.modules.pop("imported_once", None)


def test_the_collector_is_disabled_only_during_the_import(module_name):
    assert gc.isenabled()
    assert import_without_garbage_collection(module_name).is_enabled is False
    assert gc.isenabled()


def test_a_collector_that_was_disabled_stays_disabled(module_name):
    gc.disable()
    try:
        import_without_garbage_collection(module_name)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_after_a_failed_import_the_collector_is_enabled_again():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        import_without_garbage_collection("no_such_module")
    assert gc.isenabled()


def test_the_telemetry_package_is_hidden_only_during_the_import(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "sending.py").write_text(
        "try:\n    import openvino_telemetry\n    sends = True\n"
        "except ImportError:\n    sends = False\n"
    )
    for before in (None, ModuleType(TELEMETRY_PACKAGE)):
        monkeypatch.delitem(sys.modules, "sending", raising=False)
        monkeypatch.delitem(sys.modules, TELEMETRY_PACKAGE, raising=False)
        if before:
            monkeypatch.setitem(sys.modules, TELEMETRY_PACKAGE, before)
        assert import_without_telemetry("sending").sends is False
        assert sys.modules.get(TELEMETRY_PACKAGE) is before
    monkeypatch.delitem(sys.modules, "sending")
    assert import_module("sending").sends
    del sys.modules["sending"]


def test_the_telemetry_package_is_visible_after_a_failed_import():
    with pytest.raises(ImportError, match=r"surelabel\.unknown"):
        import_without_telemetry("surelabel.unknown")
    assert TELEMETRY_PACKAGE not in sys.modules or sys.modules[TELEMETRY_PACKAGE]


def test_ctrl_c_raises_keyboard_interrupt_after_models_of_openvino_were_deleted():
    pytest.importorskip("openvino")
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_PROCESS], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stdout) == (0, "interrupted\n")
