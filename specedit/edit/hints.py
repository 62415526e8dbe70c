"""What an instruction and the text tell about the answer before it is written: names that change, places to rejoin."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specedit.edit.names import spellings

_MAX_CHARS = 2_000
_MAX_PAIRS = 16
_MAX_OFFSETS = 20_000

# One name, path or expression: quoted in some way, or a run without blanks.
_QUOTED = r"`[^`\n]{1,200}`|\"[^\"\n]{1,200}\"|(?<!\w)'[^'\n]{1,200}'(?!\w)|“[^”\n]{1,200}”|‘[^’\n]{1,200}’"
_BARE = r"[^\s,;`\"'“”‘’→⇒]{1,120}"
_TERM = rf"(?:{_QUOTED}|{_BARE})"
_NOUN = (
    r"(?:the|this|that|its|each|every|all|any|an?|old|new|existing|current|name|names|of|to|called|named|uses|calls|"
    r"occurrences?|instances?|references?|usages?|functions?|methods?|class|classes|variables?|parameters?|params?|"
    r"arguments?|args?|fields?|attributes?|property|properties|constants?|types?|structs?|enums?|traits?|interfaces?|"
    r"modules?|packages?|imports?|keys?|strings?|text|words?|identifiers?|symbols?|columns?|options?|flags?|local|"
    r"global|private|public)"
)
# A word such as "key" or "a" is itself the name where a sentence goes on as it does after names.
_AFTER_NAME = (
    r"(?:to|into|with|by|as|and|or|should|must|needs?|shall|will|is|are|becomes?|be|has|have|instead|rather|in|for|over|"
    r"everywhere|throughout|across|within|inside)\b|[-=]{1,2}>|[→⇒➜➔,(]"
)
_NOUNS = rf"(?:{_NOUN}\s+(?!{_AFTER_NAME}))*+"
_LIST = rf"{_TERM}(?:\s*(?:,|,?\s+and\s)\s*(?!(?:rename|replace|change)\b){_NOUNS}{_TERM}){{0,4}}?"
_ARROW = r"(?:->|-->|=>|==>|→|⇒|➜|➔)"
_TO = rf"(?:\s*{_ARROW}\s*|\s+(?:to(?:\s+be(?:\s+(?:called|named))?)?|into|with|by|as)\s+)"
# What becomes "a comprehension" or "an error" is prose.
_TO += rf"(?!an?\s+(?!{_AFTER_NAME}))"
_NEW_LIST = rf"{_TERM}(?:\s*(?:,|,?\s+and\s)\s*(?!{_NOUNS}{_TERM}{_TO}){_NOUNS}{_TERM}){{0,4}}"
_LISTED = re.compile(rf"(?:^|\s*,?\s*\band\s+|\s*,\s*){_NOUNS}({_TERM})", re.IGNORECASE)
_VERB = (
    r"(?:re-?nam(?:e|ed|es|ing)|chang(?:e|ed|es|ing)|replac(?:e|ed|es|ing)|convert(?:ed|s|ing)?|switch(?:ed|es|ing)?|"
    r"migrat(?:e|ed|es|ing)|mov(?:e|ed|es|ing)|turn(?:ed|s|ing)?|port(?:ed|s|ing)?|updat(?:e|ed|es|ing)|swap(?:ped|s)?)"
)
_BE = r"(?:should|must|needs?\s+to|ought\s+to|has\s+to|have\s+to|will|shall|can|is|are)(?:\s+now)?(?:\s+be)?"
_BECOME = r"(?:called|named|re-?named(?:\s+to)?|replaced\s+(?:with|by)|changed\s+(?:to|into))"

_START = r"(?<![^\s,;:(])"

_OLD_TO_NEW = (
    rf"\b{_VERB}\s+(?:from\s+)?{_NOUNS}(?P<old>{_LIST}){_TO}{_NOUNS}(?P<new>{_NEW_LIST})",
    rf"\bfrom\s+{_NOUNS}(?P<old>{_TERM})\s+to\s+{_NOUNS}(?P<new>{_TERM})",
    rf"{_START}(?P<old>{_LIST})\s*{_ARROW}\s*(?P<new>{_NEW_LIST})",
    rf"{_START}(?P<old>{_TERM})\s+(?:{_BE}\s+{_BECOME}|becomes|should\s+become|must\s+become)\s+{_NOUNS}(?P<new>{_TERM})",
    rf"{_START}(?P<old>{_TERM}),?\s+(?:so\s+|please\s+)?make\s+(?:it|that)\s+{_NOUNS}(?P<new>{_TERM})",
    rf"\bcall\s+{_NOUNS}(?P<old>{_TERM})\s+{_NOUNS}(?P<new>{_TERM})(?=\s+(?:from|every|through|instead)|\s*[.,;!]|\s*$)",
    rf"\bswap\s+{_NOUNS}(?P<old>{_TERM})\s+for\s+{_NOUNS}(?P<new>{_TERM})",
)
_NEW_FOR_OLD = (
    rf"{_START}(?P<new>{_TERM})\s+(?:instead\s+of|rather\s+than|in\s+place\s+of)\s+{_NOUNS}(?P<old>{_TERM})",
    rf"\bsubstitute\s+{_NOUNS}(?P<new>{_TERM})\s+for\s+{_NOUNS}(?P<old>{_TERM})",
    rf"\bprefer\s+{_NOUNS}(?P<new>{_TERM})\s+(?:over|to)\s+{_NOUNS}(?P<old>{_TERM})",
    rf"\binstead\s+of\s+{_NOUNS}(?P<old>{_TERM}),?\s+(?:use|call\s+it|write|say|import)\s+{_NOUNS}(?P<new>{_TERM})",
)
_PATTERNS = tuple(re.compile(pattern + r"(?=$|[\s,;.:!?)\]])", re.IGNORECASE) for pattern in _OLD_TO_NEW + _NEW_FOR_OLD)
_MORE = re.compile(
    rf"\s*(?:,\s*(?:and\s+)?|;\s*(?:and\s+)?|\s+and\s+|\s+as\s+well\s+as\s+)(?:{_VERB}\s+)?{_NOUNS}"
    rf"(?P<old>{_TERM}){_TO}{_NOUNS}(?P<new>{_TERM})",
    re.IGNORECASE,
)
_SED = re.compile(r"(?<!\w)s([/|#,])(?P<old>[^/|#,\n]{1,200})\1(?P<new>[^/|#,\n]{1,200})\1")
_UNNAMED = re.compile(
    rf"\b(?:re-?name|change\s+the\s+name\s+of)\s+(?:the|this|that)\s+(?P<noun>\w+)\s+to\s+{_NOUNS}(?P<new>{_TERM})"
    rf"|\bcall\s+(?:the|this|that)\s+(?P<called>\w+)\s+(?P<name>{_TERM})\s*(?=$|[.;,!]|\binstead\b)",
    re.IGNORECASE,
)
_KIND_OF_NOUN = {
    "function": r"(?:def|fn|func|function\s*\*?)\s+(?:\([^)\n]*\)\s*)?",
    "method": r"(?:def|fn|func|function\s*\*?)\s+(?:\([^)\n]*\)\s*)?",
    "class": r"class\s+",
    "struct": r"(?:struct|type)\s+",
    "type": r"(?:type|class|struct|enum|interface)\s+",
    "enum": r"enum\s+",
    "trait": r"trait\s+",
    "interface": r"(?:interface|type)\s+",
}
_PROSE = (
    "and as be been but by do does for from has have if in is it its more not of on one or so such that the them then"
    " they this to too use using via was we when where which with you something other another code file here"
)
_NO_NAMES = frozenset(_PROSE.split())
_RESUME = re.compile(r"""\w++|[)\]}>"'`]++|[^\w\s](?=\n)|;|\n++""")
_LINE_ENDS = re.compile(r"\n++")


