"""Escaping of text for Markdown and XML."""

from __future__ import annotations

import re
from html import escape

# The characters that XML 1.0 cannot contain, not even escaped; https://www.w3.org/TR/xml/#charsets
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+.!|~-])")


def xml(text: str) -> str:
    """Escape text for an XML element or a double-quoted attribute. Invalid characters become their code."""
    shown = _NO_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    # In an attribute, a parser would turn these into spaces.
    return escape(shown).replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")


def plain(text: str) -> str:
    """Return Markdown that shows this text on one line, without links, mentions or other markup."""
    line = " ".join(_NO_XML.sub("\ufffd", text).split())
    return _MARKDOWN.sub(r"\\\1", escape(line, quote=False)).replace("@", "&#64;")


def code(text: str) -> str:
    """Return Markdown that shows this text as inline code on one line, also within a table."""
    line = " ".join(_NO_XML.sub("\ufffd", text).split())
    fence = "`"
    while fence in line:
        fence += "`"
    # In a table a bar ends the cell even within code, unless an unescaped backslash precedes it.
    line = line.replace("\\|", "\\ |").replace("|", "\\|")
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"


def cell(text: str) -> str:
    """Return text for a cell of a Markdown table, on one line. Markup in it stays markup."""
    return text.replace("|", "\\|").replace("\n", " ")


def block(text: str, language: str = "text") -> list[str]:
    """Return the lines of a fenced code block. The fence is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [f"{fence}{language}", _NO_XML.sub("\ufffd", text).rstrip("\n"), fence]
