import csv
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data.prediction_writing import check_predictions_suffix, write_predictions
from surelabel.data.predictions import read_predictions
from surelabel.errors import DataError, InputError
from surelabel.records import UNCERTAINTY_KINDS, Predictions, SkippedImage

SUFFIXES = [".parquet", ".csv", ".jsonl"]
NAMES = ["dog", 'the "black" cat', "a,b", "café"]


def predictions(count=3, *, logits=True, calibration="platt on 500 images", names=NAMES):
    generator = np.random.default_rng(count)
    values = generator.normal(0, 4, (count, len(names))).astype(np.float32)
    return Predictions(
        paths=[f"album/{n}, ü.jpg" for n in range(count)],
        names=names,
        scores=generator.normal(size=values.shape).astype(np.float32),
        logits=values if logits else None,
        calibration=calibration if logits else None,
        model="0123abcd",
        skipped=(SkippedImage("album/cut.jpg", "truncated file"),),
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_again(tmp_path, suffix):
    wanted, path = predictions(), tmp_path / f"tags{suffix}"
    write_predictions(wanted, path)
    found = read_predictions(path)
    assert (list(found.paths), list(found.names)) == (wanted.paths, NAMES)
    assert list(found.skipped) == [SkippedImage("album/cut.jpg", "truncated file")]
    assert np.array_equal(found.scores, wanted.scores)
    assert np.allclose(found.logits, wanted.logits, rtol=1e-6)
    assert np.allclose(found.probabilities, wanted.probabilities, rtol=1e-6)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_parquet_keeps_every_bit_and_who_made_it(tmp_path):
    wanted = predictions()
    write_predictions(wanted, tmp_path / "tags.PARQUET")
    found = read_predictions(tmp_path / "tags.PARQUET")
    assert np.array_equal(found.logits, wanted.logits)
    assert (found.calibration, found.model) == ("platt on 500 images", "0123abcd")


def test_parquet_has_one_column_a_label_under_a_prefix_for_any_reader(tmp_path):
    wanted = predictions(names=["dog", "path"])
    write_predictions(wanted, tmp_path / "tags.parquet")
    table = pq.read_table(tmp_path / "tags.parquet")
    assert table.column_names == ["path"] + [
        f"{kind}:{name}" for name in ("dog", "path") for kind in ("score", "logit", "probability")
    ]
    assert {str(kind) for kind in table.schema.types} == {"string", "float"}
    assert np.allclose(table["probability:dog"], 1 / (1 + np.exp(-wanted.logits[:, 0])))
    about = json.loads(table.schema.metadata[b"surelabel"])
    assert about["names"] == ["dog", "path"]
    assert about["version"]
    assert about["skipped"] == [["album/cut.jpg", "truncated file"]]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("logits", [True, False])
def test_without_calibration_there_are_no_probabilities(tmp_path, suffix, logits):
    wanted, path = predictions(logits=logits, calibration=None), tmp_path / f"tags{suffix}"
    write_predictions(wanted, path)
    found = read_predictions(path)
    assert found.calibration is None
    assert np.array_equal(found.scores, wanted.scores)
    assert (found.logits is not None) == (logits and suffix != ".jsonl")
    assert b"probability:" not in path.read_bytes()


def test_json_lines_say_label_score_and_probability(tmp_path):
    wanted = predictions(1)
    write_predictions(wanted, tmp_path / "tags.jsonl")
    first, second = map(json.loads, (tmp_path / "tags.jsonl").read_text().splitlines())
    assert first["path"] == "album/0, ü.jpg"
    assert [label["label"] for label in first["labels"]] == NAMES
    assert first["labels"][1] == {
        "label": NAMES[1],
        "score": float(wanted.scores[0, 1]),
        "probability": float(wanted.probabilities[0, 1]),
    }
    assert second == {"path": "album/cut.jpg", "skipped": "truncated file"}
    write_predictions(predictions(1, logits=False), tmp_path / "tags.jsonl")
    first = json.loads((tmp_path / "tags.jsonl").read_text().splitlines()[0])
    assert first["labels"][0]["probability"] is None


def test_csv_names_the_skipped_images_with_empty_numbers(tmp_path):
    write_predictions(predictions(1, names=["dog"]), tmp_path / "tags.csv")
    with (tmp_path / "tags.csv").open(newline="") as file:
        header, read, skipped = csv.reader(file)
    assert header == ["path", "score:dog", "logit:dog", "probability:dog", "skipped"]
    assert (read[0], read[-1]) == ("album/0, ü.jpg", "")
    assert skipped == ["album/cut.jpg", "", "", "", "truncated file"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("extreme", [-40.0, 40.0, 1e-6])
def test_extreme_logits_survive(tmp_path, suffix, extreme):
    values = np.full((1, 1), extreme, dtype=np.float32)
    wanted = Predictions(["a.jpg"], ["dog"], values, values, calibration="platt")
    write_predictions(wanted, tmp_path / f"tags{suffix}")
    assert np.allclose(read_predictions(tmp_path / f"tags{suffix}").logits, extreme, atol=1e-6)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_image_read_is_still_a_file(tmp_path, suffix):
    write_predictions(predictions(0), tmp_path / f"tags{suffix}")
    found = read_predictions(tmp_path / f"tags{suffix}")
    assert len(found) == 0
    assert [s.reason for s in found.skipped] == ["truncated file"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_path_that_is_no_text_is_written_with_its_odd_bytes_spelt_out(tmp_path, suffix):
    values = np.zeros((1, 1), dtype=np.float32)
    odd = SkippedImage("b\udce9.jpg", "empty file")
    wanted = Predictions(["a\udce9.jpg"], ["dog"], values, skipped=[odd])
    write_predictions(wanted, tmp_path / f"tags{suffix}")
    found = read_predictions(tmp_path / f"tags{suffix}")
    assert found.paths[0].encode("utf-8", "backslashreplace") == rb"a\udce9.jpg"
    assert found.skipped[0].path.encode("utf-8", "backslashreplace") == rb"b\udce9.jpg"


def test_another_suffix_is_refused_with_the_three():
    acts = (
        lambda path: write_predictions(predictions(), path),
        read_predictions,
        check_predictions_suffix,
    )
    for act in acts:
        with pytest.raises(InputError, match=r"one of \.parquet, \.csv, \.jsonl; got 'tags\.xlsx'"):
            act("tags.xlsx")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbers_that_are_not_finite_are_refused_and_the_old_file_stays(tmp_path, suffix):
    path = tmp_path / f"tags{suffix}"
    path.write_text("old")
    values = np.float32([[1, 2], [3, np.nan]])
    bad = Predictions(["a.jpg", "b.jpg"], ["dog", "cat"], values)
    with pytest.raises(InputError, match=r"Every score must be finite; got nan for 'cat' in b"):
        write_predictions(bad, path)
    assert path.read_text() == "old"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_place_that_cannot_be_written_is_named(tmp_path, suffix):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=rf"file/tags\{suffix} cannot be written"):
        write_predictions(predictions(), tmp_path / "file" / f"tags{suffix}")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("x.parquet", b"", "got: .*Parquet"),
        ("x.parquet", b"PAR1 nonsense PAR1", "got: "),
        ("x.csv", b"", "got: a header that does not start with path"),
        ("x.csv", b"path,dog\na.jpg,1\n", "got: a header that does not start with path"),
        ("x.csv", b"path,score:dog,skipped\na.jpg,yes,\n", "got: .*CSV conversion error"),
        ("x.csv", b"path,score:dog,skipped\na.jpg,,\n", "an empty cell in the row"),
        ("x.csv", b"path,score:dog,skipped\na.jpg,1\n", "got: .*Expected 3 columns, got 2"),
        ("x.csv", b"\xff\xfe", "got: .*decode"),
        ("x.jsonl", b'{"path": "a.jpg", "labels": [', "invalid JSON on line 1"),
        ("x.jsonl", b"[]", "line 1 without path"),
        ("x.jsonl", b'{"path": "a.jpg", "labels": [{"label": "dog"}]}', "got: 'score'"),
        (
            "x.jsonl",
            b'{"path": "a", "labels": []}\n'
            b'{"path": "b", "labels": [{"label": "dog", "score": 1, "probability": null}]}',
            "got: different labels for a and b",
        ),
    ],
)
def test_a_file_of_something_else_is_refused_with_what_to_do(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    expected = (
        rf"{name} must contain predictions of surelabel; .*{message}.*Write the file again.*--out"
    )
    with pytest.raises(DataError, match=expected):
        read_predictions(tmp_path / name)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_named(tmp_path, suffix):
    with pytest.raises(DataError, match=rf"none\{suffix} must contain.*No such file"):
        read_predictions(tmp_path / f"none{suffix}")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_damaged_parquet_is_refused_or_read_right(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "damaged.parquet"
    wanted = predictions(40)
    write_predictions(wanted, path)
    whole = bytearray(path.read_bytes())
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    place = data.draw(st.integers(4, footer - 1))
    if data.draw(st.booleans()):
        whole[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del whole[place:]
    path.write_bytes(whole)
    try:
        found = read_predictions(path)
    except DataError:
        return
    assert np.array_equal(found.scores, wanted.scores)


FORMULA = '=HYPERLINK("http://x")'


def test_paths_in_a_csv_file_for_spreadsheets_are_not_formulas(tmp_path):
    wanted = Predictions(
        paths=[FORMULA, "images/a.jpg", "-1.jpg"],
        names=["=dog", "cat"],
        scores=-np.ones((3, 2), np.float32),
        skipped=(SkippedImage("@b.jpg", "+ empty file"),),
    )
    write_predictions(wanted, tmp_path / "safe.csv", spreadsheet_safe=True)
    with (tmp_path / "safe.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["path", "score:=dog", "score:cat", "skipped"]
    assert [row[0] for row in rows] == [f"'{FORMULA}", "images/a.jpg", "'-1.jpg", "'@b.jpg"]
    assert [row[-1] for row in rows] == ["", "", "", "'+ empty file"]
    assert rows[0][1] == "-1"  # numbers do not change
    assert read_predictions(tmp_path / "safe.csv").paths[0] == f"'{FORMULA}"
    write_predictions(wanted, tmp_path / "exact.csv")
    assert read_predictions(tmp_path / "exact.csv").paths == wanted.paths


def test_only_csv_files_are_made_safe_for_spreadsheets(tmp_path):
    with pytest.raises(InputError, match=r"applies to \.csv files only; got .*tags\.jsonl"):
        write_predictions(predictions(), tmp_path / "tags.jsonl", spreadsheet_safe=True)


LINE = '{"path": "a.jpg", "labels": [{"label": "dog", "score": 0.5, "probability": 0.5}]}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "invalid JSON on line 1 .lists and objects that are nested too deeply"),
        (
            LINE.replace("0.5", "1" * 5000, 1),
            "invalid JSON on line 1 .a number with more than 4300",
        ),
        (LINE.replace("0.5", "1e999", 1), "a score that is not finite"),
        (LINE.replace('"dog"', '"\\ud800"'), "surrogates not allowed"),
        (LINE.replace('"dog"', "7"), "a path, label or description that is not text"),
        (LINE.replace('"a.jpg"', "null"), "a path, label or description that is not text"),
        (LINE.replace("]", ', {"label": "dog", "score": 1, "probability": 1}]'), "a label twice"),
        (LINE.replace('"labels": [', '"labels": 3, "labels": ['), "the key 'labels' twice"),
        (LINE.replace("}]", "}], 3"), "invalid JSON on line 1"),
        ('{"path": "a.jpg", "labels": ["dog"]}', "string indices must be integers"),
    ],
)
def test_hostile_json_lines_are_refused_on_one_line(tmp_path, text, reason):
    (tmp_path / "tags.jsonl").write_text(text)
    with pytest.raises(DataError, match=rf"predictions of surelabel; got: .*{reason}") as caught:
        read_predictions(tmp_path / "tags.jsonl")
    assert "\n" not in str(caught.value)


def test_predictions_with_other_metadata_are_refused(tmp_path):
    write_predictions(predictions(), tmp_path / "tags.parquet")
    table = pq.read_table(tmp_path / "tags.parquet")
    for text in ("3", "[" * 100_000, '{"names": 3}', '{"names": "dog", "skipped": [[1]]}'):
        pq.write_table(table.replace_schema_metadata({b"surelabel": text}), tmp_path / "x.parquet")
        with pytest.raises(DataError, match=r"x\.parquet must contain predictions of surelabel"):
            read_predictions(tmp_path / "x.parquet")


def uncertain(count=3, *, kind="match_variance"):
    """Return predictions with uncertainties above 1, as variances can be."""
    it = predictions(count)
    return replace(it, uncertainty=it.scores**2 + np.float32(1), uncertainty_kind=kind)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", UNCERTAINTY_KINDS)
def test_an_uncertainty_that_is_written_is_read_again(tmp_path, suffix, kind):
    wanted = uncertain(kind=kind)
    write_predictions(wanted, tmp_path / f"tags{suffix}")
    found = read_predictions(tmp_path / f"tags{suffix}")
    assert found.uncertainty.dtype == np.float32
    np.testing.assert_array_equal(found.uncertainty, wanted.uncertainty)
    assert found.uncertainty_kind == kind
    np.testing.assert_array_equal(found.scores, wanted.scores)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_without_uncertainty_does_not_mention_it(tmp_path, suffix):
    write_predictions(predictions(), tmp_path / f"tags{suffix}")
    assert b"uncertainty" not in (tmp_path / f"tags{suffix}").read_bytes()
    found = read_predictions(tmp_path / f"tags{suffix}")
    assert (found.uncertainty, found.uncertainty_kind) == (None, None)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_a_readable_image_the_file_is_read_in_spite_of_the_uncertainty(tmp_path, suffix):
    write_predictions(uncertain(0), tmp_path / f"tags{suffix}")
    assert len(read_predictions(tmp_path / f"tags{suffix}").skipped) == 1


def test_the_uncertainty_is_a_column_for_each_label_and_a_key_in_json_lines(tmp_path):
    it = uncertain(1)
    write_predictions(it, tmp_path / "tags.parquet")
    table = pq.read_table(tmp_path / "tags.parquet")
    assert [n for n in table.column_names if "uncertainty" in n] == [
        f"uncertainty:{name}" for name in NAMES
    ]
    assert json.loads(table.schema.metadata[b"surelabel"])["uncertainty_kind"] == "match_variance"
    write_predictions(it, tmp_path / "tags.csv")
    with (tmp_path / "tags.csv").open(newline="") as file:
        header, first, skipped = csv.reader(file)
    assert header[-2:] == ["uncertainty_kind", "skipped"]
    assert (first[-2], skipped[-2]) == ("match_variance", "")
    write_predictions(it, tmp_path / "tags.jsonl")
    line = json.loads((tmp_path / "tags.jsonl").read_text().splitlines()[0])
    assert line["uncertainty_kind"] == "match_variance"
    assert line["labels"][2]["uncertainty"] == float(it.uncertainty[0, 2])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -0.5])
