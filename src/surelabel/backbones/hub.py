"""Files of the Hugging Face hub: cached, downloaded, or one sentence that says why not."""

import urllib.error
import urllib.request
from pathlib import Path

from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
)

from surelabel.errors import DataError

SECONDS = 5.0  # to reach the hub at all, before any file is asked for
# What the hub's client raises: OSError, and the errors of its transport, whichever that is.
BROKEN: tuple[type[Exception], ...] = (
    OSError,
    HfHubHTTPError.__bases__[0],
    HFValidationError,
)
WHOLE_FOLDER = (
    "Where there is a network, put the files open_clip_config.json and "
    "open_clip_model.safetensors of that repository into one folder, bring it here and use "
    "local-dir:FOLDER."
)


def hub_file(repository: str, file: str, *, asked_for: str, instead: str = WHOLE_FOLDER) -> Path:
    """A file of the repository, on this disk. What is there already costs no request.

    Args:
        repository: ``owner/name`` on the hub.
        file: Its name there.
        asked_for: The backbone as the user wrote it, for messages.
        instead: What to do where there is no network.

    Raises:
        DataError: it is not on this disk and cannot be downloaded, or there is no such file.
    """
    try:
        cached = try_to_load_from_cache(repository, file)
        if isinstance(cached, str):
            return Path(cached)
        reason = _unreachable()
        if reason is None:
            return Path(hf_hub_download(repository, file))
    except LocalEntryNotFoundError as error:
        reason = _first_line(error)
    except EntryNotFoundError as error:
        raise DataError(
            f"{asked_for} needs the file {file} of {repository}, which has none. Weights in a "
            "pickle (.bin, .pt) are not read from the hub, since reading one runs its code: "
            f"convert them to safetensors first. {instead}"
        ) from error
    except BROKEN as error:
        reason = _first_line(error)
    raise DataError(
        f"{asked_for} needs the file {file} of {repository} from {constants.ENDPOINT}, which "
        f"cannot be downloaded ({reason.rstrip('.')}). {instead}"
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _unreachable() -> str | None:
    """Why the hub cannot be reached; None when it can. Its own client would retry a minute."""
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        urllib.request.urlopen(constants.ENDPOINT, timeout=SECONDS).close()
    except urllib.error.HTTPError:
        return None
    except OSError as error:
        return str(getattr(error, "reason", error))
    return None
