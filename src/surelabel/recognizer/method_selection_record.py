"""Define the record of a model selection: cross-validated results of the compared methods."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan, nan
from typing import Any

from surelabel.counts import format_count
from surelabel.errors import DataError


@dataclass(frozen=True)
class MethodResult:
    """Cross-validated result of one method.

    Attributes:
        method: Key of the method.
        calibration: Description of the calibration of the probabilities.
        encoder_passes: Largest number of encoder passes of an image.
        log_loss: Mean log loss of the out-of-fold probabilities over all known targets, in nats.
        standard_error: Standard error of the log loss over images, in nats.
        mean_average_precision: Mean average precision of the out-of-fold probabilities, in [0, 1];
            NaN if a known target is neither 0 nor 1.
        seconds: Time for encoding, fits and calibration, in seconds.
    """

    method: str
    calibration: str
    encoder_passes: int
    log_loss: float
    standard_error: float
    mean_average_precision: float
    seconds: float


@dataclass(frozen=True)
class MethodSelection:
    """Result of a model selection.

    Attributes:
        results: Results of the compared methods, lowest log loss first. The first method was
            selected.
        left_out: Reason why a method was not compared, by key of the method.
        n_images: Number of images with a known target.
        folds: Number of cross-validation folds.
        noun: Noun of the images in descriptions: ``image``, or ``row`` of vectors.
    """

    results: tuple[MethodResult, ...]
    left_out: Mapping[str, str]
    n_images: int
    folds: int
    noun: str = "image"

    @property
    def selected(self) -> MethodResult:
        """Return the result of the selected method."""
        return self.results[0]

    @property
    def description(self) -> str:
        """Return sentences on the comparison and on the methods that were left out."""
        comparison = (
            f"The method with the lowest log loss was selected by {self.folds}-fold "
            f"cross-validation on {format_count(self.n_images, self.noun)}. The unit of the log "
            "loss is nats per target."
        )
        if not self.left_out:
            return comparison
        reasons = "; ".join(f"{name} ({reason})" for name, reason in self.left_out.items())
        return f"{comparison} Left out: {reasons}."

    @property
    def header(self) -> list[str]:
        """Return the column titles of ``rows``."""
        return [
            "method",
            "calibration",
            "encoder passes",
            "log loss ± standard error",
            "mAP %",
            "seconds",
            "selected",
        ]

    @property
    def rows(self) -> list[list[str]]:
        """Return the cells of a table of the results, lowest log loss first."""
        return [
            [
                result.method,
                result.calibration,
                str(result.encoder_passes),
                f"{result.log_loss:.4f} ± {result.standard_error:.4f}",
                f"{100 * result.mean_average_precision:.1f}",
                f"{result.seconds:.1f}",
                "yes" if result is self.selected else "",
            ]
            for result in self.results
        ]

    def state(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        return {
            "images": self.n_images,
            "folds": self.folds,
            "noun": self.noun,
            "selected": self.selected.method,
            "results": [_method_result_state(result) for result in self.results],
            "left_out": dict(self.left_out),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], *, source: object, remedy: str) -> "MethodSelection":
        """Return the record from the JSON object that ``state`` returned.

        Args:
            state: JSON object.
            source: File of the object, for the error message.
            remedy: Last sentence of the error message.

        Raises:
            DataError: If a value is missing or cannot be converted to its type, or if there are no
                results.
        """
        try:
            results = tuple(_restore_method_result(result) for result in state["results"])
            left_out = {str(name): str(reason) for name, reason in state["left_out"].items()}
            n_images, folds = int(state["images"]), int(state["folds"])
            selection = cls(results, left_out, n_images, folds, str(state["noun"]))
            if not results:
                raise ValueError("no result")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(
                f"{source} must contain the results of a model selection; got a damaged file "
                f"({error!r}). {remedy}"
            ) from error
        return selection


def _method_result_state(result: MethodResult) -> dict[str, Any]:
    """Return the result of a method as a JSON object, in which null replaces NaN."""
    has_precision = not isnan(result.mean_average_precision)
    return asdict(result) | ({} if has_precision else {"mean_average_precision": None})


def _restore_method_result(state: Mapping[str, Any]) -> MethodResult:
    """Return the result of a method from a JSON object, in which null represents NaN."""
    mean_average_precision = state["mean_average_precision"]
    return MethodResult(
        method=str(state["method"]),
        calibration=str(state["calibration"]),
        encoder_passes=int(state["encoder_passes"]),
        log_loss=float(state["log_loss"]),
        standard_error=float(state["standard_error"]),
        mean_average_precision=nan
        if mean_average_precision is None
        else float(mean_average_precision),
        seconds=float(state["seconds"]),
    )
