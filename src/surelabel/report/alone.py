"""The encoder alone beside the recognizer, in a table."""

from surelabel.evaluation import Evaluation
from surelabel.report.claims import NOW, TRUTH, Claims, claimed, pairs_a_picture, ranked, sides
from surelabel.report.markup import Markup, element, joined
from surelabel.report.meanings import NOTHING, meaning_of, shown

ABOUT_ALONE = (
    "The encoder alone is zero-shot with the same names: one look at each picture, nothing adapted."
)
SHOWN = (
    "Expected is the sum of all probabilities. Shown are the likeliest labels of all pictures "
    "together, as many as are expected: no truth is needed for that. Two labels of one picture are "
    "a pair. Where the truth is unknown, nothing is counted."
)
SCORES = (
    "These are scores, and nothing calibrated them: they say which label comes before which, not "
    "which one is shown, so labels cannot be counted. Calibrate (surelabel calibrate; with "
    "--unlabelled it needs no labels), evaluate and report again to see how many there are."
)
ALONE_SCORES = "It comes without a calibration, so its labels are not counted."


def about_alone(evaluation: Evaluation) -> Markup:
    """What is compared, and why something is not."""
    told = [] if evaluation.alone is None else [ABOUT_ALONE]
    if evaluation.predictions.calibration is None:
        return joined(*_soft(told), element("div", SCORES, class_="note"))
    if evaluation.alone is not None:
        on = evaluation.alone.calibration
        told.append(ALONE_SCORES if on is None else f"Its calibration: {on}.")
    return joined(*_soft([*told, SHOWN]))


def _soft(sentences: list[str]) -> list[Markup]:
    return [element("p", " ".join(sentences), class_="soft")] if sentences else []


def alone_table(evaluation: Evaluation) -> Markup:
    """Each number of the encoder alone, of the recognizer, and of the truth where it has one."""
    rows: list[tuple[str, dict[str, str]]] = []
    if evaluation.alone is not None:
        for metric, values in ranked(evaluation).items():
            title = f"{meaning_of(metric).title}"
            rows.append((title, {who: shown(value, "%") for who, value in values.items()}))
    found = claimed(evaluation)
    rows += _counted(found)
    who = [*sides(evaluation), *[TRUTH] * bool(found)]
    heads = [element("th", head, scope="col") for head in ("", *who)]
    body = [
        element(
            "tr",
            element("th", title, scope="row", class_="metric"),
            *(element("td", values.get(one, NOTHING)) for one in who),
        )
        for title, values in rows
    ]
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *body))
    return element(
        "div", table, class_="wide", role="region", aria_label="Encoder alone", tabindex="0"
    )


def _counted(found: dict[str, Claims]) -> list[tuple[str, dict[str, str]]]:
    """Labels and pairs, a picture."""
    if not found:
        return []
    truth = found[NOW]
    there = {TRUTH: f"{truth.counts.means['present']:.2f}"}
    expected = {who: f"{claims.counts.means['expected']:.2f}" for who, claims in found.items()}
    rows = [
        ("labels a picture, expected", expected | there),
        ("labels a picture, with 50 % or more", {w: f"{c.sure:.2f}" for w, c in found.items()}),
        ("labels shown that are there", {who: shown(c.right, "%") for who, c in found.items()}),
    ]
    if truth.together.present is None or len(truth.together.shown) < 2:
        return rows
    pairs = {who: f"{pairs_a_picture(c.together.shown):.2f}" for who, c in found.items()}
    pairs[TRUTH] = f"{pairs_a_picture(truth.together.present):.2f}"
    far = {who: shown(c.together.distance, "points") for who, c in found.items()}
    return [
        *rows,
        ("pairs of labels a picture, shown", pairs),
        ("how often two labels are together, off by, in points", far),
    ]
