"""A folder that holds one file of data stands for that file, in every command."""

from __future__ import annotations

from pathlib import Path

import unrolled
from unrolled.data.files import folders
from unrolled.data.files.folders import only_file
from unrolled.data.given_splits import with_given

ROWS = "text,label\n" + "".join(f"good words {i},{'ab'[i % 2]}\n" for i in range(60))


def made(folder: Path, **contents: str) -> Path:
    for name, content in contents.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder


def test_the_one_file_of_data(tmp_path):
    folder = made(tmp_path / "one", README__md="about", LICENSE="free", reviews__csv=ROWS)
    assert only_file(folder) == folder / "reviews.csv"
    assert only_file(str(folder)) == str(folder / "reviews.csv")
    assert with_given(folder, test=folder) == {"train": folder / "reviews.csv", "test": folder / "reviews.csv"}
    told = unrolled.describe(folder)
    assert (told["task"], told["source"]) == ("classify", str(folder / "reviews.csv"))


def test_other_folders_stay_as_they_are(tmp_path):
    two = made(tmp_path / "two", a__csv=ROWS, b__csv=ROWS)
    inner = made(tmp_path / "inner")
    made(inner / "class", a__txt="text")
    sound = made(tmp_path / "sound", a__wav="RIFF")
    for source in (two, inner, sound, tmp_path / "none", "builtin:digits", [1, 2], None):
        assert only_file(source) is source


def test_rows_of_one_name_stay_in_one_split(tmp_path):
    lines = [f"B-{i // 4},{i}_c,{i},{i * 3},{i * 7 % 31},{i * 11},{i // 4 % 2}." for i in range(160)]
    (tmp_path / "clean.data").write_text("\n".join(lines), encoding="utf-8")
    told = unrolled.describe(tmp_path / "clean.data")
    uses = {column["name"]: column["use"] for column in told["columns"]}
    assert uses == {"1": "group", "2": None, "3": "input", "4": "input", "5": "input", "6": "input", "7": "target"}
    assert any("each of the 40 groups is in one split" in note for note in told["notes"])
    assert any("not used, because they name the rows: column 2" in note for note in told["notes"])


def test_a_list_of_files_is_no_example(tmp_path: Path) -> None:
    texts = [tmp_path / kind / f"{i}.txt" for kind in ("spoken", "written") for i in range(3)]
    for path in texts:
        path.parent.mkdir(exist_ok=True)
        path.write_text("the_DT dog_NN")
    listed, plain = tmp_path / "categories.txt", tmp_path / "more.txt"
    listed.write_text("".join(f"{path.relative_to(tmp_path)} {path.parent.name}\n" for path in texts))
    plain.write_text("spoken/0.txt is a file\nand this is a text\n")
    assert folders.without_lists([listed, plain, *texts]) == [plain, *texts]
    listed.write_text("../secret.txt a\n")
    assert folders.without_lists([listed, *texts]) == [listed, *texts]
