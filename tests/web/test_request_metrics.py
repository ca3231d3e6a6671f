from surelabel.web.request_metrics import RequestMetrics


def test_times_are_counted_in_cumulative_buckets():
    metrics = RequestMetrics()
    for seconds in (0.0005, 0.02, 0.02, 99.0):
        metrics.add("/api/a", "GET", 200, seconds)
    lines = metrics.format({"cache_bytes": 123456789}).splitlines()
    name = 'surelabel_http_request_seconds_bucket{route="/api/a",le='
    counts = [int(line.rpartition(" ")[2]) for line in lines if line.startswith(name)]
    assert counts == sorted(counts)
    assert f'{name}"0.001"}} 1' in lines
    assert f'{name}"0.025"}} 3' in lines
    assert f'{name}"30.0"}} 3' in lines
    assert f'{name}"+Inf"}} 4' in lines
    assert 'surelabel_http_request_seconds_sum{route="/api/a"} 99.040500' in lines
    assert "surelabel_cache_bytes 123456789" in lines


def test_an_invented_method_is_no_label_of_a_metric():
    metrics = RequestMetrics()
    metrics.add("none", 'EVIL"}', 405, 0.1)
    assert "EVIL" not in metrics.format({})
    assert 'method="other"' in metrics.format({})
