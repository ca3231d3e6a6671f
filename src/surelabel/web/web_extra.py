"""Check that the packages of the extra ``web`` are installed."""

from importlib.util import find_spec

from surelabel.errors import MissingPart

WEB_PACKAGES = {
    "fastapi": "fastapi",
    "jinja2": "jinja2",
    "python_multipart": "python-multipart",
    "uvicorn": "uvicorn",
}


def check_web_extra_is_installed() -> None:
    """Check that the packages of the HTTP server can be imported, without importing them.

    Raises:
        MissingPart: If a package is not installed.
    """
    for module, package in WEB_PACKAGES.items():
        if find_spec(module) is None:
            raise MissingPart(
                f"surelabel serve needs the package {package}, which is not installed. Run pip "
                "install 'surelabel[web]'."
            )
