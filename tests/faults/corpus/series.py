"""Series: .ts files, long and wide tables, noisy and clean ones."""

from __future__ import annotations

from typing import Any

from tests.faults.corpus.case import bad, good

HEAD = "@problemName a\n@timeStamps false\n@classLabel true 1 2\n@data\n"
CASES_OF_TS = "".join(f"{i}.5,{i},3:{1 + i % 2}\n" for i in range(20))
LONG = "id,time,value,label\n" + "".join(f"s{i},{t},{i + t},{'ab'[i % 2]}\n" for i in range(20) for t in range(4))
WIDE = "a,b,c,label\n" + "".join(f"{i},{i + 1},{i % 3},{'xy'[i % 2]}\n" for i in range(40))
NOISY = "noisy,clean\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(200))


def ts(name: str, data: str | bytes, *says: str, words: str = "classify a.ts") -> Any:
    return bad(name, words, {"a.ts": data}, "a.ts", *says)


def csv(name: str, data: str | bytes, *says: str, words: str = "classify a.csv") -> Any:
    return bad(name, words, {"a.csv": data}, "a.csv", *says)


CASES = [
    ts("empty ts", "", "@data"),
    ts("ts without data", HEAD, "no example"),
    ts("ts without a header", "1,2,3:1\n", "line 1", "@data"),
    ts("ts in Cyrillic", "# мир\n".encode("cp1251") + HEAD.encode(), "line 1, column 3", "0xEC"),
    ts("ts without labels", HEAD.replace("@classLabel true 1 2", "@classLabel false") + "1,2,3\n", "@classLabel"),
    ts("ts for numbers", HEAD + CASES_OF_TS, "@targetLabel", words="regress a.ts"),
    ts("ts with time stamps", HEAD.replace("Stamps false", "Stamps true") + CASES_OF_TS, "time stamps"),
    ts("ts with an unknown label", HEAD + CASES_OF_TS + "1,2,3:9\n", "line 25", "'9'"),
    ts("ts with a missing value", HEAD + CASES_OF_TS + "1,?,3:1\n", "line 25", "step 2", "--missing"),
    ts("ts with a text among numbers", HEAD + CASES_OF_TS + "1,abc,3:1\n", "line 25", "step 2", "'abc'"),
    ts("ts with infinity", HEAD + CASES_OF_TS + "1,inf,3:1\n", "line 25", "step 2", "finite"),
    ts("ts with channels of unequal lengths", HEAD + CASES_OF_TS + "1,2:1,2,3:1\n", "line 25", "2, 3"),
    ts("ts with another number of channels", HEAD + CASES_OF_TS + "1,2,3:1,2,3:1\n", "line 25", "2 channels"),
    ts("ts without a colon", HEAD + CASES_OF_TS + "1,2,3\n", "line 25", "':'"),
    ts("ts with a single label", HEAD + "".join(f"{i},2,3:1\n" for i in range(40)), "single"),
    ts("ts with a bare sign", "@\n1,2,3:1\n", "line 2", "@data"),
    ts("ts cut in a line", HEAD + CASES_OF_TS + "1,2,", "line 25"),
    csv("wide table with a blank", WIDE + "1,,3,x\n", "line 42, column 'b'", "empty"),
    csv("wide table with a text", WIDE + "1,two,3,x\n", "line 42, column 'b'", "'two'"),
    csv("wide table with NaN", WIDE + "1,nan,3,x\n", "line 42, column 'b'", "nan"),
    csv("wide table with an infinity", WIDE + "1,1e400,3,x\n", "line 42, column 'b'", "finite"),
    csv("wide table beyond single precision", WIDE + "1,1e300,3,x\n", "line 42, column 'b'", "1e300", "large"),
    csv(
        "numbers without a header, ragged",
        "1,2,3\n" * 20 + "1,2\n",
        "line 21",
        "2 cells",
        words="classify a.csv target=3",
    ),
    csv("long table with a time twice", LONG + "s0,0,5,a\n", "line 82, column 'time'", "twice"),
    csv("long table with a time that is none", LONG + "s0,noon,5,a\n", "line 82, column 'time'", "'noon'"),
    csv("long table with two labels for one series", LONG + "s0,9,5,b\n", "line 82, column 'label'", "'s0'"),
    csv("long table without an id", LONG + ",9,5,b\n", "line 82, column 'id'", "empty"),
    csv("long table with a blank", LONG + "s0,9,,a\n", "line 82, column 'value'", "empty"),
    csv("long table with NaN for a time", LONG + "s0,nan,1,a\n", "line 82, column 'time'", "nan"),
    csv(
        "clean series with a blank",
        NOISY + "1,\n",
        "line 202, column 'clean'",
        "empty",
        words="denoise a.csv window=10",
    ),
    csv(
        "noisy series with a text", NOISY + "x,1\n", "line 202, column 'noisy'", "'x'", words="denoise a.csv window=10"
    ),
    csv("one series, nothing to split", "noisy,clean\n1,2\n3,4\n", "a.csv", words="denoise a.csv window=10"),
    csv(
        "dates of the day first",
        LONG.replace(",0,", ",31.12.2024,"),
        "line 2, column 'time'",
        "31.12.2024",
        "2024-05-31",
    ),
    good(
        "a channel that never changes",
        "classify a.csv",
        {"a.csv": "a,b,c,label\n" + "".join(f"{i},7,7,{'xy'[i % 2]}\n" for i in range(40))},
        examples=40,
    ),
    good(
        "numbers without a header",
        "classify a.csv target=3",
        {"a.csv": "".join(f"{i},2,{i % 2}\n" for i in range(40))},
        "no header",
        outputs=2,
    ),
    good("blanks filled", "classify a.csv missing=line", {"a.csv": WIDE + "1,,3,x\n"}, examples=41),
    good("times in no order", "classify a.csv", {"a.csv": LONG + "s0,-1,5,a\n"}, examples=20),
    good(
        "dates",
        "classify a.csv",
        {
            "a.csv": "id,date,value,label\n"
            + "".join(
                f"s{i},{when},{i},{'ab'[i % 2]}\n"
                for i in range(20)
                for when in ("2024-05-31T12:00Z", "2024-06-01", "2024-06-02 00:00:01", "2024-05-30T12:00+02:00")
            )
        },
        examples=20,
    ),
    good("a series of one step", "classify a.csv", {"a.csv": LONG + "s99,0,5,a\n"}, examples=21),
]
