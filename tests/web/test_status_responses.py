import pytest
from pydantic import ValidationError

from surelabel.web.status_responses import RecognizerHealth, ServerHealth


def test_each_state_of_the_recognizer_is_described():
    for state in ("loading", "ready", "missing"):
        assert RecognizerHealth.model_validate({"state": state, "reason": None}).state == state
    with pytest.raises(ValidationError, match="'loading', 'ready' or 'missing'"):
        RecognizerHealth.model_validate({"state": "unknown", "reason": None})


def test_the_state_of_the_server_is_that_of_a_real_server(client):
    health = ServerHealth.model_validate(client.get("/api/health").json())
    assert (health.status, health.index.images) == ("ok", 13)
    assert health.recognizer.state == "missing"
