"""Define the JSON responses of searches, for the OpenAPI schema."""

from pydantic import BaseModel, Field

from surelabel.web.image_responses import Probability


class SearchHit(BaseModel):
    """Image of a search result."""

    id: str = Field(description="Identifier of the image")
    path: str = Field(description="Absolute path of the image")
    probability: Probability = Field(description="Probability that the image matches the query")
    terms: dict[str, Probability] = Field(
        description="Probability of each label and sentence of the query"
    )
    uncertainties: dict[str, float] = Field(
        default_factory=dict,
        description="Variance of the score of each sentence, if the method estimates variances",
    )
    similarity: float | None = Field(
        None, description="Cosine similarity to the example of `like:`, if the query has one"
    )


class SearchPage(BaseModel):
    """Page of a search result."""

    query: str = Field(description="Query in its normal form")
    hits: list[SearchHit]
    offset: int = Field(ge=0)
    next_offset: int | None = Field(description="Offset of the next page; null on the last page")
    notes: list[str] = Field(description="Sentences about approximations")


class LabelExpectation(BaseModel):
    """Label of the index."""

    name: str
    expected_images: float | None = Field(
        description="Sum of the probabilities of all images; null until it is computed"
    )


class LabelPage(BaseModel):
    """Labels of the index, in its order."""

    labels: list[LabelExpectation]
    n_labels: int = Field(description="Number of all labels with the prefix")
    n_images: int = Field(description="Number of images of the index")
    is_complete: bool = Field(description="Whether the expected numbers are computed")
