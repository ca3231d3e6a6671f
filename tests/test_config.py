import pytest

from surelabel.config import (
    STUDENT_DEFAULTS,
    Choice,
    Run,
    load_run,
    method_settings_of_run,
    run_as_toml,
)
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.methods import METHODS, TrainingRecipe


def test_a_file_names_only_what_differs_from_the_defaults(tmp_path):
    (tmp_path / "run.toml").write_text('seed = 3\n[loss]\nname = "asymmetric"\ngamma_neg = 2.0\n')
    run = load_run(tmp_path / "run.toml", ["method.ratio=0.2", "epochs=7"])
    assert (run.seed, run.epochs) == (3, 7)
    assert run.loss.settings == {"gamma_neg": 2.0}
    assert run.entry("method").keywords == {"ratio": 0.2}


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
    ("regularizer", "weight"),
    [
        ("class_covariance", 0.1),
        ("mdca", 0.1),
        ("label_pair", 1.0),
        ("knowledge", 8.0),
        (None, 1.0),
    ],
)
def test_the_default_weight_of_a_regularizer_is_that_of_the_table(regularizer, weight, tmp_path):
    name = [f"regularizer.name={regularizer}"] if regularizer else []
    run = load_run(overrides=name)
    assert run.regularizer_weight == weight
    assert load_run(overrides=[*name, "regularizer_weight=1"]).regularizer_weight == 1
    assert load_run(overrides=[*name, "regularizer_weight=0"]).regularizer_weight == 0
    (tmp_path / "run.toml").write_text(run_as_toml(run))
    assert f"regularizer_weight = {weight}\n" in run_as_toml(run)
    assert load_run(tmp_path / "run.toml") == run