def test_an_uncertainty_that_is_no_variance_is_not_written(tmp_path, suffix, value):
    it = uncertain()
    it.uncertainty[1, 2] = value
    wanted = rf"Every uncertainty must be finite and at least 0; got {value} for 'a,b' in album/1"
    with pytest.raises(InputError, match=wanted):
        write_predictions(it, tmp_path / f"tags{suffix}")


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.5])
def test_a_damaged_uncertainty_in_parquet_is_refused(tmp_path, value):
    write_predictions(uncertain(), tmp_path / "tags.parquet")
    table = pq.read_table(tmp_path / "tags.parquet")
    column = table.column_names.index("uncertainty:dog")
    damaged = table.set_column(column, "uncertainty:dog", pa.array([1, value, 1], pa.float32()))
    pq.write_table(damaged, tmp_path / "tags.parquet")
    with pytest.raises(DataError, match="an uncertainty that is negative or not finite"):
        read_predictions(tmp_path / "tags.parquet")
    write_predictions(uncertain(), tmp_path / "tags.parquet")
    table = pq.read_table(tmp_path / "tags.parquet").drop_columns(["uncertainty:café"])
    pq.write_table(table, tmp_path / "tags.parquet")
    with pytest.raises(DataError, match="uncertainty:café"):
        read_predictions(tmp_path / "tags.parquet")


