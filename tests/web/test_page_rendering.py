import pytest
from jinja2 import UndefinedError

from surelabel.web.page_rendering import render_page


def operations(path):
    operation = {"get": {"summary": "<script>alert(1)</script>", "description": "a"}}
    return {"info": {"title": "a", "version": "1"}, "paths": {path: operation}}


def test_html_in_a_value_is_escaped():
    page = render_page("operations.html", operations("/<b>")).body.decode()
    assert "<script" not in page
    assert "/<b>" not in page
    assert "/&lt;b&gt;" in page


def test_a_missing_value_is_an_error_not_an_empty_text():
    with pytest.raises(UndefinedError, match="is_needed"):
        render_page("login.html", {})
