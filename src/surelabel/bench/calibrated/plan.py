"""Define the rows, metrics, sizes and settings of the calibration comparison."""

from dataclasses import dataclass
from math import ceil

from surelabel.bench.linear_before_centring import LINEAR_BEFORE_CENTRING
from surelabel.config import Choice, Run

TABLE_METRICS = (
    "brier_skill",
    "log_loss",
    "mean_average_precision",
    "mean_average_precision_per_image",
    "ace",
    "mce",
    "ece",
    "ece_of_candidates",
)
COMPARED_ROWS = (  # pairs of rows; the second row is subtracted from the first row
    ("SPA", "ASY"),
    ("SPA", "ASY + detached map"),
    ("SPA", "focal"),
    ("SPA", "focal + map"),
    ("SPA", "BCE"),
    ("SPA", "TWL + temperature"),
    ("SPA", "TWL + Platt"),
    ("SPA + LPR", "SPA"),
    ("BCE + LPR", "BCE"),
    ("focal + LPR", "focal"),
    ("ASY + LPR", "ASY"),
    ("SPA + Platt", "SPA"),
    ("BCE + Platt", "BCE"),
    ("ASY + Platt", "ASY"),
    ("SPA + Platt", "ASY + Platt"),
    ("SPA + Platt", "BCE + Platt"),
)
SENSITIVITY_SETTINGS = {  # values of each setting of SPA, including the value of the paper
    "zeta_neg": (1.0, 2.0, 5.0, 10.0),
    "k_neg": (1.0, 2.0, 3.0, 5.0),
    "b_neg": (0.0, 0.5, 1.0, 2.0),
}
RETRIEVAL_ROWS = (
    "BCE",
    "ASY",
    "ASY + detached map",
    "SPA",
    "SPA + LPR",
    "ASY + Platt",
    "SPA + Platt",
)
PLOTTED_ROWS = ("BCE", "ASY", "SPA", "SPA + LPR")  # with the best Platt row


@dataclass(frozen=True)
class CalibrationPlan:
    """Sizes and settings of the calibration comparison.

    Attributes:
        epochs: Number of epochs of each fit.
        min_steps: Minimum number of optimizer steps. Fits on few images run more epochs to reach
            this number.
        batch_size: Number of images in a batch.
        settings_per_head: Number of candidate settings of each head.
        seeds: Number of fits of each head with the selected settings.
        max_query_length: Number of labels in the longest query.
        max_exact_length: Largest query length for which all queries are evaluated. For large
            datasets, a smaller length is used.
        queries_per_shape: Number of longer queries sampled for each shape. A shape is a combination
            of the numbers of wanted and unwanted labels.
    """

    epochs: int = 20
    min_steps: int = 500
    batch_size: int = 256
    settings_per_head: int = 12
    seeds: int = 5
    max_query_length: int = 5
    max_exact_length: int = 3
    queries_per_shape: int = 2000

    def shared_run(self, n_images: int) -> Run:
        """Return the run with the settings that all heads share.

        On few images, 20 epochs are too few optimizer steps for convergence, and heads whose loss
        has larger gradients would have an advantage. Therefore the number of epochs is increased to
        reach ``min_steps``. The calibrator of the run is not used, but is part of a cache key.

        Args:
            n_images: Number of training images.
        """
        epochs = max(self.epochs, ceil(self.min_steps * self.batch_size / n_images))
        return Run(
            method=LINEAR_BEFORE_CENTRING,
            calibrator=Choice("platt"),
            epochs=epochs,
            batch_size=self.batch_size,
        )


FULL = CalibrationPlan()
QUICK = CalibrationPlan(
    epochs=10,
    min_steps=400,
    batch_size=64,
    settings_per_head=2,
    seeds=2,
    max_query_length=2,
    max_exact_length=2,
)
