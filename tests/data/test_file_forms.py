"""Files as people have them: their encoding, what separates columns, decimal commas; found out and told, or given."""

from __future__ import annotations

import polars
import pytest

from tests.commands import run_unrolled
from unrolled import load, train
from unrolled.core.errors import DataError, UsageError
from unrolled.data.config import FilesConfig
from unrolled.data.files.file_form import FileForm, each_within, files_as
from unrolled.data.files.text_file import TextFile
from unrolled.data.sources.labelled_table import table_in
from unrolled.runs.config import RunConfig
from unrolled.runs.describe import describe

WESTERN = {
    "German": "Die Straße führt über die Brücke; Mädchen und Jungen hören Vögel, große Bäume, schöne Grüße.",
    "French": "L’été où il a été à l’hôtel, ça coûtait très cher : 5 €, c’est-à-dire « trop », le garçon créée.",
    "Spanish": "El niño comió mañana en España, según él; ¿qué pasó aquí? ¡Todavía no! El pingüino está así.",
    "Portuguese": "Não há razão, então você põe a mão no pão; é fácil, três irmãs são amáveis à noite.",
    "Danish": "Æblet på øen er rødt, og åen er blå; børn får sød grød, når året er omme.",
    "Swedish": "Flickan på ön äter äpplen, går över gatan och hör fåglar för första gången på länge.",
    "Icelandic": "Það er gott að vera hér á Íslandi; við ætlum að fara út í búð og kaupa brauð og þorsk.",
    "English": "A naïve café owner said “yes” – it’s 20° in here…",
}
OTHERS = {
    "Czech": ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy, když se děti vracely ze školy přes řeku."),
    "Polish": ("iso8859-2", "Zażółć gęślą jaźń; mały chłopiec był w szkole, jadł śniadanie i pił świeżą wodę."),
    "Hungarian": ("cp1250", "Árvíztűrő tükörfúrógép; őszi erdőben nőttek a nagyszerű, gyönyörű, erős tölgyfák."),
    "Turkish": ("cp1254", "Şu çılgın kişi ağır ağır yürüyor, ışığı görünce şaşırıyor ve İstanbul'a gidiyor."),
    "Russian": ("koi8-r", "Съешь же ещё этих мягких французских булок, да выпей чаю."),
    "Greek": ("cp1253", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, λέει ο άνθρωπος."),
    "Chinese": ("gb18030", "我能吞下玻璃而不伤身体。"),
}


def made(tmp_path, name: str, data: bytes | str):
    (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return tmp_path / name


def text_of(path) -> tuple[str, str]:
    file = TextFile(path)
    return "".join(file.pieces()), " ".join(file.notes)


@pytest.mark.parametrize("language", WESTERN)
def test_western_languages_are_recognised_and_shown(language, tmp_path):
    text = f"{WESTERN[language]}\n" * 3
    found, notes = text_of(made(tmp_path, "a.txt", text.encode("cp1252")))
    assert found == text
    shown = notes.split("words such as ")[1].split(";")[0].split(", ")
    assert 1 <= len(shown) <= 3
    assert all(word in text and not word.isascii() for word in shown)


@pytest.mark.parametrize("language", OTHERS)
def test_others_are_asked_for_and_read_when_given(language, tmp_path):
    encoding, text = OTHERS[language]
    path = made(tmp_path, "a.txt", f"plain words\n{text}\n".encode(encoding))
    with pytest.raises(DataError, match=r"a\.txt, line 2, column \d+: the byte 0x.. is not UTF-8.* encoding="):
        text_of(path)
    with files_as(FileForm(encoding)):
        found, notes = text_of(path)
    assert found == f"plain words\n{text}\n"
    assert f"read as {encoding}" in notes


def test_western_text_is_recognised_where_it_begins_late(tmp_path):
    text = "only ASCII so far\n" * 100_000 + "früher Übergang\n" * 3  # more than a piece is read as ASCII
    assert text_of(made(tmp_path, "a.txt", text.encode("cp1252")))[0] == text


def test_a_given_form_holds_within_its_block_alone(tmp_path):
    path = made(tmp_path, "a.txt", "мир\n".encode("cp1251"))
    items = each_within(lambda: files_as(FileForm("cp1251")), lambda: [TextFile(path), TextFile(path)])  # made at once
    first = next(items)
    with pytest.raises(DataError):
        text_of(path)
    assert "".join(first.pieces()) == "мир\n" == "".join(next(items).pieces())


@pytest.mark.parametrize(
    ("setting", "expected"),
    [({"encoding": "klingon"}, "not a text encoding"), ({"encoding": "zip"}, "not a text encoding"),
     ({"separator": ";;"}, "cannot separate columns"), ({"separator": "a"}, "cannot separate columns"),
     ({"decimal": "x"}, "decimal")],
)  # fmt: skip
def test_wrong_settings(setting, expected):
    with pytest.raises(UsageError, match=expected):
        FilesConfig.parse(setting)
    assert FilesConfig.parse({"encoding": "Windows-1251", "separator": "tab"}).form()[:2] == ("cp1251", "\t")


TABLES = {
    "text;y\nja, und nein;1,5\nnein;2\n": (["text", "y"], [["ja, und nein", 1.5], ["nein", 2.0]]),
    "text\ty\nja\t1,5\nnein\t-0,25\n": (["text", "y"], [["ja", 1.5], ["nein", -0.25]]),
    "text|y\nja|1\nnein|2\n": (["text", "y"], [["ja", 1.0], ["nein", 2.0]]),
    'text,y\nja,"1,5"\nnein,"1,234"\n': (["text", "y"], [["ja", 1.5], ["nein", 1.234]]),
    "sep=|\ntext|y\nja|1\n": (["text", "y"], [["ja", 1.0]]),
    '"","text","y"\n"1","ja",1\n"2","nein",2\n': (["text", "y"], [["ja", 1.0], ["nein", 2.0]]),
    'text\ty\nsay "yes\t1\n"no" he said\t2\n': (["text", "y"], [['say "yes', 1.0], ['"no" he said', 2.0]]),
    "1,5;2,5\n3,5;4\n": (["1", "2"], [[1.5, 2.5], [3.5, 4.0]]),
    "1,5\n3,4\n": (["1", "2"], [[1.0, 5.0], [3.0, 4.0]]),
    "text\nsome; words\nmore, words\n": ([], []),
}


@pytest.mark.parametrize("content", TABLES)
def test_tables(content, tmp_path):
    names, rows = TABLES[content]
    path = made(tmp_path, "a.tsv" if "\t" in content else "a.csv", content)
    table = table_in(path)
    if not names:
        with pytest.raises(DataError, match="line 3: found 2 cells"):
            list(table.rows(table.columns()))
        return
    assert table.columns() == names
    found = [[cell if name == "text" else float(cell) for name, cell in zip(names, cells)]
             for _, cells in table.rows(names)]  # fmt: skip
    assert found == rows


def test_a_text_with_a_comma_between_digits_is_a_text(tmp_path):
    rows = "".join(f"{i},5;{'ab'[i % 2]}\n" for i in range(30))
    facts = describe(made(tmp_path, "a.csv", "text;label\n" + rows))
    assert facts["first"][0]["input"] == "0,5"


def test_training_keeps_what_was_found_and_prediction_reads_each_file_by_itself(tmp_path):
    rows = "".join(f"Müller Straße {i};{'äß'[i % 2]}\n" for i in range(40))
    path = made(tmp_path, "a.csv", f"text;label\n{rows}".encode("cp1252"))
    run = train(path, model="logistic", out=tmp_path / "run")
    assert "Windows-1252" in str(run.directory.read_json("data.json")["facts"]["notes"])
    expected = [line["prediction"] for line in run.predict(path)]
    assert any("Müller" in note for note in run.notes)
    frame = polars.read_csv(path, separator=";", encoding="cp1252")
    frame.write_csv(tmp_path / "b.csv")
    other = load(tmp_path / "run")
    assert [line["prediction"] for line in other.predict(tmp_path / "b.csv")] == expected
    assert other.notes == {}
    cyrillic = made(tmp_path, "c.csv", "text~label\nпривет~a\n".encode("cp1251"))
    given = load(tmp_path / "run", encoding="cp1251", separator="~")
    assert len(given.predict(cyrillic)) == 1
    with pytest.raises(DataError, match="name the encoding with"):
        other.predict(cyrillic)


def test_the_encoding_of_training_is_tried_where_a_file_is_not_utf8(tmp_path):
    rows = "".join(f"привет мир {i},{'ab'[i % 2]}\n" for i in range(40))
    path = made(tmp_path, "a.csv", f"text,label\n{rows}".encode("cp1251"))
    run = train(path, model="logistic", out=tmp_path / "run", encoding="cp1251")
    assert run.config.files.encoding == "cp1251"
    assert len(load(tmp_path / "run").predict(path)) == 40
    assert RunConfig.parse({"task_settings": {}}).files.encoding is None


def test_the_command_says_so(tmp_path):
    rows = "".join(f"Müller {i};{'äß'[i % 2]}\n" for i in range(40))
    made(tmp_path, "a.csv", f"text;label\n{rows}".encode("cp1252"))
    told = run_unrolled("data", "a.csv", cwd=tmp_path).stdout
    assert "separated by ';'" in told
    assert "Windows-1252" in told
    assert "Müller" in told
    made(tmp_path, "b.csv", "text~label\n" + "".join(f"мир {i}~{'ab'[i % 2]}\n" for i in range(40)))
    told = run_unrolled("data", "b.csv", "--separator", "~", "--encoding", "utf-8", cwd=tmp_path).stdout
    assert "column text: text, input" in told
