import httpx
import pytest
from jsonschema import ValidationError


@pytest.fixture(scope="module")
def served(tmp_path_factory, write_index, photographs, running_server):
    """Start a server of a new index without a recognizer."""
    home = tmp_path_factory.mktemp("application")
    write_index(home / "index", photographs, photographs[0].parent)
    with running_server(home / "index") as served:
        yield served


def request_operations(client):
    """Request all operations, with a result wherever the recognizer is not needed."""
    hit = client.get("/api/search", params={"q": "lion"}).json()["hits"][0]["id"]
    yield "/api/search", client.get("/api/search", params={"q": "lion & !coffee", "limit": 1})
    yield "/api/labels", client.get("/api/labels")
    image = "/api/images/{identifier}"
    yield image, client.get(f"/api/images/{hit}")
    for operation in ("thumbnail", "file", "corrections", "uncertainty"):
        yield f"{image}/{operation}", client.get(f"/api/images/{hit}/{operation}")
    heat_map = client.get(f"/api/images/{hit}/heat-map", params={"label": "lion"})
    yield f"{image}/heat-map", heat_map
    yield "/api/tag", client.post("/api/tag", files={"images": b"x"})
    body = {"image": hit, "labels": {"lion": 1, "coffee": None}, "query": "lion", "rank": 0}
    event = client.post("/api/corrections", json=body)
    yield "/api/corrections", event
    undone = client.post("/api/corrections/undo", json={"event": event.json()["event"]})
    yield "/api/corrections/undo", undone
    yield "/api/corrections", client.get("/api/corrections")
    yield "/api/sample", client.post("/api/sample", json={"count": 2})
    yield "/api/proposals", client.get("/api/proposals", params={"kind": "label_next"})
    yield "/api/recalibration", client.get("/api/recalibration")
    yield "/api/recalibration", client.post("/api/recalibration")
    yield "/api/recalibration/apply", client.post("/api/recalibration/apply")
    yield "/api/login", client.post("/api/login", json={"token": "t"})
    yield "/api/health", client.get("/api/health")
    yield "/api/metrics", client.get("/api/metrics")


def test_the_responses_of_all_operations_have_the_described_content(served):
    requested = set()
    for path, response in request_operations(served.client):  # the client checks each response
        requested.add((path, response.request.method.lower()))
        assert response.status_code in (200, 400, 501), path
    described = {(path, method) for path, item in served.schemas.paths.items() for method in item}
    assert requested == described


def test_each_operation_describes_its_result_and_its_errors(served):
    for path, item in served.schemas.paths.items():
        for operation in item.values():
            responses = operation["responses"]
            results = [responses[status] for status in responses if status.startswith("2")]
            assert results, path
            for result in results:
                assert all(content["schema"] for content in result["content"].values()), path
            errors = [responses[status] for status in responses if status[0] in "45d"]
            for error in errors:
                schema = error["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/ErrorMessage"}, path
            assert "422" not in responses or "heat-map" in path


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (200, {"status": "ok", "index": {}}),
        (200, {"error": "text"}),
        (400, {"error": 1}),
        (400, {"error": "text", "other": "text"}),
        (400, {"detail": "text"}),
    ],
)
def test_a_response_with_another_content_is_detected(served, status, content):
    request = httpx.Request("GET", f"{served.url}/api/health")
    with pytest.raises(ValidationError, match=r"required property|not of type|Additional prop"):
        served.schemas.check(httpx.Response(status, json=content, request=request))


def test_a_response_of_another_type_is_detected(served):
    request = httpx.Request("GET", f"{served.url}/api/images/0-0-0/thumbnail")
    response = httpx.Response(200, html="<p>text</p>", request=request)
    with pytest.raises(AssertionError, match="text/html"):
        served.schemas.check(response)
