import pytest

from surelabel.data import read_labels
from surelabel.data.correction_log import CorrectionLog
from surelabel.recognizer.random_rows import take_random_rows

NAMES = ["lion", "coffee", "guitar"]
N_IMAGES = 50


@pytest.fixture(scope="module")
def server(tmp_path_factory, running_server, write_index):
    home = tmp_path_factory.mktemp("sample")
    (home / "images").mkdir()
    paths = [home / "images" / f"{number:02}.jpg" for number in range(N_IMAGES)]
    for path in paths:
        path.touch()
    write_index(home / "index", paths, home / "images", names=NAMES)
    with running_server(home / "index") as server:
        server.file = home / "index.corrections.csv"
        yield server


@pytest.fixture
def client(server):
    server.file.unlink(missing_ok=True)
    return server.client


def sample(client, count, **other):
    return client.post("/api/sample", json={"count": count, **other}).json()


def check(client, image, labels):
    body = {"image": image["id"], "labels": labels, "others": 0, "sample": True}
    response = client.post("/api/corrections", json=body)
    assert response.status_code == 200
    return response.json()["event"]


def test_unchecked_images_are_returned_again_and_checked_ones_are_replaced(client):
    first = sample(client, 10)
    assert sample(client, 10) == first
    assert (first["n_drawn"], first["n_checked"], first["n_images"]) == (10, 0, N_IMAGES)
    assert first["inclusion_probability"] == 10 / N_IMAGES
    for image in first["images"][:4]:
        check(client, image, {"lion": 1})
    second = sample(client, 10)
    assert second["images"][:6] == first["images"][4:]
    assert (second["n_drawn"], second["n_checked"]) == (14, 4)
    assert second["inclusion_probability"] == 14 / N_IMAGES
    assert len({image["id"] for image in first["images"] + second["images"]}) == 14


def test_an_image_is_described_with_its_most_probable_labels(client):
    (image,) = sample(client, 1)["images"]
    described = client.get(f"/api/images/{image['id']}").json()
    assert image["path"] == described["path"]
    assert image["labels"] == described["labels"]
    assert image["is_checked"] is False


def test_the_sample_does_not_depend_on_corrections(client):
    expected = [image["id"] for image in sample(client, 5)["images"]]
    client.post("/api/corrections", json={"image": expected[3], "labels": {"lion": 1}})
    again = sample(client, 5)
    assert [image["id"] for image in again["images"]] == expected
    assert again["n_checked"] == 0


def test_an_undone_check_makes_an_image_unchecked(client):
    (image,) = sample(client, 1)["images"]
    event = check(client, image, {"lion": 1})
    url = f"/api/images/{image['id']}/corrections"
    assert client.get(url).json() == {
        "labels": {"lion": 1, "coffee": 0, "guitar": 0},
        "is_checked": True,
    }
    client.post("/api/corrections/undo", json={"event": event})
    assert client.get(url).json() == {"labels": {}, "is_checked": False}
    assert [other["id"] for other in sample(client, 1)["images"]] == [image["id"]]


def test_no_more_images_than_those_of_the_index_are_sampled(client):
    everything = sample(client, 200)
    assert (len(everything["images"]), everything["inclusion_probability"]) == (N_IMAGES, 1.0)


def test_without_a_sample_the_probability_is_zero(client, server):
    empty = sample(client, 0)
    assert (empty["images"], empty["n_drawn"], empty["inclusion_probability"]) == ([], 0, 0.0)
    assert not server.file.exists()


def test_another_seed_is_refused_after_the_first_draw(client):
    sample(client, 3, seed=7)
    response = client.post("/api/sample", json={"count": 4, "seed": 8})
    assert response.status_code == 400
    assert response.json()["error"].startswith("The seed must be 7")
    assert sample(client, 4, seed=7)["n_drawn"] == 4


def test_the_file_is_a_dataset_whose_random_rows_are_the_complete_checks(client, server):
    images = sample(client, 8)["images"]
    for image in images[:6]:
        check(client, image, {"coffee": 1, "lion": None})
    outside = next(hit for hit in search(client) if hit["id"] not in {i["id"] for i in images})
    for image in (images[0], images[6], outside):  # errors that a client corrected
        body = {"image": image["id"], "labels": {"coffee": 0}, "chosen_by": "query"}
        client.post("/api/corrections", json=body)
    labelled = read_labels(server.file)
    assert len(labelled) == 9
    text = (
        r"uses 6 annotated rows .* 1 annotated row is left out.* 2 random rows have not been "
        "annotated, so the random sample is incomplete"
    )
    with pytest.warns(UserWarning, match=text):
        used = take_random_rows(labelled, "The calibration")
    columns = [used.names.index(name) for name in NAMES]
    assert used.targets[:, columns].tolist() == [[0, 1, 0]] * 6
    assert used.known[:, columns].tolist() == [[False, True, True]] * 6
    assert set(used.row_selection.inclusion_probability) == {8 / N_IMAGES}


def search(client):
    return client.get("/api/search", params={"q": "lion", "limit": 200}).json()["hits"]


@pytest.mark.parametrize(
    "body",
    [
        {"count": -1},
        {"count": 201},
        {"count": "3"},
        {"count": 1.5},
        {"count": True},
        {"seed": -1},
        {"seed": 2**31},
        {"seed": None},
        {"path": "/etc/passwd"},
        [],
        "x",
    ],
)
def test_an_invalid_request_is_refused_and_samples_nothing(client, server, body):
    response = client.post("/api/sample", json=body)
    assert response.status_code == 400
    assert "is invalid" in response.json()["error"]
    assert not server.file.exists()


def test_a_request_of_another_site_is_refused(client, server):
    response = client.post("/api/sample", json={}, headers={"origin": "http://evil.example"})
    assert response.status_code == 403
    assert not server.file.exists()


def test_a_server_of_another_process_continues_the_sample(client, server, running_server):
    first = [image["id"] for image in sample(client, 3)["images"]]
    with running_server(server.file.with_name("index")) as other:
        assert [image["id"] for image in sample(other.client, 4)["images"]][:3] == first
    assert sample(client, 0)["n_drawn"] == 4
    assert list(CorrectionLog(server.file).history().sampled.values()) == [4 / N_IMAGES] * 4
