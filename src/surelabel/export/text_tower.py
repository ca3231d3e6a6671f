"""Export the text tower of an encoder to an ONNX file, with the files of its tokenizer."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from open_clip.tokenizer import HFTokenizer, SimpleTokenizer
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.encoders.engines.conversion import exported_program
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.export import onnx_file
from surelabel.export.file_writing import (
    check_export_packages,
    check_export_paths,
    check_export_size,
    write_checked_export,
)
from surelabel.export.interface import GraphProgram, GraphRuntime
from surelabel.export.metadata import license_as_metadata
from surelabel.export.verification import BATCH_SIZES, CheckBatch, ExportCheck, check_runtimes
from surelabel.files import atomic_folder
from surelabel.records.export_metadata import METADATA_FORMAT, METADATA_KEY

SUFFIX = ".onnx"
TOKENIZER_SUFFIX = ".tokenizer"  # of the folder beside the file
SETTINGS_FILE = "tokenizer_settings.json"
INPUT_NAMES = ("token_ids", "attention_mask")
OUTPUT_NAME = "vectors"
PROMPT = "a photo of a {}."
TRANSFORMERS_INPUTS = ("input_ids", "attention_mask")


@dataclass(frozen=True)
class TextTowerReport:
    """Result of the export of a text tower.

    Attributes:
        path: Path of the ONNX file.
        tokenizer_folder: Folder with the files of the tokenizer.
        n_bytes: Size of the ONNX file in bytes.
        input_names: Names of the inputs.
        check: Result of the check of prompts.
    """

    path: str
    tokenizer_folder: str
    n_bytes: int
    input_names: tuple[str, ...]
    check: ExportCheck


class TextTowerGraph(nn.Module):
    """Compute unit vectors ``(n, d)`` of texts from their token ids ``(n, k)``.

    Args:
        encoder: Encoder with a text tower.

    Attributes:
        input_names: Names of the inputs: ``token_ids`` and, for some models of transformers, also
            ``attention_mask``.
        context_length: Number of tokens ``k`` of each text, with padding.

    Raises:
        ConfigError: If the encoder has no text tower, or is not on the CPU.
    """

    model: Any
    tokenizer: Any

    def __init__(self, encoder: Encoder):
        super().__init__()
        model: Any = getattr(encoder, "model", None)
        tokenizer: Any = getattr(encoder, "tokenizer", None)
        if not isinstance(model, nn.Module) or tokenizer is None:
            raise ConfigError(
                f"A text tower can be exported only for encoders of images and texts; "
                f"{encoder.name} has no text tower. Remove --text-tower."
            )
        if encoder.device.type != "cpu":
            raise ConfigError(
                f"The encoder must be on the CPU for an export; got {encoder.device}. Give "
                "--device cpu."
            )
        self.model, self.tokenizer = model, tokenizer
        self.is_open_clip = isinstance(tokenizer, SimpleTokenizer | HFTokenizer)
        if self.is_open_clip:
            self.context_length = int(tokenizer.context_length)
        else:
            self.context_length = int(self.model.config.text_config.max_position_embeddings)
        self.input_names = INPUT_NAMES[: len(self.tokenize(["a"]))]
        self.eval()

    def forward(self, token_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return unit vectors ``(n, d)`` of token ids ``(n, k)``."""
        if self.is_open_clip:
            vectors: Tensor = self.model.encode_text(token_ids, normalize=True)
            return vectors
        inputs = {"input_ids": token_ids}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        return F.normalize(self.model.get_text_features(**inputs).pooler_output, dim=-1)

    def tokenize(self, texts: Sequence[str]) -> tuple[Tensor, ...]:
        """Return the inputs of the graph for n texts, each ``(n, k)``, int64."""
        if self.is_open_clip:
            return (self.tokenizer(list(texts)),)
        tokens = self.tokenizer(
            list(texts),
            padding="max_length",
            truncation=True,
            max_length=self.context_length,
            return_tensors="pt",
        )
        return tuple(tokens[key] for key in TRANSFORMERS_INPUTS if key in tokens)


