from surelabel.bench.negation.page import ROW_DESCRIPTIONS
from surelabel.bench.negation.plan import (
    FULL,
    NEGATION_WORDS,
    QUICK,
    ROW_TITLES,
    SENTENCE_TEMPLATES,
)


def test_the_complete_comparison_has_the_rules_of_its_page():
    assert (FULL.min_relevant, FULL.min_both, FULL.max_length) == (5, 20, 5)
    assert FULL.resamples >= 1000
    assert QUICK.min_relevant == FULL.min_relevant


def test_every_row_is_described_and_every_sentence_excludes_a_label():
    assert len(ROW_TITLES) == len(ROW_DESCRIPTIONS)
    assert len(SENTENCE_TEMPLATES) <= 3
    for template in SENTENCE_TEMPLATES:
        assert template.index("{a}") < template.index("{b}")
        assert set(NEGATION_WORDS) & set(template.split())
