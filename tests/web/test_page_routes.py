import json

import httpx
import numpy as np
import pytest

from surelabel.records import Predictions
from surelabel.retrieval import Index

HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    page = tmp_path_factory.mktemp("report") / "index.html"
    page.write_text("<h1>Report</h1><style>h1 { color: red }</style>")
    return page


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, write_index, running_server, report):
    """Start a server with a token and a report."""
    folder = tmp_path_factory.mktemp("guarded")
    write_index(folder / "index", [folder / "a.jpg"], folder)
    with running_server(folder / "index", token="secret", report=str(report)) as served:
        yield served


def test_the_page_shows_the_name_of_the_index_and_its_first_labels(client):
    response = client.get("/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert "13 images" in response.text
    assert 'data-label="lion"' in response.text
    assert "≈ " in response.text


def test_labels_with_markup_are_escaped(client):
    text = client.get("/").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_name_of_a_folder_with_markup_is_escaped(tmp_path, write_index, running_server):
    folder = tmp_path / HOSTILE.replace("/", "\N{FRACTION SLASH}")
    write_index(folder, [tmp_path / "a.jpg"], tmp_path)
    with running_server(folder) as served:
        text = served.client.get("/").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_the_labels_with_the_highest_expected_number_are_first(tmp_path, running_server):
    names = [f"label {number}" for number in range(100)]
    logits = np.tile(np.linspace(-3, 3, 100, dtype=np.float32), (4, 1))
    paths = [str(tmp_path / f"{number}.jpg") for number in range(4)]
    predictions = Predictions(paths, names, logits, logits, "tested", "m")
    Index.create(tmp_path / "index", predictions)
    with running_server(tmp_path / "index") as served:
        text = served.client.get("/").text
    assert text.count("data-label=") == 60
    assert text.index('"label 99"') < text.index('"label 98"') < text.index('"label 40"')
    assert '"label 39"' not in text
    assert "≈ 3.8" in text


def test_scripts_run_only_from_files_of_the_server(client):
    policy = client.get("/").headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "img-src 'self' blob:;" in policy
    assert "unsafe" not in policy


def test_a_static_file_is_sent_again_only_if_it_changed(client):
    response = client.get("/static/page.js")
    assert response.headers["content-type"] == "text/javascript; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    again = client.get("/static/page.js", headers={"If-None-Match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "name", ["nothing.js", "..%2Fpage_routes.py", "../page_routes.py", "%2e%2e/serving.py", ".", ""]
)
def test_no_other_file_is_served(get, name):
    status, content = get(f"/static/{name}")
    assert status == 404
    assert "error" in json.loads(content)


def test_a_server_without_a_report_says_so(client):
    response = client.get("/report")
    assert response.status_code == 404
    assert "Start it with --report" in response.json()["error"]
    assert "/report" not in client.get("/").text


def test_a_browser_without_the_cookie_is_sent_to_the_login(guarded):
    for path in ("/", "/report"):
        response = guarded.client.get(path)
        assert (response.status_code, response.headers["location"]) == (303, "/login")
    login = guarded.client.get("/login")
    assert 'type="password"' in login.text
    assert "secret" not in login.text
    assert guarded.client.get("/static/login.js").status_code == 200
    assert guarded.client.get("/api/search", params={"q": "lion"}).status_code == 401
    assert guarded.client.post("/login").status_code == 401


def test_the_cookie_of_the_login_opens_the_page_and_the_report(guarded, report):
    with httpx.Client(base_url=guarded.url, trust_env=False) as browser:
        assert browser.post("/api/login", json={"token": "secret"}).status_code == 200
        assert "/report" in browser.get("/").text
        response = browser.get("/report")
    assert response.text == report.read_text()
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert "script-src" not in policy


def test_a_login_page_without_a_token_leads_to_the_page(client):
    text = client.get("/login").text
    assert "needs no token" in text
    assert "<form" not in text


def test_metrics_count_the_page_and_its_files_by_their_routes(client):
    client.get("/")
    client.get("/static/page.css")
    text = client.get("/api/metrics").text
    assert 'route="/",method="GET",status="200"' in text
    assert 'route="/static/{name}",method="GET",status="200"' in text
