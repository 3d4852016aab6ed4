"""Tagged sentences and pairs of texts."""

from __future__ import annotations

from typing import Any

from tests.faults.corpus.case import Content, asks, bad, good, left_out

CONLL = "".join(f"The DT\ndog{i} NN\nbarks VBZ\n. .\n\n" for i in range(30))
TAGGED = "".join(f"The_DT dog{i}_NN barks_VBZ ._.\n" for i in range(30))
TABBED = "".join(f"der Hund {i}\tthe dog {i}\n" for i in range(40))
GERMAN = "".join(f"der Hund {i}\n" for i in range(40))
ENGLISH = "".join(f"the dog {i}\n" for i in range(40))


def tag(name: str, data: Content, *says: str, file: str = "a.conll", words: str = "") -> Any:
    return bad(name, f"tag {file} {words}", {file: data}, file, *says)


def translate(name: str, data: Content, *says: str, file: str = "a.tsv", words: str = "") -> Any:
    return bad(name, f"translate {file} {words}", {file: data}, file, *says)


TAGS = [
    tag("empty conll", "", "no example"),
    tag("conll of blank lines", "\n\n\n", "no example"),
    tag("conll with a column missing", CONLL + "cat\n", "line 151", "1 column", "2"),
    tag("conll with a column too many", CONLL + "cat NN X\n", "line 151", "3 columns", "2"),
    tag("conll of words alone", "The\ndog\n\n" * 20, "line 1", "tag"),
    tag("conll of one tag", "".join(f"The X\ndog{i} X\n\n" for i in range(40)), "single", "'X'"),
    tag("conll with another tag column", CONLL, "line 1", "column 5", words="tag_column=5"),
    tag("conll in Cyrillic", CONLL.encode() + "мир NN\n".encode("cp1251"), "line 151, column 1", "0xEC"),
    tag("a word without a tag", TAGGED + "The_DT cat sleeps_VBZ\n", "line 31", "'cat'", file="a.txt"),
    tag(
        "a very long word without a tag",
        TAGGED + "The_DT dog_NN barks_VBZ ._. " + "x" * 100_000 + "\n",
        "line 31",
        file="a.txt",
    ),
    tag("prose to learn tags from", "".join(f"The dog {i} barks .\n" for i in range(30)), "one example", file="a.txt"),
    tag(
        "lists of unequal lengths",
        '{"words": ["a", "b"], "tags": ["X", "Y"]}\n' * 9 + '{"words": ["a"], "tags": ["X", "Y"]}\n',
        "line 10",
        "2 tags",
        "1 word",
        file="a.jsonl",
    ),
    tag(
        "an empty list of words",
        '{"words": ["a", "b"], "tags": ["X", "Y"]}\n' * 9 + '{"words": [], "tags": []}\n',
        "line 10",
        "no word",
        file="a.jsonl",
    ),
    tag(
        "null among words",
        '{"words": ["a", "b"], "tags": ["X", "Y"]}\n' * 9 + '{"words": ["a", null], "tags": ["X", "Y"]}\n',
        "line 10, column 'words'",
        "empty",
        file="a.jsonl",
    ),
    tag("one sentence", "The DT\ndog NN\n", "one example"),
    good(
        "conll with Windows line ends",
        "tag a.conll",
        {"a.conll": CONLL.replace("\n", "\r\n")},
        "line ends",
        examples=30,
    ),
    good(
        "conll with documents and comments",
        "tag a.conll",
        {"a.conll": "-DOCSTART- -X-\n\n# text = x\n" + CONLL},
        examples=30,
    ),
    good("conll in UTF-16", "tag a.conll", {"a.conll": CONLL.encode("utf-16")}, "UTF-16", examples=30),
    good("conll without a last blank line", "tag a.conll", {"a.conll": CONLL + "A DT\ncat NN"}, examples=31),
    good(
        "words left out",
        "tag a.txt untagged=skip",
        {"a.txt": TAGGED + "The_DT cat sleeps_VBZ\n"},
        "1 word",
        examples=31,
    ),
]

PAIRS = [
    translate("empty pairs", "", "empty"),
    translate("pairs of blank lines", "\n\n", "empty"),
    translate("pairs without a tab", GERMAN, "line 1", "tab"),
    translate("one pair", "a\tb\n", "one example"),
    translate("pairs in Cyrillic", TABBED.encode() + "мир\tx\n".encode("cp1251"), "line 41, column 1", "0xEC"),
    translate("pairs of empty targets", "a\t\nb\t\n" * 20, "a.tsv"),
    translate("csv of one column", "source\nx\n", "two columns", file="a.csv"),
    translate("ragged csv of pairs", "source,target\n" + "a,b\n" * 20 + "a,b,c\n", "line 22", "3 cells", file="a.csv"),
    translate("numbers for texts", '{"source": 3, "target": 4}\n' * 20, "line 1", file="a.jsonl"),
    bad(
        "files of unequal lengths",
        "translate a.de target_file=a.en",
        {"a.de": GERMAN, "a.en": ENGLISH + "more\n"},
        "a.en, line 41",
        "a.de",
    ),
    bad(
        "sources longer than targets",
        "translate a.de target_file=a.en",
        {"a.de": GERMAN + "mehr\n", "a.en": ENGLISH},
        "a.de, line 41",
        "a.en",
    ),
    bad("targets that are not there", "translate a.de target_file=b.en", {"a.de": GERMAN}, "b.en", "no such file"),
    bad(
        "targets that are a folder",
        "translate a.de target_file=b",
        {"a.de": GERMAN, "b": lambda path: path.mkdir()},
        "b",
        "folder",
    ),
    bad("a folder of one language", "translate texts", {"texts/train.de": GERMAN}, "texts"),
    asks(
        "source that is not there", "translate a.csv source_column=fr", {"a.csv": "de,en\n" + "a,b\n" * 20}, "fr", "de"
    ),
    *left_out("a pair without a target", "translate a.tsv", {"a.tsv": TABBED + "ein Wort\n"}, "line 41", examples=40),
    *left_out("a pair with an empty side", "translate a.tsv", {"a.tsv": TABBED + "\tx\n"}, "line 41", examples=40),
    good("pairs in Latin-1", "translate a.tsv", {"a.tsv": TABBED.encode() + b"caf\xe9\tx\n"}, "café", examples=41),
    good(
        "pairs between semicolons",
        "translate a.csv",
        {"a.csv": "de;en\n" + TABBED.replace("\t", ";")},
        "';'",
        examples=40,
    ),
    good("a third column", "translate a.tsv", {"a.tsv": TABBED.replace("\n", "\tCC-BY\n")}, examples=40),
    good(
        "files blank on both sides",
        "translate a.de target_file=a.en",
        {"a.de": GERMAN + "\n", "a.en": ENGLISH + "\n"},
        "blank",
        examples=40,
    ),
    good(
        "Windows line ends on one side",
        "translate a.de target_file=a.en",
        {"a.de": GERMAN.replace("\n", "\r\n"), "a.en": ENGLISH},
        "line ends",
        examples=40,
    ),
]

CASES = [*TAGS, *PAIRS]
