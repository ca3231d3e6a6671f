import csv
import json
import math

import pytest

from surelabel.data.correction_log import CorrectionLog
from surelabel.data.labels.resolution.correction_rows import read_correction_rows
from surelabel.web.request_limits import RequestLimits

NAMES = ["lion", "=cmd|' /C calc'!A0", "<script>alert(1)</script>", "chat noir, é"]
HOSTILE_QUERY = "=cmd|' /C calc'!A0\r\n<script>alert(1)</script>,\"\t\x00 \u2028x"


@pytest.fixture(scope="module")
def server(tmp_path_factory, running_server, write_index):
    home = tmp_path_factory.mktemp("corrections")
    paths = [home / "images" / f"{number:02}.jpg" for number in range(12)]
    write_index(home / "index", paths, home / "images", names=NAMES)
    with running_server(home / "index", limits=RequestLimits()) as server:
        server.file = home / "index.corrections.csv"
        server.log = CorrectionLog(server.file)
        yield server


@pytest.fixture
def client(server):
    return server.client


@pytest.fixture
def identifiers(client):
    hits = client.get("/api/search", params={"q": "lion", "limit": 50}).json()["hits"]
    return {hit["path"][-6:-4]: hit["id"] for hit in hits}


@pytest.fixture
def correct(client):
    """Return a function that posts corrections, and returns the status and the JSON object."""

    def post(image, labels, **other):
        response = client.post("/api/corrections", json={"image": image, "labels": labels, **other})
        return response.status_code, response.json()

    return post


def targets_of(client, identifier):
    return client.get(f"/api/images/{identifier}/corrections").json()["labels"]


def test_a_correction_is_listed_and_written_to_the_file(client, server, identifiers, correct):
    image, query = identifiers["00"], "lion & !cat"
    probability = client.get(f"/api/images/{image}").json()["labels"]
    status, event = correct(
        image, {"lion": 0, NAMES[1]: None}, chosen_by="query", query=query, rank=3
    )
    assert (status, event["n_labels"]) == (200, 2)
    listed = client.get("/api/corrections", params={"limit": 2}).json()
    newest, older = listed["corrections"]
    assert (newest["label"], newest["corrected"]) == (NAMES[1], None)
    time = older.pop("time")
    assert time.endswith("Z")
    assert older == {
        "event": event["event"],
        "image": image,
        "path": server.server.session.current().find_image(image).path,
        "label": "lion",
        "corrected": 0,
        "probability": pytest.approx(
            next(one["probability"] for one in probability if one["label"] == "lion"), abs=1e-6
        ),
        "chosen_by": "query",
        "inclusion_probability": None,
        "query": query,
        "rank": 3,
        "is_undone": False,
    }
    assert listed["file"] == str(server.file)
    assert targets_of(client, image) == {"lion": 0}
    row = read_correction_rows(server.file).rows[-2]
    assert (row.label, row.target, row.query, row.rank) == ("lion", 0.0, query, 3)


def test_pages_of_corrections_follow_each_other(client, identifiers, correct):
    for target in (0, 1, 0):
        correct(identifiers["01"], {"lion": target})
    pages = [
        client.get("/api/corrections", params={"offset": offset, "limit": 1}).json()
        for offset in range(3)
    ]
    assert [page["corrections"][0]["corrected"] for page in pages] == [0, 1, 0]
    n_corrections = pages[0]["n_corrections"]
    end = client.get("/api/corrections", params={"offset": n_corrections}).json()
    assert end["corrections"] == []


def test_others_are_negative(client, identifiers, correct):
    _, event = correct(identifiers["02"], {"lion": 1, NAMES[3]: None}, others=0)
    assert event["n_labels"] == 4
    assert targets_of(client, identifiers["02"]) == {"lion": 1, NAMES[1]: 0, NAMES[2]: 0}


