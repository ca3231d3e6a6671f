"""``surelabel bench``: reproducible comparisons of methods."""

import click

from surelabel.cli.terminal import Terminal, validate_terminal_output_path, with_terminal_options


@click.group()
def bench() -> None:
    """Reproduce comparisons from papers, with confidence intervals."""


@bench.command(name="calibrated")
@click.option(
    "--quick",
    is_flag=True,
    help="Finish in a few minutes, with bundled images, two seeds and few settings.",
)
@click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="NAME",
    help="Encoder of the generated scenes; may be repeated. [tiny-vit and tiny-rn]",
)
@click.option(
    "--features",
    "files",
    multiple=True,
    metavar="FILE.npz",
    help="File of feature vectors with the arrays features, targets, names and part (train, "
    "validation or test); may be repeated.",
)
@click.option(
    "--out",
    callback=validate_terminal_output_path,
    default="bench-calibrated",
    show_default=True,
    metavar="FOLDER",
    help="Folder for tables and cached results; an interrupted run resumes from this folder.",
)
@with_terminal_options
def bench_calibrated_command(
    terminal: Terminal, quick: bool, encoders: tuple[str, ...], files: tuple[str, ...], out: str
) -> None:
    """Compare the calibration of losses and calibrators.

    Link functions and regularizers are also compared. The tables have the format of the paper
    "Towards Calibrated Multi-label Deep Neural Networks". Without --encoder and --features, the
    data are generated scenes, encoded with tiny-vit and, without --quick, with tiny-rn.
    """
    from surelabel.bench import load_feature_splits, load_scene_feature_splits
    from surelabel.bench.calibrated import FULL, QUICK, write_calibration_comparison

    datasets = [load_feature_splits(path) for path in files]
    default_encoders = ("tiny-vit",) if quick else ("tiny-vit", "tiny-rn")
    for name in encoders or (() if files else default_encoders):
        with terminal.progress(f"Encoding with {name}") as progress:
            datasets.append(load_scene_feature_splits(name, quick=quick, progress=progress))
    with terminal.progress("Fitting") as progress:
        page, value = write_calibration_comparison(
            datasets, QUICK if quick else FULL, out, seed=terminal.seed or 0, progress=progress
        )
    terminal.print_result(value, page)
    terminal.print_status(f"Written: {out}/calibrated.md, calibrated.json and curves.png")


@bench.command(name="label-free")
@click.option(
    "--quick",
    is_flag=True,
    help="Finish in a few minutes, with bundled images, two seeds and one encoder.",
)
@click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="NAME",
    help="Encoder of the generated scenes; may be repeated. [tiny-vit and tiny-rn]",
)
@click.option(
    "--out",
    callback=validate_terminal_output_path,
    default="bench-label-free",
    show_default=True,
    metavar="FOLDER",
    help="Folder for tables and cached results; an interrupted run resumes from this folder.",
)
@with_terminal_options
def bench_label_free_command(
    terminal: Terminal, quick: bool, encoders: tuple[str, ...], out: str
) -> None:
    """Compare methods that need no annotated images.

    The methods are zero-shot, tiles, crops, dense regions and students of self-training. The tables
    contain ranking metrics, calibration metrics and computing costs. An ablation compares variants
    of cut-and-sew students, as in the paper "From Iconic to Inclusive".
    """
    from surelabel.bench.label_free import (
        FULL,
        QUICK,
        load_label_free_scene_splits,
        write_label_free_comparison,
    )

    plan = QUICK if quick else FULL
    default_encoders = ("tiny-vit",) if quick else ("tiny-vit", "tiny-rn")
    scenes = [
        load_label_free_scene_splits(name, plan, quick=quick)
        for name in encoders or default_encoders
    ]
    with terminal.progress("Comparing") as progress:
        page, value = write_label_free_comparison(
            scenes, plan, out, seed=terminal.seed or 0, progress=progress
        )
    terminal.print_result(value, page)
    terminal.print_status(f"Written: {out}/label-free.md and label-free.json")


@bench.command(name="open-vocabulary")
@click.option(
    "--quick",
    is_flag=True,
    help="Finish in a few minutes, with few images, two seeds and one epoch.",
)
@click.option(
    "--domain",
    type=click.Choice(["photo", "sketch", "night"]),
    default="photo",
    show_default=True,
    help="Visual style of the scenes; sketch and night differ from the training images.",
)
@click.option(
    "--out",
    callback=validate_terminal_output_path,
    default="bench-open-vocabulary",
    show_default=True,
    metavar="FOLDER",
    help="Folder for tables and cached results; an interrupted run resumes from this folder.",
)
@with_terminal_options
def bench_open_vocabulary_command(terminal: Terminal, quick: bool, domain: str, out: str) -> None:
    """Ablate recover_match on seen and unseen classes.

    The images are generated scenes with 48 seen and 17 unseen classes. The tables have the format
    of the paper "Recover and Match" and include zero-shot, dense regions and an adapter.
    Differences have confidence intervals over seeds and over images.
    """
    from surelabel.bench.open_vocabulary import (
        FULL,
        QUICK,
        load_open_vocabulary_scene_splits,
        open_vocabulary_comparison_workload,
        write_open_vocabulary_comparison,
    )

    plan = QUICK if quick else FULL
    terminal.print_status(open_vocabulary_comparison_workload(domain, plan))
    scenes = load_open_vocabulary_scene_splits(plan, domain=domain, quick=quick)
    with terminal.progress("Comparing") as progress:
        page, value = write_open_vocabulary_comparison(
            scenes, plan, out, seed=terminal.seed or 0, progress=progress
        )
    terminal.print_result(value, page)
    terminal.print_status(f"Written: {out}/open-vocabulary.md and open-vocabulary.json")
