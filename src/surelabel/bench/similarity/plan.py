"""Define rows, sizes and settings of the comparison of similarity methods."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from surelabel.config import Choice, Run

ZERO_SHOT, COSINE, VARIATIONAL = "zero_shot", "cosine_projection", "variational"
NOISE_RATIOS = (0.0, 0.2, 0.5)
MAX_EPOCHS = 10
TIMED_STEPS = 6


@dataclass(frozen=True)
class SimilaritySetting:
    """Settings of one table row, whose fits differ only in their seed.

    Attributes:
        title: Title of the row.
        method: Entry of ``METHODS``.
        loss: Entry of ``LOSSES`` or ``SET_LOSSES``.
        settings: Settings of the method that differ from the defaults.
        regularizer: Entry of ``REGULARIZERS``, or an empty string.
        noise: Fraction of the training captions that are permuted.
    """

    title: str
    method: str
    loss: str = "binary"
    settings: tuple[tuple[str, Any], ...] = ()
    regularizer: str = ""
    noise: float = 0.0

    @property
    def without_noise(self) -> "SimilaritySetting":
        """Return the settings of the same row without noisy captions."""
        return replace(self, noise=0.0)


ZERO_SHOT_ROW = SimilaritySetting("zero-shot", ZERO_SHOT)
SIGMOID = SimilaritySetting("sigmoid loss", COSINE)
CONTRASTIVE = SimilaritySetting("contrastive loss", COSINE, "contrastive")
CCR = replace(CONTRASTIVE, title="contrastive + CCR", regularizer="class_covariance_of_softmax")
PCME = SimilaritySetting("probabilistic embedding", "probabilistic_embedding")
VACSR = SimilaritySetting("VACSR", VARIATIONAL)
DETACHED = SimilaritySetting("VACSR, detached", VARIATIONAL, settings=(("detach_trunk", True),))
ABLATIONS = (
    replace(VACSR, title="without KL", settings=(("alpha", 0.0),)),
    replace(VACSR, title="unbounded variance", settings=(("bounded_variance", False),)),
    replace(VACSR, title="without variance losses", settings=(("beta", 0.0),)),
    replace(VACSR, title="one component", settings=(("components", 1),)),
)
FIXED_SCALE = (("train_scale", False), ("initial_scale", 1.0), ("initial_bias", 0.0))
LOSS_ROWS = (
    replace(SIGMOID, title="sigmoid, fixed a = 1, b = 0", settings=FIXED_SCALE),
    replace(CONTRASTIVE, title="contrastive, fixed τ = 1", settings=FIXED_SCALE),
)
SENSITIVITY = {  # values besides the default, by setting of VACSR
    "alpha": (0.0, 0.00005, 0.0001, 0.001, 0.005, 0.01),
    "beta": (0.0, 0.1, 0.5, 5.0, 10.0),
    "gamma": (0.0, 0.1, 0.5, 2.0, 5.0, 10.0),
    "components": (1, 3, 4),
    "hard_negatives": (2, 3, 4, 5, 10),
}
TAGGERS = ("zero_shot", "clip_adapter", "variational_tagger")


@dataclass(frozen=True)
class SimilarityPlan:
    """Sizes and settings of the comparison of similarity methods.

    Attributes:
        images: Number of training images.
        validation: Number of validation images, on which the learning rate is selected.
        test: Number of test images.
        domain_images: Number of test images in each other domain.
        domains: Domains of test images other than ``photo``.
        seeds: Number of seeds of the rows of VACSR, detached VACSR, sigmoid and contrastive loss.
        ablation_seeds: Number of seeds of the other fitted rows and of the fitted taggers.
            Sensitivity rows have one seed.
        noise_ratios: Fractions of permuted training captions.
        learning_rates: Learning rates, of which one is selected for each method and loss.
        batch_size: Number of captions per optimizer step.
        sensitivity: Values of settings of VACSR. Each value is fitted with one seed, or has the
            fits of the ablation row with the same settings.
        taggers: Methods that predict labels, compared on base and new labels.
        tagger_shots: Number of positive images per base label.
        epochs: Number of epochs of all fits on captions.
        minutes: Limit of the processor time of all fits on captions in minutes, from which the
            epochs are computed.
        resamples: Number of resamples of the test images for each interval.
    """

    images: int = 1500
    validation: int = 500
    test: int = 1000
    domain_images: int = 400
    domains: tuple[str, ...] = ("sketch", "night", "blur", "noise")
    seeds: int = 5
    ablation_seeds: int = 2
    noise_ratios: tuple[float, ...] = NOISE_RATIOS
    learning_rates: tuple[float, ...] = (0.0005, 0.002)
    batch_size: int = 64
    sensitivity: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: SENSITIVITY)
    taggers: tuple[str, ...] = TAGGERS
    tagger_shots: int = 16
    epochs: int = MAX_EPOCHS
    minutes: float = 75.0
    resamples: int = 300

    def noise_settings(self) -> Iterator[SimilaritySetting]:
        """Iterate over the rows that are fitted with each fraction of noisy captions."""
        for ratio in self.noise_ratios:
            for setting in (SIGMOID, CONTRASTIVE, VACSR, DETACHED):
                yield replace(setting, noise=ratio)

    def main_settings(self) -> Iterator[SimilaritySetting]:
        """Iterate over the fitted rows of the main table, without noise."""
        yield from (SIGMOID, CONTRASTIVE, CCR, PCME, VACSR, DETACHED)

    def sensitivity_settings(self) -> Iterator[SimilaritySetting]:
        """Iterate over rows of VACSR with one changed setting each."""
        for name, values in self.sensitivity.items():
            for value in values:
                yield replace(VACSR, title=f"{name} = {value:g}", settings=((name, value),))

    def fitted_settings(self) -> list[SimilaritySetting]:
        """Return the settings of all rows that are fitted on captions.

        The sensitivity rows follow the other rows, so that an interrupted comparison contains the
        main rows. They include rows with the settings of an ablation row, such as ``alpha`` = 0,
        which are not fitted again.
        """
        settings = [*self.main_settings(), *self.noise_settings(), *ABLATIONS, *LOSS_ROWS]
        by_key = {_row_key(setting): setting for setting in settings}
        return [*by_key.values(), *self.sensitivity_settings()]

    def n_seeds(self, setting: SimilaritySetting) -> int:
        """Return the number of seeds of a row."""
        if setting.method == ZERO_SHOT or setting in self.sensitivity_settings():
            return 1
        compared = (SIGMOID, CONTRASTIVE, VACSR, DETACHED)
        return self.seeds if setting.without_noise in compared else self.ablation_seeds

    def fit_seconds(self, step_seconds: Mapping[str, float]) -> float:
        """Return the seconds of all fits of a dataset if each fit has one optimizer step.

        The fits of the selection of the learning rate are included. A sensitivity row with the
        settings of an ablation row is counted, although it is not fitted again.

        Args:
            step_seconds: Processor time of one step in seconds, by method.
        """
        fits = [(setting, self.n_seeds(setting)) for setting in self.fitted_settings()]
        if len(self.learning_rates) > 1:
            selected = (SIGMOID, CONTRASTIVE, PCME, VACSR, DETACHED)
            fits += [(setting, len(self.learning_rates)) for setting in selected]
        return sum(step_seconds[setting.method] * n_seeds for setting, n_seeds in fits)

    def run_of(
        self, setting: SimilaritySetting, encoder: str, seed: int, learning_rate: float
    ) -> Run:
        """Return the run of one fit of a row."""
        run = Run(
            encoder=Choice(encoder),
            method=Choice(setting.method, dict(setting.settings)),
            loss=Choice(setting.loss),
            calibrator=Choice("beta"),
            seed=seed,
        )
        if setting.method == ZERO_SHOT:
            return run
        run = replace(
            run, epochs=self.epochs, batch_size=self.batch_size, learning_rate=learning_rate
        )
        if setting.regularizer:
            run = replace(run, regularizer=Choice(setting.regularizer), regularizer_weight=0.1)
        return run


def _row_key(setting: SimilaritySetting) -> SimilaritySetting:
    return replace(setting, title="")


FULL = SimilarityPlan()
QUICK = SimilarityPlan(
    images=300,
    validation=100,
    test=200,
    domain_images=100,
    domains=("sketch",),
    seeds=2,
    ablation_seeds=1,
    noise_ratios=(0.0, 0.5),
    learning_rates=(0.0005,),
    sensitivity={"gamma": (0.0,), "components": (1,)},
    taggers=("zero_shot", "variational_tagger"),
    minutes=2.0,
    resamples=100,
)
