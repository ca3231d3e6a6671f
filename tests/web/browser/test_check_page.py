import pytest
from playwright.sync_api import expect

from surelabel.web.request_limits import RequestLimits

N_REQUIRED = 20  # checked images of a recalibration


@pytest.fixture
def checked_server(tmp_path, create_scene_index, running_server):
    """Start a server of the scenes with a separate index, without corrections."""
    create_scene_index(tmp_path / "index")
    with running_server(tmp_path / "index", limits=RequestLimits()) as served:
        yield served


@pytest.fixture
def plain_server(tmp_path, create_scene_index, running_server):
    """Start a server of the scenes without a recognizer and without corrections."""
    create_scene_index(tmp_path / "index", has_recognizer=False)
    with running_server(tmp_path / "index", limits=RequestLimits()) as served:
        yield served


def check_by_api(server, n_images):
    """Check images of the random sample: the labels above one half are positive."""
    sample = server.client.post("/api/sample", json={"count": n_images, "seed": 0}).json()
    for image in sample["images"]:
        labels = {row["label"]: int(row["probability"] >= 0.5) for row in image["labels"]}
        body = {"image": image["id"], "labels": labels, "others": 0, "sample": True}
        assert server.client.post("/api/corrections", json=body).status_code == 200


def test_images_of_the_sample_are_checked_for_all_labels(checked_server, open_page):
    page = open_page(f"{checked_server.url}/#check")
    expect(page.locator("#recalibration-state")).to_contain_text("20 are missing")
    expect(page.get_by_role("button", name="Recalibrate", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Check 30 images").click()
    expect(page.locator("#check-count")).to_have_text("0 of 30 checked")
    expect(page.locator("#check-toggles li")).to_have_count(30)
    path = page.locator("#check-path").text_content()
    image = find_image(checked_server, path)
    probable = [row["label"] for row in image["labels"] if row["probability"] >= 0.5]
    expect(page.locator("#check-toggles :checked")).to_have_count(len(probable))
    absent = {row["label"] for row in image["labels"][:30]}
    added = next(row["label"] for row in image["labels"] if row["label"] not in absent)
    page.locator("#check-add").press_sequentially(added)
    page.keyboard.press("Enter")
    expect(page.get_by_role("checkbox", name=added, exact=True)).to_be_checked()
    page.get_by_role("button", name="All labels are correct; next image").click()
    expect(page.locator("#check-count")).to_have_text("1 of 30 checked")
    state = checked_server.client.get(f"/api/images/{image['id']}/corrections").json()
    assert state["is_checked"]
    assert len(state["labels"]) == 83
    assert {label for label, target in state["labels"].items() if target} == {*probable, added}
    expect(page.locator("#recalibration-state")).to_contain_text("19 are missing")
    second = page.locator("#check-path").text_content()
    assert second != path
    page.get_by_role("button", name="Undo the last check").click()
    expect(page.locator("#check-path")).to_have_text(path)
    expect(page.locator("#check-toggles :checked")).to_have_count(len(probable) + 1)
    expect(page.locator("#recalibration-state")).to_contain_text("20 are missing")
    page.get_by_role("button", name="Skip").click()
    expect(page.locator("#check-path")).to_have_text(second)
    expect(page.locator("#check-note")).to_contain_text("Skipped images come again")


def find_image(server, name):
    """Return the description of an image with all its labels."""
    hits = server.client.get("/api/search", params={"q": "lion", "limit": 200}).json()["hits"]
    identifier = next(hit["id"] for hit in hits if hit["path"].endswith(name))
    return server.client.get(f"/api/images/{identifier}?limit=100").json()


def test_checked_images_recalibrate_the_index(checked_server, open_page):
    check_by_api(checked_server, N_REQUIRED)
    before = checked_server.client.get("/api/search", params={"q": "lion"}).json()["hits"]
    page = open_page(f"{checked_server.url}/#check")
    page.get_by_role("button", name="Recalibrate", exact=True).click()
    table = page.get_by_role("table")
    expect(table).to_contain_text("Expected calibration error", timeout=60_000)
    expect(table).to_contain_text("Cross-fitted on 20 checked images")
    page.get_by_role("button", name="Use this calibration").click()
    expect(page.get_by_role("heading", name="Recalibrate")).to_be_focused()
    expect(page.locator("#messages")).to_contain_text("new calibration", timeout=60_000)
    after = checked_server.client.get("/api/search", params={"q": "lion"}).json()["hits"]
    assert after[0]["probability"] < before[0]["probability"] < 0.5


def test_a_recalibration_needs_the_recognizer(plain_server, open_page):
    page = open_page(f"{plain_server.url}/#check")
    expect(page.locator("#recalibration-state")).to_contain_text("recognizer")
    expect(page.get_by_role("button", name="Recalibrate", exact=True)).to_be_disabled()


def test_proposals_are_opened_and_corrected(plain_server, open_page):
    page = open_page(f"{plain_server.url}/#proposals")
    images = page.locator("[data-kind=label_next] .tile")
    expect(images).to_have_count(24)
    images.nth(1).get_by_role("button").click()
    page.locator("#view-labels li").first.wait_for()
    page.locator("#view-find").press_sequentially("lio")
    page.get_by_role("option", name="lion").click()
    expect(page.get_by_role("button", name="lion is positive", exact=True)).to_be_focused()
    page.get_by_role("button", name="lion is negative", exact=True).click()
    expect(page.locator("#view-messages")).to_contain_text("lion is negative")
    rows = plain_server.client.get("/api/corrections").json()["corrections"]
    assert [(row["label"], row["chosen_by"]) for row in rows] == [("lion", "label_next")]
    page.keyboard.press("Escape")
    expect(images.nth(1).get_by_role("button")).to_be_focused()


def test_a_target_that_is_probably_wrong_is_changed(plain_server, open_page):
    hits = plain_server.client.get("/api/search", params={"q": "lion", "limit": 50}).json()["hits"]
    for rank, hit in enumerate(hits):
        body = {"image": hit["id"], "labels": {"lion": int(rank == len(hits) - 1)}}
        plain_server.client.post("/api/corrections", json=body)
    page = open_page(f"{plain_server.url}/#proposals")
    tile = page.locator("[data-kind=audit] .tile").first
    tile.get_by_role("button", name="lion is positive").click()
    expect(page.locator("#messages")).to_contain_text("lion is positive")
    expect(tile).to_contain_text("Corrected: positive")
    row = plain_server.client.get("/api/corrections").json()["corrections"][0]
    assert (row["chosen_by"], row["corrected"]) == ("audit", 1)


def test_the_history_lists_corrections_and_undoes_them(plain_server, open_page):
    check_by_api(plain_server, 1)
    hit = plain_server.client.get("/api/search", params={"q": "lion"}).json()["hits"][0]
    body = {"image": hit["id"], "labels": {"lion": 1, "bear": 0}}
    plain_server.client.post("/api/corrections", json=body)
    page = open_page(f"{plain_server.url}/#about")
    expect(page.locator("#about-recognizer")).to_contain_text("does not record")
    expect(page.locator("#about-file")).to_contain_text("index.corrections.csv")
    expect(page.locator("#history tr")).to_have_count(2)
    expect(page.locator("#history tr").last).to_contain_text("other labels")
    expect(page.locator("#history-more")).to_be_hidden()
    expect(page.locator("#history tr").first).to_contain_text("lion positive")
    page.locator("#history tr").first.get_by_role("button", name="Undo").click()
    expect(page.locator("#history tr").first).to_contain_text("undone")
    expect(page.get_by_role("region", name="Corrections", exact=True)).to_be_focused()
    path = f"/api/images/{hit['id']}/corrections"
    assert plain_server.client.get(path).json()["labels"] == {}
