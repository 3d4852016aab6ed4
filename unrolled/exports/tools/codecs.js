"use strict";
// Texts to token ids and back, as the codecs of a run do it.

const utf8 = new TextEncoder();
const LETTER = "[\\p{L}\\p{N}_]", SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const WORD = new RegExp(` ?${LETTER}+(?:['’]${LETTER}+)*| ?(?!${LETTER}|${SPACE})[^]|${SPACE}`, "gu");
const PIECE = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

function byteCharacters() {  // the printable character that stands for each byte in a byte-level BPE
  const found = [];
  for (let value = 0, next = 256; value < 256; value++) {
    const printable = (value > 32 && value < 127) || (value > 160 && value < 173) || value > 173;
    found.push(String.fromCharCode(printable ? value : next++));
  }
  return found;
}

function merged(word, rank) {  // byte-pair encoding of one piece
  let parts = [...word];
  for (;;) {
    let best = Infinity, at = -1;
    for (let i = 0; i + 1 < parts.length; i++) {
      const r = rank.get(`${parts[i]} ${parts[i + 1]}`);
      if (r !== undefined && r < best) { best = r; at = i; }
    }
    if (at < 0) return parts;
    parts.splice(at, 2, parts[at] + parts[at + 1]);
  }
}

function codecOf(tokenizer) {  // -> {specials, encode(text) -> ids, bytes(id) -> what it stands for}
  if (tokenizer.format !== "unrolled") {
    const vocabulary = new Map(Object.entries(tokenizer.model.vocab)), names = byteCharacters();
    const specials = tokenizer.added_tokens.map(token => token.content), valueOf = new Map(names.map((c, i) => [c, i]));
    const rank = new Map(tokenizer.model.merges.map((pair, i) => [Array.isArray(pair) ? pair.join(" ") : pair, i]));
    const words = [];
    for (const [word, id] of vocabulary) words[id] = id < specials.length ? "" : word;
    return {
      specials, bytes: id => Uint8Array.from([...words[id]], c => valueOf.get(c)),
      encode: text => (text.match(PIECE) || []).flatMap(piece =>
        merged([...utf8.encode(piece)].map(value => names[value]).join(""), rank).map(part => vocabulary.get(part))),
    };
  }
  const {specials, tokens} = tokenizer, first = specials.length;
  if (tokens === "byte") return {
    specials, bytes: id => id < first ? new Uint8Array(0) : Uint8Array.of(id - first), encode: text => [...utf8.encode(text)].map(v => v + first),
  };
  const list = tokens === "char" ? [...tokenizer.characters] : tokenizer.words, idOf = new Map(list.map((word, i) => [word, i + first]));
  const cut = tokens === "char" ? text => [...text] : text => text.match(WORD) || [];
  return {
    specials, bytes: id => id < first ? new Uint8Array(0) : utf8.encode(list[id - first]),
    encode: text => cut(text).map(word => idOf.has(word) ? idOf.get(word) : 1),
  };
}
