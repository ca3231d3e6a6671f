import json
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

HOSTILE_LABEL = '<img src=x onerror="alert(1)">'


@pytest.fixture
def page(open_page, scene_server):
    return open_page(scene_server.url)


def search(page, text):
    page.fill("#query", text)
    page.press("#query", "Enter")


def api_names(server, query, **values):
    """Return the file names of a search of the API."""
    response = server.client.get("/api/search", params={"q": query, "limit": 200, **values})
    return [hit["path"].rpartition("/")[2] for hit in response.json()["hits"]]


def test_the_page_shows_images_before_a_search(page, tiles):
    expect(page.locator("#result-count")).to_have_text("61 images")
    assert len(tiles(page)) > 8


def test_a_search_shows_the_hits_of_the_api_with_their_probabilities(page, tiles, scene_server):
    search(page, "lion")
    expect(page.locator("#result-count")).to_have_text("61 hits")
    names = tiles(page)
    assert names == api_names(scene_server, "lion")[: len(names)]
    assert page.locator(".tile-value").first.text_content().endswith(" %")
    image = page.locator(".tile img").first
    expect(image).to_have_attribute("alt", f"{names[0]}. " + image_description(scene_server))
    assert page.evaluate("location.hash") == "#search?q=lion"


def image_description(server):
    hit = server.client.get("/api/search", params={"q": "lion", "limit": 1}).json()["hits"][0]
    return f"Probability {hit['probability']:.1%}, lion {hit['terms']['lion']:.1%}.".replace(
        "%", " %"
    )


def test_a_chip_excludes_a_label_and_shows_its_count(page, tiles, scene_server):
    search(page, "lion")
    expect(page.locator("#query-chips .chip-shown")).to_contain_text("in the first 61 hits")
    page.fill("#label-filter", "bea")
    page.get_by_role("button", name="Exclude bear").click()
    expect(page.locator("#query")).to_have_value("lion & !bear")
    expect(page.locator("#query-chips .chip")).to_have_count(2)
    expected = api_names(scene_server, "lion & !bear")
    for row in range(8):  # waits for the second search
        expect(page.locator(".tile-name").nth(row)).to_have_text(expected[row])
    names = tiles(page)
    assert names == expected[: len(names)]
    page.locator("#label-chips").get_by_role("button", name="Exclude bear").click()
    expect(page.locator("#query")).to_have_value("lion")


def test_labels_that_need_quotes_are_quoted(page):
    page.fill("#label-filter", "sunset")
    page.get_by_role("button", name="Require sunset (red)").click()
    expect(page.locator("#query")).to_have_value('"sunset (red)"')
    expect(page.locator("#result-count")).to_have_text("61 hits")


def test_the_slider_restricts_the_probability_and_is_part_of_the_address(page, scene_server):
    search(page, "lion")
    page.locator("#min-probability").fill("0.03")
    n = len(api_names(scene_server, "lion", min_probability=0.03))
    assert 0 < n < 61
    expect(page.locator("#result-count")).to_have_text(f"{n} hit{'' if n == 1 else 's'}")
    expect(page.locator("#min-probability-output")).to_have_text("3 %")
    page.reload()
    expect(page.locator("#query")).to_have_value("lion")
    expect(page.locator("#min-probability")).to_have_value("0.03")
    expect(page.locator(".tile")).to_have_count(n)


def test_back_and_forward_repeat_searches(page):
    search(page, "lion")
    expect(page.locator("#query-chips")).to_contain_text("lion")
    search(page, "guitar")
    expect(page.locator("#query-chips")).to_contain_text("guitar")
    page.go_back()
    expect(page.locator("#query")).to_have_value("lion")
    expect(page.locator("#query-chips")).to_contain_text("lion")
    page.go_forward()
    expect(page.locator("#query")).to_have_value("guitar")


def test_a_label_is_completed_with_the_keyboard(page):
    query = page.locator("#query")
    query.press_sequentially("lion & !gu")
    expect(page.get_by_role("option").first).to_contain_text("guitar")
    expect(query).to_have_attribute("aria-expanded", "true")
    query.press("ArrowDown")
    option = page.get_by_role("option", selected=True)
    assert query.get_attribute("aria-activedescendant") == option.get_attribute("id")
    query.press("Tab")
    expect(query).to_have_value("lion & !guitar")
    query.press_sequentially(" & sal")
    page.get_by_role("option").first.wait_for()
    query.press("ArrowDown")
    query.press("Enter")
    expect(query).to_have_value('lion & !guitar & "salt and pepper"')
    query.press_sequentially(" & b")
    page.get_by_role("option").first.wait_for()
    query.press("Escape")
    expect(query).to_have_attribute("aria-expanded", "false")
    expect(query).to_be_focused()


