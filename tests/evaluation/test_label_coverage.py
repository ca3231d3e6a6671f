from surelabel.evaluation import measure_label_coverage
from surelabel.records import LabelledImages


def test_coverage_counts_known_positives_and_names_the_rarest():
    labelled = LabelledImages(
        ["a.jpg", "b.jpg", "c.jpg"],
        ["dog", "cat", "cow"],
        [[1, 1, 0], [1, 0, 0], [1, 1, 1]],
        [[True, True, True], [True, True, True], [False, True, False]],
    )
    found = measure_label_coverage(labelled)
    assert found.positives == {"dog": 2, "cat": 2, "cow": 0}
    assert found.rarest_labels == ["cow", "dog", "cat"]
