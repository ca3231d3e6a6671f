"""Define the JSON responses about images and their labels, for the OpenAPI schema."""

from typing import Annotated

from pydantic import BaseModel, Field

Probability = Annotated[float, Field(ge=0, le=1)]
ImageSide = Annotated[int, Field(ge=1)]


class LabelProbability(BaseModel):
    """Label with its probability."""

    label: str
    probability: Probability


class ListedImage(BaseModel):
    """Image of a list, with at most 30 labels of the highest probability."""

    id: str = Field(description="Identifier of the image")
    path: str = Field(description="Absolute path of the image")
    labels: list[LabelProbability] = Field(description="Most probable labels first")


class ImageDescription(BaseModel):
    """Image with its labels of the highest probability."""

    id: str = Field(description="Identifier of the image")
    path: str = Field(description="Absolute path of the image")
    date: str | None = Field(
        description="Date in the metadata of the image, or null if the index has none"
    )
    width: ImageSide | None = Field(
        description="Width of the upright image in pixels, or null if the index has none"
    )
    height: ImageSide | None = Field(
        description="Height of the upright image in pixels, or null if the index has none"
    )
    labels: list[LabelProbability] = Field(description="Most probable labels first")


class TaggedUpload(BaseModel):
    """Uploaded image with the labels whose probability is at least the threshold."""

    name: str = Field(description="Name of the file")
    labels: list[LabelProbability] = Field(description="Most probable labels first")


class UnreadableUpload(BaseModel):
    """Uploaded file that cannot be read."""

    name: str = Field(description="Name of the file")
    error: str = Field(description="Reason why the file cannot be read")


class UploadResult(BaseModel):
    """Labels of uploaded images, in the order of the form."""

    images: list[TaggedUpload | UnreadableUpload]
    threshold: Probability
