"""Define the JSON responses about the server, for the OpenAPI schema."""

from typing import Literal

from pydantic import BaseModel, Field


class LoginResult(BaseModel):
    """Result of a login, whose cookie is in the headers."""

    status: Literal["ok"]


class IndexHealth(BaseModel):
    """State of the index."""

    images: int = Field(description="Number of images")
    labels: int = Field(description="Number of labels")
    revision: str = Field(description="Identifier that changes with the content of the index")
    calibration: str = Field(description="Description of the calibration")
    error: str | None = Field(
        description="Reason why a newer revision could not be opened, or null"
    )


class RecognizerHealth(BaseModel):
    """State of the recognizer."""

    state: Literal["loading", "ready", "missing"]
    reason: str | None = Field(description="Reason why the recognizer is missing, or null")


class ServerHealth(BaseModel):
    """State of the server. `degraded` means that an earlier revision of the index is served."""

    status: Literal["ok", "degraded"]
    index: IndexHealth
    recognizer: RecognizerHealth
