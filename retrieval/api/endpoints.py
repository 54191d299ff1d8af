from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, models
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, mixins, serializers, status, viewsets
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from core import disk
from core.api.fields import ProblemSerializer
from core.api.pagination import Pagination
from core.api.permissions import MayAsk, StaffOrAskersReadOnly, StaffWithPermission
from core.api.problems import ApiView, InsufficientStorage, JSONParser
from core.api.schema import ANY_TEXT
from core.dataclass_json import to_json
from core.exceptions import DiskFull
from core.key_limits import KeyScope
from core.user_types import AnyUser
from core.users import get_account, is_staff_with
from retrieval.api.serializers import (
    CollectionSerializer,
    DocumentSerializer,
    OfferedFilterSerializer,
    SearchRequestSerializer,
    SearchResponseSerializer,
    UploadResponseSerializer,
    UploadSerializer,
)
from retrieval.documents.drafts.editing import lock_collections_for_change
from retrieval.documents.submission import set_added_by, submit_upload
from retrieval.exceptions import DocumentRejected, InvalidQuery
from retrieval.models import Collection, CollectionStatistics, Document
from retrieval.rights.offered_filters import list_offered_filters
from retrieval.rights.search_filters import build_filters, check_filter_fields
from retrieval.rights.staff import grant_management
from retrieval.search.pipeline import search
from retrieval.search.search_places import wait_for_search_slot
from retrieval.search.trace import SearchResult, convert_hit_to_json
from retrieval.sources.web_page import submit_page
from retrieval.types import SearchFilters, SearchMethod


class SearchView(ApiView):
    tag = "Search"
    parser_classes = [JSONParser]
    permission_classes = [MayAsk]
    throttle_scope = "search"
    key_scopes = (KeyScope.SEARCH,)

    @extend_schema(request=SearchRequestSerializer, responses=SearchResponseSerializer)
    def post(self, request: Request) -> Response:
        """Return the passages that answer a question best, and why each has its rank."""
        asked, result = run_search_request(request)
        trace = result.trace
        answer: dict[str, object] = {
            "query_class": trace.query_class.value,
            "search_method": trace.search_method,
            "degraded": list(trace.degraded),
            "results": [convert_hit_to_json(hit) for hit in result.hits],
            "timings_ms": trace.timings_ms,
        }
        if asked["explain"]:
            may_see_errors = is_staff_with(request.user, "retrieval.view_searchprofile")
            answer["trace"] = to_json(trace if may_see_errors else trace.copy_without_errors())
        return Response(answer)


def run_search_request(request: Request, body: Any = None) -> tuple[dict[str, object], SearchResult]:
    """Return the checked body of a search request, and the result of the search.

    Raises: ValidationError; SearchBusy; SearchUnavailable.
    """
    wanted = SearchRequestSerializer(data=request.data if body is None else body)
    wanted.is_valid(raise_exception=True)
    asked = wanted.validated_data
    method = asked.get("method") or "default"
    try:
        # The filters are built after the wait, because a request that is refused must not read the database.
        with wait_for_search_slot():
            result = search(
                asked["query"],
                _build_requested_filters(request, asked),
                method=None if method == "default" else SearchMethod(method),
                top_k=asked.get("top_k"),
            )
    except InvalidQuery as error:
        raise ValidationError({"query": [str(error)]}) from error
    return asked, result


def _build_requested_filters(request: Request, asked: Mapping[str, Any]) -> SearchFilters:
    restrictions = {
        name: tuple(value) if isinstance(value, list) else value for name, value in (asked.get("filters") or {}).items()
    }
    try:
        filters = build_filters(request.user, asked.get("collection") or "", **restrictions)
    except InvalidQuery as error:
        raise ValidationError({"collection": [str(error)]}) from error
    try:
        check_filter_fields(filters)
    except InvalidQuery as error:
        raise ValidationError({"filters": [str(error)]}) from error
    return filters


