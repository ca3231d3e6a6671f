"""Load validation and test images of the comparison of queries with an excluded label."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from surelabel.bench.image_splits import load_benchmark_scenes
from surelabel.bench.negation.plan import NegationPlan
from surelabel.bench.result_cache import result_cache_digest
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class NegationSplits:
    """Annotated images of one dataset, with the encoders that are compared on them.

    Attributes:
        name: Title of the dataset.
        encoders: Names of the encoders.
        validation: Images on which calibrators are fitted and settings are selected.
        test: Test images, used only for the measurements.
    """

    name: str
    encoders: tuple[str, ...]
    validation: LabelledImages
    test: LabelledImages

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the image paths and the targets."""
        return result_cache_digest(
            *(
                part
                for split in (self.validation, self.test)
                for part in ("\n".join(split.paths), split.targets)
            )
        )


def load_negation_scenes(
    encoders: Sequence[str], plan: NegationPlan, *, quick: bool = False
) -> NegationSplits:
    """Load generated images (scenes) with 80 labels.

    Args:
        encoders: Names of embedded encoders: ``tiny-vit`` and ``tiny-rn``.
        plan: Plan with the number of images of each split.
        quick: If True, use the images inside the package. If False, render the images of the
            complete benchmark into the cache folder on first use.
    """
    validation, test = (
        load_benchmark_scenes(split, quick=quick).images for split in ("validation", "test")
    )
    return NegationSplits(
        name="scenes-80",
        encoders=tuple(encoders),
        validation=validation.take(range(min(plan.validation, len(validation)))),
        test=test.take(range(min(plan.test, len(test)))),
    )
