import numpy as np
import pytest

from surelabel.retrieval import Index


def test_a_page_contains_the_hits_of_the_index_and_the_offset_of_the_next_page(client, home):
    expected = Index.open(home / "index").search("lion & !coffee", k=7)
    first = client.get("/api/search", params={"q": "lion & !coffee", "limit": 5}).json()
    second = client.get("/api/search", params={"q": "lion & !coffee", "limit": 5, "offset": 5})
    assert first["query"] == "lion & !coffee"
    assert first["next_offset"] == 5
    hits = first["hits"] + second.json()["hits"][:2]
    assert [hit["path"] for hit in hits] == [hit.path for hit in expected]
    assert [hit["probability"] for hit in hits] == [hit.probability for hit in expected]
    assert hits[0]["terms"] == expected[0].terms
    assert len({hit["id"] for hit in hits}) == 7


def test_the_last_page_has_no_next_offset(client, home):
    n_images = len(Index.open(home / "index"))
    page = client.get("/api/search", params={"q": "lion", "limit": n_images}).json()
    assert len(page["hits"]) == n_images
    assert page["next_offset"] is None


def test_images_below_the_minimum_probability_are_left_out(client):
    arguments = {"q": "lion", "limit": 200, "min_probability": 0.6}
    probabilities = [
        hit["probability"] for hit in client.get("/api/search", params=arguments).json()["hits"]
    ]
    assert probabilities
    assert min(probabilities) >= 0.6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "The argument q is required"),
        ({"q": "lion", "limit": 0}, "The argument limit is invalid"),
        ({"q": "lion", "limit": 201}, "less than or equal to 200; got '201'"),
        ({"q": "lion", "offset": -1}, "The argument offset is invalid"),
        ({"q": "lion", "offset": "../../etc/passwd"}, "The argument offset is invalid"),
        ({"q": "lion", "min_probability": 2}, "The argument min_probability is invalid"),
        ({"q": "tiger"}, "Label 'tiger' is not in the index"),
        ({"q": "like:/etc/passwd"}, "must be an indexed image; got /etc/passwd"),
        ({"q": "like:../../../etc/passwd"}, "must be an indexed image"),
        ({"q": '~"a lion"'}, "no recognizer"),
    ],
)
def test_an_invalid_argument_is_refused_with_one_line(client, arguments, message):
    response = client.get("/api/search", params=arguments)
    assert response.status_code == 400
    assert message in response.json()["error"]
    assert "\n" not in response.json()["error"]


def test_an_error_in_a_query_has_the_position_of_its_character(client):
    response = client.get("/api/search", params={"q": "lion & & coffee"})
    assert response.status_code == 400
    assert response.json()["position"] == 7


@pytest.mark.parametrize(("term", "expected"), [("a", 400), ("lion", 414)])
def test_a_query_of_ten_thousand_terms_is_refused(get, term, expected):
    status, content = get("/api/search?q=" + "%26".join([term] * 10_000))
    assert status == expected
    assert "must have at most" in content or "10,000 characters" in content


def test_labels_have_the_sum_of_their_probabilities(client, home):
    index = Index.open(home / "index")
    listed = client.get("/api/labels").json()
    assert listed["is_complete"]
    assert listed["n_images"] == len(index)
    assert [label["name"] for label in listed["labels"]] == index.names
    sums = [index.probabilities(name).sum() for name in ("lion", "coffee", "guitar")]
    counts = [label["expected_images"] for label in listed["labels"]]
    np.testing.assert_allclose(counts[:3], sums, atol=1e-3)


def test_labels_are_selected_by_their_beginning_without_case(client):
    listed = client.get("/api/labels", params={"prefix": "CO"}).json()
    assert [label["name"] for label in listed["labels"]] == ["coffee"]
    assert client.get("/api/labels", params={"prefix": "../"}).json()["n_labels"] == 0


def test_html_in_a_label_and_a_file_name_is_data_of_a_response_that_no_browser_renders(client):
    response = client.get("/api/search", params={"q": '"<script>alert(1)</script>"', "limit": 99})
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "script-src 'self'" in response.headers["content-security-policy"]
    assert any("<img src=x" in hit["path"] for hit in response.json()["hits"])