class FiltersView(ApiView):
    tag = "Search"
    permission_classes = [MayAsk]
    key_scopes = (KeyScope.SEARCH, KeyScope.ASK)

    @extend_schema(
        operation_id="filters_list",
        parameters=[OpenApiParameter("collection", ANY_TEXT, description="Its short name; empty: all.")],
        responses=OfferedFilterSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """Return the filters that curators marked, with the values of documents that the caller may read."""
        slug = request.query_params.get("collection", "").replace("\0", "")
        if slug and not Collection.objects.readable_by(request.user).filter(slug=slug).exists():
            raise ValidationError({"collection": ["There is no collection with this short name."]})
        offered = list_offered_filters(request.user, slug)
        return Response([{**to_json(each), "part": each.filters_key} for each in offered])


@extend_schema_view(
    list=extend_schema(
        parameters=[
            OpenApiParameter("collection", ANY_TEXT, description="Short name of a collection."),
            OpenApiParameter("status", str, enum=[*Document.Status.values, ""]),
            OpenApiParameter("source", ANY_TEXT, description="Exactly this source."),
        ]
    )
)
class DocumentViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[Document],
    ApiView,
):
    """Documents, for staff with Django's permissions for them.

    Deleting a document removes its passages and its file; answers that cited it stay.
    """

    queryset = Document.objects.select_related("collection").order_by("pk")
    lookup_value_converter = "int"
    serializer_class = DocumentSerializer
    permission_classes = [StaffWithPermission]
    key_scopes = (KeyScope.SEARCH, KeyScope.DOCUMENTS_WRITE)
    writing_scopes = (KeyScope.DOCUMENTS_WRITE,)
    parser_classes = [MultiPartParser]
    pagination_class = Pagination

    def get_queryset(self) -> QuerySet[Document]:
        user = self.request.user
        curated = Collection.objects.curated_by(user)
        queryset = super().get_queryset().filter(pk__in=Document.objects.readable_by(user), collection__in=curated)
        if self.action != "list":
            return queryset
        wanted = _DocumentFilters(data=self.request.query_params)
        wanted.is_valid(raise_exception=True)
        for name, lookup in (("collection", "collection__slug"), ("status", "status"), ("source", "source")):
            if value := wanted.validated_data.get(name):
                queryset = queryset.filter(**{lookup: value})
        return queryset

    @extend_schema(
        request={"multipart/form-data": UploadSerializer},
        responses={202: UploadResponseSerializer, 400: UploadResponseSerializer},
    )
    def create(self, request: Request) -> Response:
        """Upload files, or fetch one page. Each file is judged alone.

        202 if at least one was accepted, 400 if none was, 507 if none was accepted because the disk is full.
        """
        sent: QueryDict = request.data  # type: ignore[assignment]  # what a multipart body is parsed into
        wanted = UploadSerializer(data={name: value for name, value in sent.items() if name != "file"})
        wanted.is_valid(raise_exception=True)
        fields = wanted.validated_data
        collection = Collection.objects.curated_by(request.user).filter(slug=fields["collection"]).first()
        if collection is None:
            raise ValidationError({"collection": ["There is no collection with this short name."]})
        files = [file for file in request.FILES.getlist("file") if isinstance(file, UploadedFile)]
        address = fields.get("url", "")
        if not files and not address:
            raise ValidationError(
                {"file": ["No file was sent: put each one into a form field named file, or send the url of a page."]}
            )
        for name in ("source", "title", "url"):
            if fields.get(name) and len(files) > 1:
                raise ValidationError({name: ["This can be given for one file at a time only."]})
        accepted: list[dict[str, object]] = []
        rejected: list[dict[str, str]] = []
        seen: set[str] = set()
        is_full = False
        handed_in: list[UploadedFile[Any] | None] = [*files] or [None]
        for file in handed_in:
            name = (file.name or "") if file else address
            submit = partial(submit_upload, upload=file, url=address) if file else partial(submit_page, address=address)
            try:
                if name in seen:
                    raise DocumentRejected(f"{name} was sent twice: give the files different names.")
                seen.add(name)
                submission = submit(
                    collection,
                    source=fields.get("source", ""),
                    title=fields.get("title", ""),
                    language=fields.get("language", ""),
                    metadata=fields.get("metadata"),
                    may_replace=request.user.has_perm("retrieval.change_document"),
                )
            except (DocumentRejected, DiskFull) as error:
                is_full = is_full or isinstance(error, DiskFull)
                rejected.append({"file": name, "error": str(error)})
            else:
                set_added_by(submission, request.user)
                accepted.append({**DocumentSerializer(submission.document).data, "changed": submission.changed})
        if is_full and not accepted:
            raise InsufficientStorage(disk.get_disk_full_message())
        answer = {"accepted": accepted, "rejected": rejected}
        return Response(answer, status=status.HTTP_202_ACCEPTED if accepted else status.HTTP_400_BAD_REQUEST)

    @extend_schema(responses={204: None, 409: ProblemSerializer})
    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Delete a document; 409 if its collection cannot be changed, or can be changed only by publishing a draft."""
        document = self.get_object()
        try:
            with lock_collections_for_change(document.collection_id):
                document.delete()
        except DocumentRejected as error:
            return Response({"detail": str(error)}, status=status.HTTP_409_CONFLICT)
        return Response(status=status.HTTP_204_NO_CONTENT)


class _DocumentFilters(serializers.Serializer[Any]):
    collection = serializers.CharField(required=False, allow_blank=True)
    status = serializers.ChoiceField(choices=Document.Status.choices, required=False, allow_blank=True)
    source = serializers.CharField(required=False, allow_blank=True)  # type: ignore[assignment]  # as above


class CollectionsView(generics.ListCreateAPIView[Collection], ApiView):
    """The collections in which the caller may search; staff with the permission may add a collection."""

    serializer_class = CollectionSerializer
    parser_classes = [JSONParser]
    permission_classes = [StaffOrAskersReadOnly]
    key_scopes = (KeyScope.SEARCH, KeyScope.ASK, KeyScope.DOCUMENTS_WRITE)
    writing_scopes = (KeyScope.ADMIN,)
    pagination_class = Pagination
    queryset = Collection.objects.all()

    def get_queryset(self) -> QuerySet[Collection]:
        user = self.request.user
        return annotate_readable_totals(Collection.objects.readable_by(user).in_service(), user)

    def perform_create(self, serializer: serializers.BaseSerializer[Collection]) -> None:
        try:
            collection = serializer.save()
        except IntegrityError:
            raise ValidationError({"slug": ["There is a collection with this short name already."]}) from None
        grant_management(collection, get_account(self.request))
        serializer.instance = annotate_readable_totals(
            Collection.objects.filter(pk=collection.pk), self.request.user
        ).get()


def annotate_readable_totals(collections: QuerySet[Collection], user: AnyUser) -> QuerySet[Collection]:
    """Annotate each collection with the numbers of documents and passages that ``user`` may read.

    The annotations are ``document_total`` and ``passage_total``.
    """
    readable = Document.objects.readable_by(user)
    documents = readable.filter(collection=OuterRef("pk")).order_by().values("collection")
    passages: QuerySet[Any, Any] = CollectionStatistics.objects.filter(collection=OuterRef("pk")).values("chunks")
    if build_filters(user).readers:
        passages = documents.values(total=models.Sum("chunk_count"))
    number = models.IntegerField()
    return collections.annotate(
        document_total=Coalesce(Subquery(documents.values(total=models.Count("pk")), output_field=number), 0),
        passage_total=Coalesce(Subquery(passages, output_field=number), 0),
    )
