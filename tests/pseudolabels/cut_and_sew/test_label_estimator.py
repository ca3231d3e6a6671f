"""The estimator against the authors' optimizer, torch's AdamW, and what must rest."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from surelabel.errors import ConfigError, InputError
from surelabel.pseudolabels import LabelEstimator, em_expectation_loss
from surelabel.views import blend_labels_of_sewing

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tailorclip_pseudolabels.json").read_text())
ADAMW = GOLDEN["adamw"]


def learn(estimator, rows, student):
    borrowed = estimator.gather(rows)
    z = blend_labels_of_sewing(borrowed.log_odds, borrowed.canvases)
    (0.5 * em_expectation_loss(z, student).mean()).backward()
    estimator.step(borrowed)


@pytest.fixture
def start():
    return 3 * torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture
def visits():
    """Rows and what the student says, for nine batches of one row."""
    generator = torch.Generator().manual_seed(1)
    student = torch.randn(9, 1, 4, generator=generator, dtype=torch.float64)
    return list(zip([0, 1, 0, 3, 1, 0, 3, 3, 0], student, strict=True))


def test_the_codes_variant_equals_six_recorded_steps_of_the_authors():
    estimator = LabelEstimator(torch.tensor(ADAMW["Z_init"]), weight_decay=0.01, variant="code")
    student = torch.tensor([ADAMW["pred_logits_each_step"]])
    for row, expected in zip(ADAMW["row_per_step"], ADAMW["Z_after_each_step"], strict=True):
        learn(estimator, [[row]], student)
        torch.testing.assert_close(estimator.log_odds, torch.tensor(expected), rtol=0, atol=1e-5)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_codes_variant_equals_adamw_over_all_rows(start, visits, decay):
    estimator = LabelEstimator(start, weight_decay=decay, variant="code")
    table = start.clone().requires_grad_()
    optimizer = torch.optim.AdamW([table], lr=0.01, weight_decay=decay)
    for row, student in visits:
        learn(estimator, [[row]], student)
        optimizer.zero_grad()
        (0.5 * binary_cross_entropy_with_logits(table[[row]], student.sigmoid())).backward()
        optimizer.step()
        torch.testing.assert_close(estimator.log_odds, table.detach())


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_papers_variant_equals_one_adamw_a_row(start, visits, decay):
    estimator = LabelEstimator(start, weight_decay=decay, learning_rate=0.05)
    table = [row[None].clone().requires_grad_() for row in start]
    optimizers = [torch.optim.AdamW([row], lr=0.05, weight_decay=decay) for row in table]
    for row, student in visits:
        learn(estimator, [[row]], student)
        optimizers[row].zero_grad()
        (0.5 * binary_cross_entropy_with_logits(table[row], student.sigmoid())).backward()
        optimizers[row].step()
        torch.testing.assert_close(estimator.log_odds, torch.cat(table).detach())


def test_rows_that_no_canvas_names_rest_for_ever(start, visits):
    estimator = LabelEstimator(start, weight_decay=0.1)
    for row, student in visits:
        learn(estimator, [[row]], student)
    assert torch.equal(estimator.log_odds[[2, 4]], start[[2, 4]])
    assert not torch.equal(estimator.log_odds[3], start[3])


@pytest.fixture
def idle():
    """Makes an estimator of which one row is looked at and nothing is learnt, and its batch."""

    def make(**settings):
        log_odds = torch.tensor([[-10.0], [0.0]], dtype=torch.float64)
        estimator = LabelEstimator(log_odds, variant="code", **settings)
        borrowed = estimator.gather([[1]])
        borrowed.log_odds.grad = torch.zeros(1, 1, dtype=torch.float64)
        return estimator, borrowed

    return make


@pytest.mark.parametrize("epoch", ["voc2007_train_2501", "voc2012_train_5717"])
def test_weight_decay_alone_shrinks_an_epoch_as_in_the_authors_code(idle, epoch):
    expected = GOLDEN["shrink"][epoch]
    estimator, borrowed = idle(weight_decay=0.01)
    for _ in range(expected["steps"]):
        estimator.step(borrowed)
    assert estimator.log_odds[0, 0].item() / -10 == pytest.approx(expected["factor"], abs=1e-6)


@pytest.mark.parametrize("epoch", GOLDEN["shrink"])
def test_what_one_step_shrinks_is_worth_what_the_authors_lose_in_an_epoch(idle, epoch):
    estimator, borrowed = idle(weight_decay=0.01)
    estimator.step(borrowed)
    kept = (estimator.log_odds[0, 0].item() / -10) ** GOLDEN["shrink"][epoch]["steps"]
    assert kept == pytest.approx(GOLDEN["shrink"][epoch]["factor"], abs=1e-6)


def test_without_weight_decay_what_is_not_learnt_stays(idle):
    estimator, borrowed = idle()
    estimator.step(borrowed)
    assert estimator.log_odds.tolist() == [[-10.0], [0.0]]


def test_a_label_goes_back_to_the_image_that_it_came_from():
    estimator = LabelEstimator(torch.tensor([[4.0, -4.0], [-3.0, 3.0], [0.0, 0.0]]))
    learn(estimator, [[0, 1]], torch.zeros(1, 2))
    moved = estimator.log_odds - torch.tensor([[4.0, -4.0], [-3.0, 3.0], [0.0, 0.0]])
    expected = torch.tensor([[-0.01, 0.0], [0.0, -0.01], [0.0, 0.0]])
    torch.testing.assert_close(moved, expected, rtol=0, atol=1e-5)


def test_labels_reach_what_the_student_says():
    estimator = LabelEstimator(torch.tensor([[3.0, -8.0]]), learning_rate=0.1)
    for _ in range(400):
        learn(estimator, [[0]], torch.tensor([[-1.0, 1.0]]))
    torch.testing.assert_close(estimator.log_odds, torch.tensor([[-1.0, 1.0]]), rtol=0, atol=0.05)


def test_borrowing_changes_nothing_and_names_each_row_once(start):
    estimator = LabelEstimator(start)
    borrowed = estimator.gather([[3, 0], [3]])
    assert borrowed.rows.tolist() == [0, 3]
    assert borrowed.canvases == [[1, 0], [1]]
    assert torch.equal(borrowed.log_odds, start[[0, 3]])
    with torch.no_grad():
        borrowed.log_odds.zero_()
    assert torch.equal(estimator.log_odds, start)


def test_it_goes_on_where_it_was_saved(start, visits):
    whole, stopped = LabelEstimator(start), LabelEstimator(start)
    for row, student in visits[:5]:
        learn(whole, [[row]], student)
        learn(stopped, [[row]], student)
    resumed = LabelEstimator(torch.zeros(5, 4, dtype=torch.float64))
    resumed.load_state_dict(stopped.state_dict())
    for row, student in visits[5:]:
        learn(whole, [[row]], student)
        learn(resumed, [[row]], student)
    assert torch.equal(resumed.log_odds, whole.log_odds)


def test_what_it_begins_with_is_copied_and_no_less_than_float32():
    given = torch.zeros(2, 2, dtype=torch.float16)
    estimator = LabelEstimator(given)
    learn(estimator, [[0]], torch.ones(1, 2))
    assert not given.any()
    assert estimator.log_odds.dtype == torch.float32


@pytest.mark.parametrize("rows", [[], [[]], [[0], []]])
def test_a_canvas_without_an_image_is_refused(start, rows):
    with pytest.raises(InputError, match="one row number or more for each canvas"):
        LabelEstimator(start).gather(rows)


@pytest.mark.parametrize("row", [-1, 5])
def test_a_row_that_is_not_there_is_refused(start, row):
    with pytest.raises(InputError, match=rf"0 to 4; got {row}"):
        LabelEstimator(start).gather([[0, row]])


def test_a_step_without_a_gradient_is_refused(start):
    estimator = LabelEstimator(start)
    with pytest.raises(InputError, match=r"got none. Call backward\(\)"):
        estimator.step(estimator.gather([[0]]))


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        ("learning_rate", 0.0),
        ("learning_rate", math.inf),
        ("weight_decay", -0.1),
        ("weight_decay", 1000.0),
        ("beta_1", 1.0),
        ("beta_2", -0.1),
        ("variant", "dense"),
    ],
)
def test_a_setting_outside_its_range_is_refused(start, setting, wrong):
    with pytest.raises(ConfigError, match=f"{setting} must be"):
        LabelEstimator(start, **{setting: wrong})
