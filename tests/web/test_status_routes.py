def test_health_describes_the_index(client, home):
    state = client.get("/api/health").json()
    assert state["status"] == "ok"
    assert state["index"]["images"] == 13
    assert state["index"]["labels"] == 4
    assert str(home) not in str(state)


def test_metrics_count_requests_by_route_and_status(client):
    client.get("/api/images/x")
    text = client.get("/api/metrics").text
    name = 'surelabel_http_requests_total{route="/api/images/{identifier}"'
    assert f'{name},method="GET",status="404"}}' in text
    assert (
        'surelabel_http_request_seconds_bucket{route="/api/images/{identifier}",le="+Inf"}' in text
    )
    assert "surelabel_index_images 13\n" in text


def test_a_path_of_a_client_is_not_a_label_of_a_metric(client):
    client.get("/api/nothing-here")
    assert "nothing-here" not in client.get("/api/metrics").text


def test_the_page_lists_all_operations_without_scripts(client):
    page = client.get("/api/docs")
    paths = client.get("/api/openapi.json").json()["paths"]
    assert {"/api/search", "/api/tag", "/api/images/{identifier}/thumbnail"} <= paths.keys()
    assert all(path in page.text for path in paths)
    assert "<script" not in page.text
