"""What it comes to, in sentences that the numbers make."""

from collections.abc import Iterator

from surelabel.bench.open_vocabulary.plan import BESIDE, GOAL, MATCHING, PARTS, PROMPTED, REFERENCE
from surelabel.bench.open_vocabulary.results import Results
from surelabel.bench.open_vocabulary.rows import Difference, Row

MAP = "zsl_map"
MOST = 0.01  # that an ECE of old labels may move
HELD_AGAINST = (
    (MATCHING, "average", "average pooling"),
    (MATCHING, "softmax re-weighting", "softmax re-weighting"),
    (MATCHING, "bipartite", "bipartite matching"),
    (MATCHING, "optimal transport", "optimal transport alone"),
    (PARTS, "both, transport, knowledge", "the same without presence detection"),
    (PARTS, "both, transport, presence", "the same without the frozen encoder's knowledge"),
)


def conclusions(results: Results) -> Iterator[str]:
    """One sentence for each question that the comparison was made for."""
    usual = results.reference
    for row in results.tables[BESIDE]:
        if row.differences:
            yield (
                f"Unseen names: {REFERENCE} ranks {percent(usual, MAP)} % mAP, {row.title} "
                f"{percent(row, MAP)}; {_standing(row)}."
            )
    for heading, title, words in HELD_AGAINST:
        for row in results.tables[heading]:
            if row.title == title:
                yield f"Against {words}: {_standing(row)}."
    yield (
        f"Probabilities of {REFERENCE}: ECE {100 * usual.mean('unseen_ece'):.2f} % on unseen "
        f"names, {100 * usual.mean('seen_ece'):.2f} on seen ones; Brier skill "
        f"{percent(usual, 'unseen_brier_skill')} and {percent(usual, 'seen_brier_skill')} %."
    )
    for one in results.exchange:
        held = "within" if abs(one["moved"]) <= MOST else "more than"
        yield (
            f"{one['names']:,} more names move the ECE of the old ones by "
            f"{100 * one['moved']:+.2f} points, {held} one point; the median log-odds moves by "
            f"{one['logits']:.2f}."
        )
    yield from _memory(results)


def percent(row: Row, metric: str) -> str:
    """Mean over seeds, in percent."""
    return f"{100 * row.mean(metric):.1f}"


def apart(found: Difference, *, places: int = 1) -> str:
    """A difference with both intervals, in points."""
    ends = [
        f"{100 * end.low:+.{places}f} to {100 * end.high:+.{places}f}"
        for end in (found.over_seeds, found.over_pictures)
    ]
    return f"{100 * found.value:+.{places}f} ({'; '.join(ends)})"


def _standing(row: Row) -> str:
    """How the reference stands to a row: the difference turned round."""
    found = row.differences[MAP]
    seeds, pictures = (
        f"{-100 * end.high:+.1f} to {-100 * end.low:+.1f}"
        for end in (found.over_seeds, found.over_pictures)
    )
    verdict = "told apart" if found.told_apart else "not told apart"
    return (
        f"{-100 * found.value:+.1f} points of unseen mAP ({seeds} over seeds, {pictures} over "
        f"pictures), {verdict}"
    )


def _memory(results: Results) -> Iterator[str]:
    cost = {one["title"]: one["train_memory"] for one in results.costs}
    ours = cost.get("with ladder and matching")
    if ours is not None and PROMPTED in cost:
        share = ours / cost[PROMPTED]
        held = "within" if share <= GOAL else "above"
        yield (
            f"Training takes {ours:.0f} MiB, {100 * share:.0f} % of prompts in all layers of both "
            f"towers: {held} the goal of {100 * GOAL:.0f} %."
        )