def export_text_tower(
    encoder: Encoder, path: str | Path, names: Sequence[str], *, overwrite: bool = False
) -> TextTowerReport:
    """Write the text tower of an encoder to an ONNX file, with the files of its tokenizer.

    The folder ``FILE.tokenizer`` beside the file contains the tokenizer. The file is checked with
    onnxruntime and OpenVINO on prompts of the labels.

    Args:
        encoder: Encoder with a text tower on the CPU.
        path: Path of the file, with the suffix ``.onnx``.
        names: Labels for the prompts of the check, at least one.
        overwrite: Whether an existing file and folder are replaced.

    Raises:
        ConfigError: If the encoder has no text tower that can be exported.
        InputError: If the suffix is not ``.onnx``.
        DataError: If the file or the folder exists or cannot be written, or if the check fails.
        MissingPart: If a package is not installed.
    """
    file = Path(path)
    check_text_tower_export(encoder, file, overwrite=overwrite)
    tower = TextTowerGraph(encoder)
    prompts = [PROMPT.format(name) for name in names]
    example = tower.tokenize((prompts * 2)[:2])
    program = GraphProgram(exported_program(tower, example), tower.input_names, OUTPUT_NAME)
    check_export_size(program.n_bytes, SUFFIX, onnx_file)

    def check(runtimes: Mapping[str, GraphRuntime]) -> ExportCheck:
        batches = (
            CheckBatch(tower.tokenize(prompts[start : start + size]), prompts[start : start + size])
            for size in BATCH_SIZES
            for start in range(0, len(prompts), size)
        )
        return check_runtimes(tower, runtimes, batches, source=str(file), output=OUTPUT_NAME)

    metadata = {METADATA_KEY: json.dumps(_text_tower_metadata(encoder, tower))}
    folder = tokenizer_folder_of_text_tower(file)
    with atomic_folder(folder) as new_folder:
        _write_tokenizer(tower, new_folder)
        result = write_checked_export(program, file, onnx_file, metadata, check)
    return TextTowerReport(str(file), str(folder), file.stat().st_size, tower.input_names, result)


def tokenizer_folder_of_text_tower(file: Path) -> Path:
    """Return the path of the folder with the tokenizer of a text tower."""
    return file.with_suffix(TOKENIZER_SUFFIX)


def check_text_tower_export(encoder: Encoder, file: Path, *, overwrite: bool) -> None:
    """Check that a text tower can be exported, and that nothing is replaced without a request.

    Args:
        encoder: Encoder with a text tower.
        file: Path of the file.
        overwrite: Whether an existing file and folder are replaced.

    Raises:
        ConfigError: If the encoder has no text tower.
        MissingPart: If a package is not installed.
        InputError: If the suffix is not ``.onnx``.
        DataError: If the file or its folder exists, and ``overwrite`` is False. Also if the folder
            contains other files than those of a tokenizer.
    """
    if file.suffix.lower() != SUFFIX:
        raise InputError(f"The file of a text tower must have the suffix {SUFFIX}; got {file}.")
    TextTowerGraph(encoder)
    check_export_packages(SUFFIX, onnx_file)
    check_export_paths(file, onnx_file, overwrite=overwrite)
    folder = tokenizer_folder_of_text_tower(file)
    if not os.path.lexists(folder):
        return
    if not overwrite:
        raise DataError(
            f"{folder} exists. Give another path, or add --overwrite (in Python overwrite=True) "
            "to replace the folder."
        )
    if not (folder / SETTINGS_FILE).is_file():
        raise DataError(
            f"{folder} must be a folder of a tokenizer with {SETTINGS_FILE} to be replaced. Give "
            "another path, or remove it."
        )


def _text_tower_metadata(encoder: Encoder, tower: TextTowerGraph) -> dict[str, Any]:
    return {
        "format": METADATA_FORMAT,
        "kind": "text_tower",
        "encoder": encoder.name,
        "license": license_as_metadata(encoder.license),
        "fingerprint": encoder.fingerprint,
        "input_names": list(tower.input_names),
        "output_name": OUTPUT_NAME,
        "context_length": tower.context_length,
        "width": encoder.width,
        "scale": encoder.scale,
        "logit_bias": encoder.logit_bias,
        "version": version("surelabel"),
    }


def _write_tokenizer(tower: TextTowerGraph, folder: Path) -> None:
    """Write the files of a tokenizer, and its settings."""
    tokenizer = tower.tokenizer
    settings: dict[str, Any] = {"context_length": tower.context_length}
    if isinstance(tokenizer, SimpleTokenizer):
        merges = sorted(tokenizer.bpe_ranks, key=tokenizer.bpe_ranks.__getitem__)
        lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
        (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        vocabulary = json.dumps(tokenizer.encoder, ensure_ascii=False)
        (folder / "vocab.json").write_text(vocabulary, encoding="utf-8")
        settings |= {
            "kind": "clip_bpe",
            "vocabulary": "vocab.json",
            "merges": "merges.txt",
            "cleaning": "ftfy.fix_text, html.unescape twice, collapse white space",
            "lower_case": True,
            "pattern": tokenizer.pat.pattern,
            "end_of_word": "</w>",
            "start_id": tokenizer.sot_token_id,
            "end_id": tokenizer.eot_token_id,
            "padding_id": 0,
        }
    else:
        wrapped = tokenizer.tokenizer if isinstance(tokenizer, HFTokenizer) else tokenizer
        wrapped.save_pretrained(folder)
        settings |= {
            "kind": "transformers",
            "padding": "max_length",
            "truncation": True,
            "inputs": list(tower.input_names),
        }
        if isinstance(tokenizer, HFTokenizer):
            settings |= {
                "cleaning": tokenizer.clean_fn.__name__.removeprefix("_clean_"),
                "removes_separator": tokenizer.strip_sep_token,
            }
    text = json.dumps(settings, indent=2, ensure_ascii=False)
    (folder / SETTINGS_FILE).write_text(text + "\n", encoding="utf-8")
