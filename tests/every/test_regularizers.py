"""Requirements of every regularizer; a new entry of REGULARIZERS is tested automatically."""

from dataclasses import replace

import pytest
import torch

from surelabel.errors import ConfigError, InputError
from surelabel.records import FrozenTextVectors, TrainingStep
from surelabel.regularizers import DEFAULT_WEIGHTS, REGULARIZERS

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
every = pytest.mark.parametrize("regularizer", REGULARIZERS.values(), ids=REGULARIZERS.keys())


def compares_texts(regularizer):
    """Whether a regularizer needs text vectors from learned prompts."""
    zeros = torch.zeros(8, 2)
    try:
        regularizer(TrainingStep(zeros, zeros, zeros, zeros == 0, texts=torch.eye(2)))
    except ConfigError:
        return True
    return False


def those(condition):
    """Run a test over the regularizers for which a condition holds."""
    chosen = [pytest.param(r, id=name) for name, r in REGULARIZERS.items() if condition(r)]
    return pytest.mark.parametrize("regularizer", chosen)


of_scores = those(lambda regularizer: not compares_texts(regularizer))
of_texts = those(compares_texts)


def step_of(scores, targets, known=None, texts=None):
    """Return a step whose scores are log-odds, by default with all targets known."""
    if known is None:
        known = torch.ones_like(targets, dtype=torch.bool)
    if texts is None:
        generator = torch.Generator().manual_seed(7)
        texts = torch.randn(scores.shape[1], 8, generator=generator, dtype=torch.float64)
        texts = torch.nn.functional.normalize(texts, dim=1)
    return TrainingStep(scores, scores, torch.where(known, targets, 0), known, texts)


@pytest.fixture
def step():
    """Sixteen images of five labels, two thirds absent, a fifth unknown."""
    generator = torch.Generator().manual_seed(0)
    scores = 2 * torch.randn(16, 5, generator=generator, dtype=torch.float64)
    targets = (torch.rand(16, 5, generator=generator, dtype=torch.float64) > 0.65).double()
    return step_of(scores, targets, torch.rand(16, 5, generator=generator) > 0.2)


def value_and_gradient(regularizer, step):
    scores = step.scores.detach().requires_grad_()
    value = regularizer(replace(step, scores=scores, logits=scores))
    (gradient,) = torch.autograd.grad(value, scores)
    return value.detach(), gradient


@of_scores
def test_returns_one_number_not_below_zero(regularizer, step):
    value = regularizer(step)
    assert value.shape == ()
    assert value.dtype == torch.float64
    assert value > 0


@of_scores
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [0.0, 1.0, 20.0, 100.0, 1e4])
def test_value_and_gradient_stay_finite(regularizer, dtype, size):
    signs = torch.tensor([[1.0, 1.0, -1.0], [1.0, -1.0, 1.0]]).repeat(4, 1)
    targets = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).repeat(4, 1)
    step = step_of((size * signs).to(dtype), targets.to(dtype))
    value, gradient = value_and_gradient(regularizer, step)
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert value.dtype == torch.promote_types(dtype, torch.float32)
    assert gradient.dtype == dtype


@of_scores
def test_gradient_is_correct(regularizer, step):
    def of(scores):
        return regularizer(replace(step, scores=scores, logits=scores))

    assert torch.autograd.gradcheck(of, step.scores.requires_grad_())


@of_scores
def test_gradient_is_correct_with_graded_targets(regularizer, step):
    generator = torch.Generator().manual_seed(3)
    share = torch.rand(step.targets.shape, generator=generator, dtype=torch.float64)
    targets = torch.where(step.known, share, 0.0)

    def of(scores):
        return regularizer(replace(step, scores=scores, logits=scores, targets=targets))

    assert torch.autograd.gradcheck(of, step.scores.requires_grad_())


@of_scores
def test_log_odds_go_before_scores_and_scores_stand_in_for_none(regularizer, step):
    other = torch.zeros_like(step.scores)
    assert torch.equal(regularizer(replace(step, scores=other)), regularizer(step))
    assert torch.equal(regularizer(replace(step, logits=None)), regularizer(step))


@of_scores
def test_unknown_labels_have_no_influence_and_no_gradient(regularizer, step):
    lies = torch.where(step.known, step.scores, 99.0)
    wrong = torch.where(step.known, step.targets, 1.0)
    other = replace(step, scores=lies, logits=lies, targets=wrong)
    value, gradient = value_and_gradient(regularizer, other)
    expected = value_and_gradient(regularizer, step)
    torch.testing.assert_close((value, gradient), expected, rtol=0, atol=1e-14)
    assert not gradient[~step.known].any()


