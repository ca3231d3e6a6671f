import tempfile
from pathlib import Path

import pytest

from surelabel.recognizer import Recognizer
from surelabel.retrieval import Index, IndexRecognizer

LABELS = ["lion", "coffee", "guitar"]


@pytest.fixture(scope="module")
def recognizer():
    return Recognizer.zero_shot("tiny-vit", LABELS)


@pytest.fixture(scope="module")
def recognizing(recognizer, photographs, tmp_path_factory, running_server):
    """Start a server whose index records its recognizer."""
    folder = tmp_path_factory.mktemp("recognizing") / "index"
    record = IndexRecognizer("tiny-vit", tuple(LABELS))
    Index.create(folder, recognizer.predict(photographs), recognizer=record)
    with running_server(folder) as served:
        yield served.client


def test_uploads_and_heat_maps_have_the_values_of_the_recognizer(
    recognizing, recognizer, photographs, png_bomb, svg
):
    files = [("images", (path.name, path.read_bytes())) for path in photographs[:2]]
    files += [
        ("images", ("bomb.png", png_bomb)),
        ("images", ("vector.jpg", svg, "image/jpeg")),
        ("images", ("../../<b>.jpg", photographs[2].read_bytes())),
    ]
    response = recognizing.post("/api/tag", params={"threshold": 0}, files=files)
    assert response.status_code == 200
    first, second, bomb, vector, named = response.json()["images"]
    expected = recognizer.predict(photographs[:2]).probabilities
    for found, values in zip((first, second), expected, strict=True):
        by_label = {label["label"]: label["probability"] for label in found["labels"]}
        assert [by_label[name] for name in LABELS] == pytest.approx(values.tolist(), abs=1e-4)
    assert "60000 × 60000 pixels" in bomb["error"]
    assert vector["error"].startswith("not an image of a supported format")
    assert named["name"].endswith("<b>.jpg")
    assert len(named["labels"]) == 3
    hit = recognizing.get("/api/search", params={"q": "lion"}).json()["hits"][0]
    heat_map = recognizing.get(f"/api/images/{hit['id']}/heat-map", params={"label": "lion"})
    assert heat_map.headers["content-type"] == "image/png"
    assert heat_map.content.startswith(b"\x89PNG")
    similar = recognizing.get("/api/search", params={"q": f"like:{photographs[0].name}#2"})
    assert similar.json()["hits"][0]["path"] == str(photographs[0])
    assert similar.json()["hits"][0]["similarity"] == pytest.approx(1, abs=1e-3)
    assert recognizing.get("/api/health").json()["recognizer"]["state"] == "ready"
    assert not list(Path(tempfile.gettempdir()).glob("*<b>*"))


def test_an_upload_without_a_recognizer_says_what_is_missing(client, photographs):
    response = client.post("/api/tag", files={"images": photographs[0].read_bytes()})
    assert response.status_code == 501
    assert "Start the server with --model" in response.json()["error"]
    assert client.get("/api/health").json()["recognizer"]["state"] == "missing"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"data": {"a": "b"}, "files": {"images": b"x"}},
            "got 1 file in this field and 1 other value.",
        ),
        ({"files": {"pictures": b"x"}}, "got 0 files in this field and 1 other value."),
        (
            {"files": [("images", b"x"), ("image", b"x"), ("", b"x")]},
            "field images; got 1 file in this field and 2 other values.",
        ),
        ({"data": {"images": "x"}}, "got 0 files in this field and 1 other value."),
        ({"content": b"x"}, "got 0 files in this field and 0 other values."),
        ({"files": [("images", b"x")] * 17}, "Too many files"),
        ({"files": {"images": b"x"}, "params": {"threshold": 2}}, "threshold is invalid"),
    ],
)
def test_an_invalid_form_is_refused(recognizing, options, message):
    response = recognizing.post("/api/tag", **options)
    assert response.status_code == 400
    assert message in response.json()["error"]
