"""Load labelled images and test images of the supervised comparison."""

from surelabel.bench.comparison import ComparisonTask
from surelabel.bench.image_splits import EncoderImageSplits, load_benchmark_scenes
from surelabel.bench.supervised.plan import SupervisedPlan

SupervisedTask = ComparisonTask[EncoderImageSplits, SupervisedPlan]


def load_supervised_scene_splits(encoder: str, *, quick: bool = False) -> EncoderImageSplits:
    """Load generated images (scenes) with 80 labels for an embedded encoder.

    The package contains the validation and test images.

    Args:
        encoder: Name of an embedded encoder: ``tiny-vit`` or ``tiny-rn``.
        quick: If True, labelled images are sampled from the 1,500 training images inside the
            package. If False, they are sampled from 20,000 images that are rendered into the cache
            folder on first use.
    """
    return EncoderImageSplits(
        name=f"scenes-80, {encoder}",
        encoder=encoder,
        train=load_benchmark_scenes("train", quick=quick).images,
        validation=load_benchmark_scenes("validation", quick=True).images,
        test=load_benchmark_scenes("test", quick=True).images,
    )
