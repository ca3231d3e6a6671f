"""Render the templates of the page for browsers."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from surelabel.web.security_headers import POLICY_HEADER, security_policy

TEMPLATE_FOLDER = Path(__file__).with_name("templates")
PAGE_POLICY = security_policy(images="'self' blob:")  # previews of uploads, and heat maps


def render_page(template: str, content: Mapping[str, Any]) -> HTMLResponse:
    """Return a page in which all values are escaped.

    Args:
        template: File name of the template.
        content: Values of the template by name.
    """
    text = _environment().get_template(template).render(content)
    return HTMLResponse(text, headers={POLICY_HEADER: PAGE_POLICY})


def format_expected_number(number: float) -> str:
    """Return an expected number of images as text.

    Example:
        >>> format_expected_number(1234.56), format_expected_number(3.21)
        ('1,235', '3.2')
    """
    return f"{number:,.1f}" if number < 10 else f"{number:,.0f}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["expected_number"] = format_expected_number
    return environment
