"""Compare the speed of matching 196 regions to labels in 32 images with POT.

    python benchmarks/matching.py [--quick]

Similarities are sampled like those of CLIP (a spread of 0.025 around 0.25). Costs and weights are
computed from the similarities as in recognition. Every solver returns the weighted sum over regions
for each label. A solver stops as early as its stopping rule permits with an error of at most 1e-4.
The error is the largest value over images of the sum over regions of the deviation of the plan from
the region weights. POT and the plain algorithm stop all images together. Their threshold is the
largest of 1e-2, 3e-3, 1e-3 … that reaches this error. The row "released" is the plain algorithm
with the threshold of the code of "Recover and Match", at any error. Each case runs in a separate
process, on one thread, in float32. The script prints the processor seconds, best of several rounds,
and the peak memory minus the memory of the data. It needs POT: pip install POT.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from ot.batch import solve_batch
from torch import Tensor

from surelabel.transport import (
    accelerated_sinkhorn,
    knowledge_constrained_cost,
    knowledge_constrained_region_weights,
)

IMAGES, REGIONS, LABELS = 32, 196, (17, 65, 1_006)
REGULARIZATION, MAX_ERROR = 0.1, 1e-4
THRESHOLDS = [top * 10.0**-power for power in range(2, 8) for top in (1, 0.3)]
GOAL = "65 labels: 15 × the speed of POT's log form and 4 × that of its kernel form, or more"
Problem = tuple[Tensor, Tensor, Tensor]
Solver = Callable[[Problem, float], tuple[Callable[[Tensor], Tensor], Callable[[], Tensor]]]


def solve_with_surelabel(
    problem: Problem, threshold: float
) -> tuple[Callable[[Tensor], Tensor], ...]:
    """Solve the problem with surelabel, whose tolerance limits the error itself."""
    plan = accelerated_sinkhorn(*problem, regularization=REGULARIZATION, tolerance=MAX_ERROR)
    return plan.apply, lambda: plan.matrix


def pot_solver(form: str) -> Solver:
    """Return the batch solver of POT; its threshold limits the root of summed squares."""

    def solve(problem: Problem, threshold: float) -> tuple[Callable[..., Tensor], ...]:
        cost, rows, columns = problem
        result = solve_batch(
            cost, REGULARIZATION, rows, columns, method=form, tol=threshold, grad="detach"
        )
        return lambda values: (result.plan * values).sum(1), lambda: result.plan

    return solve


def solve_plainly(problem: Problem, threshold: float) -> tuple[Callable[..., Tensor], ...]:
    """Solve with the textbook algorithm, which stops by the change of the left scaling factors."""
    cost, rows, columns = problem
    kernel = (-cost / REGULARIZATION).exp()
    left, right = torch.ones_like(rows), torch.ones_like(columns)
    for _ in range(100):
        previous = left
        left = rows / torch.bmm(kernel, right[:, :, None])[:, :, 0]
        transposed = kernel.transpose(1, 2).contiguous()
        right = columns / torch.bmm(transposed, left[:, :, None])[:, :, 0]
        if ((left - previous).abs().mean(1) < threshold).all():
            break
    plan = left[:, :, None] * kernel * right[:, None, :]
    return lambda values: (plan * values).sum(1), lambda: plan


SOLVERS: dict[str, Solver] = {
    "surelabel": solve_with_surelabel,
    "POT, kernel": pot_solver("sinkhorn"),
    "POT, log": pot_solver("log_sinkhorn"),
    "plain": solve_plainly,
    "released": solve_plainly,
}


def simulate_problem(labels: int) -> tuple[Tensor, Problem]:
    """Return random similarities, and the transport problem that is computed from them."""
    generator = torch.Generator().manual_seed(0)
    similarities = 0.25 + 0.025 * torch.randn(IMAGES, REGIONS, labels, generator=generator)
    columns = torch.full((IMAGES, labels), 1 / labels)
    return similarities, (
        knowledge_constrained_cost(similarities),
        knowledge_constrained_region_weights(similarities),
        columns,
    )


def largest_error(problem: Problem, plan: Tensor) -> float:
    """Return the largest deviation of a plan from the region weights of an image."""
    return (plan.double().sum(2) - problem[1]).abs().sum(1).max().item()


def select_threshold(solver: str, problem: Problem) -> float:
    """Return the largest threshold that reaches ``MAX_ERROR``."""
    solve = SOLVERS[solver]
    sufficient = (
        t for t in THRESHOLDS if largest_error(problem, solve(problem, t)[1]()) <= MAX_ERROR
    )
    return next(sufficient, THRESHOLDS[-1])


def print_case(solver: str, labels: int, threshold: float, rounds: int) -> None:
    """Print error, seconds and MiB of one solver, and the mean of its result."""
    torch.set_num_threads(1)
    similarities, problem = simulate_problem(labels)
    if not threshold:
        print(json.dumps(select_threshold(solver, problem)))
        return
    small = tuple(part[:1] for part in problem)
    SOLVERS[solver](small, threshold)[0](similarities[:1])  # loads modules before the measurement
    memory_before, seconds = peak_memory_mib(reset=True), []
    while len(seconds) < rounds:
        start = time.process_time()
        apply, matrix = SOLVERS[solver](problem, threshold)
        means = apply(similarities) * labels
        seconds.append(time.process_time() - start)
        memory = peak_memory_mib() - memory_before
    result = {"seconds": min(seconds), "memory": memory, "error": largest_error(problem, matrix())}
    print(json.dumps(result | {"mean": means.double().mean().item()}))


def peak_memory_mib(*, reset: bool = False) -> float:
    """Return the peak memory of this process since the last reset, in MiB."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def run_case_in_new_process(*case: object) -> Any:
    """Run one case in a new process and return its result."""
    process = subprocess.run(
        [sys.executable, __file__, *map(str, case)], capture_output=True, text=True, check=True
    )
    return json.loads(process.stdout)


def main() -> None:
    """Print one line for each solver and number of labels, relative to surelabel."""
    rounds = 3 if "--quick" in sys.argv else 15
    print(
        f"{'labels':>6}  {'solver':13}{'threshold':>10}{'ms':>9}{'MiB':>8}{'surelabel is':>15}",
        end="",
    )
    print(f"{'smaller':>10}{'error':>10}  mean similarity")
    for labels in LABELS:
        reference: dict[str, float] = {}
        for solver in SOLVERS:
            is_tuned = solver not in ("surelabel", "released")
            threshold = run_case_in_new_process(solver, labels, 0, 0) if is_tuned else 1e-3
            result = run_case_in_new_process(solver, labels, threshold, rounds)
            reference = reference or result
            print(
                f"{labels:6}  {solver:13}{threshold if solver != 'surelabel' else MAX_ERROR:10.0e}"
                f"{result['seconds'] * 1e3:9.2f}{result['memory']:8.1f}"
                f"{result['seconds'] / reference['seconds']:7.1f}× faster"
                f"{result['memory'] / max(reference['memory'], 0.1):9.1f}×{result['error']:10.1e}"
                f"  {result['mean']:.7f}",
                flush=True,
            )
    print(f"goal: {GOAL}")


if __name__ == "__main__":
    if len(sys.argv) == 5:
        print_case(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
