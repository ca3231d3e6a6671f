"""Load tokenizers and text towers of the package transformers without running checkpoint code.

transformers can execute Python files that a configuration names. Therefore only the configuration
keys in this file reach transformers, and ``trust_remote_code`` is always False.
"""

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from open_clip.hf_configs import arch_dict
from open_clip.tokenizer import DEFAULT_CONTEXT_LENGTH, HFTokenizer

from surelabel.encoders.loading.encoder_manifest import read_encoder_json_object
from surelabel.encoders.loading.hub_files import cached_hub_file
from surelabel.encoders.open_clip.architecture_settings import MAX_LAYERS, MAX_VOCABULARY
from surelabel.errors import ConfigError, DataError, MissingPart
from surelabel.file_readers import check_regular_file, quote_of_file

HUB_TEXT_CONFIG_FILE = "config.json"
TEXT_CONFIG_FILE = "text_tower_config.json"  # config.json of hf_model_name in a saved encoder
TOKENIZER_SETTINGS_FILES = ("tokenizer_config.json", "special_tokens_map.json")
VOCABULARY_FILES = (
    "tokenizer.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
)
SENTENCEPIECE_FILES = ("sentencepiece.bpe.model", "spiece.model", "tokenizer.model")
TOKENIZER_FILES = (
    *VOCABULARY_FILES,
    *TOKENIZER_SETTINGS_FILES,
    HUB_TEXT_CONFIG_FILE,  # its model_type selects the class of an old tokenizer
    "added_tokens.json",
    "merges.txt",
)
# Settings of BERT, RoBERTa, XLM-RoBERTa, mT5 and M2M-100.
TEXT_CONFIG_WORDS = """
activation_dropout activation_function attention_dropout attention_probs_dropout_prob
bos_token_id classifier_dropout d_ff d_kv d_model decoder_attention_heads decoder_ffn_dim
decoder_layerdrop decoder_layers decoder_start_token_id dense_act_fn dropout dropout_rate
encoder_attention_heads encoder_ffn_dim encoder_layerdrop encoder_layers eos_token_id
feed_forward_proj hidden_act hidden_dropout_prob hidden_size init_std initializer_factor
initializer_range intermediate_size is_encoder_decoder is_gated_act layer_norm_eps
layer_norm_epsilon max_position_embeddings model_type num_attention_heads num_decoder_layers
num_heads num_hidden_layers num_layers pad_token_id position_embedding_type
relative_attention_max_distance relative_attention_num_buckets scale_embedding
tie_word_embeddings type_vocab_size vocab_size
"""
TEXT_CONFIG_KEYS = frozenset(TEXT_CONFIG_WORDS.split())
# Settings of tokenizers, in addition to the settings that end with _token.
TOKENIZER_CONFIG_WORDS = """
add_bos_token add_dummy_prefix_space add_eos_token add_prefix_space added_tokens_decoder
additional_special_tokens backend chat_template clean_up_tokenization_spaces do_basic_tokenize
do_lower_case errors extra_ids extra_special_tokens from_slow is_local keep_accents language
legacy legacy_behaviour local_files_only max_len max_length model_input_names model_max_length
model_specific_special_tokens name_or_path never_split pad_to_multiple_of pad_token_type_id
padding_side processor_class remove_space spaces_between_special_tokens special_tokens_map_file
split_special_tokens src_lang stride strip_accents tgt_lang tokenize_chinese_chars
token_type_ids_pattern tokenizer_class trim_offsets truncation_side truncation_strategy use_fast
vocab_size wordpieces_prefix
"""
TOKENIZER_CONFIG_KEYS = frozenset(TOKENIZER_CONFIG_WORDS.split())


def hugging_face_tokenizer(folder: Path, text_cfg: Mapping[str, Any]) -> HFTokenizer:
    """Load a tokenizer of transformers from a folder, without a network connection.

    Args:
        folder: Folder with files of ``TOKENIZER_FILES``.
        text_cfg: Checked settings of the text tower, the ``text_cfg`` of open_clip.

    Raises:
        DataError: If a file is not a regular file, or a JSON file with settings is damaged.
        ConfigError: If ``tokenizer_config.json`` or ``special_tokens_map.json`` contains a key that
            is not accepted; see :func:`check_hugging_face_tokenizer_folder`.
    """
    check_hugging_face_tokenizer_folder(folder)
    return HFTokenizer(
        str(folder),
        context_length=text_cfg.get("context_length", DEFAULT_CONTEXT_LENGTH),
        tokenizer_mode=text_cfg.get("tokenizer_mode"),
        **{
            **(text_cfg.get("tokenizer_kwargs") or {}),
            "trust_remote_code": False,
            "local_files_only": True,
        },
    )


