"""Documents in rows, hidden tokens and second segments: what is drawn, how often, and as a function of what."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.core.batch import TARGET
from unrolled.core.tokens import CLASS, MASK, SEPARATOR
from unrolled.data.codecs.text import ByteCodec, CharCodec, Codec
from unrolled.data.codecs.words import BpeCodec, WordCodec
from unrolled.data.config import DataConfig
from unrolled.data.documents import ASKED, DOCUMENT, all_rows, prepare_documents, sentences_of
from unrolled.data.examples import INPUT, Examples
from unrolled.data.masking import NEXT, MaskedRows, Masking, continues

WORDS = [f"w{i}" for i in range(40)]
CODEC = WordCodec([f" {word}" for word in WORDS] + [" ."], ASKED)


def documents(n: int = 30, sentences: int = 4, words: int = 5) -> list[str]:
    random = np.random.default_rng(0)
    return [" ".join(" ".join(random.choice(WORDS, words)) + " ." for _ in range(sentences)) for _ in range(n)]


@pytest.fixture(scope="module")
def section() -> Examples:
    return all_rows(documents(), CODEC, room=29)


def rows(masking: Masking, section: Examples, seed: int = 0) -> list:
    return [masking.row(section, i, np.random.default_rng((seed, i))) for i in range(section.n_examples)]


@pytest.mark.parametrize("codec", [ByteCodec(ASKED), CharCodec("ab", ASKED), WordCodec(["a"], ASKED)])
def test_a_codec_has_the_special_tokens_that_it_was_asked_for(codec: Codec) -> None:
    assert [codec.special(name) for name in (MASK, CLASS, SEPARATOR)] == [4, 5, 6]
    again = Codec.from_json(codec.to_json())
    assert again.specials == codec.specials
    assert again.with_gaps("a[MASK]").tolist() == [*codec.encode("a"), 4]
    assert codec.framed(codec.encode("a")).tolist() == [5, *codec.encode("a"), 6]


def test_a_bpe_codec_has_them_too_and_a_literal_mask_is_text() -> None:
    codec = BpeCodec.fit(["the cat sat on the mat"] * 5, DataConfig(tokens="bpe", vocabulary=300), ASKED)
    assert codec.special(MASK) == 4
    assert 4 not in codec.encode("<mask> [MASK]")
    assert codec.with_gaps(" the [MASK] sat").tolist() == [*codec.encode(" the"), 4, *codec.encode(" sat")]


def test_rows_hold_whole_sentences_of_one_document(section: Examples) -> None:
    end = CODEC.encode(" .")[0]
    assert section.lengths(INPUT).max() <= 29
    assert all(ids[-1] == end for ids in section.fields[INPUT])
    assert len(np.unique(section.columns[DOCUMENT])) == 30
    whole = "".join(CODEC.decode(ids) for ids in section.fields[INPUT])
    assert whole.split() == " ".join(documents()).split()
    long = all_rows([" ".join(WORDS)], CODEC, room=16)
    assert long.lengths(INPUT).tolist() == [16, 16, 8]  # one sentence that does not fit is cut
    assert sentences_of("One. Two! (Three.) four") == ["One.", "Two!", "(Three.)", "four"]


def test_of_the_hidden_tokens_eight_in_ten_are_masks(section: Examples) -> None:
    masking, shown, kept, n = Masking(CODEC), 0, 0, 0
    for seed in range(40):
        for row in rows(masking, section, seed):
            found = row.ids[row.places]
            shown, kept = shown + int((found == 4).sum()), kept + int((found == row.hidden).sum())
            n += len(found)
            assert len(row.places) == max(1, round(0.15 * (len(row.ids) - 3)))
            assert not set(row.hidden.tolist()) & set(range(7))  # special tokens are never asked for
    assert shown / n == pytest.approx(0.8, abs=0.02)
    assert kept / n == pytest.approx(0.1 + 0.1 / 41, abs=0.015)


def test_a_second_segment_follows_or_is_of_another_document(section: Examples) -> None:
    masking, follow = Masking(CODEC, share=1e-9, shares=(0.0, 0.0)), []
    for i, row in enumerate(rows(masking, section)):
        parts = np.split(row.ids, np.flatnonzero(row.ids == 6) + 1)[:2]
        assert row.ids[0] == 5
        assert row.segments.tolist() == [0] * len(parts[0]) + [1] * len(parts[1])
        own = section.fields[INPUT][i]
        joined = np.concatenate([parts[0][1:-1], parts[1][:-1]])
        assert (len(joined) == len(own) and bool((joined == own).all())) is (row.follows == 0)
        follow.append(row.follows)
    assert 0.2 < np.mean(follow) < 0.8


def test_whole_words_are_hidden_together() -> None:
    codec = CharCodec(" .abcde", ASKED)
    section = all_rows(["abc de a bcd ecb da. ab ab ab."] * 4, codec, room=60)
    masking = Masking(codec, share=0.3, whole_words=True, pairs=False)
    for row in rows(masking, section):
        before = row.ids.copy()
        before[row.places] = row.hidden
        word = np.cumsum(~continues(before, codec))
        for number in np.unique(word[row.places]):
            assert set(np.flatnonzero(word == number)) <= set(row.places)
    text = codec.encode("ab c")
    assert continues(text, codec).tolist() == [False, True, False, False]


def test_batches_are_a_function_of_the_step_and_new_in_each_epoch(section: Examples) -> None:
    one, other = (MaskedRows(section, 8, Masking(CODEC), seed=3) for _ in range(2))
    n = one.steps_per_epoch
    for step in (0, 1, n, 2 * n + 1):
        a, b = one.batch(step), other.batch(step)
        assert (a.x == b.x).all()
        assert (a.targets[NEXT] == b.targets[NEXT]).all()
    rows_of = {int(row): x for step in range(n) for row, x in zip(one.batch(step).rows, one.batch(step).x)}
    again = {int(row): x for step in range(n, 2 * n) for row, x in zip(one.batch(step).rows, one.batch(step).x)}
    assert rows_of.keys() == again.keys() == set(range(section.n_examples))
    assert sum(x.shape != again[row].shape or bool((x != again[row]).any()) for row, x in rows_of.items()) > 20
    batch = one.batch(0)
    asked = batch.x[..., 0].gather(1, batch.at)
    real = batch.target_masks[TARGET]
    assert (real == (batch.y != 0)).all()
    assert ((asked == 4) | ~real | (asked != 0)).all()


def test_a_folder_has_a_document_a_file_and_more_between_blank_lines(tmp_path) -> None:
    for i in range(8):
        (tmp_path / f"{i}.txt").write_text(f"first {i}.\nit goes on.\n \n\nsecond {i}.\n")
    found = prepare_documents(tmp_path, DataConfig(split="50/25/25"), room=40)
    assert found.facts["documents"] == 16
    texts = {found.codecs["text"].decode(ids) for each in found.sections.values() for ids in each.fields[INPUT]}
    assert {"first 1.it goes on.", "second 1."} <= texts
