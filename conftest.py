"""Leave files without examples out of the collection of doctests, to save time."""

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    collectors = yield
    if file_path.suffix == ".py" and b">>>" not in file_path.read_bytes():
        return [item for item in collectors if type(item).__name__ != "DoctestModule"]
    return collectors