LINES = (
    '{"path": "a", "uncertainty_kind": "residual_error", '
    '"labels": [{"label": "dog", "score": 1, "probability": 0.5, "uncertainty": 0.25}]}'
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LINES.replace("0.25", "-0.25"), "an uncertainty that is negative"),
        (LINES.replace("0.25", "NaN"), "invalid JSON on line 1|negative or not finite"),
        (LINES.replace('"uncertainty": 0.25', '"odd": 0.25'), "'uncertainty'"),
        (LINES.replace("residual_error", "entropy"), "uncertainty must be one of"),
        (f"{LINES}\n{LINES.replace('residual_error', 'match_variance')}", "several values of"),
        (
            "path,score:dog,uncertainty:dog,uncertainty_kind,skipped\na,1,-2,residual_error,\n",
            "an uncertainty that is negative",
        ),
        ("path,score:dog,uncertainty_kind,skipped\na,1,residual_error,\n", "given together"),
        ("path,score:dog,uncertainty:dog,uncertainty_kind,skipped\na,1,2,,\n", "must be one of"),
        ("path,score:dog,uncertainty:dog,skipped\na,1,2,\n", "given together"),
    ],
)
def test_a_damaged_uncertainty_in_text_is_refused(tmp_path, text, reason):
    path = tmp_path / ("tags.jsonl" if text.startswith("{") else "tags.csv")
    path.write_text(text)
    with pytest.raises(DataError, match=reason):
        read_predictions(path)


