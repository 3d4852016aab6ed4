"""The tokenizer of a Hugging Face checkpoint as a codec: its own `tokenizer.json`, with our special tokens first.

    order[i]        their id of our token i; -1 where they have none, such as <start> in BERT

Ids 0 to 3 are the special ones of every codec, then <mask>, <class> and <separator> where the checkpoint has them, then
all other tokens in the order in which they are there. Tables are reordered in the same way when weights are loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from unrolled.core.errors import DataError, UsageError
from unrolled.core.opening import shortened
from unrolled.core.tokens import CLASS, MASK, SEPARATOR, SPECIALS, UNKNOWN
from unrolled.data.codecs.text import Codec, Ids
from unrolled.data.codecs.words import byte_characters
from unrolled.data.config import DataConfig

KNOWN: dict[str, tuple[str, ...]] = {
    "<empty>": ("[PAD]", "<pad>", "<empty>"),
    "<unknown>": ("[UNK]", "<unk>", "<unknown>"),
    "<start>": ("<s>", "<|begin_of_text|>", "<|startoftext|>", "<start>"),
    "<stop>": ("</s>", "<|end_of_text|>", "<|endoftext|>", "<stop>"),
    MASK: ("[MASK]", MASK),
    CLASS: ("[CLS]", CLASS),
    SEPARATOR: ("[SEP]", SEPARATOR),
}
SPARSE, SPARE = 4, 10_000  # numbers of tokens may have gaps
SPACE = "\u2581"  # stands for a space in the tokens of sentencepiece


class HubCodec(Codec):
    """Texts are cut by the tokenizers library, as the checkpoint's own tokenizer cuts them."""

    kind = "hub"

    def __init__(self, tokenizer: Mapping[str, Any]) -> None:
        from tokenizers import Tokenizer

        self.values = dict(tokenizer)
        try:
            self._tokenizer = Tokenizer.from_str(json.dumps(_always_alike(self.values)))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(str(error)) from None
        self._tokenizer.no_truncation()  # lengths are a matter of the model and of batches
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True  # "[CLS]" in a text is text
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        if not vocabulary or max(vocabulary.values()) > SPARSE * len(vocabulary) + SPARE:
            raise ValueError("there are no tokens in it, or their numbers are far larger than their count")
        there = {
            ours: next((vocabulary[each] for each in theirs if each in vocabulary), -1)
            for ours, theirs in KNOWN.items()
        }
        specials = [*SPECIALS, *(name for name in (MASK, CLASS, SEPARATOR) if there[name] >= 0)]
        taken = [there[name] for name in specials]
        rest = sorted(set(vocabulary.values()) - set(taken))
        self.order = np.array([*taken, *rest], np.int64)  # [size]
        token_of = {i: token for token, i in vocabulary.items()}
        self._ours = np.full(max(vocabulary.values()) + 1, UNKNOWN, np.int64)
        self._ours[self.order[self.order >= 0]] = np.flatnonzero(self.order >= 0)
        kind = str(self.values["model"]["type"])
        super().__init__((_spelt(token_of[i], kind) for i in rest), specials[len(SPECIALS) :])

    @property
    def n_theirs(self) -> int:
        """How many ids the checkpoint's tokenizer has."""
        return len(self._ours)

    @classmethod
    def fit(cls, texts: Iterable[Any], config: DataConfig, extra: Sequence[str] = ()) -> Codec:  # noqa: ARG003
        raise UsageError("the tokenizer of a checkpoint is loaded, not fitted; start from the run that has it")

    @classmethod
    def _restore(cls, values: Mapping[str, Any], extra: Sequence[str]) -> Codec:
        found = cls(values["tokenizer"])
        if found.specials[len(SPECIALS) :] != tuple(extra):
            raise ValueError("the special tokens are not those of the tokenizer")
        return found

    def _values(self) -> dict[str, Any]:
        return {"tokenizer": self.values}

    def cuts_as(self, tokens: str) -> bool:
        """It is the only one that fits the weights, whatever tokens are asked for."""
        return tokens != "number"

    def _encode(self, text: str) -> Ids:
        try:
            found = self._tokenizer.encode(text, add_special_tokens=False).ids
        except Exception as error:  # the library raises nothing narrower
            raise DataError(f"the tokenizer of the checkpoint cannot cut {shortened(text)!r} ({error})") from None
        ids = np.array(found, np.int64)
        return self._ours[ids]

    def decode(self, ids: Iterable[int]) -> str:
        text = super().decode(ids)
        return text.removeprefix(" ") if self.values["model"]["type"] == "WordPiece" else text


def _always_alike(values: Mapping[str, Any]) -> dict[str, Any]:
    """A tokenizer without the chance by which some cut the texts that they are trained on (BPE dropout).

    >>> _always_alike({"model": {"type": "BPE", "dropout": 0.1}})
    {'model': {'type': 'BPE', 'dropout': None}}
    """
    model = values.get("model")
    own = {"model": {**model, "dropout": None}} if isinstance(model, Mapping) and "dropout" in model else {}
    return {**values, **own}


def _spelt(token: str, kind: str) -> bytes:
    """The bytes that a token stands for, as far as its name tells.

    >>> _spelt("##ing", "WordPiece"), _spelt("king", "WordPiece"), _spelt("\u0120king", "BPE"), _spelt("<0x0A>", "BPE")
    (b'ing', b' king', b' king', b'\\n')
    """
    if kind == "WordPiece":
        return token[2:].encode() if token.startswith("##") else f" {token}".encode()
    if found := re.fullmatch(r"<0x([0-9A-F]{2})>", token):
        return bytes([int(found[1], 16)])
    byte_of = {character: value for value, character in enumerate(byte_characters())}
    if SPACE not in token and all(character in byte_of for character in token):
        return bytes(byte_of[character] for character in token)
    return token.replace(SPACE, " ").encode()
