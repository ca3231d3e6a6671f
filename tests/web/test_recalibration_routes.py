import asyncio
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.metrics import log_loss
from surelabel.retrieval import Index
from surelabel.web import recalibration_routes

N_CHECKED, SECONDS = 40, 120
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of a fork


@pytest.fixture(scope="module")
def home(miscalibrated_index, tmp_path_factory):
    home = tmp_path_factory.mktemp("recalibration")
    shutil.copytree(miscalibrated_index, home, dirs_exist_ok=True)
    return home


@pytest.fixture(scope="module")
def served(home, running_server, _forked_recognizers):
    """Start the server of an index whose recognizer is given by --model."""
    with running_server(home / "index", model=str(home / "recognizer")) as served:
        yield served


@pytest.fixture(scope="module")
def client(served):
    return served.client


def check_images(client, scenes, n_images):
    """Sample images until n images are checked, and check them with their true targets."""
    row_of = {str(path): row for row, path in enumerate(scenes.paths)}
    answer = client.post("/api/sample", json={"count": n_images, "seed": 0}).json()
    for image in answer["images"][:n_images]:
        targets = scenes.targets[row_of[image["path"]]]
        positive = {scenes.names[column]: 1 for column in np.flatnonzero(targets).tolist()}
        body = {"image": image["id"], "labels": positive, "others": 0, "sample": True}
        assert client.post("/api/corrections", json=body).status_code == 200
    return [image["path"] for image in answer["images"][:n_images]]


def wait(client):
    deadline = time.monotonic() + SECONDS
    while (state := client.get("/api/recalibration").json())["state"] == "running":
        assert time.monotonic() < deadline
        assert client.get("/api/search", params={"q": "lion"}).status_code == 200
        time.sleep(0.1)
    return state


def test_the_index_is_recalibrated_on_checked_images(client, home, scenes):
    state = client.get("/api/recalibration").json()
    assert state == {
        "n_checked": 0,
        "n_required": 20,
        "n_missing": 20,
        "state": "idle",
        "reason": None,
        "has_recognizer": True,
        "reason_no_recognizer": None,
    }
    few = client.post("/api/recalibration")
    assert few.status_code == 400
    assert "got 0. Annotate 20 more images." in few.json()["error"]
    refused = client.post("/api/recalibration/apply")
    assert refused.status_code == 400
    assert "must be evaluated before it is applied" in refused.json()["error"]

    paths = check_images(client, scenes, N_CHECKED)
    assert client.get("/api/recalibration").json()["n_checked"] == N_CHECKED
    found = client.post("/api/recalibration").json()
    assert found["is_improvement"]
    assert found["n_images"] == N_CHECKED
    assert set(found["log_loss"]) == {"before", "after", "change", "low", "high"}
    assert len(found["ece"]) == 8

    before = Index.open(home / "index")
    is_other = [path not in paths for path in before.paths]
    losses = [other_log_loss(before, scenes, is_other)]
    hits = client.get("/api/search", params={"q": "lion"}).json()["hits"]
    applied = client.post("/api/recalibration/apply")
    assert (applied.status_code, applied.json()) == (202, {"state": "running"})
    assert client.post("/api/recalibration/apply").status_code == 400
    state = wait(client)
    assert (state["state"], state["reason"]) == ("applied", None)
    assert state["has_recognizer"]
    assert (home / "index.recognizer" / "calibration.json").exists()
    losses.append(other_log_loss(Index.open(home / "index"), scenes, is_other))
    assert losses[1] < 0.95 * losses[0]
    again = client.get("/api/search", params={"q": "lion"}).json()["hits"]
    assert again[0]["probability"] != hits[0]["probability"]
    # the recognizer of --model is replaced by the new one, which the index records
    content = Path(scenes.paths[0]).read_bytes()
    tagged = client.post("/api/tag?threshold=0", files={"images": ("a.jpg", content)}).json()
    described = client.get(f"/api/images/{again[0]['id']}").json()
    assert tagged["images"][0]["labels"]
    assert described["labels"]
    # the second evaluation uses the new log-odds
    assert not client.post("/api/recalibration").json()["is_improvement"]
    refused = client.post("/api/recalibration/apply").json()["error"]
    assert refused.startswith("There is no evidence of miscalibration")
    assert client.get("/api/recalibration").json()["state"] == "idle"


def test_files_of_checked_images_are_examined_outside_of_the_event_loop(monkeypatch):
    def resolve(path, root):
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        if path == "missing":
            raise DataError("no file")
        return f"{root}/{path}"

    class Recognizer:
        async def images_of_fit(self, index, paths):
            assert paths == ["/root/a", "/root/b"]
            return [False, True]

    monkeypatch.setattr(recalibration_routes, "resolve_servable_file", resolve)
    images = SimpleNamespace(paths=["a", "missing", "b"], index=SimpleNamespace(root="/root"))
    found = asyncio.run(recalibration_routes.find_images_of_fit(Recognizer(), images))
    assert found == [False, False, True]


def other_log_loss(index, scenes, is_other):
    row_of = {str(path): row for row, path in enumerate(scenes.paths)}
    rows = [row_of[path] for path in index.paths]
    probabilities = np.stack([index.probabilities(name) for name in index.names], axis=1)
    return log_loss(probabilities[is_other], scenes.targets[rows][is_other])


def test_a_method_without_uncertainty_states_the_reason(client):
    hit = client.get("/api/search", params={"q": "lion"}).json()["hits"][0]
    found = client.get(f"/api/images/{hit['id']}/uncertainty").json()
    reason = "The method zero_shot estimates no uncertainty apart from the probability."
    assert found == {"kinds": {}, "reason": reason}


@pytest.mark.parametrize("path", ["/api/recalibration", "/api/recalibration/apply"])
@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}]
)
def test_requests_of_other_sites_are_refused(client, path, headers):
    assert client.post(path, headers=headers).status_code == 403


@pytest.mark.parametrize("identifier", ["0-0-0", "..%2F..%2Fetc%2Fpasswd", "<script>", "0" * 64])
def test_unknown_images_have_no_uncertainty(client, identifier):
    assert client.get(f"/api/images/{identifier}/uncertainty").status_code == 404


def test_an_index_without_a_recognizer_states_the_reason(home, running_server, write_index):
    path = home / "index" / "missing.jpg"
    write_index(home / "plain", [path], home)
    with running_server(home / "plain") as served:
        state = served.client.get("/api/recalibration").json()
        assert not state["has_recognizer"]
        assert "which the index does not record" in state["reason_no_recognizer"]
        hit = served.client.get("/api/search", params={"q": "lion"}).json()["hits"][0]
        missing = served.client.get(f"/api/images/{hit['id']}/uncertainty")
        assert missing.status_code == 404


def test_a_damaged_file_of_corrections_is_one_line(home, running_server, write_index):
    write_index(home / "damaged", [home / "a.jpg"], home)
    with running_server(home / "damaged") as served:
        (home / "damaged.corrections.csv").write_bytes(b"\xff\xfe\x00")
        found = served.client.get("/api/recalibration")
        assert found.status_code == 500
        assert "damaged.corrections.csv" in found.json()["error"]
