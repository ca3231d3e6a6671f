import os
import shutil
import time

import pytest

from surelabel.retrieval import Index
from surelabel.web import recognizer_service
from surelabel.web.recognizer_service import RecognizerService

SECONDS = 60.0  # until a recognizer is loaded on a slow machine
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of a fork


@pytest.fixture
def service(_forked_recognizers):
    service = RecognizerService(None, device="cpu", root=None, seconds=SECONDS)
    yield service
    service.close()


def wait_for_state(service, index):
    """Return the state of the recognizer after it was loaded, or could not be loaded."""
    end = time.monotonic() + SECONDS
    while (state := service.state(index))["state"] == "loading":
        assert time.monotonic() < end
        time.sleep(0.02)
    return state


def test_a_recognizer_is_loaded_again_after_the_index_was_replaced(
    service, miscalibrated_index, tmp_path, monkeypatch
):
    folder = tmp_path / "index"
    shutil.copytree(miscalibrated_index / "index", folder)
    index = Index.open(folder)
    os.rename(folder, tmp_path / "moved")
    assert "does not contain index.json" in wait_for_state(service, index)["reason"]
    os.rename(tmp_path / "moved", folder)
    assert service.state(index)["state"] == "missing"
    monkeypatch.setattr(recognizer_service, "REPEAT_SECONDS", 0.0)
    assert wait_for_state(service, index) == {"state": "ready", "reason": None}
