"""Matching 196 regions to labels in 32 pictures: ours, POT's batch solver, and the plain algorithm.

    python benchmarks/matching.py [--quick]

Similarities are drawn as CLIP has them (a spread of 0.025 around 0.25), costs and weights made of
them as for recognition. Every way ends with the weighted sum over regions for each label, and
stops as early as its own rule can with an error of 1e-4 or less: the largest sum over regions, in
any picture, of what the plan misses of their weights. POT and the plain algorithm stop all
pictures together; their thresholds are the largest of 1e-2, 3e-3, 1e-3 … that are good enough.
"released" is the plain algorithm with the threshold that the code of "Recover and Match" has,
whatever error that leaves. Every case runs in a process of its own, on one thread, in float32:
processor seconds, the best of several rounds, and the peak of memory above the data. POT is needed
beside the package: pip install POT.
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

from surelabel.transport import label_presence, matching_cost, sinkhorn

PICTURES, REGIONS, LABELS = 32, 196, (17, 65, 1_006)
SOFT, GOOD_ENOUGH = 0.1, 1e-4
THRESHOLDS = [top * 10.0**-power for power in range(2, 8) for top in (1, 0.3)]
GOAL = "65 labels: 5 × the speed of POT's log form and 2 × that of its kernel form, or more"
Problem = tuple[Tensor, Tensor, Tensor]
Way = Callable[[Problem, float], tuple[Callable[[Tensor], Tensor], Callable[[], Tensor]]]


def ours(problem: Problem, threshold: float) -> tuple[Callable[[Tensor], Tensor], ...]:
    """The package: always the same threshold, on the error itself."""
    plan = sinkhorn(*problem, regularization=SOFT, tolerance=GOOD_ENOUGH)
    return plan.apply, lambda: plan.matrix


def pot(form: str) -> Way:
    """POT's batch solver in one of its forms; its threshold is on the root of summed squares."""

    def solve(problem: Problem, threshold: float) -> tuple[Callable[..., Tensor], ...]:
        cost, rows, columns = problem
        found = solve_batch(cost, SOFT, rows, columns, method=form, tol=threshold, grad="detach")
        return lambda values: (found.plan * values).sum(1), lambda: found.plan

    return solve


def plain(problem: Problem, threshold: float) -> tuple[Callable[..., Tensor], ...]:
    """The algorithm as a book has it, stopped by the change of the left factors."""
    cost, rows, columns = problem
    kernel = (-cost / SOFT).exp()
    left, right = torch.ones_like(rows), torch.ones_like(columns)
    for _ in range(100):
        before = left
        left = rows / torch.bmm(kernel, right[:, :, None])[:, :, 0]
        turned = kernel.transpose(1, 2).contiguous()
        right = columns / torch.bmm(turned, left[:, :, None])[:, :, 0]
        if ((left - before).abs().mean(1) < threshold).all():
            break
    plan = left[:, :, None] * kernel * right[:, None, :]
    return lambda values: (plan * values).sum(1), lambda: plan


WAYS: dict[str, Way] = {
    "ours": ours,
    "POT, kernel": pot("sinkhorn"),
    "POT, log": pot("log_sinkhorn"),
    "plain": plain,
    "released": plain,
}


def drawn(labels: int) -> tuple[Tensor, Problem]:
    """Similarities, and the problem made of them."""
    generator = torch.Generator().manual_seed(0)
    similarities = 0.25 + 0.025 * torch.randn(PICTURES, REGIONS, labels, generator=generator)
    columns = torch.full((PICTURES, labels), 1 / labels)
    return similarities, (matching_cost(similarities), label_presence(similarities), columns)


def error(problem: Problem, plan: Tensor) -> float:
    """What a plan misses of the weights of the regions, in the worst picture."""
    return (plan.double().sum(2) - problem[1]).abs().sum(1).max().item()


def good_enough(way: str, problem: Problem) -> float:
    """The largest threshold that leaves an error small enough."""
    solve = WAYS[way]
    fine = (t for t in THRESHOLDS if error(problem, solve(problem, t)[1]()) <= GOOD_ENOUGH)
    return next(fine, THRESHOLDS[-1])


def measured(way: str, labels: int, threshold: float, rounds: int) -> None:
    """Print error, seconds and MiB of one way, and a checksum of what it gives."""
    torch.set_num_threads(1)
    similarities, problem = drawn(labels)
    if not threshold:
        print(json.dumps(good_enough(way, problem)))
        return
    small = tuple(part[:1] for part in problem)
    WAYS[way](small, threshold)[0](similarities[:1])  # loads what is loaded on first use
    before, taken = resident(reset=True), []
    while len(taken) < rounds:
        start = time.process_time()
        apply, matrix = WAYS[way](problem, threshold)
        means = apply(similarities) * labels
        taken.append(time.process_time() - start)
        memory = resident() - before
    found = {"seconds": min(taken), "memory": memory, "error": error(problem, matrix())}
    print(json.dumps(found | {"mean": means.double().mean().item()}))


def resident(*, reset: bool = False) -> float:
    """The most memory held since the last reset, in MiB."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def in_a_process(*case: object) -> Any:
    """What one case prints."""
    run = subprocess.run(
        [sys.executable, __file__, *map(str, case)], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def main() -> None:
    """Print one line for each way and number of labels, ours as the measure."""
    rounds = 3 if "--quick" in sys.argv else 15
    print(f"{'labels':>6}  {'way':13}{'threshold':>10}{'ms':>9}{'MiB':>8}{'ours is':>15}", end="")
    print(f"{'smaller':>10}{'error':>10}  mean similarity")
    for labels in LABELS:
        measure: dict[str, float] = {}
        for way in WAYS:
            searched = way not in ("ours", "released")
            threshold = in_a_process(way, labels, 0, 0) if searched else 1e-3
            found = in_a_process(way, labels, threshold, rounds)
            measure = measure or found
            print(
                f"{labels:6}  {way:13}{threshold if way != 'ours' else GOOD_ENOUGH:10.0e}"
                f"{found['seconds'] * 1e3:9.2f}{found['memory']:8.1f}"
                f"{found['seconds'] / measure['seconds']:7.1f}× faster"
                f"{found['memory'] / max(measure['memory'], 0.1):9.1f}×{found['error']:10.1e}"
                f"  {found['mean']:.7f}",
                flush=True,
            )
    print(f"goal: {GOAL}")


if __name__ == "__main__":
    if len(sys.argv) == 5:
        measured(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
