"""Formulas for a page without scripts or fonts: LaTeX is converted to MathML, which browsers typeset.

The translation is by latex2mathml.  This module corrects its errors and replaces what browsers do not support: large
norms and braces, names of several letters, the space around them, signs, and limits below ``sup``.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
THIN = "0.167em"
RELATIONS = set("=<>≤≥∼∝→←⇒⇔⟺⟹≈≠∈")
OPENING, CLOSING, UPRIGHT = set("([{⟨⌈⌊"), set(")]}⟩⌉⌋"), set("|‖")
DOUBLE_STRUCK = {"E": "𝔼", "P": "ℙ", "R": "ℝ", "N": "ℕ", "Z": "ℤ"}
LIMITS = {"sup", "inf", "min", "max", "lim", "argmin", "argmax"}
SCRIPTS = ("msub", "msup", "msubsup", "munder", "mover", "munderover")
UNKNOWN = re.compile(r"\\(arg|argmin|argmax)(?![A-Za-z])")  # names of functions that latex2mathml does not know
OPERATOR = re.compile(r"\\operatorname\s*(\*?)\s*\{([^{}]*)\}")
SPACES = re.compile(r"\\[,;:! ]|~|\s+")
LONG = 8  # minimum number of symbols in a line before a sum may continue in the next one


class FormulaError(ValueError):
    """A formula that cannot be translated."""


def mathml(latex: str) -> str:
    r"""A displayed formula as HTML.

    A wide space (``\quad``) splits the formula into parts, which a narrow page sets below each other.  A part that is
    still too long may break before a relation, or before a plus far from its beginning.

    Parameters
    ----------
    latex : str
        A formula, without dollar signs.

    Returns
    -------
    str
        ``<span>`` elements with ``<math>`` elements.

    Raises
    ------
    FormulaError
        If a command is not known, or the braces do not match.

    Examples
    --------
    >>> mathml(r"\sqrt d")
    '<span><math displaystyle="true"><mrow><msqrt><mi>d</mi></msqrt></mrow></math></span>'
    >>> mathml(r"a^2 + b^2 = c^2").count("<math")
    2
    """
    from latex2mathml.converter import convert

    below = set(LIMITS)  # names whose index stands below them

    def operator(found: re.Match) -> str:
        name = SPACES.sub("\u00a0", found[2].strip())
        below.update([name] if found[1] else [])
        return rf"\operatorname{{{name}}}"

    try:
        named = OPERATOR.sub(operator, UNKNOWN.sub(r"\\operatorname{\1}", latex))
        tree = ET.fromstring(convert(named, display="block"))
    except Exception as error:  # its errors have no common class, and are uninformative
        raise FormulaError(f"latex: {latex!r} was not understood ({type(error).__name__} {error})") from error
    for element in tree.iter():
        element.tag = element.tag.removeprefix(NAMESPACE)
    _mend_symbols(tree, below)
    _mend_rows(tree)
    for element in tree.iter():
        stray = element.tag in ("mi", "mo") and (len(element) or (element.tag == "mi" and element.text in ("{", "}")))
        if stray or "\\" in (element.text or ""):
            raise FormulaError(f"latex: {latex!r} has {element.text!r}, which is not known or has no partner")
    body = list(tree[0]) if len(tree) == 1 and tree[0].tag == "mrow" else list(tree)
    return " ".join(f"<span>{' '.join(map(_written, part))}</span>" for part in _parts(body))


BOXED = re.compile(r"\\boxed\{\s*(?:\\;)?(.*?)(?:\\;)?\s*\}", re.DOTALL)


def formula(latex: str, block: bool) -> str:
    r"""A formula in a page of prose, inline or displayed, with a frame around ``\boxed`` parts.

    Parameters
    ----------
    latex : str
    block : bool

    Examples
    --------
    >>> formula("x", block=False)
    '<span><math><mrow><mi>x</mi></mrow></math></span>'
    """
    boxed = BOXED.fullmatch(latex.strip())
    text = (boxed[1] if boxed else latex).replace("{aligned}", "{align*}")  # latex2mathml knows this one alone
    made = mathml(text.strip())
    if not block:
        return made.replace(' displaystyle="true"', "")
    frame = "display: inline-block; border: 1px solid; padding: 0.4em 1em" if boxed else ""
    return f'<div style="text-align: center; margin: 1em 0; overflow-x: auto"><div style="{frame}">{made}</div></div>'


def _written(children: Any) -> str:
    math = ET.Element("math", displaystyle="true")
    ET.SubElement(math, "mrow").extend(children)
    return ET.tostring(math, encoding="unicode")


# --- symbols ----------------------------------------------------------------------------------------------------------


def _mend_symbols(tree: Any, below: set[str]) -> None:
    for element in tree.iter():
        text = element.text or ""
        if element.get("mathvariant") == "double-struck" and text in DOUBLE_STRUCK:
            del element.attrib["mathvariant"]  # browsers know only "normal"
            element.text = DOUBLE_STRUCK[text]
        if element.tag == "mrow" and len(element) > 1 and all(_is_letter(child) for child in element):
            letters = "".join(child.text for child in element)  # \mathrm{rand} gives four identifiers
            bold = element[0].get("mathvariant") == "bold"
            _become(element, "mi", letters, **({"mathvariant": "bold"} if bold else {}))
        elif element.tag == "mo" and text in (r"\|", r"\{", r"\}", r"\lVert", r"\rVert"):
            # after \Big they come raw
            element.text = "‖" if text[1] not in "{}" else text[1]
        elif element.tag == "mi" and text in ("⟨", "⟩"):
            _become(element, "mo", text, stretchy="false")
        elif element.tag == "mi" and text == ":":
            _become(element, "mo", text)
        elif element.tag == "mo" and len(text) > 1 and text.replace("\u00a0", "").isalpha():
            _become(element, "mi", text)  # a function's name; as an operator it would stand far from its argument
        if element.tag == "mo" and element.text in UPRIGHT | {"/"}:
            element.attrib |= {"lspace": "0", "rspace": "0"}
            if element.get("minsize"):
                element.set("stretchy", "true")
    for element in tree.iter():
        if element.tag == "msub" and _name(element[0]) in below:
            element.tag = "munder"


def _is_letter(element: Any) -> bool:
    return element.tag == "mi" and element.get("mathvariant") in ("normal", "bold") and len(element.text or "") == 1


def _become(element: Any, tag: str, text: str, **attributes: Any) -> None:
    tail = element.tail
    element.clear()
    element.tag, element.text, element.tail = tag, text, tail
    element.attrib.update(attributes)


def _name(element: Any) -> str:
    """The name of a function such as log or sup, without sub- and superscripts; empty if it is not one."""
    if element.tag in SCRIPTS:
        element = element[0]
    text = element.text or ""
    return text if element.tag == "mi" and len(text) > 1 and text.replace("\u00a0", "").isalpha() else ""


# --- rows -------------------------------------------------------------------------------------------------------------


def _mend_rows(tree: Any) -> None:
    """Fix the space around names of functions, and between signs and their numbers."""
    for row in list(tree.iter()):
        if row.tag not in ("mrow", "mstyle", "math", "msqrt"):
            continue
        children = list(row)
        for index, child in enumerate(children):
            before = children[index - 1] if index else None
            after = children[index + 1] if index + 1 < len(children) else None
            if child.tag == "mo" and child.text in ("+", "−") and (before is None or _opens(before)):
                child.attrib |= {"form": "prefix", "lspace": "0", "rspace": "0"}
            if _name(child) and after is not None and (after.tag != "mo" or after.text == "∑"):
                row.insert(list(row).index(child) + 1, ET.Element("mspace", width=THIN))
            if _name(child) and before is not None and _is_operand(before):
                row.insert(list(row).index(child), ET.Element("mspace", width=THIN))


def _opens(element: Any) -> bool:
    """Whether a minus after this element is a sign."""
    return element.tag == "mspace" or (element.tag == "mo" and (element.text or "") in OPENING | RELATIONS | set(",:/"))


def _is_operand(element: Any) -> bool:
    if element.tag in SCRIPTS:
        element = element[0]
    closes = element.tag == "mo" and element.text in CLOSING
    return closes or (element.tag in ("mi", "mn", "mfrac", "msqrt") and not _name(element))


# --- lines ------------------------------------------------------------------------------------------------------------


def _parts(children: Any) -> list[list[list]]:
    """The formula in parts, divided by wide spaces, and these in pieces, before relations and late plus signs."""
    parts: list[list[list]] = [[[]]]
    depth, inside, length = 0, dict.fromkeys(UPRIGHT, False), 0
    for child in children:
        base = child[0] if child.tag in SCRIPTS else child
        text = (base.text or "") if base.tag == "mo" else ""
        if text in UPRIGHT:
            inside[text] = not inside[text]
        depth += (text in OPENING) - (text in CLOSING)
        outside = not depth and not any(inside.values())
        wide = child.tag == "mspace" and child.get("width") in ("1em", "2em")
        follows = text in RELATIONS or (text in ("+", "−") and child.get("form") != "prefix" and length > LONG)
        if outside and wide:
            parts.append([[]])
            length = 0
            continue
        if outside and follows and parts[-1][-1]:
            parts[-1].append([])
            length = 0
            child.attrib |= {"form": "infix", "lspace": "0"}  # the blank between the pieces is space enough
        parts[-1][-1].append(child)
        length += sum(1 for symbol in child.iter() if symbol.text)
    return [part for part in parts if part[0]]
