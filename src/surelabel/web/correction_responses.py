"""Define the JSON responses about corrections, for the OpenAPI schema."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from surelabel.web.image_responses import ListedImage, Probability

BinaryTarget = Annotated[int, Field(ge=0, le=1)]  # 1 is positive, 0 is negative


class RecordedCorrection(BaseModel):
    """Correction of one label of an image."""

    event: str = Field(description="Event that recorded the correction")
    image: str | None = Field(
        description="Identifier of the image; null if the image is no longer in the index"
    )
    path: str = Field(description="Absolute path of the image")
    label: str
    corrected: BinaryTarget | None = Field(
        description="1 is positive, 0 is negative, null is unknown."
    )
    probability: Probability | None = Field(
        description="Probability of the label at the time of the correction"
    )
    chosen_by: str | None = Field(description="How the image was chosen, or null if it is unknown")
    inclusion_probability: Probability | None = Field(
        description="Inclusion probability of an image of the random sample"
    )
    query: str | None = Field(description="Query whose result contained the image")
    rank: int | None = Field(description="Position of the image in the result, counted from 0")
    time: str = Field(description="Time in UTC")
    is_undone: bool = Field(description="Whether the event was undone")


class CorrectionPage(BaseModel):
    """Page of the list of corrections, newest first."""

    corrections: list[RecordedCorrection]
    n_corrections: int = Field(description="Number of all corrections, also undone ones")
    n_images: int = Field(description="Number of corrected images")
    n_checked: int = Field(description="Number of completely checked images of the random sample")
    file: str = Field(description="Path of the file of corrections")
    note: str | None = Field(
        description="Sentence about an incomplete event that was removed, or null"
    )


class CurrentTargets(BaseModel):
    """Corrected targets of an image."""

    labels: dict[str, BinaryTarget] = Field(
        description="Current target of each corrected label: 1 is positive, 0 is negative."
    )
    is_checked: bool = Field(
        description="Whether the image is a completely checked image of the random sample"
    )


class CorrectionEvent(BaseModel):
    """Event that was recorded."""

    event: str
    n_labels: int = Field(ge=0, description="Number of labels of the event")


class SampledImage(ListedImage):
    """Image of the random sample."""

    is_checked: bool = Field(description="Whether the image was checked for all labels")


class SampleResult(BaseModel):
    """Unchecked images of the random sample."""

    images: list[SampledImage]
    n_drawn: int = Field(description="Number of all images of the sample")
    n_checked: int = Field(description="Number of completely checked images of the sample")
    inclusion_probability: Probability
    n_images: int = Field(description="Number of images of the index")


class ProposedImage(ListedImage):
    """Image to label next."""

    reason: str = Field(description="Reason for the proposal")


class ProposedTarget(ProposedImage):
    """Image with a corrected target that is probably wrong."""

    label: str
    target: BinaryTarget
    error_probability: Probability = Field(description="Probability that the target is wrong")


class Proposals(BaseModel):
    """Images to correct."""

    kind: Literal["label_next", "audit"]
    images: list[ProposedTarget | ProposedImage] = Field(
        description="`audit` proposes targets, `label_next` images without corrections."
    )
    sentence: str = Field(description="Description of the result, or of what is missing")