def test_an_undone_event_has_no_effect(client, identifiers, correct):
    image = identifiers["03"]
    correct(image, {"lion": 1})
    _, event = correct(image, {"lion": 0, NAMES[2]: 1})
    undone = client.post("/api/corrections/undo", json={"event": event["event"]})
    assert undone.json() == {"event": f"undo {event['event']}", "n_labels": 2}
    assert targets_of(client, image) == {"lion": 1}
    listed = client.get("/api/corrections", params={"limit": 3}).json()["corrections"]
    assert [row["is_undone"] for row in listed] == [True, True, False]
    again = client.post("/api/corrections/undo", json={"event": event["event"]})
    assert (again.status_code, "was undone before" in again.json()["error"]) == (400, True)


def test_two_clients_with_own_servers_lose_no_correction(
    server, identifiers, running_server, client, correct
):
    with running_server(server.file.with_name("index")) as other:
        for number, own in enumerate([other.client, client] * 5):
            body = {"image": identifiers["04"], "labels": {"lion": number % 2}, "rank": number}
            assert own.post("/api/corrections", json=body).status_code == 200
        for own in (other.client, client):
            listed = own.get("/api/corrections", params={"limit": 10}).json()["corrections"]
            assert [row["rank"] for row in listed] == list(range(9, -1, -1))


def test_hostile_texts_are_recorded_as_text(client, server, identifiers, correct):
    status, _ = correct(
        identifiers["05"], dict.fromkeys(NAMES, 1), chosen_by="similar", query=HOSTILE_QUERY
    )
    assert status == 200
    rows = client.get("/api/corrections", params={"limit": 4}).json()["corrections"]
    assert [row["label"] for row in rows] == NAMES[::-1]
    assert rows[0]["query"] == "=cmd|' /C calc'!A0  <script>alert(1)</script>,\"    x"
    with server.file.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    assert all(len(line) == len(lines[0]) for line in lines)
    assert not any(cell.startswith(("=", "+", "@")) for line in lines for cell in line)


def test_a_client_cannot_claim_that_an_image_was_sampled(server, identifiers, correct):
    status, body = correct(identifiers["06"], {"lion": 1}, chosen_by="random")
    assert status == 400
    assert "The argument chosen_by is invalid" in body["error"]
    status, body = correct(identifiers["06"], {"lion": 1}, others=0, sample=True)
    assert (status, "requires an image of the random sample" in body["error"]) == (400, True)
    assert not any(row.path.endswith("06.jpg") for row in server.log.history().rows)


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"labels": {"tiger": 1}}, 404, "Label 'tiger' is not in the index"),
        ({"labels": {"<b>": 1}}, 404, "Label '<b>' is not in the index"),
        ({"labels": {}}, 400, "requires at least one label"),
        ({"labels": {"lion": 2}}, 400, "labels.lion is invalid"),
        ({"labels": {"lion": True}}, 400, "labels.lion is invalid"),
        ({"labels": {"lion": 0.5}}, 400, "labels.lion is invalid"),
        ({"labels": {"lion": "1"}}, 400, "labels.lion is invalid"),
        ({"labels": ["lion"]}, 400, "The argument labels is invalid"),
        ({"labels": {f"label {n}": 1 for n in range(3000)}}, 404, "is not in the index"),
        ({"labels": {f"label {n}": 1 for n in range(10_000)}}, 413, "must have at most"),
        ({"image": "../../etc/passwd"}, 404, "'../../etc/passwd' is not in the index"),
        ({"image": "0-0-0000000000000000"}, 404, "is not in the index"),
        ({"image": "0-99999-3f2a9c0d1e5b7a46"}, 404, "is not in the index"),
        ({"image": "x" * 65}, 400, "The argument image is invalid"),
        ({"image": None}, 400, "The argument image is invalid"),
        ({"image": "index.json\x00"}, 404, "is not in the index"),
        ({"others": 1}, 400, "The argument others is invalid"),
        ({"rank": -1}, 400, "The argument rank is invalid"),
        ({"rank": 10**400}, 400, "The argument rank is invalid"),
        ({"query": "x" * 60_000}, 400, "The argument query is invalid"),
        ({"query": {"x": 1}}, 400, "The argument query is invalid"),
        ({"chosen_by": "=cmd"}, 400, "The argument chosen_by is invalid"),
        ({"sample": 1}, 400, "The argument sample is invalid"),
        ({"sample": True}, 400, "requires targets of all 4 labels; got 1"),
        ({"file": "/etc/passwd"}, 400, "The argument file is invalid"),
    ],
)
def test_an_invalid_correction_is_refused_and_changes_nothing(
    client, server, identifiers, change, status, message
):
    client.post("/api/corrections", json={"image": identifiers["07"], "labels": {"lion": 1}})
    content = server.file.read_bytes()
    body = {"image": identifiers["07"], "labels": {"lion": 0}} | change
    response = client.post("/api/corrections", json=body)
    assert (response.status_code, message in response.json()["error"]) == (status, True)
    assert "\n" not in response.json()["error"]
    assert server.file.read_bytes() == content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[" * 30_000,
        b'{"image": NaN, "labels": {"lion": NaN}}',
        b'{"image": "\xff", "labels": {}}',
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    ],
)
def test_a_body_that_is_not_json_is_refused(client, content):
    for url in ("/api/corrections", "/api/corrections/undo"):
        response = client.post(url, content=content, headers={"content-type": "application/json"})
        assert response.status_code == 400
        assert len(response.json()["error"]) < 500


