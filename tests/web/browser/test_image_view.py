import pytest
from playwright.sync_api import expect


@pytest.fixture
def page(open_page, scene_server):
    page = open_page(f"{scene_server.url}/#search?q=lion")
    expect(page.locator("#result-count")).to_have_text("61 hits")
    return page


def corrections(server, page):
    """Return the corrected targets of the image that the page shows."""
    image = page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('image')")
    return server.client.get(f"/api/images/{image}/corrections").json()["labels"]


def test_the_image_view_shows_the_image_with_its_labels(page, scene_server):
    page.locator(".tile-image").first.click()
    view = page.get_by_role("dialog")
    expect(view.locator("#view-image")).to_have_js_property("naturalWidth", 128)
    hit = scene_server.client.get("/api/search", params={"q": "lion", "limit": 1}).json()["hits"][0]
    image = scene_server.client.get(f"/api/images/{hit['id']}").json()
    best = image["labels"][0]
    row = view.locator("#view-labels li").first
    expect(row.locator(".row-name")).to_have_text(best["label"])
    expect(row.locator(".row-value")).to_have_text(f"{best['probability']:.1%}".replace("%", " %"))
    expect(view.locator("#view-facts")).to_contain_text(hit["path"].rpartition("/")[2])
    page.keyboard.press("Escape")
    expect(view).to_be_hidden()
    expect(page.locator('[data-index="0"]')).to_be_focused()
    assert page.evaluate("location.hash") == "#search?q=lion"


def test_the_heat_map_of_a_label_takes_the_place_of_the_image(page):
    page.locator(".tile-image").first.click()
    button = page.get_by_role("button", name="Heat map of lion")
    button.click()
    expect(page.locator("#view-caption")).to_have_text("Heat map of lion", timeout=60_000)
    expect(button).to_have_attribute("aria-pressed", "true")
    assert page.locator("#view-image").get_attribute("src").startswith("blob:")
    page.get_by_role("button", name="Hide the heat map").click()
    expect(page.locator("#view-image")).to_have_js_property("naturalWidth", 128)
    expect(button).to_have_attribute("aria-pressed", "false")


def test_a_correction_is_recorded_and_undone(page, scene_server):
    page.locator(".tile-image").nth(1).click()
    wrong = page.get_by_role("button", name="bear is negative", exact=True)
    wrong.click()
    expect(page.locator("#view-messages")).to_contain_text("bear is negative")
    expect(wrong).to_have_attribute("aria-pressed", "true")
    assert corrections(scene_server, page) == {"bear": 0}
    row = scene_server.client.get("/api/corrections", params={"limit": 1}).json()["corrections"][0]
    assert (row["label"], row["corrected"], row["chosen_by"]) == ("bear", 0, "query")
    assert (row["query"], row["rank"]) == ("lion", 1)
    page.locator("#view-messages").get_by_role("button", name="Undo").click()
    expect(wrong).to_have_attribute("aria-pressed", "false")
    assert corrections(scene_server, page) == {}


def test_undo_by_keyboard_keeps_the_focus(page, scene_server):
    page.locator(".tile-image").nth(4).click()
    wrong = page.get_by_role("button", name="lion is negative", exact=True)
    wrong.press("Enter")
    page.locator("#view-messages").get_by_role("button", name="Undo").press("Enter")
    expect(page.locator("#view-messages")).to_contain_text("The correction was undone.")
    expect(wrong).to_be_focused()
    wrong.press("Enter")
    expect(wrong).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("u")
    expect(wrong).to_have_attribute("aria-pressed", "false")
    assert corrections(scene_server, page) == {}


def test_unknown_removes_the_target_of_a_label(page, scene_server):
    page.locator(".tile-image").nth(2).click()
    right = page.get_by_role("button", name="lion is positive", exact=True)
    right.click()
    expect(right).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="lion is unknown", exact=True).click()
    expect(right).to_have_attribute("aria-pressed", "false")
    assert corrections(scene_server, page) == {}


def test_a_whole_path_needs_no_mouse(open_page, scene_server):
    page = open_page(scene_server.url)
    page.locator(".tile-name").first.wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.type("guitar")
    page.keyboard.press("Enter")
    expect(page.locator("#result-count")).to_have_text("61 hits")
    for _ in range(3):  # the button, the probability, and the link
        page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip the labels")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator('[data-index="0"]')).to_be_focused()
    for key, index in (("ArrowRight", 1), ("ArrowDown", 5), ("ArrowLeft", 4)):
        page.keyboard.press(key)
        expect(page.locator(f'[data-index="{index}"]')).to_be_focused()
    page.keyboard.press("w")
    expect(page.locator('[data-index="4"] .badge')).to_have_text("guitar: negative")
    expect(page.locator('[data-index="4"]')).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert corrections(scene_server, page) == {"guitar": 0}
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('#view-labels li')")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator('[data-index="5"]')).to_be_focused()


def test_a_hit_of_several_labels_is_wrong_only_label_by_label(page, scene_server):
    page.fill("#query", "lion & bear")
    page.press("#query", "Enter")
    expect(page.locator("#query-chips .chip-shown:not(:empty)")).to_have_count(2)
    name = page.locator(".tile-name").nth(5).text_content()
    page.get_by_role("button", name=f"Wrong: {name}").click()
    expect(page.locator("#view-messages")).to_contain_text("Mark each label of the image.")
    assert corrections(scene_server, page) == {}
    page.keyboard.press("Escape")
    page.get_by_role("button", name=f"Right: {name}").click()
    expect(page.locator('[data-index="5"] .badge')).to_have_text("2 labels corrected")


def test_similar_images_are_searched_with_the_probability_that_was_chosen(page):
    page.locator("#min-probability").fill("0.01")
    page.wait_for_function("() => location.hash.includes('min=0.01')")
    page.locator(".tile-image").nth(1).click()
    page.locator("#view-facts dd").first.wait_for()
    name = page.locator("#view-title").text_content()
    page.get_by_role("button", name="More like this").click()
    expect(page.locator("#query")).to_have_value(f"like:{name}")
    expect(page.locator(".tile-name").first).to_have_text(name)
    expect(page.locator(".tile-value").first).to_have_text("1.000")
    assert "min=0.01" in page.evaluate("location.hash")


def test_the_address_of_an_image_opens_it_and_back_closes_it(page, open_page):
    page.locator(".tile-image").nth(3).click()
    page.locator("#view-facts dd").first.wait_for()
    title = page.locator("#view-title").text_content()
    other = open_page(page.url)
    expect(other.locator("#view-title")).to_have_text(title)
    other.get_by_role("button", name="Next image").click()
    expect(other.locator("#view-title")).not_to_have_text(title)
    other.keyboard.press("Escape")
    expect(other.locator('[data-index="4"]')).to_be_focused()
    page.go_back()
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_an_image_that_left_the_index_is_reported(open_page, scene_server):
    page = open_page(f"{scene_server.url}/#search?q=lion&image=0-5-0000000000000000")
    expect(page.locator("#view-messages")).to_contain_text("is not in the index")
    page.get_by_role("button", name="Load the page again").click()
    expect(page.locator("#result-count")).to_have_text("61 hits")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_an_image_without_a_file_shows_a_placeholder(open_page, large_server):
    page = open_page(f"{large_server.url}/#search?q=lion")
    page.locator(".tile-image").first.click()
    expect(page.locator("#view-image")).to_have_js_property("naturalWidth", 512)
    expect(page.locator("#view-labels li")).to_have_count(2)
    expect(page.locator("#view-note")).to_contain_text("does not exist")
    expect(page.get_by_role("button", name="Heat map of lion")).to_be_hidden()
