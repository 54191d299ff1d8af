from __future__ import annotations

from allauth.socialaccount import views as social_views
from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from ragsite.accounts import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.show_account_overview, name="account_overview"),
    path("login/", views.SignInView.as_view(), name="account_login"),
    path("invitation/<str:token>/", views.invitation, name="account_invitation"),
    # allauth's pages link to this address.
    path("email/", RedirectView.as_view(pattern_name="account_overview"), name="account_email"),
    path("password/set/", views.explain_provider_password, name="account_set_password"),
    path("password/reset/", views.PasswordResetView.as_view(), name="account_reset_password"),
    path("", include("allauth.account.urls")),
    path("2fa/", include("allauth.mfa.urls")),
    path("sso/cancelled/", social_views.login_cancelled, name="socialaccount_login_cancelled"),
    path("sso/error/", social_views.login_error, name="socialaccount_login_error"),
    path("sso/signup/", social_views.signup, name="socialaccount_signup"),
    path("oidc/<str:provider_id>/login/", views.sso_login, name="openid_connect_login"),
    path("oidc/<str:provider_id>/login/callback/", views.sso_callback, name="openid_connect_callback"),
]
if settings.SAML_ENTITY_ID:
    urlpatterns.append(path("", include("allauth.socialaccount.providers.saml.urls")))
