import json

import pytest

from surelabel.errors import (
    ConfigError,
    DataError,
    InputError,
    MissingPart,
    NotConverged,
    QuerySyntaxError,
    UnknownName,
)
from surelabel.web.error_responses import describe_error, error_response


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (InputError, 400),
        (UnknownName, 404),
        (DataError, 500),
        (ConfigError, 501),
        (MissingPart, 501),
        (NotConverged, 500),
    ],
)
def test_the_class_of_an_error_determines_the_status(kind, status):
    response = error_response(kind("what was\nexpected"))
    assert response.status_code == status
    assert json.loads(response.body) == {"error": "what was expected"}


def test_an_error_in_a_query_has_a_position_instead_of_a_mark():
    response = error_response(QuerySyntaxError("reason", 7, "excerpt", 3))
    assert json.loads(response.body) == {"error": "reason", "position": 7}


def test_a_defect_is_a_response_in_json_with_all_headers(served, get):
    session = served.server.session
    index = session.current().index
    names, index._manifest = index._manifest, None
    try:
        response = served.client.get("/api/labels")
    finally:
        index._manifest = names
    assert response.status_code == 500
    assert "defect" in response.json()["error"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert get("/api/health")[0] == 200  # the connection is closed after a defect


def test_the_description_of_an_error_has_the_fields_of_its_response(client):
    response = client.get("/api/search", params={"q": "lion & & coffee"})
    model = describe_error("The query is invalid.")["model"]
    assert response.json().keys() == model.model_fields.keys()
    assert model.model_validate(response.json()).position == 7