@of_scores
def test_an_image_of_which_nothing_is_known_has_no_influence(regularizer, step):
    def longer(values, fill):
        return torch.cat([values, torch.full((1, 5), fill, dtype=values.dtype)])

    scores = longer(step.scores, 3.0)
    more = replace(
        step,
        scores=scores,
        logits=scores,
        targets=longer(step.targets, 0.0),
        known=longer(step.known, False),
    )
    torch.testing.assert_close(regularizer(more), regularizer(step))


@of_scores
def test_where_nothing_is_known_nothing_is_charged(regularizer, step):
    value, gradient = value_and_gradient(
        regularizer, replace(step, known=torch.zeros_like(step.known))
    )
    assert value == 0
    assert not gradient.any()


@of_scores
def test_order_of_images_and_of_labels_does_not_matter(regularizer, step):
    rows, columns = torch.randperm(16), torch.randperm(5)
    scores, targets, known = (
        part[rows][:, columns] for part in (step.scores, step.targets, step.known)
    )
    moved = step_of(scores, targets, known, step.texts[columns])
    value, gradient = value_and_gradient(regularizer, step)
    expected = value, gradient[rows][:, columns]
    torch.testing.assert_close(value_and_gradient(regularizer, moved), expected)


@of_scores
def test_a_batch_of_one_and_constant_scores_are_finite(regularizer, step):
    one = step_of(step.scores[:1], step.targets[:1])
    same = step_of(torch.full_like(step.scores, -2.0), step.targets)
    for odd in (one, same):
        value, gradient = value_and_gradient(regularizer, odd)
        assert value.isfinite()
        assert gradient.isfinite().all()


@of_scores
@pytest.mark.parametrize("shape", [(0, 4), (3, 1)], ids=["no image", "one label"])
def test_no_image_and_a_single_label_are_finite(regularizer, shape):
    step = step_of(torch.ones(shape), torch.zeros(shape))
    value, gradient = value_and_gradient(regularizer, step)
    assert value.isfinite()
    assert gradient.shape == shape


@of_scores
def test_changes_nothing_outside_itself(regularizer, step):
    before = step.scores.clone(), step.targets.clone(), step.known.clone()
    with torch.no_grad():
        regularizer(step)
        assert not torch.is_grad_enabled()
    regularizer(step)
    assert torch.is_grad_enabled()
    for was, now in zip(before, (step.scores, step.targets, step.known), strict=True):
        assert torch.equal(was, now)


@of_scores
def test_reports_all_shapes_when_they_differ(regularizer):
    step = TrainingStep(
        torch.zeros(2, 3), None, torch.zeros(2, 4), torch.ones(2, 4) > 0, texts=torch.eye(3)
    )
    with pytest.raises(InputError, match=r"\(2, 3\).*\(2, 4\)"):
        regularizer(step)


def step_with_prompts(context):
    """Return a step whose texts and words move from the frozen ones with a learned context."""
    generator = torch.Generator().manual_seed(1)
    frozen = torch.randn(6, 8, generator=generator, dtype=torch.float64)
    rows = {word: row for row, word in enumerate(["lion", "bus", "cup", "fox", "map", "tea"])}

    def encode(words):
        return units(frozen[[rows[word] for word in words]])

    def encode_words(words):
        return units(encode(words) + context)

    targets = torch.zeros(4, 3, dtype=torch.float64)
    labels, reference = list(rows)[:3], list(rows)[2:]
    return TrainingStep(
        *(targets, targets, targets, targets == 0),
        texts=encode(labels),
        tuned_texts=encode_words(labels),
        encode_words=encode_words,
        frozen_text_vectors=FrozenTextVectors(labels, reference, encode),
    )


def units(vectors):
    return torch.nn.functional.normalize(vectors, dim=-1)


@of_texts
def test_a_method_without_learned_prompts_is_refused(regularizer, step):
    with pytest.raises(ConfigError, match=r"learned prompts.*Use method\.name=coop"):
        regularizer(step)


@of_texts
def test_learned_texts_get_one_number_and_a_correct_gradient(regularizer):
    def of(context):
        torch.manual_seed(0)
        return regularizer(step_with_prompts(context))

    context = torch.linspace(-0.5, 0.7, 8, dtype=torch.float64)
    value = of(context)
    assert (value.shape, value.dtype) == ((), torch.float64)
    assert value > 0
    assert torch.autograd.gradcheck(of, context.requires_grad_())


@of_texts
def test_texts_that_did_not_change_cost_nothing(regularizer):
    assert regularizer(step_with_prompts(torch.zeros(8))).item() == pytest.approx(0, abs=1e-12)


def test_default_weights_belong_to_entries():
    assert DEFAULT_WEIGHTS.keys() <= REGULARIZERS.keys()
