"""Define methods, numbers of labelled images and sizes of the supervised comparison."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.methods import METHODS

SUPERVISED_METHODS = (
    "zero_shot",
    "tiles",
    "dense_regions",
    "region_statistics",
    "linear",
    "clip_adapter",
    "multiple_instance_tiles",
    "multiple_instance_patches",
    "ml_decoder",
)
STUDIED_METHODS = ("multiple_instance_tiles", "multiple_instance_patches", "ml_decoder")
TRAINED_REFERENCES = ("linear", "clip_adapter")
LABEL_FREE_METHODS = tuple(  # only calibrated on the labelled images
    name for name in SUPERVISED_METHODS if METHODS[name].learns_from != "labels"
)
CALIBRATOR = "beta"  # calibrator of all recognizers
MAP_LEVELS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)


@dataclass(frozen=True)
class SupervisedPlan:
    """Sizes and settings of the supervised comparison.

    Attributes:
        methods: Keys of the compared methods.
        image_counts: Numbers of labelled images, in ascending order.
        seeds: Number of fits for each number of labelled images. A seed determines which images are
            sampled and how the method is initialized.
        few_seeds: Number of fits of ``ml_decoder`` on at least ``few_seeds_from`` labelled images,
            each of which takes up to a quarter of an hour on one core.
        few_seeds_from: Number of labelled images from which ``ml_decoder`` has ``few_seeds`` fits.
        unlabelled: Number of training images without labels on which ``region_statistics`` is
            fitted.
        folds: Number of folds of the calibration on the images of the fit.
        max_patch_images: Largest number of labelled images for methods that use patch features. The
            patch features of an image need about 1 MB.
        resamples: Number of resamples of the test images for each interval.
    """

    methods: tuple[str, ...] = SUPERVISED_METHODS
    image_counts: tuple[int, ...] = (25, 100, 500, 1500, 5000, 20_000)
    seeds: int = 5
    few_seeds: int = 1
    few_seeds_from: int = 5000
    unlabelled: int = 1000
    folds: int = 5
    max_patch_images: int = 1500
    resamples: int = 300

    def n_seeds(self, method: str, n_images: int) -> int:
        """Return the number of fits of a method on a number of labelled images."""
        is_slow = method == "ml_decoder" and n_images >= self.few_seeds_from
        return self.few_seeds if is_slow else self.seeds

    def image_counts_of_method(self, method: str) -> tuple[int, ...]:
        """Return the numbers of labelled images on which a method is fitted or calibrated."""
        needs = METHODS[method].needs
        limit = self.image_counts[-1] if set(needs) <= {"views"} else self.max_patch_images
        return tuple(count for count in self.image_counts if count <= limit)

    def sampled_rows(self, n_train: int, n_images: int, seed: int) -> npt.NDArray[np.int64]:
        """Return the row numbers of labelled images in ascending order, ``(n_images,)``.

        Samples with the same seed are nested, so that larger samples contain smaller samples.

        Args:
            n_train: Number of training images, from which the labelled images are sampled.
            n_images: Number of labelled images, at most ``n_train``.
            seed: Seed of the sample.
        """
        return np.sort(np.random.default_rng(seed).permutation(n_train)[:n_images])

    @property
    def n_fits(self) -> int:
        """Return the number of all fits, and calibrations of label-free methods, of one encoder."""
        return sum(
            self.n_seeds(method, count)
            for method in self.methods
            for count in self.image_counts_of_method(method)
        )


FULL = SupervisedPlan()
EXPENSIVE_METHODS = ("dense_regions", "multiple_instance_patches", "ml_decoder")  # to encode or fit
QUICK = SupervisedPlan(
    methods=tuple(name for name in SUPERVISED_METHODS if name not in EXPENSIVE_METHODS),
    image_counts=(25, 100, 500, 1500),
    seeds=2,
    resamples=100,
)