def with_shown(count=3):
    it = predictions(count)
    return replace(it, shown=it.scores > 0)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", [None, "residual_error"])
def test_the_shown_labels_are_read_again_beside_every_number(tmp_path, suffix, kind):
    wanted = with_shown()
    if kind:
        wanted = replace(wanted, uncertainty=wanted.scores**2, uncertainty_kind=kind)
    write_predictions(wanted, tmp_path / f"tags{suffix}")
    found = read_predictions(tmp_path / f"tags{suffix}")
    assert found.shown.dtype == bool
    np.testing.assert_array_equal(found.shown, wanted.shown)
    np.testing.assert_array_equal(found.scores, wanted.scores)
    assert found.uncertainty_kind == kind
    assert list(found.skipped) == list(wanted.skipped)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_without_a_selection_does_not_mention_it(tmp_path, suffix):
    write_predictions(predictions(), tmp_path / f"tags{suffix}")
    assert b"shown" not in (tmp_path / f"tags{suffix}").read_bytes()
    assert read_predictions(tmp_path / f"tags{suffix}").shown is None


def test_pandas_reads_the_selection_of_a_csv_file_as_the_quickstart_shows(tmp_path):
    it = with_shown()
    write_predictions(it, tmp_path / "tags.csv")
    table = pd.read_csv(tmp_path / "tags.csv")
    *lists, skipped = table["shown"].map(json.loads, na_action="ignore")
    assert [set(labels) for labels in lists] == [set(np.array(NAMES)[row]) for row in it.shown]
    assert np.isnan(skipped)


