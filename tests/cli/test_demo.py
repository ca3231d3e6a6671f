import pytest

from surelabel.cli.demo import (
    COLLECTION,
    QUERIES,
    commands_after_demo,
    demo_as_json,
    demo_images_matching_query,
    evaluate_zero_shot_in_demo,
    positive_labels_of_demo_image,
    search_test_images_in_demo,
)
from surelabel.cli.terminal import Terminal
from surelabel.cli.terminal_text import to_terminal_json_value
from surelabel.data import collection
from surelabel.report import report


@pytest.fixture(scope="module")
def labelled():
    return collection(COLLECTION, split="test")


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_has_true_answers_and_some_that_only_the_unwanted_label_keeps_out(
    query, labelled
):
    wanted, unwanted = query.split(" & !")
    truths = [
        (path, positive_labels_of_demo_image(labelled, path).split(", ")) for path in labelled.paths
    ]
    all_wanted = {p: there for p, there in truths if set(wanted.split(" & ")) <= set(there)}
    right = {path for path, there in all_wanted.items() if unwanted not in there}
    assert demo_images_matching_query(labelled, query) == right
    assert len(right) >= 5
    assert len(all_wanted) - len(right) >= 5


def test_tags_are_printed_with_the_positive_labels_and_three_searches_run(
    labelled, tmp_path, capsys
):
    few = labelled.take(range(24))
    found = evaluate_zero_shot_in_demo(Terminal(quiet=True), few)
    searches = search_test_images_in_demo(Terminal(quiet=True), tmp_path / "index", found, few)
    said = capsys.readouterr().out
    assert said.count("(true: ") == 6 + 3 * 6
    assert f"(true: {positive_labels_of_demo_image(few, few.paths[0])})" in said
    assert all(title in said for title in ("mAP", "Brier skill", "ECE", "noise floor"))
    assert [s.query for s in searches] == list(QUERIES)
    page = report(found, tmp_path / "report", before=found, searches=searches)
    assert all(query.partition(" ")[0] in page.read_text(encoding="utf-8") for query in QUERIES)
    result = to_terminal_json_value(demo_as_json(found, found, searches, tmp_path))
    assert len(result["searches"][0]["hits"]) == 12
    assert set(result) == {"before", "after", "searches", "report"}


def test_it_ends_with_four_commands_one_of_which_opens_the_page():
    text = commands_after_demo("here")
    assert text.count("\n  surelabel ") == 4
    assert text.endswith("surelabel serve here/index --report here/report/index.html")
