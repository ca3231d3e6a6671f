"""This package compares prompt tuning with class-wise covariance regularization (CCR)."""

from surelabel.bench.comparison import BenchComparison
from surelabel.bench.prompts.figures import (
    plot_prompt_covariance,
    plot_prompt_shots,
    plot_prompt_texts,
    plot_prompt_weights,
)
from surelabel.bench.prompts.page import prompt_paragraphs
from surelabel.bench.prompts.plan import (
    FULL,
    QUICK,
    PromptPlan,
    prompt_plan_of_images,
    prompt_workload,
)
from surelabel.bench.prompts.results import measure_prompt_results, plan_with_epochs

PROMPTS = BenchComparison(
    "prompts",
    FULL,
    QUICK,
    measure_prompt_results,
    prompt_paragraphs,
    figures={
        "texts.png": plot_prompt_texts,
        "covariance.png": plot_prompt_covariance,
        "shots.png": plot_prompt_shots,
        "weights.png": plot_prompt_weights,
    },
)

__all__ = [
    "PROMPTS",
    "PromptPlan",
    "plan_with_epochs",
    "prompt_plan_of_images",
    "prompt_workload",
]
