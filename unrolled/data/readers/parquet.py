"""Tables in .parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import DataError
from unrolled.data.files.panics import without_panic
from unrolled.data.files.passes import changed
from unrolled.data.files.tables import FRAME_ROWS, FrameTable
from unrolled.data.files.text_file import TextFile


class ParquetTable(FrameTable):
    """A .parquet file, read through polars some rows at a time."""

    def __init__(self, file: TextFile) -> None:
        import polars

        self._file, self._state = file, file.state()
        with file.open() as handle:
            if handle.read(4) != b"PAR1":
                raise DataError(f"{file.name}: this is not a parquet file; check its suffix, or write it again")
        with self._explained():
            lazy = polars.scan_parquet(file.path, glob=False)
            self._names = lazy.collect_schema().names()
            self._rows: int = lazy.select(polars.len()).collect().item()
        super().__init__(lazy, file.name)

    def columns(self) -> list[str]:
        return self._names

    def digest(self) -> str:
        return self._file.digest()

    def _height(self) -> int:
        return self._rows

    def _slice(self, columns: Sequence[str], start: int) -> Any:
        with self._explained():
            found = self._frame.select(columns).slice(start, FRAME_ROWS).collect().iter_rows()
        if self._file.state() != self._state:
            raise changed(self.name)
        return found

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Damage may show anywhere in the file, and only when that part is read."""
        import polars

        try:
            with without_panic():
                yield
        except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
            reason = (str(error).splitlines() or ["unreadable"])[0]
            raise DataError(f"{self._file.name}: this parquet file is damaged ({reason}); write it again") from None


READER = ReaderSpec(summary="a table stored by columns", suffixes=(".parquet",), gives="table", read=ParquetTable)
