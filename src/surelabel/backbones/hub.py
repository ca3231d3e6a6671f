"""Files of the Hugging Face hub: cached, downloaded, or one sentence that says why not."""

import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError

from surelabel.errors import DataError

SECONDS = 5.0  # to reach the hub at all, before any file is asked for
# What the hub's client raises: OSError, and the errors of its transport, whichever that is.
BROKEN: tuple[type[Exception], ...] = (
    OSError,
    HfHubHTTPError.__bases__[0],
    EntryNotFoundError,
    HFValidationError,
)


def hub_file(repository: str, files: Sequence[str], *, asked_for: str) -> Path:
    """The first of ``files`` that the repository has, on this disk.

    Args:
        repository: ``owner/name`` on the hub.
        files: Names of files, the best first.
        asked_for: The backbone as the user wrote it, for messages.

    Raises:
        DataError: it is not on this disk and cannot be downloaded.
    """
    try:
        for file in files:
            cached = try_to_load_from_cache(repository, file)
            if isinstance(cached, str):
                return Path(cached)
        reason = _unreachable()
        if reason is None:
            return _downloaded(repository, files)
    except BROKEN as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    raise DataError(
        f"{asked_for} needs the file {files[0]} of {repository} from {constants.ENDPOINT}, which "
        f"cannot be downloaded ({reason.rstrip('.')}). Where there is a network, put the files "
        "open_clip_config.json and open_clip_model.safetensors of that repository into one "
        "folder, bring it here and use local-dir:FOLDER."
    )


def _downloaded(repository: str, files: Sequence[str]) -> Path:
    for file in files[:-1]:
        try:
            return Path(hf_hub_download(repository, file))
        except EntryNotFoundError:
            continue
    return Path(hf_hub_download(repository, files[-1]))


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
