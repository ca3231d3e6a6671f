from dataclasses import replace

from surelabel.decisions import record_validation
from surelabel.report.decision_section import (
    decision_section_as_json,
    decision_section_plots,
    decision_section_title,
    render_decision_section,
)


def section(found):
    return render_decision_section(found, decision_section_plots(found))


def test_the_section_has_operating_points_curves_and_costs(judged):
    found = judged()
    record = record_validation(found.predictions.logits, found.targets)
    text = section(replace(found, validation_record=record))
    assert "validation record of the recognizer, which was computed from 60 images" in text
    assert text.count("<img") == 2
    assert "Cost of decisions" in text
    assert decision_section_title(found) == "Operating points"


def test_few_images_without_a_record_have_curves_and_costs_only(judged):
    text = section(judged(count=15))
    assert "There is no table of operating points" in text
    assert "--best-f1" not in text
    assert "Cost of decisions" in text


def test_scores_have_curves_only(judged):
    found = judged(calibrated=False)
    text = section(found)
    assert decision_section_title(found) == "Precision and recall"
    assert "Operating points and costs require calibrated probabilities" in text
    assert text.count("<img") == 2
    assert "<table" not in text
    held = decision_section_as_json(found)
    assert held["operating_points"] is None
    assert held["decision_costs"] is None
    assert len(held["precision_recall"]["precision"]) == 100