def test_the_selection_is_a_list_of_labels_or_a_boolean_column_for_each_label(tmp_path):
    it = with_shown(1)
    columns = sorted(np.flatnonzero(it.shown[0]), key=lambda column: -it.logits[0, column])
    labels = [NAMES[column] for column in columns]
    assert len(labels) >= 2
    write_predictions(it, tmp_path / "tags.csv")
    with (tmp_path / "tags.csv").open(newline="", encoding="utf-8") as file:
        header, first, skipped = csv.reader(file)
    assert header[-2:] == ["shown", "skipped"]
    assert json.loads(first[-2]) == labels
    assert skipped[-2:] == ["", "truncated file"]
    write_predictions(it, tmp_path / "tags.jsonl")
    assert json.loads((tmp_path / "tags.jsonl").read_text().splitlines()[0])["shown"] == labels
    write_predictions(it, tmp_path / "tags.parquet")
    table = pq.read_table(tmp_path / "tags.parquet")
    columns = [f"shown:{name}" for name in NAMES]
    assert [name for name in table.column_names if "shown" in name] == columns
    assert {table.schema.field(name).type for name in columns} == {pa.bool_()}
    assert [table[name][0].as_py() for name in columns] == it.shown[0].tolist()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_a_shown_label_and_without_an_image_the_file_is_read(tmp_path, suffix):
    for it in (replace(with_shown(), shown=np.zeros((3, 4), bool)), with_shown(0)):
        write_predictions(it, tmp_path / f"tags{suffix}")
        found = read_predictions(tmp_path / f"tags{suffix}")
        assert found.shown is None if suffix == ".jsonl" and not len(it) else not found.shown.any()


