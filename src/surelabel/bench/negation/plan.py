"""Define rows, sizes and settings of the comparison of queries with an excluded label."""

from dataclasses import dataclass

QUERY, PACKAGE, UNCALIBRATED = "calibrated", "package", "uncalibrated"
WANTED, WANTED_COSINE = "wanted", "wanted cosine"
SENTENCE, ARITHMETIC, OPTIMIZED = "sentence", "arithmetic", "optimized"
ROW_TITLES = {
    QUERY: "`a & !b`, calibrated on validation images",
    PACKAGE: "`a & !b`, calibration of the package",
    UNCALIBRATED: "`a & !b`, uncalibrated",
    WANTED: "wanted label alone",
    WANTED_COSINE: "wanted label alone, cosine",
    SENTENCE: "sentence",
    ARITHMETIC: "embedding arithmetic",
    OPTIMIZED: "optimized embedding",
}
TUNED = (SENTENCE, ARITHMETIC, OPTIMIZED)
SENTENCE_TEMPLATES = (
    "a photo of a {a} without a {b}.",
    "a photo of a {a} but no {b}.",
    "a {a} and not a {b}.",
)
NEGATION_WORDS = ("without", "no", "not", "but")


@dataclass(frozen=True)
class NegationPlan:
    """Sizes and settings of the comparison of queries with an excluded label.

    Attributes:
        validation: Maximum number of validation images.
        test: Maximum number of test images.
        min_relevant: Minimum number of images of a query on which a is positive and b is negative.
        min_both: Minimum number of images of a query on which a and b are positive.
        resamples: Number of bootstrap resamples of the test images.
        weights: Candidate weights w of the embedding arithmetic t_a - w t_b.
        steps: Candidate numbers of gradient steps of the optimized embedding.
        step_size: Size of a gradient step, > 0.
        negative_weights: Candidate weights of the excluded label in the optimization.
        start_weights: Candidate weights of the distance to the start in the optimization.
        max_length: Maximum number of literals of the sampled conjunctions.
        conjunctions: Maximum number of sampled conjunctions of each length and kind.
        min_pair_images: Minimum number of validation images with both labels of a frequent pair.
        floor_resamples: Number of target matrices that are sampled for a noise floor.
    """

    validation: int = 5000
    test: int = 10_000
    min_relevant: int = 5
    min_both: int = 20
    resamples: int = 1000
    weights: tuple[float, ...] = tuple(i / 20 for i in range(31))
    steps: tuple[int, ...] = (2, 5, 10, 20)
    step_size: float = 0.1
    negative_weights: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    start_weights: tuple[float, ...] = (0.0, 0.5, 1.0)
    max_length: int = 5
    conjunctions: int = 300
    min_pair_images: int = 20
    floor_resamples: int = 5


FULL = NegationPlan()
QUICK = NegationPlan(
    min_both=5,
    resamples=100,
    weights=(0.0, 0.25, 0.5, 0.75),
    steps=(5, 20),
    negative_weights=(0.5,),
    start_weights=(0.0, 1.0),
    conjunctions=50,
    min_pair_images=5,
    floor_resamples=2,
)
