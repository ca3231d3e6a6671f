import pytest


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("label_next", "contains no image vectors"), ("audit", "at least 20 corrected images")],
)
def test_a_sentence_states_what_is_missing(client, kind, sentence):
    result = client.get("/api/proposals", params={"kind": kind}).json()
    assert (result["kind"], result["images"]) == (kind, [])
    assert sentence in result["sentence"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"kind": "random"},
        {"kind": "../audit"},
        {"kind": "audit", "count": 0},
        {"kind": "audit", "count": 201},
        {"kind": "audit", "count": "nan"},
    ],
)
def test_an_invalid_argument_is_refused(client, arguments):
    response = client.get("/api/proposals", params=arguments)
    assert response.status_code == 400
    assert response.json()["error"].startswith("The argument ")
