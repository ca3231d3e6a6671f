import pytest
from playwright.sync_api import expect

from surelabel.web.request_limits import RequestLimits


@pytest.fixture
def guarded(tmp_path, write_index, running_server):
    """Start a server with a token and a report."""
    report = tmp_path / "report.html"
    report.write_text(
        "<!doctype html><title>Report</title><style>h1 { color: rgb(1, 2, 3) }</style>"
        "<h1>Report</h1><script>document.title = 'executed'</script>"
    )
    write_index(tmp_path / "index", [tmp_path / "a.jpg"], tmp_path)
    options = {"token": "a-long-token", "report": str(report), "limits": RequestLimits()}
    with running_server(tmp_path / "index", **options) as served:
        yield served


def test_a_browser_logs_in_with_the_token_and_keeps_its_query(guarded, open_page):
    page = open_page(f"{guarded.url}/#search?q=lion")
    page.wait_for_url("**/login#search?q=lion")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#login-error")).to_have_text("The token is wrong.")
    page.get_by_label("Token").fill("a-long-token")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{guarded.url}/#search?q=lion")
    expect(page.locator("#result-count")).to_have_text("1 hit")
    assert "token" not in page.url
    page.context.clear_cookies()
    page.locator("#min-probability").fill("0.01")
    page.wait_for_url("**/login?expired#search?q=lion&min=0.01")
    expect(page.locator("#login-expired")).to_be_visible()
    page.get_by_label("Token").fill(" a-long-token ")  # copied with spaces
    page.keyboard.press("Enter")
    page.wait_for_url(f"{guarded.url}/#search?q=lion&min=0.01")
    page.goto(f"{guarded.url}/login")
    page.wait_for_url(f"{guarded.url}/")


def test_a_report_is_shown_without_its_scripts(guarded, chromium):
    context = chromium.new_context(base_url=guarded.url)  # the policy reports the script
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Token").fill("a-long-token")
    page.keyboard.press("Enter")
    page.locator("[data-tab=about]").click()
    page.get_by_role("link", name="Report of the evaluation").click()
    heading = page.get_by_role("heading", name="Report")
    expect(heading).to_have_css("color", "rgb(1, 2, 3)")
    assert page.title() == "Report"
    context.close()
