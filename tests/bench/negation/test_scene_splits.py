from dataclasses import replace

from surelabel.bench.negation import load_negation_scenes


def test_splits_have_the_sizes_of_the_plan_and_share_no_image(splits, plan):
    assert (len(splits.validation), len(splits.test)) == (100, 150)
    assert not set(splits.validation.paths) & set(splits.test.paths)
    few = load_negation_scenes(["tiny-rn"], replace(plan, test=50), quick=True)
    assert len(few.test) == 50
    assert few.fingerprint != splits.fingerprint
