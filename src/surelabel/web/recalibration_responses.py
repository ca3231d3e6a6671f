"""Define the JSON responses of recalibration and uncertainty, for the OpenAPI schema."""

from typing import Literal

from pydantic import BaseModel, Field

from surelabel.web.image_responses import Probability


class RecalibrationState(BaseModel):
    """State of the recalibration of the index."""

    n_checked: int = Field(description="Number of completely checked images of the random sample")
    n_required: int = Field(description="Number of checked images that an evaluation requires")
    n_missing: int = Field(description="Number of images that must still be checked")
    state: Literal["idle", "running", "applied", "failed"]
    reason: str | None = Field(description="Reason why the last recalibration failed, or null")
    has_recognizer: bool
    reason_no_recognizer: str | None = Field(
        description="Reason why there is no recognizer, or null"
    )


class LogLossChange(BaseModel):
    """Mean log loss before and after a recalibration, and the interval of the change."""

    before: float
    after: float
    change: float
    low: float
    high: float


class CalibrationErrorChange(BaseModel):
    """Expected calibration error before and after a recalibration, with intervals."""

    before: float
    after: float
    noise_floor_before: float = Field(
        description="Expected value of `before` if the probabilities were calibrated"
    )
    noise_floor_after: float = Field(
        description="Expected value of `after` if the probabilities were calibrated"
    )
    before_low: float
    before_high: float
    after_low: float
    after_high: float


class RecalibrationEvaluation(BaseModel):
    """Evaluation of a scale and a shift of the log-odds."""

    n_images: int = Field(description="Number of images of the evaluation")
    n_targets: int = Field(description="Number of known targets of these images")
    scale: float = Field(gt=0)
    shift: float
    is_improvement: bool = Field(description="Whether the recalibration can be applied")
    p_value: Probability
    log_loss: LogLossChange
    ece: CalibrationErrorChange
    sentence: str = Field(description="Description of the result")
    notes: list[str] = Field(description="Sentences about left-out images and approximations")


class RecalibrationStart(BaseModel):
    """State after the start of a recalibration."""

    state: Literal["running"]


class ImageUncertainty(BaseModel):
    """Uncertainties of the labels of an image."""

    kinds: dict[str, dict[str, float]] = Field(description="Uncertainty of each label by kind")
    reason: str | None = Field(
        description="Reason why there is no uncertainty, or null if there is one"
    )
