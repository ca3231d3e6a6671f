"""Select label-free methods by their measured mAP, within a number of encoder passes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from surelabel.errors import ConfigError, InputError
from surelabel.recognizer.feature_extraction import max_encoder_passes
from surelabel.recognizer.recognizer import Recognizer

DEFAULT_MAX_PASSES = 6  # more passes add little mAP and no Brier skill; see docs/which-method.md
MIN_FIT_IMAGES = 10  # unlabelled images with which region_statistics improves on zero_shot
MIN_CALIBRATION_IMAGES = 100  # without labels; with fewer images, probabilities are unreliable
MAX_CALIBRATION_IMAGES = 500  # without labels; with more images, the parameters change little


@dataclass(frozen=True)
class LabelFreeMethod:
    """Method that needs no annotated images, with its measured mAP.

    Attributes:
        name: Key of the method.
        mean_average_precision: mAP in percent on the test images of scenes-80, by encoder.
        settings: Settings of the method that differ from the defaults.
    """

    name: str
    mean_average_precision: Mapping[str, float]
    settings: Mapping[str, int] = field(default_factory=dict)

    def mean_average_precision_of(self, encoder: str) -> float:
        """Return the mAP for an encoder, or the mean over encoders if it was not measured."""
        values = self.mean_average_precision
        return values.get(encoder, sum(values.values()) / len(values))

    def overrides(self) -> list[str]:
        """Return the method and its settings as overrides of a run."""
        settings = [f"method.{key}={value}" for key, value in self.settings.items()]
        return [f"method.name={self.name}", *settings]


# The mAP values are those of docs/label-free.md (`surelabel bench label-free`). Those of 2 by 2
# tiles are in the docstring of `Tiles`. The number of encoder passes is computed from the method.
LABEL_FREE_METHODS = (
    LabelFreeMethod("tiles", {"tiny-vit": 77.2, "tiny-rn": 63.7}),  # 14 encoder passes
    LabelFreeMethod("dense_regions", {"tiny-vit": 75.8, "tiny-rn": 64.7}),  # 6
    LabelFreeMethod(
        "tiles", {"tiny-vit": 70.2, "tiny-rn": 63.5}, {"rows": 2, "columns": 2, "grids": 1}
    ),  # 5
    LabelFreeMethod("region_statistics", {"tiny-vit": 59.4, "tiny-rn": 65.7}),  # 2
    LabelFreeMethod("zero_shot", {"tiny-vit": 50.6, "tiny-rn": 50.2}),  # 1
)


def label_free_methods_by_map(encoder: str) -> list[LabelFreeMethod]:
    """Return the label-free methods, highest measured mAP for an encoder first.

    Args:
        encoder: Name of the encoder. For an encoder that was not measured, the methods are sorted
            by the mean over the measured encoders.

    Example:
        >>> [method.name for method in label_free_methods_by_map("tiny-rn")]
        ['region_statistics', 'dense_regions', 'tiles', 'tiles', 'zero_shot']
        >>> label_free_methods_by_map("ViT-B-16/openai")[0].name
        'tiles'
    """
    return sorted(
        LABEL_FREE_METHODS,
        key=lambda method: method.mean_average_precision_of(encoder),
        reverse=True,
    )


def default_max_passes(n_images: int) -> int:
    """Return the default of the maximum number of encoder passes of an image.

    Methods with several passes have no shipped calibration. Therefore, the default is one pass if
    there are fewer images than the calibration without labels needs.

    Args:
        n_images: Number of images to be tagged.

    Example:
        >>> default_max_passes(99), default_max_passes(100)
        (1, 6)
    """
    return DEFAULT_MAX_PASSES if n_images >= MIN_CALIBRATION_IMAGES else 1


def select_calibration_images(paths: Sequence[str]) -> Sequence[str]:
    """Return 1 to 500 paths for a calibration without labels, evenly spaced in ``paths``.

    Args:
        paths: Paths of the images, at least one.
    """
    return paths[:: math.ceil(len(paths) / MAX_CALIBRATION_IMAGES)]


def check_max_passes(max_passes: int) -> None:
    """Check that the maximum number of encoder passes is at least 1.

    Raises:
        InputError: If the number is below 1.
    """
    if max_passes < 1:
        raise InputError(
            "max_passes must be 1 or more, because each image is encoded at least once; got "
            f"{max_passes}. Give 1 for methods that encode the whole image only."
        )


def best_label_free_recognizer(
    encoder: str,
    make_recognizer: Callable[[list[str]], Recognizer],
    *,
    max_passes: int,
    n_images: int = 0,
) -> Recognizer:
    """Return the recognizer of the label-free method with the highest measured mAP.

    A method is left out if it needs more than ``max_passes`` encoder passes, or if the encoder or
    the labels do not support it. For example, a method that needs patches is left out for an
    encoder without patches.

    Args:
        encoder: Name of the encoder.
        make_recognizer: Function that returns the recognizer with overrides of the run, such as
            ``method.name=tiles``.
        max_passes: Maximum number of encoder passes of an image, >= 1.
        n_images: Number of unlabelled images that the method can be fitted on. With fewer than ten
            images, methods that are fitted on unlabelled images are left out.

    Raises:
        ConfigError, InputError: If all methods are left out.
    """
    error: ConfigError | InputError | None = None
    for method in label_free_methods_by_map(encoder):
        try:
            recognizer = make_recognizer(method.overrides())
        except (ConfigError, InputError) as method_error:
            error = method_error
            continue
        is_fitted = recognizer.is_fitted or n_images >= MIN_FIT_IMAGES
        if is_fitted and max_encoder_passes(recognizer.method) <= max_passes:
            return recognizer
    raise error or ConfigError(
        f"At least one label-free method must be available; got none with max_passes={max_passes}. "
        "Increase max_passes, or choose a method."
    )
