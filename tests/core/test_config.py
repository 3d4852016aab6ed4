"""Configs survive JSON, TOML and key=value unchanged, and a mistake is answered with what would be right."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, field_serializer, model_validator

from unrolled.core.config import Config, merge, other_words, parse_assignments, read_toml
from unrolled.core.errors import UsageError
from unrolled.testing import LawBroken, check_config


class Inner(Config):
    width: int = Field(4, ge=1, le=512)
    """Units."""
    rate: float = Field(0.1, gt=0, lt=1)
    label: str | None = None


class Outer(Config):
    name: str = "a"
    kind: Literal["tanh", "relu"] = "tanh"
    deep: bool = False
    sizes: tuple[int, ...] = (1, 2)
    inner: Inner = Inner()
    extra: dict[str, float] = {}
    optional: Inner | None = None
    parts: list[Inner] = []
    most: Annotated[float, Field(gt=0)] | None = 3.0
    choice: Literal["a", "b"] | None = None
    column: Annotated[str, Field(coerce_numbers_to_str=True)] | None = None

    @model_validator(mode="after")
    def _fits(self):
        if self.deep and self.inner.width < 2:
            raise ValueError("deep needs inner.width of at least 2")
        return self


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
INNERS = st.builds(
    Inner,
    width=st.integers(1, 512),
    rate=st.floats(0, 1, exclude_min=True, exclude_max=True),
    label=st.none() | TEXT,
)
OUTERS = st.builds(
    Outer,
    name=TEXT,
    kind=st.sampled_from(["tanh", "relu"]),
    sizes=st.lists(st.integers(), max_size=3).map(tuple),
    inner=INNERS,
    extra=st.dictionaries(TEXT.filter(lambda key: "." not in key), NUMBERS, max_size=3),
    optional=st.none() | INNERS,
    parts=st.lists(INNERS, max_size=2),
)


@given(OUTERS)
def test_json_gives_back_the_same(config):
    assert Outer.from_json(config.to_json()) == config


@given(OUTERS)
def test_toml_gives_back_the_same(config):
    assert Outer.parse(tomllib.loads(config.to_toml())) == config


@given(INNERS)
def test_key_value_gives_back_the_same(config):
    words = [f"{key}={json.dumps(value)}" for key, value in config.model_dump(mode="json").items()]
    assert Inner.parse(parse_assignments(words)) == config


@given(OUTERS)
def test_the_public_check_agrees(config):
    assume(all("=" not in key and key.strip() == key and key for key in config.extra))  # else it is no key=value word
    assert check_config(config) == ["config"]


def test_toml_file(tmp_path):
    file = tmp_path / "recipe.toml"
    config = Outer(name='a "quoted"\n\x7f ü', sizes=(), inner=Inner(rate=1e-7), extra={"with space": 1.5})
    file.write_text(config.to_toml(), encoding="utf-8")
    assert Outer.parse(read_toml(file)) == config


def test_frozen():
    with pytest.raises(ValidationError):
        Outer().name = "b"


def test_updated_reaches_into_nested_configs():
    config = Outer().updated({"inner.width": 7, "name": "b", "optional.width": 3})
    assert (config.inner.width, config.inner.rate, config.name) == (7, 0.1, "b")
    assert config.optional == Inner(width=3)
    assert Outer().inner.width == 4


def test_updated_keeps_the_values_that_the_instance_has():
    own = Outer.parse({"inner": {"width": 9, "rate": 0.5}, "name": "own"})
    assert own.updated({"inner.rate": 0.25}) == Outer.parse({"inner": {"width": 9, "rate": 0.25}, "name": "own"})
    assert own.updated({}) == own


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"nmae": 1}, "there is no setting 'nmae'; did you mean 'name'?"),
        ({"inner": {"widht": 1}}, "there is no setting 'inner.widht'; did you mean 'width'?"),
        ({"optional": {"widht": 1}}, "there is no setting 'optional.widht'; did you mean 'width'?"),
        ({"zzz": 1}, "there is no setting 'zzz'; known: choice, column, deep"),
        ({"kind": "tan"}, "invalid value kind = 'tan': expected one of tanh, relu"),
        ({"inner": {"width": 0}}, "invalid value inner.width = 0: expected an integer >= 1 and <= 512"),
        ({"inner": {"rate": 1}}, "invalid value inner.rate = 1: expected a number > 0 and < 1"),
        ({"inner": {"rate": float("nan")}}, "invalid value inner.rate = nan"),
        ({"inner": {"width": "many"}}, "invalid value inner.width = 'many': expected an integer"),
        ({"inner": {"label": 3}}, "invalid value inner.label = 3: expected text, or none"),
        ({"most": -1}, "invalid value most = -1: expected a number > 0, or none"),
        ({"choice": "c"}, "invalid value choice = 'c': expected one of a, b, or none"),
        ({"deep": "perhaps"}, "invalid value deep = 'perhaps': expected true or false"),
        ({"deep": True, "inner": {"width": 1}}, "Outer: deep needs inner.width of at least 2"),
    ],
)
def test_mistakes_are_explained(values, sentence):
    with pytest.raises(UsageError) as caught:
        Outer.parse(values)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_the_word_none_is_no_value_where_there_may_be_none_and_text_elsewhere():
    config = Outer.parse({"most": "none", "choice": "none", "name": "none", "column": "none"})
    assert (config.most, config.choice, config.name, config.column) == (None, None, "none", "none")
    with pytest.raises(UsageError, match="invalid value kind = 'none'"):
        Outer.parse({"kind": "none"})


def test_a_word_of_another_library_means_the_first_setting_that_has_it():
    assert other_words(["d_model", "d_state"])["hidden_size"] == "d_state"
    assert other_words(["d_model"])["hidden_size"] == "d_model"


def test_missing_setting():
    class Needs(Config):
        size: int

    with pytest.raises(UsageError, match=r"^setting 'size' is missing$"):
        Needs.parse({})


def test_updated_explains_too():
    with pytest.raises(UsageError, match="did you mean 'width'"):
        Outer().updated({"inner.widht": 3})
    with pytest.raises(UsageError, match="'name' is a single value"):
        Outer().updated({"name.first": 3})


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("a=4e-3", 0.004),
        ("a=256", 256),
        ("a=char", "char"),
        ("a=true", True),
        ("a=null", None),
        ("a=[1, 2]", [1, 2]),
        ('a="256"', "256"),
        ("a=", ""),
        ("a=x=y", "x=y"),
        (" a =1", 1),
        ("a={broken", "{broken"),
    ],
)
def test_assignments(word, value):
    assert parse_assignments([word]) == {"a": value}


@pytest.mark.parametrize("word", ["a", "=3", " =3", ""])
def test_words_that_assign_nothing(word):
    with pytest.raises(UsageError, match="expected key=value"):
        parse_assignments([word])


def test_merge_leaves_its_arguments_alone():
    values = {"a": {"b": 1}, "c": 2}
    assert merge(values, {"a.b": 3, "a.d.e": 4}) == {"a": {"b": 3, "d": {"e": 4}}, "c": 2}
    assert values == {"a": {"b": 1}, "c": 2}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1, column 2: not JSON"),
        ("[1]", "Outer: Input should be"),
        ('{"name": 1}', "invalid value name = 1"),
    ],
)
def test_bad_json(text, words):
    with pytest.raises(UsageError, match=words):
        Outer.from_json(text)


def test_bad_recipe_files(tmp_path):
    with pytest.raises(UsageError, match="no such recipe file"):
        read_toml(tmp_path / "none.toml")
    file = tmp_path / "bad.toml"
    file.write_text("a = = 3")
    with pytest.raises(UsageError, match=r"bad\.toml: not a TOML recipe .*line 1"):
        read_toml(file)
    file.write_bytes(b"a = '\xff'")
    with pytest.raises(UsageError, match="not a TOML recipe"):
        read_toml(file)
    with pytest.raises(UsageError, match="recipe file"):
        read_toml(tmp_path)


class ForgetsInJson(Config):
    width: int = 1

    @field_serializer("width", when_used="json")
    def _always_one(self, value: int) -> int:
        return 1


class NullInRecipe(Config):
    """TOML cannot say null, so null must be the default."""

    depth: int | None = 1


class DottedKeys(Config):
    table: dict[str, int] = {}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (ForgetsInJson(width=2), "JSON"),
        (NullInRecipe(depth=None), "TOML"),
        (DottedKeys(table={"a.b": 1}), "key=value|TypeError|invalid value"),
    ],
)
def test_the_public_check_can_fail(config, words):
    with pytest.raises(LawBroken, match=words) as caught:
        check_config(config)
    assert caught.value.law == "config"


@pytest.mark.parametrize("value", ["9" * 100_000, "[" * 100_000, "x" * 100_000], ids=lambda text: text[0])
def test_a_value_of_100_kb_is_answered_shortly(value: str, tmp_path: Path) -> None:
    assert parse_assignments([f"steps={value}"]) == {"steps": value}
    with pytest.raises(UsageError) as told:
        parse_assignments([value])
    assert len(str(told.value)) < 500
    (tmp_path / "recipe.toml").write_text(f"steps = {value}\n")
    with pytest.raises(UsageError, match="recipe"):
        read_toml(tmp_path / "recipe.toml")
