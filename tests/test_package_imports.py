import gc
import sys

import pytest

from surelabel.package_imports import import_without_garbage_collection


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
