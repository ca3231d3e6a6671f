"""Find files of the Hugging Face hub in the local cache, or download the files."""

import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import (
    constants,
    hf_hub_download,
    snapshot_download,
    try_to_load_from_cache,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
)

from surelabel.errors import DataError

TIMEOUT_SECONDS = 5.0  # for the first connection to the hub, before any download
# Errors of the hub client: OSError, and the base error of its HTTP library (requests or httpx).
HUB_ERRORS: tuple[type[Exception], ...] = (
    OSError,
    HfHubHTTPError.__bases__[0],
    HFValidationError,
)
OFFLINE_REMEDY = (
    "If you are offline, copy the files open_clip_config.json and open_clip_model.safetensors of "
    "the repository into a folder, and use local-dir:FOLDER."
)


def cached_or_downloaded_hub_file(
    repository: str, file: str, *, encoder_name: str, remedy: str = OFFLINE_REMEDY
) -> Path:
    """Return the local path of a hub file. If the file is not cached, it is downloaded.

    Args:
        repository: Name of the repository on the hub, ``owner/name``.
        file: Name of the file in the repository.
        encoder_name: Model name of the encoder, for error messages.
        remedy: Last sentences of the error messages. They describe how to load the encoder without
            a download.

    Raises:
        DataError: If the repository does not contain the file, or if the file is not cached and
            cannot be downloaded.
    """
    try:
        cached = try_to_load_from_cache(repository, file)
        if isinstance(cached, str):
            return Path(cached)
        reason = _hub_unreachable_reason()
        if reason is None:
            return Path(hf_hub_download(repository, file))
    except LocalEntryNotFoundError as error:
        reason = _first_line_of_hub_error(error)
    except EntryNotFoundError as error:
        raise DataError(
            f"{encoder_name} needs the file {file}, which {repository} does not contain. Pickle "
            "files (.bin, .pt) of the hub are not read, because loading a pickle can run "
            f"malicious code. Convert the weights to safetensors. {remedy}"
        ) from error
    except HUB_ERRORS as error:
        reason = _first_line_of_hub_error(error)
    raise DataError(
        f"{encoder_name} needs the file {file} of {repository} from {constants.ENDPOINT}, which "
        f"cannot be downloaded ({reason.rstrip('.')}). {remedy}"
    )


def cached_or_downloaded_hub_folder(
    repository: str, *, required: Sequence[str], optional: Sequence[str], encoder_name: str
) -> Path:
    """Return the local folder of hub files. If no required file is cached, all are downloaded.

    Args:
        repository: Name of the repository on the hub, ``owner/name``.
        required: Names of files. The repository must contain at least one of them.
        optional: Names of other files that are downloaded if the repository contains them.
        encoder_name: Model name of the encoder, for error messages.

    Raises:
        DataError: If the repository contains none of the required files, or they are not cached
            and cannot be downloaded.
    """
    cached = cached_hub_file(repository, required)
    if cached:
        return cached.parent
    reason = _hub_unreachable_reason()
    try:
        if reason is None:
            folder = Path(snapshot_download(repository, allow_patterns=[*required, *optional]))
            if any((folder / file).exists() for file in required):
                return folder
            reason = "the repository contains none of them"
    except HUB_ERRORS as error:
        reason = _first_line_of_hub_error(error)
    raise DataError(
        f"{encoder_name} needs one of the files {', '.join(required)} of {repository} from "
        f"{constants.ENDPOINT}, which cannot be downloaded ({str(reason).rstrip('.')}). "
        "If you are offline, copy the files of the tokenizer and of the checkpoint into a folder, "
        "and use local-dir:FOLDER."
    )


def cached_hub_file(repository: str, files: Sequence[str]) -> Path | None:
    """Return the path of the first file that is in the local cache of the hub, or None."""
    cached = (try_to_load_from_cache(repository, file) for file in files)
    return next((Path(path) for path in cached if isinstance(path, str)), None)


def _first_line_of_hub_error(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _hub_unreachable_reason() -> str | None:
    """Return the reason why the hub cannot be reached, or None if the hub can be reached.

    The connection times out after 5 seconds, but the hub client would retry for about a minute.
    """
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        urllib.request.urlopen(constants.ENDPOINT, timeout=TIMEOUT_SECONDS).close()
    except urllib.error.HTTPError:
        return None
    except OSError as error:
        return str(getattr(error, "reason", error))
    return None
