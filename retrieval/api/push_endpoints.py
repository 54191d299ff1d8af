"""Receive documents that other programs send to a source of the kind Push."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, QueryDict
from django.shortcuts import get_object_or_404
from django.urls.converters import StringConverter
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.exceptions import APIException, PermissionDenied, ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from core import disk
from core.api.fields import ProblemSerializer
from core.api.permissions import StaffWithPermission
from core.api.problems import ApiView, InsufficientStorage, JSONParser
from core.exceptions import DiskFull
from core.key_limits import KeyScope
from core.users import is_staff_with
from retrieval.api.push_serializers import (
    AnyBatchSerializer,
    ExternalIdField,
    MomentField,
    PushBatchResponseSerializer,
    PushBatchSerializer,
    PushedItemSerializer,
    PushFileSerializer,
    PushOperationSerializer,
    PushTextSerializer,
)
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document, PushedItem, Source
from retrieval.models.narrowing import MAIL, build_reader_name_from_address
from retrieval.models.pushed import list_push_sources
from retrieval.sources.pushes import (
    PushBusy,
    PushedDocument,
    PushForbidden,
    PushOutdated,
    SourceGone,
    delete_document,
    put_document,
    read_file,
    read_text,
)


class ExternalIdConverter(StringConverter):
    """A URL converter that matches the rest of an address, including slashes and line breaks."""

    regex = r"(?s:.+)"


class MaySend(StaffWithPermission):
    # Replacing a document also needs the permission to change it, which is checked later.
    actions = {**StaffWithPermission.actions, "PUT": "add"}


class MayPushOrDeleteDocuments(StaffWithPermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        names = ("add", "delete") if request.method == "POST" else ("view",)
        return any(is_staff_with(request.user, f"retrieval.{name}_document") for name in names)


class PushConflict(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_code = "conflict"


class _PushView(ApiView):
    """Base class of the views that change documents of one source."""

    queryset = Document.objects.all()
    key_scopes = (KeyScope.DOCUMENTS_WRITE,)
    writing_scopes = (KeyScope.DOCUMENTS_WRITE,)
    takes_source_keys = True

    def find_source(self) -> Source:
        sources = list_push_sources(self.request.user).select_related("collection")
        source: Source = get_object_or_404(sources, pk=self.kwargs["source_id"])
        return source

    def convert_error(self, error: Exception) -> Exception:
        match error:
            case PushOutdated() | PushBusy():
                return PushConflict(str(error))
            case PushForbidden():
                return PermissionDenied(str(error))
            case SourceGone():
                return super().convert_error(Http404())
            case DiskFull():
                return InsufficientStorage(disk.get_disk_full_message())
            case DocumentRejected():
                return ValidationError({"detail": str(error)})
        return super().convert_error(error)


_ID = OpenApiParameter(
    "external_id", OpenApiTypes.STR, OpenApiParameter.PATH, description="Your own name of it, percent-encoded."
)
_SENT = {200: PushedItemSerializer, 202: PushedItemSerializer, 409: ProblemSerializer}


@extend_schema(parameters=[_ID])
class PushedDocumentView(_PushView):
    """One document of a source of the kind Push. The program that sends it has chosen its id."""

    permission_classes = [MaySend]
    parser_classes = [JSONParser, MultiPartParser]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.external_id = _validate_field(ExternalIdField(), "external_id", kwargs["external_id"])

    @extend_schema(operation_id="pushed_document_retrieve", responses=PushedItemSerializer)
    def get(self, request: Request, source_id: int, external_id: str) -> Response:
        """Return the state of one document: what was sent last, and the status and progress of its processing."""
        items = self.find_source().pushed_items.filter(external_id=self.external_id).exclude(name="")
        item = next(iter(items.with_documents()), None)
        readable = Document.objects.readable_by(request.user)
        if item is None or item.document is None or not readable.filter(pk=item.document.pk).exists():
            raise Http404
        return Response(PushedItemSerializer(item).data)

    @extend_schema(
        operation_id="pushed_document_put",
        # With two content types, openapi-python-client 0.29 generates a broken module.
        request={"application/json": PushTextSerializer},
        responses=_SENT,
    )
    def put(self, request: Request, source_id: int, external_id: str) -> Response:
        """Add or replace a document, as a text or a file; 200 if it is unchanged, 409 if the site has a later state.

        The status is also 409 while only drafts may change the documents of the collection. A form
        (`multipart/form-data`) has `file` in place of `text` and `content_type`.
        """
        source = self.find_source()
        if request.content_type.startswith("multipart/"):
            files = [file for file in request.FILES.getlist("file") if isinstance(file, UploadedFile)]
            if len(files) > 1:
                raise ValidationError({"file": ["Send one file."]})
            form: QueryDict = request.data  # type: ignore[assignment]  # what a multipart body is parsed into
            values = {name: value for name, value in form.items() if name != "file"}
            sent = _validate(PushFileSerializer(data={**values, **({"file": files[0]} if files else {})}))
            data, extension = read_file(sent["file"])
        else:
            sent = _validate(PushTextSerializer(data=request.data))
            data, extension = read_text(sent["text"], sent["content_type"])
        item = put_document(source, request.user, _build_pushed_document(self.external_id, data, extension, sent))
        code = status.HTTP_200_OK if item.result == PushedItem.Result.UNCHANGED else status.HTTP_202_ACCEPTED
        return Response(PushedItemSerializer(item).data, status=code)

    @extend_schema(
        operation_id="pushed_document_delete",
        parameters=[OpenApiParameter("changed_at", OpenApiTypes.DATETIME, description="When it was deleted there.")],
        responses={204: None, 409: ProblemSerializer},
    )
    def delete(self, request: Request, source_id: int, external_id: str) -> Response:
        """Delete a document. It is no error if the document was deleted before."""
        source = self.find_source()
        moment = request.query_params.get("changed_at") or None
        changed_at = _validate_field(MomentField(), "changed_at", moment) if moment else None
        delete_document(source, request.user, self.external_id, changed_at)
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(
    get=extend_schema(exclude=True), put=extend_schema(exclude=True), delete=extend_schema(exclude=True)
)
class PushBatchView(PushedDocumentView):
    """Several documents in one request. The address ends with `batch`, which is also a valid id of a document.

    POST sends a batch. The other methods act on the document whose id is `batch`.
    """

    def get_permissions(self) -> list[Any]:
        return [MayPushOrDeleteDocuments()] if self.request.method == "POST" else list(super().get_permissions())

    @extend_schema(
        operation_id="pushed_document_batch",
        request={"application/json": PushBatchSerializer},
        responses=PushBatchResponseSerializer,
        parameters=[OpenApiParameter("external_id", exclude=True, location=OpenApiParameter.PATH)],
    )
    def post(self, request: Request, source_id: int, external_id: str) -> Response:
        """Put and delete up to 100 documents. Each has its own result, and a refused one does not stop the others."""
        source = self.find_source()
        batch = _validate(AnyBatchSerializer(data=request.data))
        return Response({"results": [self._apply_operation(source, sent) for sent in batch["items"]]})

    def _apply_operation(self, source: Source, body: Any) -> dict[str, object]:
        name = body.get("external_id") if isinstance(body, dict) else None
        outcome: dict[str, object] = {
            "external_id": name if isinstance(name, str) else "",
            "result": "refused",
            "status": status.HTTP_400_BAD_REQUEST,
            "document": None,
            "error": "",
        }
        try:
            sent = _validate(PushOperationSerializer(data=body))
            item = self._put_or_delete_document(source, sent)
        except serializers.ValidationError as error:
            return {**outcome, "error": _read_first_error(error.detail)}
        except PushOutdated as error:
            return {**outcome, "result": "outdated", "status": status.HTTP_409_CONFLICT, "error": str(error)}
        except (DocumentRejected, PushBusy, PushForbidden, SourceGone, DiskFull) as error:
            refusal = self.convert_error(error)
            code = refusal.status_code if isinstance(refusal, APIException) else status.HTTP_400_BAD_REQUEST
            return {**outcome, "status": code, "error": str(error)}
        if item is None or item.result == PushedItem.Result.DELETED:
            return {**outcome, "result": PushedItem.Result.DELETED, "status": status.HTTP_204_NO_CONTENT}
        is_same = item.result == PushedItem.Result.UNCHANGED
        return {
            **outcome,
            "result": item.result,
            "status": status.HTTP_200_OK if is_same else status.HTTP_202_ACCEPTED,
            "document": item.document.pk if item.document else None,
        }

    def _put_or_delete_document(self, source: Source, sent: dict[str, Any]) -> PushedItem | None:
        user, name = self.request.user, sent["external_id"]
        permission = "retrieval.delete_document" if sent["action"] == "delete" else "retrieval.add_document"
        if not is_staff_with(user, permission):
            raise PushForbidden(StaffWithPermission.message)
        if sent["action"] == "delete":
            return delete_document(source, user, name, sent.get("changed_at"))
        data, extension = read_text(sent["text"], sent["content_type"])
        return put_document(source, user, _build_pushed_document(name, data, extension, sent))


def _validate(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    validated: dict[str, Any] = serializer.validated_data
    return validated


def _validate_field(field: serializers.Field[Any, Any, Any, Any], name: str, value: str) -> Any:
    try:
        return field.run_validation(value)
    except ValidationError as error:
        raise ValidationError({name: error.detail}) from error


def _build_pushed_document(external_id: str, data: bytes, extension: str, sent: dict[str, Any]) -> PushedDocument:
    readers = sent.get("readers")
    return PushedDocument(
        external_id=external_id,
        data=data,
        extension=extension,
        title=sent.get("title") or "",
        url=sent.get("url") or "",
        changed_at=sent.get("changed_at"),
        metadata=sent.get("metadata"),
        readers=_build_document_reader_names(readers) if readers is not None else None,
        is_for_everybody=bool(readers and readers["everybody"]),
    )


def _build_document_reader_names(readers: dict[str, Any]) -> tuple[str, ...]:
    # A group's name that begins with the prefix of mail addresses is left out. It would be read as a mail address, and
    # the account with this address could read the document.
    groups = (name for name in readers.get("groups", ()) if not name.startswith(MAIL))
    return (*groups, *map(build_reader_name_from_address, readers.get("users", ())))


def _read_first_error(detail: Any) -> str:
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        said = _read_first_error(inner)
        return said if name in ("non_field_errors", "detail") else f"{name}: {said}"
    return _read_first_error(detail[0]) if isinstance(detail, list) else str(detail)
