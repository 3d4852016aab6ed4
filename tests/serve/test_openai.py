"""The OpenAI API of a server, by the `openai` client: texts are those of the library, whole or streamed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

import unrolled

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"


@pytest.fixture
def api(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=30) as found:
        yield found


@pytest.fixture(scope="module")
def run() -> unrolled.Run:
    return unrolled.load(RUNS / "next-token")


def test_models_are_listed(api: openai.OpenAI) -> None:
    names = {model.id for model in api.models.list()}
    assert {"next-token", "classify", "forecast"} <= names
    assert api.models.retrieve("next-token").id == "next-token"
    with pytest.raises(openai.NotFoundError, match="did you mean 'next-token'"):
        api.models.retrieve("next-tokne")


def test_a_completion_is_what_the_library_generates(api: openai.OpenAI, run: unrolled.Run) -> None:
    own = run.generate("the ", max_tokens=12, seed=5, n=3, top_p=0.9, temperature=0.8)
    made = api.completions.create(
        model="next-token", prompt="the ", max_tokens=12, seed=5, n=3, top_p=0.9, temperature=0.8
    )
    assert sorted(choice.text for choice in made.choices) == sorted(each["text"] for each in own)
    assert made.usage is not None and made.usage.completion_tokens == sum(each["tokens"] for each in own)
    assert [choice.finish_reason for choice in made.choices].count("stop") == sum(each["finished"] for each in own)


def test_greedy_is_the_same_each_time_and_without_a_seed_samples_differ(api: openai.OpenAI) -> None:
    greedy = {
        api.completions.create(model="next-token", prompt="a", max_tokens=9, temperature=0).choices[0].text
        for _ in range(3)
    }
    drawn = {api.completions.create(model="next-token", prompt="a", max_tokens=30).choices[0].text for _ in range(8)}
    assert len(greedy) == 1 and len(drawn) > 1


def test_prompts_may_be_tokens_and_lists(api: openai.OpenAI, run: unrolled.Run) -> None:
    ids = [int(token) for token in run.task.codec.encode("the ")]
    asked = {"model": "next-token", "max_tokens": 8, "seed": 3}
    (text,) = api.completions.create(prompt="the ", **asked).choices
    (tokens,) = api.completions.create(prompt=ids, **asked).choices
    both = api.completions.create(prompt=["a", "the "], **asked).choices
    assert text.text == tokens.text == both[1].text
    with pytest.raises(openai.BadRequestError, match="invalid token 99999"):
        api.completions.create(prompt=[99999], **asked)


def test_a_stream_is_the_same_text_with_usage_at_its_end(api: openai.OpenAI) -> None:
    asked = {"model": "next-token", "prompt": "the ", "max_tokens": 40, "seed": 8, "n": 2}
    whole = api.completions.create(**asked)
    texts, usage, reasons = ["", ""], None, {}
    for event in api.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        for choice in event.choices:
            texts[choice.index] += choice.text
            reasons[choice.index] = choice.finish_reason
        usage = event.usage
    assert texts == [choice.text for choice in whole.choices]
    assert usage == whole.usage
    assert reasons == {choice.index: choice.finish_reason for choice in whole.choices}


def test_texts_stop_before_a_stop(api: openai.OpenAI) -> None:
    asked = {"model": "next-token", "prompt": "", "max_tokens": 60, "seed": 2, "temperature": 1.5}
    text = next(
        found
        for seed in range(50)
        if len(found := api.completions.create(**{**asked, "seed": seed}).choices[0].text) > 5
        and asked.update(seed=seed) is None
    )
    word = text[2:4]
    cut = api.completions.create(**asked, stop=[word, "@@"])
    assert cut.choices[0].text == text[: text.index(word)] and cut.choices[0].finish_reason == "stop"
    streamed = "".join(e.choices[0].text for e in api.completions.create(**asked, stop=word, stream=True) if e.choices)
    assert streamed == cut.choices[0].text


def test_echo_with_logprobs_scores_a_text(api: openai.OpenAI, run: unrolled.Run) -> None:
    (choice,) = api.completions.create(
        model="next-token", prompt="calce", max_tokens=1, echo=True, logprobs=2, seed=0
    ).choices
    told = choice.logprobs
    assert told is not None and told.tokens is not None and told.token_logprobs is not None
    assert "".join(told.tokens[:5]) == "calce" and told.text_offset == [*range(len(told.tokens))]
    session = run.session()
    own = [tick["logp"] for tick in session.push("calce")]
    assert told.token_logprobs[:5] == pytest.approx(own, abs=1e-5)
    assert all(len(top) <= 2 for top in told.top_logprobs or [] if top)
    assert all(math.isfinite(p) for p in told.token_logprobs)


def test_embeddings_are_those_of_the_verb(api: openai.OpenAI, run: unrolled.Run) -> None:
    made = api.embeddings.create(model="next-token", input=["the ", "calce"])
    own = run.embed(["the ", "calce"])
    for each, vector in zip(made.data, own):
        assert each.embedding == pytest.approx(list(vector), abs=1e-5)
    with pytest.raises(openai.BadRequestError, match="makes no vectors"):
        api.embeddings.create(model="forecast", input="a")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"max_tokens": 100_000}, "at most 2048"),
        ({"max_tokens": 0}, "max_tokens = 0"),
        ({"temperature": -1}, "temperature = -1"),
        ({"n": 1000}, "n = 1000"),
        ({"prompt": []}, "prompt"),
        ({"prompt": True}, "invalid value prompt = True: expected text or a list, or none"),
        ({"prompt": ["a", 1]}, "expected text or a list, or none"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"extra_body": {"bogus": 1}}, "there is no setting 'bogus'"),
        ({"prompt": "a" * 300_000}, "characters"),
        ({"presence_penalty": 1.0}, "presence_penalty"),
        ({"model": "classify"}, "do not continue them"),
    ],
)
def test_a_wrong_request_is_answered_with_a_sentence(api: openai.OpenAI, wrong: dict, words: str) -> None:
    with pytest.raises(openai.BadRequestError, match=words):
        api.completions.create(**{"model": "next-token", "prompt": "a", **wrong})
    with pytest.raises(openai.BadRequestError, match=words):
        list(api.completions.create(**{"model": "next-token", "prompt": "a", "stream": True, **wrong}))