def test_an_error_in_a_query_marks_the_wrong_character(page, tiles):
    search(page, "lion & (guitar")
    expect(page.locator("#query")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#query-error")).to_contain_text("This ( has no matching ) after it")
    expect(page.locator("#query-error mark")).to_have_text("(")
    expect(page.locator(".tile")).to_have_count(0)
    search(page, "lionn")
    expect(page.locator("#query-error")).to_contain_text("Did you mean 'lion'")
    search(page, "lion")
    expect(page.locator("#query-error")).to_be_empty()
    assert tiles(page)


def test_a_server_that_does_not_answer_is_reported(page, scene_server):
    search(page, "lion")
    expect(page.locator("#result-count")).to_have_text("61 hits")
    page.route("**/api/search?*", lambda route: route.abort())
    search(page, "guitar")
    expect(page.locator("#messages")).to_contain_text("The server does not answer.")
    expect(page.locator("#result-count")).to_have_text("The search failed. Repeat it.")
    page.unroute("**/api/search?*")
    page.press("#query", "Enter")
    expect(page.locator("#result-count")).to_have_text("61 hits")


def test_labels_and_file_names_with_markup_are_shown_as_text(page, scene_server):
    label = json.dumps(HOSTILE_LABEL).replace('\\"', '""')
    search(page, label)
    expect(page.locator("#query-chips .chip-name")).to_have_text(HOSTILE_LABEL)
    search(page, "path:*onerror*")
    expect(page.locator("#result-count")).to_have_text("1 hit")
    expect(page.locator(".tile-name")).to_have_text("<img src=x onerror=alert(2)>.jpg")
    page.locator(".tile-image").click()
    expect(page.locator("#view-title")).to_have_text("<img src=x onerror=alert(2)>.jpg")
    expect(page.locator("#view-facts")).to_contain_text("128 × 128 pixels")
    page.locator("#view-more").click()
    expect(page.locator("#view-labels")).to_contain_text(HOSTILE_LABEL)
    assert page.locator("#content img[src='x'], dialog img[src='x']").count() == 0


def test_a_narrow_window_needs_no_horizontal_scrolling(open_page, scene_server, tiles):
    page = open_page(f"{scene_server.url}/#search?q=lion", size=(390, 844), touch=True)
    assert tiles(page)
    for tab in ("search", "check", "proposals", "tag", "about"):
        page.locator(f"[data-tab={tab}]").click()
        expect(page.locator(f"#tab-{tab}")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab
    columns = page.evaluate("document.querySelectorAll('.label-chips').length")
    assert columns == 2


def test_a_dark_color_scheme_changes_the_colors(open_page, scene_server):
    luminance = {}
    for scheme in ("light", "dark"):
        page = open_page(scene_server.url, scheme=scheme)
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        luminance[scheme] = sum(int(part) for part in color[4:-1].split(","))
    assert luminance["dark"] < 150 < 600 < luminance["light"]


def test_scrolling_keeps_the_number_of_tiles_small(open_page, large_server, tiles):
    page = open_page(f"{large_server.url}/#search?q=lion")
    assert tiles(page)[0] == large_server.ranked[0]
    for _ in range(5):
        n_hits = page.evaluate("document.querySelector('#grid').offsetHeight")
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        page.wait_for_function("h => document.querySelector('#grid').offsetHeight > h", arg=n_hits)
    expect(page.locator(".tile.is-loading")).to_have_count(0)
    assert page.locator(".tile").count() < 300
    index = int(page.locator(".tile").last.get_attribute("data-index"))
    assert index > 400
    expect(page.locator(".tile-name").last).to_have_text(large_server.ranked[index])


def test_a_jump_shows_deep_hits(open_page, large_server):
    page = open_page(f"{large_server.url}/#search?q=lion")
    page.locator("#jump").fill("99951")
    page.locator("#jump").press("Enter")
    tile = page.locator('[data-index="99950"]')
    expect(tile.locator(".tile-name")).to_have_text(large_server.ranked[99_950])
    expect(tile).to_be_focused()
    expect(page.locator("#result-count")).to_have_text("100,000 hits")
    assert page.locator(".tile").count() < 300
    page.keyboard.press("Home")
    expect(page.locator('[data-index="0"]')).to_be_focused()
    expect(page.locator(".tile-name").first).to_have_text(large_server.ranked[0])
    page.locator("#jump").fill("90001")
    page.locator("#jump").press("Enter")
    expect(page.locator('[data-index="90000"]')).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    page.evaluate("scrollTo(0, 0)")  # the beginning of the scrollable part, not of the hits
    page.wait_for_function("() => !document.querySelector('[data-index=\"90000\"]')")
    index = int(page.locator(".tile").first.get_attribute("data-index"))
    assert 40_000 < index < 60_000
    tile = page.locator(f'[data-index="{index}"] .tile-name')
    expect(tile).to_have_text(large_server.ranked[index])
    page.locator("#jump").fill("200000")
    page.locator("#jump").press("Enter")
    expect(page.locator("#messages")).to_contain_text("fewer than 199,901 hits")


def test_an_address_with_a_query_opens_its_search(open_page, scene_server, tiles):
    query = 'lion & !"salt and pepper"'
    page = open_page(f"{scene_server.url}/#search?q={quote(query)}&min=0.05")
    assert tiles(page)[0] == api_names(scene_server, query)[0]
    expect(page.locator("#query")).to_have_value(query)
    expect(page.locator("#min-probability-output")).to_have_text("5 %")
