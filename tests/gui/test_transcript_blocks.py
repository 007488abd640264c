"""Cutting Markdown into blocks: streamed in any pieces, the result is the same as at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipstream.ui.transcript.blocks import (
    CODE_LINES,
    PLAIN_LINES,
    Block,
    BlockKind,
    GrowingText,
    split_markdown,
    split_plain,
)

LONG_CODE = "\n".join(f"line {number}" for number in range(3 * CODE_LINES + 5))
CASES = {
    "empty": "",
    "paragraphs": "one\ntwo\n\nthree\n\n\nfour",
    "headings": "# A\ntext\n## B ##\nSetext\n======\nafter",
    "lists": "- a\n- b\n  - c\n\n    more of c\n- d\n\n* other list\n1. x\n3. y\n\ntext",
    "long list": "".join(f"{number}. item {number}\n" for number in range(60)),
    "fence": "text\n```python\na = 1\n\n\nb = 2\n```\nafter",
    "tilde fence": "~~~~ text info\n```\nnot closed here\n~~~\n~~~~\nafter",
    "open fence": "```\nnever closed\n\n# not a heading",
    "long code": f"before\n\n```c\n{LONG_CODE}\n```\n\nafter",
    "long open code": f"```\n{LONG_CODE}\n",
    "indented fence": f"  ```c\n  {LONG_CODE}\n  ```\nafter",
    "indented code": "text\n\n    code\n\n    more code\n\ntext",
    "quote": "> quoted\nlazy\n> - list\n>\n> more\n\nafter",
    "table": "| a | b |\n|:--|--:|\n| 1 | 2 |\n| 3 | 4 |\nafter\n\nend",
    "table in paragraph": "intro\na | b\n--|--\n1 | 2\n\nend",
    "rules": "a\n\n---\n\n***\nb\n---\n",
    "html": "<div>\n\n**bold** <script>alert(1)</script>\n\n</div>\n",
    "line ends": "one\r\ntwo\r\n\r\nthree\rfour\n\nfive\0six",
    "nested": "1. a\n   ```\n   code\n\n   more\n   ```\n2. b\n   > quote\n   > more\n",
    "deep": "> " * 200 + "deep\n\nafter",
}


def streamed(text: str, sizes: list[int]) -> list[Block]:
    growing = GrowingText()
    position, turn = 0, 0
    while position < len(text):
        size = sizes[turn % len(sizes)]
        growing.append(text[position : position + size])
        position += size
        turn += 1
    return [*growing.finished_blocks(), *growing.open_blocks()]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [[1], [2, 7], [3, 50], [10_000]], ids=str)
def test_streaming_ends_where_cutting_at_once_does(name: str, sizes: list[int]) -> None:
    assert streamed(CASES[name], sizes) == split_markdown(CASES[name], {})


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(
        st.one_of(
            st.sampled_from(
                ["", "- a", "  b", "1. c", "```", "~~~", "> q", "a | b", "--|--", "# h", "---"]
            ),
            st.text("ab*_`#>-|1. \t", max_size=8),
        ),
        max_size=14,
    ),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
def test_streaming_ends_where_cutting_at_once_does_for_any_text(
    lines: list[str], sizes: list[int]
) -> None:
    text = "\n".join(lines)
    assert streamed(text, sizes) == split_markdown(text, {})


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(st.text(max_size=20), max_size=12))
def test_no_text_raises(pieces: list[str]) -> None:
    growing = GrowingText()
    for piece in pieces:
        growing.append(piece)
        growing.open_blocks()
    split_markdown("".join(pieces), {})


def test_finished_blocks_never_change() -> None:
    growing = GrowingText()
    seen: list[Block] = []
    for character in CASES["lists"] + "\n\n" + CASES["long code"]:
        growing.append(character)
        finished = list(growing.finished_blocks())
        assert finished[: len(seen)] == seen
        seen = finished


def test_kinds() -> None:
    kinds = [block.kind for block in split_markdown(CASES["lists"], {})]
    assert kinds == [BlockKind.LIST_ITEM] * 6 + [BlockKind.MARKDOWN]
    kinds = [block.kind for block in split_markdown("# A\n\n> q\n\n---\n\n|a|\n|-|\n", {})]
    assert kinds == [BlockKind.HEADING, BlockKind.QUOTE, BlockKind.RULE, BlockKind.TABLE]


def test_items_of_one_list_are_joined() -> None:
    items = split_markdown("- a\n- b\n\n1. x\n2. y", {})
    assert [(item.continues, item.continued) for item in items] == [
        (False, True),
        (True, False),
        (False, True),
        (True, False),
    ]


def test_long_code_comes_in_runs_of_one_block() -> None:
    runs = [b for b in split_markdown(CASES["long code"], {}) if b.kind is BlockKind.CODE]
    assert len(runs) == 4
    assert "\n".join(run.source for run in runs) == LONG_CODE
    assert {run.language for run in runs} == {"c"}
    assert [run.continues for run in runs] == [False, True, True, True]
    assert [run.continued for run in runs] == [True, True, True, False]


def test_plain_text_is_kept_to_the_letter() -> None:
    text = "\n".join(["# not a heading", "  two  spaces", ""] * PLAIN_LINES)
    assert "\n".join(block.source for block in split_plain(text)) == text


def test_link_definitions_are_collected() -> None:
    references: dict[str, object] = {}
    split_markdown("See [docs].\n\n[docs]: https://example.org\n", references)
    assert "DOCS" in references
