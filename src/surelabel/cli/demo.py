"""``surelabel demo``: the whole job on the collection inside the package."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.measures import as_value, metric_table
from surelabel.cli.tag import words
from surelabel.cli.terminal import Terminal, output, with_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surelabel.evaluation import Evaluation
    from surelabel.recognizer import Recognizer
    from surelabel.records import LabelledImages
    from surelabel.report import Search

COLLECTION, MODEL, METHOD = "scenes-80", "tiny-vit", "clip_adapter"
LABELLED = 500  # pictures that somebody would have labelled by hand
SHOWN = 6  # pictures whose tags are printed, and hits of a search
METRICS = ("mean_average_precision", "brier_skill", "log_loss", "ece")
QUERIES = (  # each has true matches in the test pictures, and pictures that only the ! keeps out
    "coffee & wine glass & !kitchen knife",
    "cow & horse & !cat",
    "rocket & star & !cloud",
)


@click.command()
@click.option(
    "--out", default="surelabel-demo", show_default=True, callback=output, metavar="FOLDER"
)
@with_terminal
def demo(terminal: Terminal, out: str) -> None:
    """Do the whole job once, on pictures inside the package.

    It tags, measures, fits, calibrates, measures again, and writes a recognizer, an index and a
    report with three searches. It needs no download and takes a minute or two.
    """
    from surelabel.data import collection
    from surelabel.recognizer import check_free
    from surelabel.report import check_place, report

    check_free(Path(out) / "recognizer")
    check_place(Path(out) / "report")
    test = collection(COLLECTION, split="test")
    terminal.tell(
        f"1. {COLLECTION} has {len(test)} test pictures, composed of emoji, and {len(test.names)} "
        f"labels. {MODEL} tags them without having seen a label:"
    )
    before = zero_shot(terminal, test)
    recognizer = fitted(terminal)
    after = measured(terminal, recognizer, test, before)
    searches = searched(terminal, Path(out) / "index", after, test)
    recognizer.save(Path(out) / "recognizer")
    page = report(after, Path(out) / "report", before=before, searches=searches)
    terminal.tell(f"7. The report, with plots, pictures and the searches: {page}\n")
    terminal.show(as_result(before, after, searches, page), next_steps(out))


def zero_shot(terminal: Terminal, test: "LabelledImages") -> "Evaluation":
    """Tags of a few pictures beside the truth, and the metrics of all."""
    from surelabel.recognizer import Recognizer, judged, tags_of

    recognizer = Recognizer.zero_shot(MODEL, test.names, device=terminal.device)
    with terminal.progress("Tagging") as progress:
        found = judged(recognizer, test, progress=progress)
    tags = tags_of(found.predictions, top_k=3)
    for path, tagged in list(zip(found.predictions.paths, tags, strict=True))[:SHOWN]:
        terminal.tell(f"   {Path(path).name}: {words(tagged)}   (true: {truth(test, path)})")
    terminal.tell(f"\n2. How good that is, and how honest:\n{indented({'zero-shot': found})}")
    return found


def fitted(terminal: Terminal) -> "Recognizer":
    """A recognizer fitted on a small labelled part and calibrated on another."""
    from surelabel.config import Choice, Run
    from surelabel.data import collection
    from surelabel.recognizer import Recognizer

    train = collection(COLLECTION, split="train").take(range(LABELLED))
    held_out = collection(COLLECTION, split="validation")
    run = Run(backbone=Choice(MODEL), method=Choice(METHOD), seed=terminal.seed or 0)
    recognizer = Recognizer(run, train.names, device=terminal.device)
    terminal.tell(f"\n3. {METHOD} is fitted on {LABELLED} labelled pictures.")
    with terminal.progress("Fitting") as progress:
        recognizer.fit(train, progress=progress)
    terminal.tell(f"4. It is calibrated on {len(held_out)} others, which fitting has not seen.")
    with terminal.progress("Calibrating") as progress:
        recognizer.calibrate(held_out, progress=progress)
    return recognizer


def measured(
    terminal: Terminal, recognizer: "Recognizer", test: "LabelledImages", before: "Evaluation"
) -> "Evaluation":
    """The same metrics on the same test pictures again."""
    from surelabel.recognizer import evaluate

    with terminal.progress("Evaluating") as progress:
        after = evaluate(recognizer, test, progress=progress)
    both = {"zero-shot": before, METHOD: after}
    terminal.tell(f"\n5. On the test pictures, before and after:\n{indented(both)}")
    return after


def searched(
    terminal: Terminal, folder: Path, found: "Evaluation", test: "LabelledImages"
) -> "Sequence[Search]":
    """An index of the test pictures, and three questions to it."""
    from surelabel.report import Search
    from surelabel.retrieval import Index

    index = Index.create(folder, found.predictions)
    terminal.tell(f"\n6. An index of the test pictures, in {folder}, answers:")
    searches = []
    for query in QUERIES:
        hits = index.search(query, k=2 * SHOWN)
        searches.append(Search(query, hits))
        terminal.tell(f"\n   {query}")
        for hit in hits[:SHOWN]:
            name = Path(hit.path).name
            terminal.tell(f"   {hit.probability:.3f}  {name}   (true: {truth(test, hit.path)})")
        right = matches(test, query)
        first = sum(hit.path in right for hit in hits[:SHOWN])
        terminal.tell(f"   {first} of these {SHOWN} hold; {len(right)} of {len(test)} pictures do.")
    terminal.tell("")
    return searches


def truth(test: "LabelledImages", path: str) -> str:
    """The labels that are in a picture."""
    row = test.targets[list(test.paths).index(path)]
    return ", ".join(name for name, there in zip(test.names, row, strict=True) if there)


def matches(test: "LabelledImages", query: str) -> set[str]:
    """The pictures for which a query truly holds."""
    from surelabel.retrieval import parse

    asked, right = parse(query), set()
    for path, row in zip(test.paths, test.targets, strict=True):
        there = dict(zip(test.names, row, strict=True))
        wanted = all(there[name] for name in asked.wanted)
        if wanted and not any(there[name] for name in asked.unwanted):
            right.add(path)
    return right


def indented(evaluations: "dict[str, Evaluation]") -> str:
    """The few metrics that matter most."""
    return "\n".join(f"   {line}" for line in metric_table(evaluations, METRICS).splitlines())


def as_result(
    before: "Evaluation", after: "Evaluation", searches: "Sequence[Search]", page: Path
) -> dict[str, Any]:
    """What ``--json`` prints."""
    found = [
        {"query": s.query, "hits": [{"path": h.path, "probability": h.probability} for h in s.hits]}
        for s in searches
    ]
    return {
        "before": as_value(before),
        "after": as_value(after),
        "searches": found,
        "report": str(page),
    }


def next_steps(out: str) -> str:
    """Three commands to try."""
    return f"""Try next:
  surelabel search {out}/index "guitar & drum & !piano"
  surelabel evaluate {out}/recognizer scenes-80:test
  surelabel tag YOUR-PHOTOGRAPHS --labels "dog, bicycle" --model ViT-B-16/openai"""
