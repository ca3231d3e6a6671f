"""Use nncf, which quantizes models, so that it sends no usage data."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from surelabel.encoders.engines.conversion import without_output
from surelabel.errors import MissingPart
from surelabel.package_imports import import_without_telemetry


class NoTelemetry:
    """Replacement of the object with which nncf sends usage data; its functions do nothing."""

    def start_session(self, category: str, **options: Any) -> None:
        """Do nothing."""

    def send_event(self, **event: Any) -> None:
        """Do nothing."""

    def end_session(self, category: str, **options: Any) -> None:
        """Do nothing."""


@contextmanager
def nncf_without_telemetry() -> Generator[Any]:
    """Yield the package nncf; within the context, it sends, prints and logs nothing.

    If another program imported nncf before, its calls after the context send usage data as before.

    Raises:
        MissingPart: If nncf is not installed.
    """
    nncf = _import_nncf()
    decorator = import_module("nncf.telemetry.decorator")
    telemetry = decorator.telemetry
    setattr(decorator, "telemetry", NoTelemetry())  # noqa: B010 (not an attribute of ModuleType)
    try:
        with without_output():
            yield nncf
    finally:
        setattr(decorator, "telemetry", telemetry)  # noqa: B010


def _import_nncf() -> Any:
    try:
        return import_without_telemetry("nncf")
    except ImportError as error:
        raise MissingPart(
            "Quantization to int8 needs the package nncf, which is not installed. "
            "Run pip install 'surelabel[int8]'."
        ) from error
