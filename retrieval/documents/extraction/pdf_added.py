"""Read form fields, notes, attached files and layers of a PDF. Runs in the sandbox process, in one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_ulong, c_ushort, cast, create_string_buffer
from itertools import islice
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium_c

from retrieval.documents.extraction.archive import MemberCollector
from retrieval.documents.extraction.decoding import make_canonical_text
from retrieval.documents.extraction.printed import PrintedPage, insert_text_at, turn_box
from retrieval.text.extracted import LeftOutParts, describe_left_out_parts

_TICKED, _EMPTY = "☒", "☐"
_MOST_ANNOTATIONS = 5_000
_LONGEST_TEXT = 100_000
_UNSEEN = pdfium_c.FPDF_ANNOT_FLAG_HIDDEN | pdfium_c.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13
_DRAWN = (pdfium_c.FPDF_ANNOT_FREETEXT, pdfium_c.FPDF_ANNOT_STAMP)
_NO_COMMENT = (pdfium_c.FPDF_ANNOT_LINK, pdfium_c.FPDF_ANNOT_POPUP, pdfium_c.FPDF_ANNOT_FILEATTACHMENT)
_MOST_LAYERS = 20
_MOST_OBJECTS = 50_000
_DEEPEST_FORM, _MOST_PARTS = 3, 100
_LONGEST_NAME = 1_000
_UNNAMED = "\0"
_INVISIBLE = 3


class AddedPdfContent:
    """Collects the content of a PDF outside the text of its pages. Create it before a page is loaded.

    Attached files are added to ``members``.
    """

    def __init__(self, document: Any, data: bytes = b"", members: MemberCollector | None = None) -> None:
        self._document, self._members = document, members
        document.init_forms()
        self.comments = 0
        self.texts: list[str] = []
        self._has_fields = False
        # A form may be in a layer without naming it. If the file has layers, all such forms are checked.
        self._has_layers = b"/OCProperties" in data
        self._is_hidden: dict[str, bool] = {}

    def read_attachments(self) -> None:
        for number in range(min(self._document.count_attachments(), _MOST_ANNOTATIONS)):
            self._add_attachment(self._document.get_attachment(number))

    def _add_attachment(self, file: Any) -> None:
        if self._members is None:
            return
        try:
            self._members.add(file.get_name(), bytes(file.get_data()))
        except pypdfium2.PdfiumError:
            self._members.leave_out("unreadable", file.get_name())

    def is_xfa_form(self) -> bool:
        """Return whether this is an XFA form, which only Adobe's programs can show."""
        kind = self._document.get_formtype()
        return kind == pdfium_c.FORMTYPE_XFA_FULL or (kind == pdfium_c.FORMTYPE_XFA_FOREGROUND and not self._has_fields)

    def read_annotations(self, page: Any, printed: PrintedPage) -> None:
        """Insert the texts of form fields, text boxes and stamps into the lines of ``printed``."""
        for number in range(min(pdfium_c.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
            annotation = pdfium_c.FPDFPage_GetAnnot(page, number)
            try:
                if not pdfium_c.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
                    self._read_annotation(annotation, page, printed)
            finally:
                pdfium_c.FPDFPage_CloseAnnot(annotation)

    def _read_annotation(self, annotation: Any, page: Any, printed: PrintedPage) -> None:
        kind = pdfium_c.FPDFAnnot_GetSubtype(annotation)
        if kind == pdfium_c.FPDF_ANNOT_FILEATTACHMENT:
            file = pdfium_c.FPDFAnnot_GetFileAttachment(annotation)
            if file:
                self._add_attachment(pypdfium2.PdfAttachment(file, self._document))
        text = (
            self._read_form_field(annotation)
            if kind == pdfium_c.FPDF_ANNOT_WIDGET
            else _read_pdfium_string(pdfium_c.FPDFAnnot_GetStringValue, annotation, b"Contents")
        )
        if not text.strip():
            return
        if kind == pdfium_c.FPDF_ANNOT_WIDGET or kind in _DRAWN:
            sides = pdfium_c.FS_RECTF()
            pdfium_c.FPDFAnnot_GetRect(annotation, byref(sides))
            left, _bottom, _right, top = page.get_bbox()
            box = (sides.left - left, top - sides.top, sides.right - left, top - sides.bottom)
            turned = (page.get_rotation() - printed.turned) % 360
            self.texts.append(text)
            insert_text_at(printed.lines, text, turn_box(box, turned, printed.width, printed.height))
        elif kind not in _NO_COMMENT:
            self.comments += 1

    def _read_form_field(self, annotation: Any) -> str:
        form = self._document.formenv
        if form is None:
            return ""
        self._has_fields = True
        kind = pdfium_c.FPDFAnnot_GetFormFieldType(form, annotation)
        if kind in (pdfium_c.FPDF_FORMFIELD_CHECKBOX, pdfium_c.FPDF_FORMFIELD_RADIOBUTTON):
            return _TICKED if pdfium_c.FPDFAnnot_IsChecked(form, annotation) else _EMPTY
        if kind in (pdfium_c.FPDF_FORMFIELD_COMBOBOX, pdfium_c.FPDF_FORMFIELD_LISTBOX):
            options = range(max(0, pdfium_c.FPDFAnnot_GetOptionCount(form, annotation)))
            chosen = [at for at in options if pdfium_c.FPDFAnnot_IsOptionSelected(form, annotation, at)]
            labels = [_read_pdfium_string(pdfium_c.FPDFAnnot_GetOptionLabel, form, annotation, at) for at in chosen]
            if labels:
                return ", ".join(labels)
        elif kind != pdfium_c.FPDF_FORMFIELD_TEXTFIELD:
            return ""
        is_secret = pdfium_c.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD
        return "" if is_secret else _read_pdfium_string(pdfium_c.FPDFAnnot_GetFormFieldValue, form, annotation)

    def hide_undrawn_layers(self, page: Any) -> None:
        layers: dict[str, list[Any]] = {}
        for number in range(min(pdfium_c.FPDFPage_CountObjects(page), _MOST_OBJECTS)):
            found = pdfium_c.FPDFPage_GetObject(page, number)
            kind = pdfium_c.FPDFPageObj_GetType(found)
            name = _read_layer_name(found) if pdfium_c.FPDFPageObj_CountMarks(found) > 0 else ""
            if not name and kind == pdfium_c.FPDF_PAGEOBJ_FORM and self._has_layers:
                name = f"{_UNNAMED}{len(self._is_hidden)}.{number}"
            if name:
                layers.setdefault(name, []).append(found)
        for name, objects in islice(layers.items(), _MOST_LAYERS):
            if name not in self._is_hidden:
                self._is_hidden[name] = _is_undrawn(page, objects)
            if self._is_hidden[name]:
                _set_page_objects_active(objects, is_active=False)

    @property
    def hidden_layers(self) -> tuple[LeftOutParts, ...]:
        hidden = [name for name, is_hidden in self._is_hidden.items() if is_hidden]
        return describe_left_out_parts(
            "layers", [make_canonical_text(name) for name in hidden if _UNNAMED not in name], len(hidden)
        )


def _read_layer_name(found: Any) -> str:
    names = []
    for number in range(pdfium_c.FPDFPageObj_CountMarks(found)):
        mark = pdfium_c.FPDFPageObj_GetMark(found, number)
        if _read_mark_string(pdfium_c.FPDFPageObjMark_GetName, mark) == "OC":
            names.append(_read_mark_string(pdfium_c.FPDFPageObjMark_GetParamStringValue, mark, b"Name") or _UNNAMED)
    return " ".join(names)


def _is_undrawn(page: Any, objects: Sequence[Any]) -> bool:
    if not any(_has_visible_text(found, _DEEPEST_FORM) for found in objects):
        return False
    pictures = []
    for is_active in (False, True):
        _set_page_objects_active(objects, is_active=is_active)
        bitmap = page.render(grayscale=True)
        pictures.append(bytes(bitmap.buffer))
        bitmap.close()
    return pictures[0] == pictures[1]


def _has_visible_text(found: Any, depth: int) -> bool:
    kind = pdfium_c.FPDFPageObj_GetType(found)
    if kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth:
        parts = range(min(pdfium_c.FPDFFormObj_CountObjects(found), _MOST_PARTS))
        return any(_has_visible_text(pdfium_c.FPDFFormObj_GetObject(found, at), depth - 1) for at in parts)
    return bool(kind == pdfium_c.FPDF_PAGEOBJ_TEXT and pdfium_c.FPDFTextObj_GetTextRenderMode(found) != _INVISIBLE)


def _set_page_objects_active(objects: Sequence[Any], *, is_active: bool) -> None:
    for found in objects:
        pdfium_c.FPDFPageObj_SetIsActive(found, is_active)


def _read_pdfium_string(function: Callable[..., int], *arguments: Any) -> str:
    size = min(function(*arguments, None, 0), _LONGEST_TEXT)
    buffer = create_string_buffer(max(size, 2))
    function(*arguments, cast(buffer, POINTER(c_ushort)), size)
    return buffer.raw[: size - size % 2].decode("utf-16-le", "replace").rstrip("\0")


def _read_mark_string(function: Callable[..., int], *arguments: Any) -> str:
    buffer, size = create_string_buffer(_LONGEST_NAME), c_ulong()
    is_found = function(*arguments, cast(buffer, POINTER(c_ushort)), len(buffer), byref(size))
    size_bytes = min(size.value, len(buffer)) if is_found else 0
    return buffer.raw[: size_bytes - size_bytes % 2].decode("utf-16-le", "replace").rstrip("\0")