@contextmanager
def hugging_face_text_config_folder(file: Path) -> Iterator[str]:
    """Yield a temporary folder with the accepted settings of a text tower as ``config.json``.

    Only the keys in ``TEXT_CONFIG_KEYS`` are written. Other keys, such as ``auto_map``, are
    dropped, because they do not describe the architecture.

    Args:
        file: Configuration of the text tower, the ``config.json`` of a model of transformers.

    Raises:
        DataError: If the file is missing or damaged.
        ConfigError: If open_clip does not support the kind of model, or a value has an invalid
            type or is out of range.
    """
    settings = {
        key: value
        for key, value in read_encoder_json_object(file).items()
        if key in TEXT_CONFIG_KEYS and value is not None
    }
    if settings.get("model_type") not in [*arch_dict]:
        raise ConfigError(
            f"model_type in {file} must be one of {', '.join(arch_dict)}; got "
            f"{quote_of_file(settings.get('model_type'))}. Use a model with another text tower."
        )
    for key, value in settings.items():
        if not _is_accepted_text_config_value(key, value):
            raise ConfigError(
                f"{key} in {file} must be a word, or a number from -1 to "
                f"{_largest_text_config_number(key)}; got {quote_of_file(value)}. Copy the file "
                "again."
            )
    with TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        yield folder


def local_text_config(name: str, folder: Path, text_cfg: Mapping[str, Any]) -> Path | None:
    """Return the configuration of a text tower of transformers, without a network connection.

    Args:
        name: Model name of the encoder, for error messages.
        folder: Folder of the checkpoint, which can contain the file ``text_tower_config.json``.
        text_cfg: Checked settings of the text tower, the ``text_cfg`` of open_clip.

    Returns:
        The path of the file. If the text tower is not a model of transformers, None is returned.

    Raises:
        DataError: If neither the folder nor the cache of the hub contains the configuration.
    """
    repository, file = text_cfg.get("hf_model_name"), folder / TEXT_CONFIG_FILE
    if not repository or file.exists():
        return file if repository else None
    cached = cached_hub_file(repository, [HUB_TEXT_CONFIG_FILE])
    if cached is None:
        raise DataError(
            f"{name} must contain {TEXT_CONFIG_FILE}, the configuration of the text tower; the "
            f"file is missing. Copy {HUB_TEXT_CONFIG_FILE} of {repository} from the hub to {file}."
        )
    return cached


def check_hugging_face_package(name: str, text_cfg: Mapping[str, Any]) -> None:
    """Check that transformers is installed if a text tower or its tokenizer needs the package.

    Args:
        name: Model name of the encoder, for the error message.
        text_cfg: Checked settings of the text tower, the ``text_cfg`` of open_clip.

    Raises:
        MissingPart: If transformers is needed and not installed.
    """
    is_needed = text_cfg.get("hf_model_name") or text_cfg.get("hf_tokenizer_name")
    if is_needed and importlib.util.find_spec("transformers") is None:
        raise MissingPart(
            f"{name} needs the package transformers, which is not installed. Run pip install "
            "'surelabel[texts]'."
        )


def check_sentencepiece_package(name: str, folder: Path) -> None:
    """Check that sentencepiece is installed if a tokenizer has no ``tokenizer.json``.

    Args:
        name: Model name of the encoder, for the error message.
        folder: Folder of the tokenizer.

    Raises:
        MissingPart: If the only vocabulary is a SentencePiece model, and sentencepiece is not
            installed.
    """
    files = [file for file in SENTENCEPIECE_FILES if (folder / file).exists()]
    is_needed = files and not (folder / "tokenizer.json").exists()
    if is_needed and importlib.util.find_spec("sentencepiece") is None:
        raise MissingPart(
            f"The tokenizer {files[0]} of {name} needs the package sentencepiece, which is not "
            "installed. Run pip install sentencepiece."
        )


def _is_accepted_text_config_value(key: str, value: Any) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"[A-Za-z0-9_-]{1,40}", value) is not None
    return isinstance(value, int | float) and -1 <= value <= _largest_text_config_number(key)


def _largest_text_config_number(key: str) -> int:
    return MAX_LAYERS if "layers" in key else MAX_VOCABULARY


def check_hugging_face_tokenizer_folder(folder: Path) -> None:
    """Check the files of a tokenizer, and the keys of its settings.

    A key is accepted if it is in ``TOKENIZER_CONFIG_KEYS``, ends with ``_token``, or has an empty
    or false value.

    Raises:
        DataError: If an entry of the folder is neither a regular file nor a folder, or a JSON file
            with settings is damaged.
        ConfigError: If a key is not accepted.
    """
    for file in sorted([*folder.iterdir(), *folder.glob("additional_chat_templates/*")]):
        if not file.is_dir():
            check_regular_file(file)
    for name in TOKENIZER_SETTINGS_FILES:
        file = folder / name
        settings = read_encoder_json_object(file) if file.exists() else {}
        for key, value in settings.items():
            if value and key not in TOKENIZER_CONFIG_KEYS and not key.endswith("_token"):
                raise ConfigError(
                    f"{file} must not contain {quote_of_file(key)}; this key is unknown, or can "
                    "refer to code or files outside the folder. Remove the key, or convert the "
                    "tokenizer to tokenizer.json."
                )
