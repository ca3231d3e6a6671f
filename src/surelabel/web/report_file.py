"""Read the report of an evaluation that a server shows next to an index."""

from pathlib import Path

from surelabel.errors import DataError, InputError

REPORT_PAGE = "index.html"  # in the folder of `surelabel evaluate --report`
MAX_REPORT_BYTES = 64 * 2**20
REPORT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)  # a report contains its style and its images, and no script is executed


class ReportFile:
    """HTML file of a report. Other files of its folder are not read.

    Args:
        path: HTML file, or folder of a report that contains ``index.html``.

    Raises:
        DataError: If the file cannot be read, or has more than 64 MiB.
        InputError: If the file is not an HTML file.
    """

    def __init__(self, path: str) -> None:
        file = Path(path)
        self._file = file / REPORT_PAGE if file.is_dir() else file
        if self._file.suffix.lower() not in (".html", ".htm"):
            raise InputError(
                f"--report must be an HTML file or the folder of a report; got {path}. Give the "
                "folder that `surelabel evaluate --report` wrote."
            )
        self.read()

    def read(self) -> bytes:
        """Return the content of the file.

        Raises:
            DataError: If the file cannot be read, or has more than 64 MiB.
        """
        try:
            with self._file.open("rb") as stream:
                content = stream.read(MAX_REPORT_BYTES + 1)
        except OSError as error:
            raise DataError(
                f"The report {self._file} must be a readable file; {error.strerror}. Write it with "
                "`surelabel evaluate --report`."
            ) from error
        if len(content) > MAX_REPORT_BYTES:
            raise DataError(
                f"The report {self._file} must have at most {MAX_REPORT_BYTES // 2**20} MiB; it "
                "has more. Give another report."
            )
        return content
