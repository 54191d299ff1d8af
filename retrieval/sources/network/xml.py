"""XML of other machines: no entities, no files, no network, no trees that fill the memory."""

from __future__ import annotations

from lxml import etree


def parse_xml(data: bytes) -> etree._Element:
    """Raises: ValueError for what is no XML."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from error


def children(element: etree._Element, name: str) -> list[etree._Element]:
    """Elements below with this name, in any namespace."""
    return list(element.iterfind(f".//{{*}}{name}"))


def text_of(element: etree._Element, name: str) -> str:
    """The text of the first element below with this name, in any namespace; empty without one."""
    return (element.findtext(f".//{{*}}{name}") or "").strip()