SHOWN_LINE = LINE.replace("}]}", '}], "shown": ["dog"]}')


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SHOWN_LINE.replace('["dog"]', '["cat"]'), "shown that is not a list of the labels"),
        (SHOWN_LINE.replace('["dog"]', '"dog"'), "shown that is not a list of the labels"),
        (SHOWN_LINE.replace('["dog"]', "[1]"), "shown that is not a list of the labels"),
        (SHOWN_LINE.replace('["dog"]', '["dog", "dog"]'), "shown that contains a label twice"),
        (f"{SHOWN_LINE}\n{LINE}", "shown in only some of the lines"),
        ('path,score:dog,shown,skipped\na,1,"[""cat""]",\n', "shown that is not a list of the"),
        ("path,score:dog,shown,skipped\na,1,dog,\n", "Expecting value"),
        ("path,score:dog,shown,skipped\na,1,,\n", "Expecting value"),
    ],
)
def test_a_damaged_selection_in_text_is_refused(tmp_path, text, reason):
    path = tmp_path / ("tags.jsonl" if text.startswith("{") else "tags.csv")
    path.write_text(text)
    with pytest.raises(DataError, match=reason):
        read_predictions(path)


def test_a_damaged_selection_in_parquet_is_refused(tmp_path):
    write_predictions(with_shown(), tmp_path / "tags.parquet")
    table = pq.read_table(tmp_path / "tags.parquet")
    place = table.column_names.index("shown:dog")
    for column in (pa.array([1, 0, 1]), pa.array([True, None, True])):
        pq.write_table(table.set_column(place, "shown:dog", column), tmp_path / "x.parquet")
        with pytest.raises(DataError, match="shown:dog with values that are not true or false"):
            read_predictions(tmp_path / "x.parquet")
    pq.write_table(table.drop_columns(["shown:dog"]), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="shown:dog"):
        read_predictions(tmp_path / "x.parquet")


def test_the_thresholds_of_the_labels_are_read_from_parquet(tmp_path):
    it = replace(with_shown(), thresholds=np.array([0.25, 0.5, 1.0, 0.0]))
    for suffix in SUFFIXES:
        write_predictions(it, tmp_path / f"tags{suffix}")
    found = read_predictions(tmp_path / "tags.parquet").thresholds
    assert found.tolist() == [0.25, 0.5, 1.0, 0.0]
    assert read_predictions(tmp_path / "tags.csv").thresholds is None
    assert read_predictions(tmp_path / "tags.jsonl").thresholds is None


@pytest.mark.parametrize("thresholds", [[0.5, 0.5, 0.5, 2], [0.5], [0.5, 0.5, 0.5, None], 1, ["a"]])
def test_damaged_thresholds_in_parquet_are_refused(tmp_path, thresholds):
    write_predictions(with_shown(), tmp_path / "tags.parquet")
    table = pq.read_table(tmp_path / "tags.parquet")
    metadata = json.loads(table.schema.metadata[b"surelabel"]) | {"thresholds": thresholds}
    table = table.replace_schema_metadata({b"surelabel": json.dumps(metadata)})
    pq.write_table(table, tmp_path / "tags.parquet")
    with pytest.raises(DataError, match=r"must contain predictions of surelabel; got: "):
        read_predictions(tmp_path / "tags.parquet")