def test_a_request_of_another_site_is_refused(client, server, identifiers):
    content = server.file.read_bytes() if server.file.exists() else None
    body = json.dumps({"image": identifiers["08"], "labels": {"lion": 1}})
    for url in ("/api/corrections", "/api/corrections/undo"):
        for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
            response = client.post(url, content=body, headers=headers)
            assert response.status_code == 403
    assert (server.file.read_bytes() if server.file.exists() else None) == content


@pytest.mark.parametrize("event", ["", "e1-0000000000000000", "undo x", "x" * 64, "=cmd", "../x"])
def test_an_unknown_event_cannot_be_undone(client, event):
    response = client.post("/api/corrections/undo", json={"event": event})
    assert (response.status_code, "is not in the corrections" in response.json()["error"]) == (
        404,
        True,
    )


@pytest.mark.parametrize("body", [{}, {"event": 1}, {"event": "x" * 65}, {"event": "x", "y": 1}])
def test_an_invalid_undo_is_refused(client, body):
    assert client.post("/api/corrections/undo", json=body).status_code == 400


def test_an_image_that_left_the_index_has_no_identifier(client, server):
    event = server.log.record("/elsewhere/lost.jpg", {"lion": 1.0}, chosen_by="query")
    newest = client.get("/api/corrections", params={"limit": 1}).json()["corrections"][0]
    assert (newest["event"], newest["image"]) == (event, None)
    assert newest["path"] == "/elsewhere/lost.jpg"


def test_an_unknown_image_has_no_corrections(client):
    for identifier in ("0-0-0000000000000000", "..%2F..%2Fetc%2Fpasswd"):
        assert client.get(f"/api/images/{identifier}/corrections").status_code == 404


def test_a_damaged_file_is_named_in_one_line_and_is_never_changed(
    client, server, identifiers, correct
):
    correct(identifiers["09"], {"lion": 1})
    content = server.file.read_bytes()
    damaged = content + b"00.jpg,lion,maybe,,,,,,,\n"
    server.file.write_bytes(damaged)
    try:
        status, body = correct(identifiers["09"], {"lion": 0})
        assert status == 500
        assert "must be 1, 0, unknown or empty; got 'maybe'" in body["error"]
        assert client.get("/api/corrections").json() == body
        assert client.get("/api/search", params={"q": "lion"}).status_code == 200
        assert server.file.read_bytes() == damaged
    finally:
        server.file.write_bytes(content)
    assert targets_of(client, identifiers["09"]) == {"lion": 1}


def test_a_removed_incomplete_event_is_noted(client, server, identifiers, correct):
    correct(identifiers["10"], {"lion": 1})
    with server.file.open("a") as file:
        file.write("00.jpg,lion,1,0.")
    correct(identifiers["10"], {"lion": 0})
    assert "16 bytes of a correction" in client.get("/api/corrections").json()["note"]
    assert math.isclose(server.log.history().targets[_path(server, "10")]["lion"], 0)


def _path(server, name):
    return str(server.file.parent / "images" / f"{name}.jpg")
