"""Define ``surelabel bench``, which runs reproducible comparisons of methods."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.output_paths import validate_terminal_output_path
from surelabel.cli.protocol_options import ProtocolOptions, protocol_options
from surelabel.cli.terminal import Command, Terminal, with_terminal_options

if TYPE_CHECKING:
    from surelabel.bench import BenchComparison


@click.group()
def bench() -> None:
    """Reproduce comparisons from papers, with confidence intervals."""


encoder_option = click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="NAME",
    help="Encoder for the generated scenes. The option may be repeated. [tiny-vit and tiny-rn]",
)


def comparison_command(
    name: str, *options: Callable[[Command], Command], quick: str
) -> Callable[[Command], click.Command]:
    """Return a decorator that makes a function the command of a comparison.

    Args:
        name: Name of the comparison.
        options: Options of this comparison. In the help, these options follow ``--quick`` and
            precede ``--out`` and the options of all commands.
        quick: Reduced data or settings of ``--quick``, such as ``few images``.
    """
    quick_option = click.option(
        "--quick", is_flag=True, help=f"Run a small comparison in a few minutes, with {quick}."
    )
    out_option = click.option(
        "--out",
        callback=validate_terminal_output_path,
        default=f"bench-{name}",
        show_default=True,
        metavar="FOLDER",
        help="Folder for tables and cached results; an interrupted run resumes from this folder.",
    )

    def make_command(function: Command) -> click.Command:
        function = out_option(with_terminal_options(function))
        for add_option in reversed(options):
            function = add_option(function)
        return bench.command(name=name)(quick_option(function))

    return make_command


def run_comparison(
    terminal: Terminal,
    comparison: "BenchComparison[Any, Any, Any]",
    datasets: Sequence[Any],
    plan: Any,
    out: str,
    *,
    task: str = "Comparing",
) -> None:
    """Run a comparison with a progress bar, write its files and print its results.

    Args:
        terminal: Output and options of the command.
        comparison: Comparison to run.
        datasets: Datasets of the comparison.
        plan: Sizes and settings of the comparison.
        out: Output folder.
        task: Name of the measurements, shown with their progress.
    """
    from surelabel.bench import write_comparison

    with terminal.progress(task, "measurements") as progress:
        page, value = write_comparison(
            comparison, datasets, plan, out, seed=terminal.seed or 0, progress=progress
        )
    terminal.print_result(value, page)
    *files, last_file = comparison.files
    terminal.print_status(f"Written: {out}/{', '.join(files)} and {last_file}")


def _encoders_of_comparison(encoders: tuple[str, ...], quick: bool) -> tuple[str, ...]:
    """Return the given encoders or, if none is given, the default encoders."""
    return encoders or (("tiny-vit",) if quick else ("tiny-vit", "tiny-rn"))


@comparison_command(
    "calibrated",
    encoder_option,
    protocol_options,
    click.option(
        "--features",
        "files",
        multiple=True,
        metavar="FILE.npz",
        help="File of feature vectors with the arrays features, targets, names and part (train, "
        "validation or test). The option may be repeated.",
    ),
    quick="bundled images, two seeds and few settings",
)
def bench_calibrated_command(
    terminal: Terminal,
    quick: bool,
    encoders: tuple[str, ...],
    data: ProtocolOptions | None,
    files: tuple[str, ...],
    out: str,
) -> None:
    """Compare losses and calibrators by the calibration of their probabilities.

    Link functions and regularizers are also compared. The tables have the format of the paper
    "Towards Calibrated Multi-label Deep Neural Networks". Without --encoder and --features,
    generated scenes are encoded with tiny-vit and tiny-rn, or with tiny-vit only if --quick is
    given. With --protocol and --data, the images of a public dataset are encoded instead.
    """
    from surelabel.bench import (
        encode_feature_splits,
        load_feature_splits,
        load_scene_feature_splits,
    )
    from surelabel.bench.calibrated import CALIBRATED

    images = None if data is None else data.load_image_splits("calibrated")
    datasets = [load_feature_splits(path) for path in files]
    for name in encoders if files else _encoders_of_comparison(encoders, quick):
        with terminal.progress(f"Encoding with {name}") as progress:
            if images is None:
                dataset = load_scene_feature_splits(name, quick=quick, progress=progress)
            else:
                dataset = encode_feature_splits(images, name, progress=progress)
            datasets.append(dataset)
    plan = CALIBRATED.quick if quick else CALIBRATED.full
    run_comparison(terminal, CALIBRATED, datasets, plan, out, task="Fitting")


@comparison_command(
    "label-free",
    encoder_option,
    protocol_options,
    quick="bundled images, two seeds and one encoder",
)
def bench_label_free_command(
    terminal: Terminal,
    quick: bool,
    encoders: tuple[str, ...],
    data: ProtocolOptions | None,
    out: str,
) -> None:
    """Compare methods that need no annotated images.

    The methods are zero-shot, tiles, crops, dense regions and students of self-training. The tables
    contain ranking metrics, calibration metrics and computing costs. An ablation compares variants
    of cut-and-sew students, as in the paper "From Iconic to Inclusive".
    """
    from surelabel.bench.label_free import (
        LABEL_FREE,
        label_free_plan_of_images,
        label_free_splits_of_images,
        load_label_free_scene_splits,
    )

    plan = LABEL_FREE.quick if quick else LABEL_FREE.full
    names = _encoders_of_comparison(encoders, quick)
    if data is None:
        datasets = [load_label_free_scene_splits(name, plan, quick=quick) for name in names]
    else:
        images = data.load_image_splits("label-free")
        plan = label_free_plan_of_images(plan, images)
        datasets = [label_free_splits_of_images(images.with_encoder(name)) for name in names]
    run_comparison(terminal, LABEL_FREE, datasets, plan, out)


@comparison_command("negation", encoder_option, quick="bundled images and one encoder")
def bench_negation_command(
    terminal: Terminal, quick: bool, encoders: tuple[str, ...], out: str
) -> None:
    """Compare ways to answer queries with an excluded label: a & !b.

    Formulas of probabilities, sentences, embedding arithmetic and optimized embeddings rank
    generated scenes. The tables contain ranking metrics, the share of hits with the excluded label,
    and the error of formula probabilities that treat labels as independent.
    """
    from surelabel.bench.negation import NEGATION, load_negation_scenes

    plan = NEGATION.quick if quick else NEGATION.full
    names = _encoders_of_comparison(encoders, quick)
    splits = load_negation_scenes(names, plan, quick=quick)
    run_comparison(terminal, NEGATION, [splits], plan, out)


@comparison_command(
    "open-vocabulary",
    click.option(
        "--encoder",
        metavar="NAME",
        help="Vision transformer for --protocol. [tiny-vit]",
    ),
    protocol_options,
    click.option(
        "--domain",
        type=click.Choice(["photo", "sketch", "night"]),
        default="photo",
        show_default=True,
        help="Visual style of the scenes; sketch and night differ from the training images.",
    ),
    quick="few images, two seeds and one epoch",
)
def bench_open_vocabulary_command(
    terminal: Terminal,
    quick: bool,
    encoder: str | None,
    data: ProtocolOptions | None,
    domain: str,
    out: str,
) -> None:
    """Ablate recover_match on seen and unseen classes.

    The images are generated scenes with 48 seen and 17 unseen classes, or those of --protocol and
    --data. The tables have the format of the paper "Recover and Match" and include zero-shot, dense
    regions and an adapter. Differences have confidence intervals over seeds and over images.
    """
    from surelabel.bench.open_vocabulary import (
        OPEN_VOCABULARY,
        fitted_rows_workload,
        load_open_vocabulary_scene_splits,
        open_vocabulary_plan_of_images,
        open_vocabulary_splits_of_images,
    )

    plan = OPEN_VOCABULARY.quick if quick else OPEN_VOCABULARY.full
    if data is None:
        if encoder is not None:
            raise click.UsageError("--encoder requires --protocol and --data. Remove --encoder.")
        terminal.print_status(fitted_rows_workload(domain, plan))
        images = load_open_vocabulary_scene_splits(plan, domain=domain, quick=quick)
    else:
        dataset = data.load_image_splits("open-vocabulary").with_encoder(encoder or plan.encoder)
        images = open_vocabulary_splits_of_images(dataset, data.vocabulary)
        plan = open_vocabulary_plan_of_images(plan, images)
    run_comparison(terminal, OPEN_VOCABULARY, [images], plan, out)


@comparison_command(
    "prompts",
    encoder_option,
    protocol_options,
    quick="two seeds, and few images, tuners and shots",
)
def bench_prompts_command(
    terminal: Terminal,
    quick: bool,
    encoders: tuple[str, ...],
    data: ProtocolOptions | None,
    out: str,
) -> None:
    """Compare prompt tuning with and without class-wise covariance regularization (CCR).

    Tuners such as coop are fitted on few images of base labels. They are evaluated on base and new
    labels, before and after a shared calibrator. DOR and DAC, numbers of shots, domains, weights
    and batch sizes are also compared, as in the paper "Rethinking BCE Loss for Multi-Label Image
    Recognition with Fine-Tuning".
    """
    from surelabel.bench import ResultCache
    from surelabel.bench.base_new_splits import base_new_splits_of_images, load_base_new_scenes
    from surelabel.bench.prompts import (
        PROMPTS,
        plan_with_epochs,
        prompt_plan_of_images,
        prompt_workload,
    )

    plan = PROMPTS.quick if quick else PROMPTS.full
    names = _encoders_of_comparison(encoders, quick)
    if data is None:
        datasets = [
            load_base_new_scenes(
                name, validation=plan.validation, test=plan.test, domains=plan.domains, quick=quick
            )
            for name in names
        ]
    else:
        images = data.load_image_splits("prompts")
        datasets = [base_new_splits_of_images(images.with_encoder(name)) for name in names]
        plan = prompt_plan_of_images(plan, datasets[0])
    plan = plan_with_epochs(datasets, plan, ResultCache(f"{out}/cache"), terminal.seed or 0)
    terminal.print_status(prompt_workload(plan))
    run_comparison(terminal, PROMPTS, datasets, plan, out, task="Fitting")


@comparison_command("similarity", encoder_option, quick="few images, two seeds and few settings")
def bench_similarity_command(
    terminal: Terminal, quick: bool, encoders: tuple[str, ...], out: str
) -> None:
    """Compare variational similarity (VACSR) with other losses on images with captions.

    Methods are fitted on captions of generated scenes, with and without noisy captions. They are
    evaluated by retrieval between images and captions, by uncertainty, on other domains, and on new
    labels. The tables have the format of the paper "Variational Adapter for Cross-modal Similarity
    Representation".
    """
    from surelabel.bench import ResultCache
    from surelabel.bench.similarity import (
        SIMILARITY,
        load_caption_splits,
        similarity_plan_with_epochs,
    )

    plan = SIMILARITY.quick if quick else SIMILARITY.full
    datasets = [
        load_caption_splits(name, plan, quick=quick)
        for name in _encoders_of_comparison(encoders, quick)
    ]
    plan = similarity_plan_with_epochs(datasets, plan, ResultCache(f"{out}/cache"))
    terminal.print_status(
        f"For each encoder, {sum(map(plan.n_seeds, plan.fitted_settings()))} models are fitted on "
        f"captions, with {plan.epochs} epochs each. To resume an interrupted comparison, run the "
        "same command again."
    )
    run_comparison(terminal, SIMILARITY, datasets, plan, out, task="Fitting")


@comparison_command(
    "supervised",
    encoder_option,
    protocol_options,
    quick="bundled images, two seeds and one encoder",
)
def bench_supervised_command(
    terminal: Terminal,
    quick: bool,
    encoders: tuple[str, ...],
    data: ProtocolOptions | None,
    out: str,
) -> None:
    """Compare methods by the number of labelled images.

    Methods are fitted and calibrated on 25 to 20,000 labelled images; methods without training are
    only calibrated. The tables contain mAP, calibration metrics, costs, differences with intervals,
    and the number of labelled images that a method needs to reach an mAP.
    """
    from surelabel.bench.supervised import SUPERVISED, load_supervised_scene_splits

    plan = SUPERVISED.quick if quick else SUPERVISED.full
    images = None if data is None else data.load_image_splits("supervised")
    datasets = [
        load_supervised_scene_splits(name, quick=quick)
        if images is None
        else images.with_encoder(name)
        for name in _encoders_of_comparison(encoders, quick)
    ]
    terminal.print_status(
        f"For each encoder, {plan.n_fits} recognizers are fitted. To resume an interrupted "
        "comparison, run the same command again."
    )
    run_comparison(terminal, SUPERVISED, datasets, plan, out, task="Fitting")
