import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

TABS = ["search", "check", "proposals", "tag", "about"]


def serious_violations(page):
    """Return the violations of accessibility rules of serious and critical impact."""
    violations = Axe().run(page).response["violations"]
    return [
        (violation["id"], [node["html"][:200] for node in violation["nodes"]])
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_tab_violates_a_rule_of_accessibility(open_page, scene_server, scheme):
    page = open_page(f"{scene_server.url}/#search?q=lion+%26+%21bear", scheme=scheme)
    expect(page.locator("#query-chips .chip")).to_have_count(2)
    page.locator(".tile-name").first.wait_for()
    for tab in TABS:
        page.locator(f"[data-tab={tab}]").click()
        expect(page.locator(f"#tab-{tab}")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert not serious_violations(page), tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_image_view_and_errors_violate_no_rule(open_page, scene_server, scheme):
    page = open_page(f"{scene_server.url}/#search?q=lion", scheme=scheme)
    page.locator(".tile-image").first.click()
    page.locator("#view-labels li").first.wait_for()
    page.get_by_role("button", name="lion is positive", exact=True).click()
    page.locator("#view-messages .message").first.wait_for()
    assert not serious_violations(page)
    page.keyboard.press("Escape")
    page.fill("#query", "lion & (")
    page.press("#query", "Enter")
    page.locator("#query-error mark").wait_for()
    assert not serious_violations(page)


def test_the_login_violates_no_rule(open_page, tmp_path, write_index, running_server):
    write_index(tmp_path / "index", [tmp_path / "a.jpg"], tmp_path)
    with running_server(tmp_path / "index", token="t") as served:
        page = open_page(f"{served.url}/login")
        page.get_by_label("Token").wait_for()
        assert not serious_violations(page)


def test_each_tab_has_landmarks_and_one_visible_heading_below_the_name(open_page, scene_server):
    page = open_page(scene_server.url)
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("banner").count() == 1
    for tab in TABS:
        page.locator(f"[data-tab={tab}]").click()
        expect(page.get_by_role("heading", level=2)).to_have_count(1)
        expect(page.locator(f"[data-tab={tab}]")).to_have_attribute("aria-current", "page")
