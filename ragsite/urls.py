from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path
from django.utils.translation import gettext_lazy as _
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from chat.api import mcp
from chat.api.urls import openai_urlpatterns
from ragsite import help as help_pages
from ragsite import site_identity
from ragsite.accounts import views as accounts
from ragsite.http import text_files
from ragsite.operations import health_views as health
from ragsite.slack import receiving as slack

admin.site.site_header = "Ragsite"
admin.site.site_title = "Ragsite"
admin.site.index_title = _("Documents and answers")

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("ragsite.accounts.urls")),
    path("account/keys/", accounts.manage_api_keys, name="account_keys"),
    path("account/keys/<int:key_id>/revoke/", accounts.revoke_key, name="account_key_revoke"),
    path("account/data/", accounts.manage_own_data, name="account_data"),
    path("account/data/export/", accounts.export_own_data, name="account_export"),
    path("api/v1/", include("retrieval.api.urls")),
    path("api/v1/", include("chat.api.urls")),
    path("v1/", include((openai_urlpatterns, "openai_api"))),
    path("mcp", mcp.McpView.as_view(), name="mcp"),
    path("mcp/", mcp.McpView.as_view()),
    re_path(
        r"^\.well-known/oauth-protected-resource(?:/mcp)?/?$",
        mcp.oauth_protected_resource,
        name="oauth_protected_resource",
    ),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    # The content security policy forbids scripts within pages, so a view serves this one.
    path(
        "api/docs/",
        SpectacularSwaggerSplitView.as_view(url_name="schema", template_name="api/docs.html"),
        name="api_docs",
    ),
    path("language/", include("django.conf.urls.i18n")),
    path("logo/<slug:version>", site_identity.logo, name="logo"),
    path("slack/events", slack.receive_slack_events, name="slack_events"),
    path("llms.txt", text_files.llms_txt, name="llms_txt"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("help/", help_pages.index, name="help"),
    path("help/<slug:slug>/", help_pages.chapter, name="help_chapter"),
    path("documents/", include("retrieval.urls")),
    path("", include("chat.urls")),
]

if settings.MCP_SIGN_IN:
    urlpatterns = [path("", include("ragsite.accounts.mcp_sign_in")), *urlpatterns]

handler400 = "ragsite.http.errors.bad_request"
handler403 = "ragsite.http.errors.permission_denied"
handler404 = "ragsite.http.errors.page_not_found"
handler500 = "ragsite.http.errors.server_error"
