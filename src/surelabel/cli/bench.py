"""``surelabel bench``."""

import click

from surelabel.cli.terminal import Terminal, output, with_terminal


@click.group()
def bench() -> None:
    """Repeat the papers' comparisons, with intervals, on two cores."""


@bench.command()
@click.option("--quick", is_flag=True, help="Minutes: shipped pictures, two seeds, few settings.")
@click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="NAME",
    help="Scenes as this encoder sees them; several may be given. [tiny-vit and tiny-rn]",
)
@click.option(
    "--features",
    "files",
    multiple=True,
    metavar="FILE.npz",
    help="Vectors of your own: features, targets, names, and part (train, validation, test).",
)
@click.option(
    "--out",
    callback=output,
    default="bench-calibrated",
    show_default=True,
    metavar="FOLDER",
    help="Where tables and fitted heads are kept; a stopped run goes on from them.",
)
@with_terminal
def calibrated(
    terminal: Terminal, quick: bool, encoders: tuple[str, ...], files: tuple[str, ...], out: str
) -> None:
    """Compare losses, maps, label pairs and calibrators: whose probabilities can be trusted.

    The tables of "Towards Calibrated Multi-label Deep Neural Networks" beside ours. Without
    --encoder and --features both embedded encoders are measured, on drawn scenes.
    """
    from surelabel.bench import of_file, of_scenes
    from surelabel.bench.calibrated import FULL, QUICK, measure_all

    materials = [of_file(path) for path in files]
    both = ("tiny-vit",) if quick else ("tiny-vit", "tiny-rn")
    for name in encoders or (() if files else both):
        with terminal.progress(f"Encoding with {name}") as progress:
            materials.append(of_scenes(name, quick=quick, progress=progress))
    with terminal.progress("Fitting heads") as progress:
        page, value = measure_all(
            materials, QUICK if quick else FULL, out, seed=terminal.seed or 0, progress=progress
        )
    terminal.show(value, page)
    terminal.say(f"Written: {out}/calibrated.md, calibrated.json and curves.png")


@bench.command(name="label-free")
@click.option("--quick", is_flag=True, help="Minutes: shipped pictures, two seeds, one encoder.")
@click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="NAME",
    help="Scenes as this encoder sees them; several may be given. [tiny-vit and tiny-rn]",
)
@click.option(
    "--out",
    callback=output,
    default="bench-label-free",
    show_default=True,
    metavar="FOLDER",
    help="Where tables and what was computed are kept; a stopped run goes on from them.",
)
@with_terminal
def label_free(terminal: Terminal, quick: bool, encoders: tuple[str, ...], out: str) -> None:
    """Compare what needs no label: zero-shot, tiles, crops, dense regions, students.

    Rankings, probabilities without a label, the price of each, and cut-and-sew students with one
    thing changed at a time ("From Iconic to Inclusive").
    """
    from surelabel.bench.label_free import FULL, QUICK, measure_all, of_scenes

    plan = QUICK if quick else FULL
    both = ("tiny-vit",) if quick else ("tiny-vit", "tiny-rn")
    archives = [of_scenes(name, plan, quick=quick) for name in encoders or both]
    with terminal.progress("Comparing") as progress:
        page, value = measure_all(archives, plan, out, seed=terminal.seed or 0, progress=progress)
    terminal.show(value, page)
    terminal.say(f"Written: {out}/label-free.md and label-free.json")


@bench.command(name="open-vocabulary")
@click.option("--quick", is_flag=True, help="Minutes: few pictures, two seeds, one pass.")
@click.option(
    "--domain",
    type=click.Choice(["photo", "sketch", "night"]),
    default="photo",
    show_default=True,
    help="The look of the scenes; far from what the encoder knows, its knowledge weighs less.",
)
@click.option(
    "--out",
    callback=output,
    default="bench-open-vocabulary",
    show_default=True,
    metavar="FOLDER",
    help="Where tables and what was computed are kept; a stopped run goes on from them.",
)
@with_terminal
def open_vocabulary(terminal: Terminal, quick: bool, domain: str, out: str) -> None:
    """Learn 48 names, ask for 17 others: what each part of recover_match adds, and costs.

    The tables of "Recover and Match" in our world, beside zero-shot, dense regions and an adapter,
    as differences with intervals over seeds and over pictures.
    """
    from surelabel.bench.open_vocabulary import FULL, QUICK, forecast, measure_all, of_scenes

    plan = QUICK if quick else FULL
    terminal.say(forecast(domain, plan))
    pictures = of_scenes(plan, domain=domain, quick=quick)
    with terminal.progress("Comparing") as progress:
        page, value = measure_all(pictures, plan, out, seed=terminal.seed or 0, progress=progress)
    terminal.show(value, page)
    terminal.say(f"Written: {out}/open-vocabulary.md and open-vocabulary.json")
