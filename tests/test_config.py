import pytest

from surelabel.config import STUDENT, Choice, Run, load_run, run_as_toml
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.methods import METHODS, Recipe


def test_a_file_names_only_what_differs_from_the_defaults(tmp_path):
    (tmp_path / "run.toml").write_text('seed = 3\n[loss]\nname = "asymmetric"\ngamma_neg = 2.0\n')
    run = load_run(tmp_path / "run.toml", ["method.ratio=0.2", "epochs=7"])
    assert (run.seed, run.epochs) == (3, 7)
    assert run.loss.settings == {"gamma_neg": 2.0}
    assert run.make("method").keywords == {"ratio": 0.2}


def test_a_run_survives_being_written_and_read(tmp_path):
    run = load_run(
        overrides=[
            "method.templates=a drawing of a “{}”",
            "loss.name=asymmetric",
            "loss.clip=0",
            "learning_rate=1e-5",
        ]
    )
    (tmp_path / "run.toml").write_text(run_as_toml(run), encoding="utf-8")
    assert load_run(tmp_path / "run.toml") == run
    (tmp_path / "run.toml").write_text(run_as_toml(Run()))
    assert load_run(tmp_path / "run.toml") == Run()


@pytest.mark.parametrize(
    ("override", "error", "says"),
    [
        ("loss.name=asymetric", UnknownName, "Did you mean 'asymmetric'"),
        ("loss.name=asymmetric loss.gama=1", ConfigError, "gamma_neg"),
        ("optimiser.lr=1", ConfigError, "learning_rate"),
        ("seed", ConfigError, "key=value"),
        ("=x", ConfigError, "key=value"),
        ("loss.=x", ConfigError, "key=value"),
        ("epochs=0", ConfigError, "from 1"),
        ("epochs=many", ConfigError, "int"),
        ("learning_rate=-1", ConfigError, "learning_rate"),
        ("loss=binary", ConfigError, "loss is a section"),
        ("seed.deep=1", ConfigError, "seed"),
        ("backbone.device=cuda", ConfigError, "backbone.device is no setting"),
        ("learning_rate=nan", ConfigError, "learning_rate"),
        ("seed=99999999999999999999", ConfigError, "seed"),
        ("warm_up=1", ConfigError, r"warm_up must be float and from 0 to below 1\. Got 1"),
        ("warm_up=-0.1", ConfigError, "warm_up must be float and from 0"),
        ("averaging=1.0", ConfigError, r"averaging must be float and from 0 to below 1\. Got 1"),
        ("averaging=true", ConfigError, "averaging must be float"),
        ("loss.name=3", ConfigError, "A name is a text"),
        ("method.ratio=abc", ConfigError, "kind of its default, 0.5"),
        ("method.ratio=nan", ConfigError, "kind of its default"),
        ("method.reduction=true", ConfigError, "kind of its default, 2"),
        ("method.templates=3", ConfigError, "kind of its default, 'one'"),
        ("teacher.name=zero_shot", ConfigError, "taught without labels, such as method.name=tail"),
        ("method.name=linear sewing.side=0.5", ConfigError, "linear is none; leave sewing out"),
        ("method.name=tailor teacher.name=linear", ConfigError, "linear, which must be fitted"),
        ("method.name=tailor teacher.name=tailor", ConfigError, "A teacher knows without"),
        ("method.name=tailor teacher.name=tils", UnknownName, "Did you mean 'tiles'"),
        ("method.name=tailor sewing.sides=0.5", ConfigError, "sewn has no setting sides"),
        ("method.name=tailor sewing.overlays=1.5", ConfigError, "kind of its default, 1"),
        ("method.name=tailor pseudolabels.name=soft", UnknownName, "'soft' is unknown"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(override, error, says):
    with pytest.raises(error, match=says):
        load_run(overrides=override.split())


@pytest.mark.parametrize("content", [b"seed = ", b"\xff\xfe"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "run.toml").write_bytes(content)
    with pytest.raises(DataError, match=r"run\.toml is not TOML"):
        load_run(tmp_path / "run.toml")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.toml cannot be read"):
        load_run(tmp_path / "nowhere.toml")


def test_only_a_student_has_a_teacher():
    student = load_run(overrides=["method.name=tailor"])
    assert {part: getattr(student, part) for part in STUDENT} == STUDENT
    for method in ("linear", "zero_shot", "clip_adapter"):
        run = load_run(overrides=[f"method.name={method}"])
        assert [getattr(run, part) for part in STUDENT] == [None] * 3


def test_the_run_of_a_student_survives_being_written_and_read(tmp_path):
    run = load_run(
        overrides=[
            "method.name=tailor",
            "teacher.down=2",
            "pseudolabels.top=2",
            "sewing.overlays=0",
        ]
    )
    assert run.teacher == Choice(STUDENT["teacher"].name, {"down": 2})
    assert run.make("sewing")().overlays == 0
    (tmp_path / "run.toml").write_text(run_as_toml(run))
    assert load_run(tmp_path / "run.toml") == run


def test_what_a_run_leaves_out_is_what_the_recipe_of_its_method_says(monkeypatch):
    recipe = Recipe(loss="multi_matching", warm_up=0.1, averaging=0.99, optimizer="sgd")
    monkeypatch.setattr(METHODS["linear"], "recipe", recipe)
    run = load_run(overrides=["method.name=linear"])
    assert run.loss == Choice("multi_matching")
    assert (run.warm_up, run.averaging) == (0.1, 0.99)
    cooler = ["method.name=linear", "loss.temperature=0.5", "optimizer.momentum=0.5"]
    run = load_run(overrides=cooler)
    assert run.loss == Choice("multi_matching", {"temperature": 0.5})
    assert run.optimizer == Choice("sgd", {"momentum": 0.5})
    run = load_run(overrides=["method.name=linear", "loss.name=spa", "warm_up=0", "averaging=0"])
    assert (run.loss, run.warm_up, run.averaging) == (Choice("spa"), 0, 0)
    assert load_run().loss == Choice("binary")  # other methods have recipes of their own


def test_a_run_written_before_there_was_averaging_is_read(tmp_path):
    text = run_as_toml(Run())
    assert "warm_up = 0.0\naveraging = 0.0\n" in text
    (tmp_path / "run.toml").write_text(text.replace("warm_up = 0.0\naveraging = 0.0\n", ""))
    assert load_run(tmp_path / "run.toml") == Run()


def test_warm_up_and_averaging_survive_being_written_and_read(tmp_path):
    run = load_run(overrides=["warm_up=0.25", "averaging=0.9997", "loss.name=multi_matching"])
    (tmp_path / "run.toml").write_text(run_as_toml(run))
    assert load_run(tmp_path / "run.toml") == run
    assert (run.warm_up, run.averaging) == (0.25, 0.9997)


@pytest.mark.parametrize("method", METHODS)
def test_the_recipe_of_every_method_can_be_written_and_read(tmp_path, method):
    run = load_run(overrides=[f"method.name={method}"])
    recipe = getattr(METHODS[method], "recipe", Recipe())
    assert (run.loss.name, run.optimizer.name) == (recipe.loss, recipe.optimizer)
    (tmp_path / "run.toml").write_text(run_as_toml(run))
    assert load_run(tmp_path / "run.toml") == run
