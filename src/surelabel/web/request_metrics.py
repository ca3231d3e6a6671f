"""Count the requests of a server, measure their times, and format both for Prometheus."""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ROUTE_PREFIX = "/api"
NO_ROUTE = "none"  # route of requests that were refused, or whose path does not exist


class RequestMetrics:
    """Numbers and times of the requests of a server, changed only in the event loop."""

    def __init__(self) -> None:
        self.n_in_work = 0
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)

    def add(self, route: str, method: str, status: int, seconds: float) -> None:
        """Add a request.

        Args:
            route: Path of the route, with the names of its parameters.
            method: HTTP method.
            status: Status code of the response.
            seconds: Time until the response was complete.
        """
        self._counts[route, method if method in METHODS else "other", status] += 1
        self._buckets[route][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] += seconds

    def format(self, gauges: Mapping[str, float]) -> str:
        """Return all numbers in the text format of Prometheus.

        Args:
            gauges: Other values by name.
        """
        return "\n".join([*self._lines(), *_gauge_lines(gauges), ""])

    def _lines(self) -> Iterator[str]:
        name = "surelabel_http_requests_total"
        yield f"# TYPE {name} counter"
        for (route, method, status), count in sorted(self._counts.items()):
            yield f'{name}{{route="{route}",method="{method}",status="{status}"}} {count}'
        name = "surelabel_http_request_seconds"
        yield f"# TYPE {name} histogram"
        for route, counts in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += count
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'


class RequestMetricsMiddleware:
    """Measure the time of each request, and add the header ``server-timing`` to its response.

    The header contains the time until the response began, in milliseconds. The metrics contain the
    time until the response was complete.

    Args:
        application: Inner application.
        metrics: Numbers and times of the requests.
    """

    def __init__(self, application: ASGIApp, metrics: RequestMetrics) -> None:
        self._application, self._metrics = application, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def send_with_time(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                milliseconds = (time.perf_counter() - start) * 1000
                timing = (b"server-timing", f"app;dur={milliseconds:.2f}".encode())
                message = {**message, "headers": [*message["headers"], timing]}
            await send(message)

        self._metrics.n_in_work += 1
        try:
            await self._application(scope, receive, send_with_time)
        finally:
            self._metrics.n_in_work -= 1
            seconds = time.perf_counter() - start
            self._metrics.add(_route_path(scope), scope["method"], status, seconds)


def _route_path(scope: Scope) -> str:
    """Return the path of the route with the prefix, which some versions of FastAPI omit."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return NO_ROUTE
    prefix = ROUTE_PREFIX if scope["path"].startswith(f"{ROUTE_PREFIX}/") else ""
    return prefix + str(path).removeprefix(ROUTE_PREFIX)


def _gauge_lines(gauges: Mapping[str, float]) -> Iterator[str]:
    for name, value in gauges.items():
        yield f"# TYPE surelabel_{name} gauge"
        yield f"surelabel_{name} {value}"
