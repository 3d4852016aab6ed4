"""Files that belong together: all of them are written, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from unrolled.runs.storage import atomic


def write_together(files: Mapping[Path, bytes]) -> list[Path]:
    """Write each beside its place and then put all into their places."""
    drafts: list[atomic.Draft] = []
    try:
        for path, data in files.items():
            atomic.make_directory(path.parent)
            drafts.append(atomic.draft(path, [data], len(data)))
    except BaseException:
        for draft in drafts:
            atomic.discard(draft.temp)
        raise
    for draft in drafts:
        draft.commit()
    return [*files]
