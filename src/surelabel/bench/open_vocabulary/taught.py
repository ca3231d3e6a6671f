"""From a row of a table to a recognizer that was taught seen names and is asked for all."""

import time
from dataclasses import dataclass, replace
from typing import Any

from surelabel.bench.cells import Cells
from surelabel.bench.open_vocabulary.pictures import ENCODER, Pictures
from surelabel.bench.open_vocabulary.plan import KNOWLEDGE, NAME, USUAL, Changed, Plan
from surelabel.config import Choice, Run
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer
from surelabel.records import Array
from surelabel.tables import settings


@dataclass(frozen=True)
class Answer:
    """What one recognizer says of the test pictures.

    Attributes:
        scores: ``(n, c)``, seen names first.
        logits: Log-odds by Platt scaling that all names share, ``(n, c)``.
        parameters: That were learnt.
        seconds: Of one core's time, for all of it.
    """

    scores: Array
    logits: Array
    parameters: int
    seconds: float


def run_of(domain: str, changed: Changed, plan: Plan, seed: int) -> Run:
    """The run of a row: recover and match but for what is changed, or the method that is named.

    A setting that is the method's own is left out, so that equal runs are one. What does not learn
    is the same for all seeds.
    """
    rest = {"name": NAME} | changed.get("method", {})
    name = rest.pop("name")
    if name == NAME:
        rest = USUAL | {"knowledge": KNOWLEDGE[domain]} | rest
    usual = settings(METHODS[name])
    rest = {key: value for key, value in rest.items() if value != usual[key]}
    run = Run(backbone=Choice(ENCODER), method=Choice(name, rest), calibrator=Choice("platt"))
    if getattr(METHODS[name], "learns_from", "") == "labels":
        run = replace(run, seed=seed)
    if name == NAME:
        run = replace(run, epochs=plan.epochs)
    return replace(run, loss=Choice(**changed["loss"])) if "loss" in changed else run


def runs_of(domain: str, changed: Changed, plan: Plan, seed: int) -> list[Run]:
    """One a seed; one alone of what does not learn."""
    each = [run_of(domain, changed, plan, own) for own in range(seed, seed + plan.seeds)]
    return each[:1] if each[0] == each[-1] else each


def taught(pictures: Pictures, run: Run) -> Recognizer:
    """A recognizer of the seen names, calibrated on them."""
    recognizer = Recognizer(run, pictures.vocabulary.seen, backbone=pictures.backbone)
    if recognizer.method.learns_from == "labels":
        recognizer.fit(pictures.train)
    return recognizer.calibrate(pictures.validation)


def answer(cells: Cells, pictures: Pictures, run: Run) -> Answer:
    """What a run comes to, computed once.

    Raises:
        DataError: a file is damaged, or none can be written.
    """

    def work() -> dict[str, Any]:
        start = time.process_time()
        recognizer = taught(pictures, run).with_names(pictures.vocabulary.names)
        found = recognizer.predict(pictures.test)
        learnt = sum(p.numel() for p in recognizer.method.parameters() if p.requires_grad)
        seconds = time.process_time() - start
        return {"scores": found.scores, "logits": found.logits, "cost": [learnt, seconds]}

    shape = (len(pictures.test), len(pictures.vocabulary.names))
    shapes = {"scores": shape, "logits": shape, "cost": (2,)}
    found = cells.arrays("answer", pictures.identity, run, shapes=shapes, otherwise=work)
    learnt, seconds = found["cost"].tolist()
    return Answer(found["scores"], found["logits"], int(learnt), seconds)