def substitutions_of(instruction: str, text: str) -> tuple[tuple[str, str], ...]:
    """The pairs (old, new) that an instruction names and whose old side stands in `text`, in one of its spellings.

    Example: `substitutions_of("rename a to b and c to d", "a = c")` is `(("a", "b"), ("c", "d"))`.
    """
    instruction = instruction[:_MAX_CHARS]
    kinds = {(match["noun"] or match["called"]).lower() for match in _UNNAMED.finditer(instruction)}
    pairs: dict[str, str] = {}
    for old, new in _named(instruction, text):
        if old != new and old not in pairs and old not in kinds and _stands_in(text, old, new):
            pairs[old] = new
    return tuple(pairs.items())[:_MAX_PAIRS]


def resume_offsets_of(text: str) -> tuple[int, ...]:
    """Where an answer may rejoin `text` after a change: code-point offsets, ascending.

    They are the ends of names, closed brackets, statements and lines, and the starts of lines, as the characters tell;
    at most 20,000. A longer text has them for its lines alone, then for every second, third, ... line.
    """
    offsets = [match.end() for match in _RESUME.finditer(text)]
    if len(offsets) > _MAX_OFFSETS:
        offsets = [offset for match in _LINE_ENDS.finditer(text) for offset in match.span() if offset]
    step = -(-len(offsets) // _MAX_OFFSETS) or 1
    return tuple(offsets[::step])


def _named(instruction: str, text: str) -> Iterator[tuple[str, str]]:
    for pattern in _PATTERNS:
        for match in pattern.finditer(instruction):
            yield from _paired(match)
            end = match.end()
            while more := _MORE.match(instruction, end):
                yield from _paired(more)
                end = more.end()
    for match in _SED.finditer(instruction):
        yield match["old"], match["new"]
    for match in _UNNAMED.finditer(instruction):
        kind = _KIND_OF_NOUN.get((match["noun"] or match["called"]).lower())
        new = _bare(match["new"] or match["name"])
        if kind and _is_name(new) and (defined := re.search(rf"\b{kind}(\w+)", text)):
            yield defined[1], new


def _paired(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    old, new = _terms(match["old"]), _terms(match["new"])
    if len(new) > 1 and len(old) == 1:
        new = new[:1]
    if len(old) > 1 and len(new) == 1:
        old = old[-1:]
    if len(old) != len(new):
        return
    for one, other in zip(old, new, strict=True):
        one_bare, other_bare = _bare(one), _bare(other)
        if _is_name(one_bare) and _is_name(other_bare):
            yield one_bare, other_bare


def _terms(listed: str) -> list[str]:
    return [match[1] for match in _LISTED.finditer(listed)]


def _bare(term: str) -> str:
    """A term without its quotes, the punctuation of its sentence and the brackets of a call."""
    if len(term) > 2 and re.fullmatch(_QUOTED, term):
        return term[1:-1].removesuffix("()")
    return (
        term.rstrip(".:!?")
        .removesuffix("()")
        .rstrip(")" if "(" not in term else "")
        .lstrip("(" if ")" not in term else "")
    )


def _is_name(term: str) -> bool:
    return bool(re.search(r"\w", term)) and term.lower() not in _NO_NAMES


def _stands_in(text: str, old: str, new: str) -> bool:
    """Whether `old`, or another spelling of it, stands in the text as a whole word or within a name."""
    return any(
        re.search(
            rf"(?<![^\W_]){re.escape(form)}(?![^\W_])" if form == old else rf"(?<!\w){re.escape(form)}(?!\w)", text
        )
        for form in spellings(old, new)
        if form in text
    )
