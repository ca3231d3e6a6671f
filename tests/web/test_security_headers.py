import pytest


@pytest.mark.parametrize("path", ["health", "docs", "nothing", "search", "images/x/thumbnail"])
def test_each_response_has_the_security_headers(client, path):
    headers = client.get(f"/api/{path}").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_a_refused_request_has_the_security_headers(client):
    headers = client.get("/api/health", headers={"Host": "evil.example"}).headers
    assert "default-src 'none'" in headers["content-security-policy"]
