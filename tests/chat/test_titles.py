from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipstream.chat.titles import LONGEST_TITLE, NEW_CHAT_TITLE, title_from_text


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("  Hello,\t  world.  ", "Hello, world"),
        ("\n\nSecond line counts\nand no other", "Second line counts"),
        ("# A heading #", "A heading"),
        ("> - [ ] **Buy** `milk` and __bread__", "Buy milk and bread"),
        ("1. first of many", "first of many"),
        ("1984 was a year", "1984 was a year"),
        ("What is C# and why?", "What is C# and why?"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("Explain *args and **kwargs", "Explain *args and **kwargs"),
        ("See [the manual](https://example.org/x) ![pic](a.png)", "See the manual pic"),
        ("***very* important**", "very important"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("---\n###\ntext", "text"),
        ("", NEW_CHAT_TITLE),
        (" \n\t\n", NEW_CHAT_TITLE),
        ("\u200b\u200e", NEW_CHAT_TITLE),
        ("***", NEW_CHAT_TITLE),
        ("#", NEW_CHAT_TITLE),
        ("...", "..."),
        ("a\x00b\ud800c\u202ed", "abcd"),
        ("Привет, как дела?", "Привет, как дела?"),
        (
            "Why is the sky blue? I have been wondering about that for a long time.",
            "Why is the sky blue?",
        ),
        (
            "Dr. Smith asked me to write a long letter to the whole department",
            "Dr. Smith asked me to write a long letter to…",
        ),
        (
            "请写一篇关于春天的文章。要求语言优美，结构清晰，字数不少于八百字，并且要有具体的例子和细节描写，谢谢你。",
            "请写一篇关于春天的文章",
        ),
        ("x" * 100, "x" * 47 + "…"),
    ],
)
def test_title(text: str, title: str) -> None:
    assert title_from_text(text) == title


def test_a_cut_keeps_letters_and_emoji_whole() -> None:
    family = "👨\u200d👩\u200d👧"
    title = title_from_text("x" * 45 + family + "y" * 40)
    assert title == "x" * 45 + "…"
    assert title_from_text("x" * 46 + "e\u0301" + "y" * 40) == "x" * 46 + "…"


@settings(deadline=None)
@given(st.text() | st.text(alphabet="#*_`~[]()!>-. \nab", max_size=300))
def test_any_text_gives_a_short_visible_line(text: str) -> None:
    title = title_from_text(text)
    assert 0 < len(title) <= LONGEST_TITLE
    assert title == " ".join(title.split())
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in title)


@pytest.mark.parametrize("text", ["*a " * 50_000, "[" * 200_000, "`" * 100_001, "- " * 50_000])
def test_text_full_of_marks_is_quick(text: str) -> None:
    started = time.perf_counter()
    title_from_text(text)
    assert time.perf_counter() - started < 2
