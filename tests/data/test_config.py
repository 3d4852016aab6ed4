"""The data config: documented, light to import, and plain about what is not possible."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unrolled.core.config import read_toml
from unrolled.core.errors import UsageError
from unrolled.data.config import DataConfig


def test_every_field_has_a_help_text():
    assert all(field.description for field in DataConfig.model_fields.values())


def test_it_imports_no_torch_numpy_or_polars():
    program = "import sys, unrolled.data.config; print({'torch', 'numpy', 'polars'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "set()"


def test_shares():
    assert DataConfig().shares() == {"train": 0.9, "valid": 0.05, "test": 0.05}
    assert DataConfig(split="90/10").shares() == {"train": 0.9, "valid": 0.1}


@pytest.mark.parametrize("split", ["90", "90/20", "a/b", "100/0", "50/20/20/10", "110/-10", "nan/nan", ""])
def test_a_bad_split_is_explained(split):
    with pytest.raises(UsageError, match=r"is not a split.*90/5/5"):
        DataConfig.parse({"split": split})


def test_bpe_needs_room_for_all_bytes():
    with pytest.raises(UsageError, match="too small for bpe"):
        DataConfig.parse({"tokens": "bpe", "vocabulary": 100})


def test_it_survives_json_and_toml(tmp_path):
    config = DataConfig(tokens="bpe", condition="language", max_length=7)
    assert DataConfig.from_json(config.to_json()) == config
    (tmp_path / "recipe.toml").write_text(config.to_toml())
    assert DataConfig.parse(read_toml(tmp_path / "recipe.toml")) == config
