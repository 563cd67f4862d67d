"""Text from results made harmless where a page would read it as markup: Markdown, XML."""

from __future__ import annotations

import re
from html import escape

# What XML 1.0 cannot hold, not even escaped; https://www.w3.org/TR/xml/#charsets
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+.!|~-])")


def xml(text: str) -> str:
    """For an element's text or an attribute's value in double quotes; what XML cannot hold is written as its number."""
    shown = _NO_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    # A parser would turn these, standing in an attribute, into spaces.
    return escape(shown).replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")


def plain(text: str) -> str:
    """Markdown that shows this text on one line and means nothing: no link, no mention, no cell of a table."""
    line = " ".join(_NO_XML.sub("\ufffd", text).split())
    return _MARKDOWN.sub(r"\\\1", escape(line, quote=False)).replace("@", "&#64;")


def code(text: str) -> str:
    """Markdown that shows this text in a fixed font, on one line, in a table too."""
    line = " ".join(_NO_XML.sub("\ufffd", text).split())
    fence = "`"
    while fence in line:
        fence += "`"
    # In a table a bar ends the cell even within code, unless a backslash stands before it that is none itself.
    line = line.replace("\\|", "\\ |").replace("|", "\\|")
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"


def block(text: str, language: str = "text") -> list[str]:
    """The lines of a block of code, whatever the text holds."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [f"{fence}{language}", _NO_XML.sub("\ufffd", text).rstrip("\n"), fence]
