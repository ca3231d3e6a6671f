"""What every pseudo-label and every correction must do; a new line in a table is tested here."""

import inspect
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import ConfigError, InputError
from surelabel.pseudolabels import CORRECTIONS, PSEUDOLABELS
from surelabel.tables import configure_table_entry, table_entry_settings

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
MAKERS = PSEUDOLABELS | CORRECTIONS
every = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS.keys())
labels = pytest.mark.parametrize("maker", PSEUDOLABELS.values(), ids=PSEUDOLABELS.keys())
corrections = pytest.mark.parametrize("maker", CORRECTIONS.values(), ids=CORRECTIONS.keys())
counting = pytest.mark.parametrize(
    "maker",
    [pytest.param(m, id=name) for name, m in MAKERS.items() if "top_k" in table_entry_settings(m)],
)
persistent = pytest.mark.parametrize(
    "maker",
    [
        CORRECTIONS["square_root"],
        partial(CORRECTIONS["linear"], floor=0.3),
        PSEUDOLABELS["tailored"],
    ],
    ids=["square_root", "linear", "tailored"],
)
TABLES = st.tuples(st.integers(1, 5), st.integers(1, 6)).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(-12, 12), min_size=size[1], max_size=size[1]),
        min_size=size[0],
        max_size=size[0],
    )
)


@pytest.fixture
def scores():
    """Log-odds of the softmax of ten images and seven names."""
    generator = torch.Generator().manual_seed(0)
    drawn = 3 * torch.randn(10, 7, generator=generator, dtype=torch.float64)
    return drawn.softmax(dim=1).logit()


@pytest.fixture
def views():
    """The same of five views each, the whole image first."""
    generator = torch.Generator().manual_seed(1)
    drawn = 3 * torch.randn(10, 5, 7, generator=generator, dtype=torch.float64)
    return drawn.softmax(dim=2).logit()


@labels
def test_targets_are_probabilities_for_scores_with_and_without_views(maker, scores, views):
    for some in (scores, views, views[:, :1]):
        targets = maker(some)
        assert targets.shape == (10, 7)
        assert targets.dtype == torch.float64
        assert ((targets >= 0) & (targets <= 1)).all()


@labels
def test_the_whole_image_as_its_only_view_is_the_image_alone(maker, scores):
    assert torch.equal(maker(scores[:, None]), maker(scores))


@labels
def test_the_order_of_the_parts_does_not_matter(maker, views):
    order = torch.tensor([0, 3, 1, 4, 2])
    assert torch.equal(maker(views[:, order]), maker(views))


@labels
def test_permuting_views_images_or_names_of_views_permutes_the_targets(maker, views):
    rows = torch.randperm(10, generator=torch.Generator().manual_seed(2))
    names = torch.randperm(7, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(maker(views[rows][..., names]), maker(views)[rows][:, names])


@every
@given(table=TABLES)
def test_permuting_images_and_names_permutes_the_answer_whatever_the_ties(maker, table):
    scores = torch.tensor(table).double()
    turned = maker(scores.flip(0, 1)).flip(0, 1)
    torch.testing.assert_close(turned, maker(scores))


@corrections
@given(table=TABLES)
def test_corrections_look_at_one_image_at_a_time(maker, table):
    scores = torch.tensor(table).double()
    alone = torch.cat([maker(row[None]) for row in scores])
    torch.testing.assert_close(alone, maker(scores))


@persistent
@pytest.mark.parametrize("top_k", [0, 1, 2, 7])
@given(table=TABLES)
def test_the_order_within_an_image_is_kept_and_ties_stay_ties(maker, top_k, table):
    scores = torch.tensor(table).double()
    corrected = maker(scores, top_k=top_k)
    order = (scores[:, :, None] - scores[:, None]).sign()
    differences = corrected[:, :, None] - corrected[:, None]
    is_tie = order == 0
    assert torch.equal(differences.sign()[~is_tie], order[~is_tie])
    assert (differences[is_tie].abs() <= 1e-13).all()  # vector instructions round in the last digit


@persistent
@given(st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=6))
def test_no_order_is_turned_round_in_float32(maker, row):
    scores = torch.tensor([sorted(row)], dtype=torch.float32)
    for top_k in (1, 2, len(row)):
        assert (maker(scores, top_k=top_k).diff(dim=1) >= 0).all()