@pytest.mark.parametrize(
    ("override", "error", "says"),
    [
        ("loss.name=asymetric", UnknownName, "Did you mean 'asymmetric'"),
        ("loss.name=asymmetric loss.gama=1", ConfigError, "gamma_neg"),
        ("optimzer.lr=1", ConfigError, "learning_rate"),
        ("seed", ConfigError, "key=value"),
        ("=x", ConfigError, "key=value"),
        ("loss.=x", ConfigError, "key=value"),
        ("epochs=0", ConfigError, r"in \[1, "),
        ("epochs=many", ConfigError, "int"),
        ("learning_rate=-1", ConfigError, "learning_rate"),
        ("loss=binary", ConfigError, "loss must be a section"),
        ("seed.deep=1", ConfigError, "seed"),
        ("encoder.device=cuda", ConfigError, "encoder.device is not a setting"),
        ("learning_rate=nan", ConfigError, "learning_rate"),
        ("seed=99999999999999999999", ConfigError, "seed"),
        ("warm_up=1", ConfigError, r"warm_up must be a number in \[0, 1\); got 1"),
        ("warm_up=-0.1", ConfigError, "warm_up must be a number in \\[0"),
        ("ema_decay=1.0", ConfigError, r"ema_decay must be a number in \[0, 1\); got 1"),
        ("ema_decay=true", ConfigError, "ema_decay must be a number"),
        ("loss.name=3", ConfigError, "The name must be one of the strings"),
        ("method.ratio=abc", ConfigError, "type of its default, 0.5"),
        ("method.ratio=nan", ConfigError, "type of its default"),
        ("method.reduction=true", ConfigError, "type of its default, 2"),
        ("method.templates=3", ConfigError, "type of its default, 'one'"),
        ("teacher.name=zero_shot", ConfigError, "with self-training, such as tailor"),
        (
            "method.name=linear sewing.overlay_scale=0.5",
            ConfigError,
            "got method.name=linear. Remove sewing",
        ),
        (
            "method.name=tailor teacher.name=linear",
            ConfigError,
            "without gradient training, one of .*; got linear",
        ),
        (
            "method.name=tailor teacher.name=tailor",
            ConfigError,
            "without gradient training, one of .*; got tailor",
        ),
        ("method.name=tailor teacher.name=tils", UnknownName, "Did you mean 'tiles'"),
        ("method.name=tailor sewing.sides=0.5", ConfigError, "cut_and_sew has no setting sides"),
        ("method.name=tailor sewing.max_overlays=1.5", ConfigError, "type of its default, 1"),
        ("method.name=tailor pseudolabels.name=soft", UnknownName, "'soft' is unknown"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(override, error, says):
    with pytest.raises(error, match=says):
        load_run(overrides=override.split())


@pytest.mark.parametrize("content", [b"seed = ", b"\xff\xfe"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "run.toml").write_bytes(content)
    with pytest.raises(DataError, match=r"run\.toml must be a TOML file"):
        load_run(tmp_path / "run.toml")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.toml cannot be read"):
        load_run(tmp_path / "nowhere.toml")


def test_only_a_student_has_a_teacher():
    student = load_run(overrides=["method.name=tailor"])
    assert {part: getattr(student, part) for part in STUDENT_DEFAULTS} == STUDENT_DEFAULTS
    for method in ("linear", "zero_shot", "clip_adapter"):
        run = load_run(overrides=[f"method.name={method}"])
        assert [getattr(run, part) for part in STUDENT_DEFAULTS] == [None] * 3


def test_the_run_of_a_student_survives_being_written_and_read(tmp_path):
    run = load_run(
        overrides=[
            "method.name=tailor",
            "teacher.rows=2",
            "pseudolabels.top_k=2",
            "sewing.max_overlays=0",
        ]
    )
    assert run.teacher == Choice(STUDENT_DEFAULTS["teacher"].name, {"rows": 2})
    assert run.entry("sewing")().max_overlays == 0
    (tmp_path / "run.toml").write_text(run_as_toml(run))
    assert load_run(tmp_path / "run.toml") == run


def test_what_a_run_leaves_out_is_what_the_recipe_of_its_method_says(monkeypatch):
    recipe = TrainingRecipe(loss="multi_matching", warm_up=0.1, ema_decay=0.99, optimizer="sgd")
    monkeypatch.setattr(METHODS["linear"], "recipe", recipe)
    run = load_run(overrides=["method.name=linear"])
    assert run.loss == Choice("multi_matching")
    assert (run.warm_up, run.ema_decay) == (0.1, 0.99)
    cooler = ["method.name=linear", "loss.temperature=0.5", "optimizer.momentum=0.5"]
    run = load_run(overrides=cooler)
    assert run.loss == Choice("multi_matching", {"temperature": 0.5})
    assert run.optimizer == Choice("sgd", {"momentum": 0.5})
    run = load_run(overrides=["method.name=linear", "loss.name=spa", "warm_up=0", "ema_decay=0"])
    assert (run.loss, run.warm_up, run.ema_decay) == (Choice("spa"), 0, 0)
    assert load_run().loss == Choice("binary")  # other methods have recipes of their own


def test_a_run_written_before_there_was_averaging_is_read(tmp_path):
    text = run_as_toml(Run())
    assert "warm_up = 0.0\nema_decay = 0.0\n" in text
    (tmp_path / "run.toml").write_text(text.replace("warm_up = 0.0\nema_decay = 0.0\n", ""))
    assert load_run(tmp_path / "run.toml") == Run()


def test_warm_up_and_averaging_survive_being_written_and_read(tmp_path):
    run = load_run(overrides=["warm_up=0.25", "ema_decay=0.9997", "loss.name=multi_matching"])
    (tmp_path / "run.toml").write_text(run_as_toml(run))
    assert load_run(tmp_path / "run.toml") == run
    assert (run.warm_up, run.ema_decay) == (0.25, 0.9997)


@pytest.mark.parametrize("method", METHODS)
def test_the_recipe_of_every_method_can_be_written_and_read(tmp_path, method):
    run = load_run(overrides=[f"method.name={method}"])
    recipe = getattr(METHODS[method], "recipe", TrainingRecipe())
    assert (run.loss.name, run.optimizer.name) == (recipe.loss, recipe.optimizer)
    (tmp_path / "run.toml").write_text(run_as_toml(run))
    assert load_run(tmp_path / "run.toml") == run


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = " + "[" * 10_000, "arrays and tables that are nested too deeply"),
        ("epochs = " + "1" * 5000, "a number with more than 4300 digits"),
        ("a" + ".a" * 20_000 + " = 1", "a key with more than 32 parts"),
    ],
)
def test_a_hostile_file_is_refused_on_one_line(tmp_path, text, reason):
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(DataError, match=rf"run\.toml must be a TOML file; got: {reason}"):
        load_run(tmp_path / "run.toml")


def test_a_hostile_override_is_refused():
    for value in ("1" * 5000, "[" * 10_000):
        with pytest.raises(ConfigError, match="epochs must be an integer"):
            load_run(overrides=[f"epochs={value}"])


def test_the_section_of_the_method_is_that_of_the_file_and_the_overrides(tmp_path):
    (tmp_path / "run.toml").write_text('seed = 3\n[method]\nname = "linear"\n')
    assert method_settings_of_run(tmp_path / "run.toml") == {"name": "linear"}
    overridden = method_settings_of_run(tmp_path / "run.toml", ["method.name=coop", "epochs=2"])
    assert overridden == {"name": "coop"}
    assert method_settings_of_run(overrides=["epochs=2"]) == {}
    with pytest.raises(ConfigError, match=r"method must be a section .* got 'linear'"):
        method_settings_of_run(overrides=["method=linear"])
