"""Define ``surelabel demo``, which runs the complete workflow on the bundled collection."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.metric_tables import format_metric_table, metric_tables_as_json
from surelabel.cli.output_paths import validate_terminal_output_directory
from surelabel.cli.tag_output import format_tags
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.counts import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surelabel.evaluation import Evaluation
    from surelabel.recognizer import Recognizer
    from surelabel.records import LabelledImages
    from surelabel.report import QueryHits
    from surelabel.retrieval import IndexRecognizer

COLLECTION, MODEL, METHOD = "scenes-80", "tiny-vit", "multiple_instance_tiles"
N_TRAINING_IMAGES, N_FOLDS = 500, 5
N_PRINTED = 6  # images with tags, and hits of each search, that are printed
METRICS = ("mean_average_precision", "brier_skill", "log_loss", "ece")
QUERIES = (  # each matches some test images, and the unwanted label excludes others
    "coffee & wine glass & !kitchen knife",
    "cow & horse & !cat",
    "rocket & star & !cloud",
)


@click.command()
@click.option(
    "--out",
    default="surelabel-demo",
    show_default=True,
    callback=validate_terminal_output_directory,
    metavar="FOLDER",
    help="Folder for the recognizer, the index and the report.",
)
@with_terminal_options
def demo(terminal: Terminal, out: str) -> None:
    """Run the complete workflow on bundled images.

    The demo tags images, evaluates, fits and calibrates a recognizer, evaluates again, and
    writes a recognizer, an index and a report with three searches. The demo needs no download
    and takes two or three minutes.
    """
    from surelabel.data import collection
    from surelabel.recognizer.index_calibration import recognizer_record_of_index
    from surelabel.recognizer.model_resolution import absolute_model_name
    from surelabel.recognizer_folder_checks import check_saved_recognizer_folder
    from surelabel.report import check_report_folder, report

    check_saved_recognizer_folder(Path(out) / "recognizer")
    check_report_folder(Path(out) / "report")
    test_set = collection(COLLECTION, split="test")
    terminal.print_step(
        f"1. The collection {COLLECTION} contains {len(test_set)} test images, composed of emoji, "
        f"with {format_count(len(test_set.names), 'label')}. {MODEL} predicts the labels zero-shot:"
    )
    zero_shot_evaluation = evaluate_zero_shot_in_demo(terminal, test_set)
    recognizer = fit_and_calibrate_in_demo(terminal)
    evaluation = evaluate_fitted_in_demo(terminal, recognizer, test_set, zero_shot_evaluation)
    recognizer.save(Path(out) / "recognizer")
    record = recognizer_record_of_index(recognizer, absolute_model_name(f"{out}/recognizer"))
    folder = Path(out) / "index"
    searches = search_test_images_in_demo(terminal, folder, evaluation, test_set, record)
    page = report(evaluation, Path(out) / "report", before=zero_shot_evaluation, searches=searches)
    terminal.print_step(f"7. The report with plots, images and searches is in {page}\n")
    terminal.print_result(
        demo_as_json(zero_shot_evaluation, evaluation, searches, page), commands_after_demo(out)
    )


def evaluate_zero_shot_in_demo(terminal: Terminal, test_set: "LabelledImages") -> "Evaluation":
    """Evaluate the zero-shot recognizer, and print the tags of some images and the metrics."""
    from surelabel.recognizer import Recognizer, basic_evaluation_run, select_tags

    recognizer = Recognizer.zero_shot(MODEL, test_set.names, device=terminal.device)
    with terminal.progress("Tagging") as progress:
        evaluation = basic_evaluation_run(recognizer, test_set, progress=progress)
    tags = select_tags(evaluation.predictions, top_k=3)
    for path, image_tags in list(zip(evaluation.predictions.paths, tags, strict=True))[:N_PRINTED]:
        labels = positive_labels_of_demo_image(test_set, path)
        terminal.print_step(f"   {Path(path).name}: {format_tags(image_tags)}   (true: {labels})")
    metrics = indented_demo_metric_table({"zero-shot": evaluation})
    terminal.print_step(f"\n2. Accuracy and calibration of the zero-shot recognizer:\n{metrics}")
    return evaluation


def fit_and_calibrate_in_demo(terminal: Terminal) -> "Recognizer":
    """Fit a recognizer on some training images, and calibrate it by folds of these images."""
    from surelabel.config import Choice, Run
    from surelabel.data import collection
    from surelabel.recognizer import Recognizer

    train = collection(COLLECTION, split="train").take(range(N_TRAINING_IMAGES))
    run = Run(encoder=Choice(MODEL), method=Choice(METHOD), seed=terminal.seed or 0)
    recognizer = Recognizer(run, train.names, device=terminal.device)
    terminal.print_step(
        f"\n3. Fit {METHOD} on {N_TRAINING_IMAGES} annotated images.\n"
        f"4. Calibrate the recognizer on the same images, with {N_FOLDS}-fold cross-fitting: each "
        "image is scored by a recognizer that was fitted on other images."
    )
    with terminal.progress("Fitting") as progress:
        recognizer.fit(train, folds=N_FOLDS, progress=progress)
    return recognizer


def evaluate_fitted_in_demo(
    terminal: Terminal,
    recognizer: "Recognizer",
    test_set: "LabelledImages",
    zero_shot_evaluation: "Evaluation",
) -> "Evaluation":
    """Evaluate the fitted recognizer, and print the metrics beside the zero-shot metrics."""
    from surelabel.recognizer import evaluate

    with terminal.progress("Evaluating") as progress:
        evaluation = evaluate(recognizer, test_set, progress=progress)
    metrics = indented_demo_metric_table({"zero-shot": zero_shot_evaluation, METHOD: evaluation})
    terminal.print_step(f"\n5. Metrics on the test images:\n{metrics}")
    return evaluation


def search_test_images_in_demo(
    terminal: Terminal,
    folder: Path,
    evaluation: "Evaluation",
    test_set: "LabelledImages",
    record: "IndexRecognizer | None" = None,
) -> "Sequence[QueryHits]":
    """Create an index of the test images, and print the top-ranked images of three queries.

    Args:
        terminal: Object that prints results, status lines and progress.
        folder: Folder of the index.
        evaluation: Evaluation with the predictions to index.
        test_set: Annotated test images.
        record: Recognizer that the index records, or None.
    """
    from surelabel.report import QueryHits
    from surelabel.retrieval import Index

    index = Index.create(folder, evaluation.predictions, recognizer=record)
    terminal.print_step(f"\n6. Search an index of the test images, in {folder}:")
    searches = []
    for query in QUERIES:
        hits = index.search(query, k=2 * N_PRINTED)
        searches.append(QueryHits(query, hits))
        terminal.print_step(f"\n   {query}")
        for hit in hits[:N_PRINTED]:
            name, labels = Path(hit.path).name, positive_labels_of_demo_image(test_set, hit.path)
            terminal.print_step(f"   {hit.probability:.3f}  {name}   (true: {labels})")
        matching = demo_images_matching_query(test_set, query)
        n_relevant = sum(hit.path in matching for hit in hits[:N_PRINTED])
        terminal.print_step(
            f"   {n_relevant} of these {N_PRINTED} images match the query; {len(matching)} of all "
            f"{len(test_set)} test images match."
        )
    terminal.print_step("")
    return searches


def positive_labels_of_demo_image(test_set: "LabelledImages", path: str) -> str:
    """Return the positive labels of an image, separated by commas."""
    targets = test_set.targets[list(test_set.paths).index(path)]
    return ", ".join(name for name, target in zip(test_set.names, targets, strict=True) if target)


def demo_images_matching_query(test_set: "LabelledImages", query: str) -> set[str]:
    """Return the paths of the images whose labels match a query."""
    from surelabel.retrieval import parse
    from surelabel.retrieval.formula import is_formula_true
    from surelabel.retrieval.query_resolution import resolve_label_query

    formula = resolve_label_query(parse(query), test_set.names).formula
    is_match = is_formula_true(formula, test_set.targets.T > 0)
    return {path for path, matches in zip(test_set.paths, is_match, strict=True) if matches}


def indented_demo_metric_table(evaluations: "dict[str, Evaluation]") -> str:
    """Format the main metrics of evaluations as an indented table."""
    lines = format_metric_table(evaluations, METRICS).splitlines()
    return "\n".join(f"   {line}" for line in lines)


def demo_as_json(
    zero_shot_evaluation: "Evaluation",
    evaluation: "Evaluation",
    searches: "Sequence[QueryHits]",
    page: Path,
) -> dict[str, Any]:
    """Return the metrics, the searches and the path of the report for ``--json``.

    Args:
        zero_shot_evaluation: Evaluation before fitting.
        evaluation: Evaluation of the fitted recognizer.
        searches: Queries with their hits.
        page: Path of the report.
    """
    return {
        "before": metric_tables_as_json(zero_shot_evaluation),
        "after": metric_tables_as_json(evaluation),
        "searches": [
            {
                "query": search.query,
                "hits": [{"path": hit.path, "probability": hit.probability} for hit in search.hits],
            }
            for search in searches
        ],
        "report": str(page),
    }


def commands_after_demo(out: str) -> str:
    """Return a text with four commands that use the results of the demo.

    Args:
        out: Folder of the demo.
    """
    return f"""Try next:
  surelabel search {out}/index "guitar & drum & !piano"
  surelabel evaluate {out}/recognizer scenes-80:test
  surelabel tag YOUR-PHOTOGRAPHS --labels "dog, bicycle" --model ViT-B-16/openai
Search, check and correct the test images in a browser, at http://127.0.0.1:8000:
  surelabel serve {out}/index --report {out}/report/index.html"""
