"""Define tuners, variants, sizes and settings of the comparison of prompt tuning."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from surelabel.bench.base_new_predictions import BaseNewFit, SynthesizedFit
from surelabel.bench.base_new_splits import (
    HALVES,
    OPEN_VOCABULARY_SPLIT,
    BaseNewSplits,
    base_new_vocabulary,
)
from surelabel.config import Choice, Run
from surelabel.methods import METHODS, TunesTexts

TUNERS = {  # entries of METHODS, with the number of seeds
    "coop": 5,
    "kgcoop": 5,
    "dualcoop": 5,
    "tai": 5,
    "clip_adapter": 5,
    "cocoop": 2,
    "tai_plus": 2,
    "t2i_pal": 2,
}
SYNTHESIZED_DOMAINS = {"t2i_pal": ("photo", "sketch")}  # domains by tuner
TEST_DOMAIN = "photo"
ZERO_SHOT = "zero_shot"
NONE, DAC, DOR, CCR = "none", "DAC", "DOR", "CCR"
REGULARIZER_OF_VARIANT = {DOR: "outlier", CCR: "class_covariance"}  # DAC trains nothing
CCR_WEIGHT = 0.1
DOR_WEIGHTS = {"coop": 8.0}  # by tuner
OTHER_DOR_WEIGHT = 2.0
MAX_EPOCHS = 10  # number of epochs in the paper
MAX_SHOTS_OF_SMALL_TRAIN = 32
FitCosts = Mapping[str, Mapping[str, Mapping[str, float]]]  # by tuner and variant
LOSS_TITLES = {"binary": "BCE", "ranking": "ranking loss"}


@dataclass(frozen=True)
class PromptSetting:
    """Settings of one table row, whose fits differ only in their seed.

    Attributes:
        tuner: Entry of ``METHODS``.
        loss: Entry of ``LOSSES`` or ``SET_LOSSES``.
        variant: ``none``, or a key of ``REGULARIZER_OF_VARIANT``.
        shots: Number of positive images per base label.
        weight: Weight of the class covariance regularizer. Other variants ignore the weight.
        batch_size: Number of images per optimizer step. Tuners that learn from texts have the
            batch size of their recipe.
        split: Split of the labels; see ``base_new_vocabulary``.
        synthesized_domain: Domain of the training images if they are synthesized for captions. If
            empty, the training data are images or captions of the training split.
    """

    tuner: str
    loss: str = "binary"
    variant: str = NONE
    shots: int = 16
    weight: float = CCR_WEIGHT
    batch_size: int = 32
    split: str = HALVES
    synthesized_domain: str = ""

    @property
    def tuner_title(self) -> str:
        """Return the tuner, with the domain of its training images if they are synthesized."""
        if not self.synthesized_domain:
            return self.tuner
        is_test = self.synthesized_domain == TEST_DOMAIN
        return f"{self.tuner} ({'test distribution' if is_test else self.synthesized_domain})"

    @property
    def title(self) -> str:
        """Return the title of the row."""
        return f"{self.tuner_title}, {self.variant}" if self.tuner != ZERO_SHOT else "zero-shot"

    @property
    def reference(self) -> "PromptSetting":
        """Return the settings of the row without an additional regularizer."""
        return replace(self, variant=NONE, weight=CCR_WEIGHT)


@dataclass(frozen=True)
class PromptPlan:
    """Sizes and settings of the comparison of prompt tuning.

    Attributes:
        tuners: Number of seeds of each tuner.
        losses: Losses of the main table.
        variants: Variants that are trained, among them ``none`` and ``CCR``.
        shots: Number of positive images per base label in the main table.
        validation: Number of validation images, on which the shared calibrator is fitted.
        test: Number of test images.
        curve_shots: Numbers of shots that are compared for the studied tuner.
        studied_tuner: Tuner for which shots, domains, weights and batch sizes are compared.
        domains: Domains of test images other than ``photo``.
        weights: Weights of the class covariance regularizer. Weight 0 is the row without the
            regularizer.
        batch_sizes: Batch sizes, each combined with all weights.
        open_vocabulary_tuners: Tuners that are also compared on 48 base and 17 new labels.
        epochs: Number of epochs by tuner. Tuners that are not listed use 10 epochs.
        minutes: Limit of the processor time of all fits and predictions in minutes, from which the
            epochs are computed.
        resamples: Number of resamples of the test images for each interval.
    """

    tuners: Mapping[str, int] = field(default_factory=lambda: TUNERS)
    losses: tuple[str, ...] = ("binary", "ranking")
    variants: tuple[str, ...] = (NONE, DOR, CCR)
    shots: int = 16
    validation: int = 500
    test: int = 1000
    curve_shots: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    studied_tuner: str = "coop"
    domains: tuple[str, ...] = ("sketch", "night", "blur", "noise")
    weights: tuple[float, ...] = (0.0, 0.05, 0.1, 0.3)
    batch_sizes: tuple[int, ...] = (16, 32, 64)
    open_vocabulary_tuners: tuple[str, ...] = ("coop", "kgcoop")
    epochs: Mapping[str, int] = field(default_factory=dict)
    minutes: float = 100.0
    resamples: int = 300

    def seeds(self, tuner: str) -> int:
        """Return the number of seeds of a tuner; 1 for zero-shot, which is not in ``tuners``."""
        return self.tuners.get(tuner, 1)

    def main_settings(self, loss: str) -> Iterator[PromptSetting]:
        """Iterate over the trained rows of the main table of one loss."""
        for tuner in self.tuners:
            for domain in SYNTHESIZED_DOMAINS.get(tuner, ("",)):
                for variant in variants_of_tuner(tuner, self.variants):
                    yield PromptSetting(tuner, loss, variant, self.shots, synthesized_domain=domain)

    def curve_settings(self) -> Iterator[PromptSetting]:
        """Iterate over the rows of all compared numbers of shots, without and with CCR."""
        for shots in self.curve_shots:
            for variant in (NONE, CCR):
                yield PromptSetting(self.studied_tuner, variant=variant, shots=shots)

    def domain_settings(self) -> Iterator[PromptSetting]:
        """Iterate over the rows that are also evaluated in other domains."""
        for variant in (NONE, CCR):
            yield PromptSetting(self.studied_tuner, variant=variant, shots=self.shots)

    def weight_settings(self, batch_size: int) -> Iterator[PromptSetting]:
        """Iterate over the rows of all weights of the regularizer for one batch size."""
        common = PromptSetting(self.studied_tuner, shots=self.shots, batch_size=batch_size)
        for weight in self.weights:
            yield replace(common, variant=CCR, weight=weight) if weight else common

    def open_vocabulary_settings(self) -> Iterator[PromptSetting]:
        """Iterate over the rows with 48 base and 17 new labels."""
        for tuner in self.open_vocabulary_tuners:
            for variant in (NONE, CCR):
                yield PromptSetting(
                    tuner, variant=variant, shots=self.shots, split=OPEN_VOCABULARY_SPLIT
                )

    def trained_settings(self) -> list[PromptSetting]:
        """Return the settings of all trained rows without duplicates."""
        settings = [setting for loss in self.losses for setting in self.main_settings(loss)]
        settings += [*self.curve_settings(), *self.domain_settings()]
        settings += [s for size in self.batch_sizes for s in self.weight_settings(size)]
        settings += self.open_vocabulary_settings()
        return list(dict.fromkeys(settings))

    def fit_of(self, setting: PromptSetting, images: BaseNewSplits, seed: int) -> BaseNewFit:
        """Return the settings of one fit of a row.

        Args:
            setting: Settings of the row.
            images: Dataset with the encoder and the labels.
            seed: Seed of the fit and of its few-shot sample.
        """
        run = Run(
            encoder=Choice(images.encoder_name),
            method=Choice(setting.tuner),
            calibrator=Choice("platt"),
            seed=seed,
        )
        if setting.tuner == ZERO_SHOT:
            return BaseNewFit(replace(run, seed=0), setting.split, shots=0)
        run = replace(
            run,
            loss=Choice(setting.loss),
            epochs=self.epochs.get(setting.tuner, MAX_EPOCHS),
        )
        if METHODS[setting.tuner].learns_from != "texts":  # batches of texts are larger
            run = replace(run, batch_size=setting.batch_size)
        if setting.variant != NONE:
            run = replace(
                run,
                regularizer=_regularizer(setting, images),
                regularizer_weight=_regularizer_weight(setting),
            )
        if setting.synthesized_domain:
            return SynthesizedFit(
                run, setting.split, setting.shots, training_domain=setting.synthesized_domain
            )
        return BaseNewFit(
            run,
            setting.split,
            setting.shots,
            uses_large_train=setting.shots > MAX_SHOTS_OF_SMALL_TRAIN,
            domains=self.domains if setting in self.domain_settings() else (),
        )


def prompt_plan_of_images(plan: PromptPlan, images: BaseNewSplits) -> PromptPlan:
    """Return the plan with all images of a dataset that has no captions and no other domains.

    Tuners that are fitted on texts or on synthesized images are left out, and so are the rows with
    48 base labels. The base labels are the first half of the labels.

    Args:
        plan: Plan of the comparison.
        images: Train, validation and test images.
    """
    return replace(
        plan,
        tuners={
            tuner: seeds
            for tuner, seeds in plan.tuners.items()
            if METHODS[tuner].learns_from == "labels" and tuner not in SYNTHESIZED_DOMAINS
        },
        validation=len(images.validation),
        test=len(images.test),
        domains=(),
        open_vocabulary_tuners=(),
    )


def variants_of_tuner(tuner: str, variants: tuple[str, ...]) -> list[str]:
    """Return the variants that apply to a tuner: DOR requires learned prompts in the text tower."""
    return [variant for variant in variants if variant != DOR or tuner_learns_prompts(tuner)]


def tuner_learns_prompts(tuner: str) -> bool:
    """Return whether a tuner learns prompts in the text tower, which DOR and DAC require."""
    return issubclass(METHODS[tuner], TunesTexts)


def _regularizer(setting: PromptSetting, images: BaseNewSplits) -> Choice:
    """Return the regularizer of a variant; the words of DOR exclude the new labels."""
    name = REGULARIZER_OF_VARIANT[setting.variant]
    if setting.variant != DOR:
        return Choice(name)
    new_labels = base_new_vocabulary(images.test.names, setting.split).unseen
    return Choice(name, {"exclude": list(new_labels)})


def _regularizer_weight(setting: PromptSetting) -> float:
    if setting.variant == CCR:
        return setting.weight
    return DOR_WEIGHTS.get(setting.tuner, OTHER_DOR_WEIGHT)


def epochs_within_time(
    plan: PromptPlan, steps: Mapping[PromptSetting, int], costs: FitCosts
) -> dict[str, int]:
    """Return the number of epochs of each tuner that the time limit of the plan allows.

    The number is equal for all rows of a tuner. All tuners start with 10 epochs. Among the tuners
    with more than one epoch, the tuner with the longest fit loses one epoch. This is repeated until
    the fits are within the time limit, or each tuner has one epoch.

    Args:
        plan: Sizes and settings of the comparison.
        steps: Number of optimizer steps per epoch of each trained row.
        costs: Values of ``time_base_new_fit`` by tuner and variant, summed over the datasets.
    """
    epochs = dict.fromkeys(costs, MAX_EPOCHS)
    settings = plan.trained_settings()

    def seconds_of_fits(tuner: str) -> list[float]:
        """Return the training time of one fit of each row of a tuner, in seconds."""
        return [
            epochs[tuner] * steps[setting] * costs[tuner][setting.variant]["step_seconds"]
            for setting in settings
            if setting.tuner == tuner
        ]

    fixed_seconds = sum(
        plan.seeds(setting.tuner) * costs[setting.tuner][setting.variant]["other_seconds"]
        for setting in settings
    )

    def total_seconds() -> float:
        training = (plan.seeds(tuner) * sum(seconds_of_fits(tuner)) for tuner in epochs)
        return fixed_seconds + sum(training)

    while total_seconds() > 60 * plan.minutes:
        reducible = [tuner for tuner in epochs if epochs[tuner] > 1]
        if not reducible:
            break
        epochs[max(reducible, key=lambda tuner: max(seconds_of_fits(tuner)))] -= 1
    return epochs


def prompt_workload(plan: PromptPlan) -> str:
    """Return a sentence with the number of fits and the number of epochs of each tuner."""
    settings = plan.trained_settings()
    n_fits = sum(plan.seeds(setting.tuner) for setting in settings)
    tuners = [
        f"{tuner} ({seeds} seeds, {plan.epochs.get(tuner, MAX_EPOCHS)} epochs)"
        for tuner, seeds in plan.tuners.items()
    ]
    return (
        f"The comparison runs {n_fits} fits per encoder in {len(settings)} rows, within "
        f"{plan.minutes:g} minutes of processor time for all encoders. The tuners are "
        f"{', '.join(tuners)}. To resume an interrupted comparison, run the command again."
    )


FULL = PromptPlan()
QUICK = PromptPlan(
    tuners={"coop": 2, "kgcoop": 2, "clip_adapter": 2},
    shots=8,
    validation=200,
    test=300,
    curve_shots=(1, 8),
    domains=("sketch",),
    weights=(0.0, 0.1),
    batch_sizes=(32, 64),
    open_vocabulary_tuners=("coop",),
    minutes=3.0,
    resamples=100,
)
