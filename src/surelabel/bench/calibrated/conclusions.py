"""What the numbers of one data set say, in sentences that are made from them."""

from collections.abc import Iterator

from surelabel.bench.calibrated.heads import HEADS, RATES
from surelabel.bench.calibrated.published import COLUMNS, PUBLISHED
from surelabel.bench.calibrated.results import Comparison, Results
from surelabel.bench.markdown import digits, name_of, told_apart
from surelabel.metrics import Interval
from surelabel.report.meanings import meaning_of, measured

FACTOR, POINT = 2.5, 0.01  # what is asked of SPA against ASY: ACE below by it, mAP this close
TOLD = (  # differences that get a sentence
    ("SPA", "ASY + detached map"),
    ("SPA", "focal + map"),
    ("SPA", "BCE"),
    ("SPA", "TWL + Platt"),
    ("SPA + LPR", "SPA"),
    ("SPA + Platt", "SPA"),
    ("SPA + Platt", "ASY + Platt"),
)


def conclusions(results: Results) -> Iterator[str]:
    """Sentences, the most asked for first."""
    yield _goal(results)
    yield _best(results)
    for first, second in TOLD:
        yield _difference(results.comparison(first, second))
    yield from _unlike_the_paper(results)
    weight = results.row("SPA + LPR").chosen["regularizer_weight"]
    yield f"The weight of label pairs that validation chose beside SPA is λ = {weight:g}."
    yield from _at_the_edge(results)
    if results.retrieval:
        yield _retrieval(results)


def _goal(results: Results) -> str:
    spa, asy = results.row("SPA"), results.row("ASY")
    ours, theirs = spa.mean("ace"), asy.mean("ace")
    apart = spa.mean("mean_average_precision") - asy.mean("mean_average_precision")
    reached = theirs >= FACTOR * ours and abs(apart) <= POINT
    return (
        f"SPA's ACE is {theirs / ours:.1f} × below that of ASY read through the sigmoid "
        f"({digits(ours, 'ace')} against {digits(theirs, 'ace')}), at a mAP@y "
        f"{abs(100 * apart):.1f} points {'higher' if apart >= 0 else 'lower'}. "
        f"Asked for: {FACTOR:g} × within one point; {'reached' if reached else 'not reached'}."
    )


def _best(results: Results) -> str:
    loss = min(results.rows, key=lambda row: row.mean("log_loss"))
    ace = min(results.rows, key=lambda row: row.mean("ace"))
    by_chance = digits(ace.mean("ace_by_chance"), "ace")
    return (
        f"Of all rows {loss.title} has the least log loss "
        f"({digits(loss.mean('log_loss'), 'log_loss')} nats) and {ace.title} the least ACE "
        f"({digits(ace.mean('ace'), 'ace')}, where chance gives {by_chance})."
    )


def _difference(found: Comparison) -> str:
    metrics = ("log_loss", "ace")
    said = [
        _said(metric, found.over_seeds[metric], found.over_pictures[metric]) for metric in metrics
    ]
    return f"{found.first} against {found.second}: {' and '.join(said)}."


def _said(metric: str, over_seeds: Interval, over_pictures: Interval) -> str:
    name, value = name_of(metric), over_seeds.value
    apart = [told_apart(over_seeds), told_apart(over_pictures)]
    if value * over_pictures.value <= 0 or not any(apart):
        return f"{name} that cannot be told apart"
    amount = measured(abs(value), meaning_of(metric).unit)
    which = "both intervals" if all(apart) else "one interval of two"
    return f"{name} {'higher' if value > 0 else 'lower'} by {amount} ({which} without 0)"


def _unlike_the_paper(results: Results) -> Iterator[str]:
    """Signs of ACE on which all published tables agree and ours does not."""
    ace, unlike = COLUMNS.index("ACE"), []
    for one in results.comparisons:
        theirs = [
            rows[one.first][ace] - rows[one.second][ace]
            for rows in PUBLISHED.values()
            if one.first in rows and one.second in rows
        ]
        ours = one.over_seeds["ace"]
        if theirs and told_apart(ours) and all(ours.value * there < 0 for there in theirs):
            unlike.append(
                f"{one.first} − {one.second} (published {min(theirs):+.1f} to {max(theirs):+.1f}, "
                f"here {100 * ours.value:+.1f})"
            )
    if unlike:
        yield f"Signs of ACE unlike those published: {', '.join(unlike)}."
    else:
        yield "No sign of ACE is unlike those published."


def _at_the_edge(results: Results) -> Iterator[str]:
    """Heads that might have wanted larger steps than any that were tried."""
    rates = {row.head: row.chosen["learning_rate"] for row in results.rows}
    heads = [HEADS[key].title for key, rate in rates.items() if rate >= max(RATES)]
    if heads:
        yield (
            f"The largest step size tried was chosen for {', '.join(heads)}; a larger one might "
            "do better."
        )


def _retrieval(results: Results) -> str:
    spa, asy = results.retrieval["SPA"], results.retrieval["ASY"]
    points = [
        f"{100 * (one - other):+.2f} at length {length}"
        for length, one, other in zip(spa["length"], spa["map"], asy["map"], strict=True)
    ]
    return f"Retrieval mAP of SPA minus ASY through the sigmoid, in points: {', '.join(points)}."