@counting
def test_where_no_name_is_corrected_again_changes_nothing(maker, scores):
    none = {name: 0 for name in ("top_k", "bottom_k") if name in table_entry_settings(maker)}
    expected = scores.sigmoid() if maker in PSEUDOLABELS.values() else scores
    torch.testing.assert_close(maker(scores, **none), expected)


@counting
def test_only_as_many_names_as_said_are_corrected(maker, scores):
    none = {name: 0 for name in ("top_k", "bottom_k") if name in table_entry_settings(maker)}
    for top_k in range(8):
        changed = maker(scores, **{**none, "top_k": top_k}) != maker(scores, **none)
        assert changed.sum(dim=1).tolist() == [top_k] * 10


@counting
@pytest.mark.parametrize("top_k", [1.0, 0.5, True, -1])
def test_a_share_is_never_taken_for_a_count(maker, scores, top_k):
    with pytest.raises(ConfigError, match="top_k must be a whole number"):
        maker(scores, top_k=top_k)


@counting
def test_a_run_file_cannot_say_a_share_either(maker):
    name = next(name for name, m in MAKERS.items() if m is maker)
    with pytest.raises(ConfigError, match="top_k must have the type of its default"):
        configure_table_entry(MAKERS, name, top_k=1.0)


@every
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [0.0, 1.0, 40.0, 1000.0])
def test_all_log_odds_stay_finite_in_float32_or_finer(maker, dtype, size):
    signs = torch.tensor([[1.0, -1.0, 1.0, 0.5], [-1.0, 0.0, 1.0, -0.5]])
    found = maker((size * signs).to(dtype))
    assert found.isfinite().all()
    assert found.dtype == torch.promote_types(dtype, torch.float32)


@corrections
@pytest.mark.parametrize("value", [-13.8155, 0.0, 13.8])
def test_a_row_of_equal_scores_is_left_alone(maker, value):
    scores = torch.full((3, 5), value)
    assert torch.equal(maker(scores), scores)


@labels
@pytest.mark.parametrize("shape", [(4, 6), (4, 3, 6)], ids=["images", "views"])
def test_equal_scores_give_equal_targets(maker, shape):
    targets = maker(torch.full(shape, -1.0))
    assert (targets == targets[0, 0]).all()


@every
@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (10, 1), (10, 1000)])
def test_no_image_one_name_and_a_thousand_names_are_answered(maker, shape):
    scores = 5 * torch.randn(shape, generator=torch.Generator().manual_seed(0)) - 5
    found = maker(scores)
    assert found.shape == shape
    assert found.isfinite().all()


@every
def test_changes_nothing_outside_itself(maker, scores):
    before, state = scores.clone(), torch.get_rng_state()
    maker(scores)
    assert torch.equal(before, scores)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()


@every
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_scores_that_are_no_numbers_are_refused(maker, scores, wrong):
    scores[3, 2] = wrong
    with pytest.raises(InputError, match=r"must be finite; got 1"):
        maker(scores)


@every
def test_another_shape_and_no_name_are_refused(maker):
    with pytest.raises(InputError, match=r"scores must have axes.*\(4,\)"):
        maker(torch.zeros(4))
    with pytest.raises(InputError, match="one label or more"):
        maker(torch.zeros(4, 0))


@labels
def test_views_without_the_whole_image_are_refused(maker):
    with pytest.raises(InputError, match="begin with the view of the whole image"):
        maker(torch.zeros(2, 0, 3))


@every
def test_all_but_the_scores_is_a_setting_with_a_default(maker):
    first, *rest = inspect.signature(maker).parameters.values()
    assert first.name == "scores"
    assert {p.name for p in rest} == table_entry_settings(maker).keys()
