"""The pages of accounts. Of allauth's addresses those that the site uses: accounts keep one address, which no page
changes, and are joined to a provider by no page.
"""

from __future__ import annotations

from allauth.account import views as account_views
from allauth.socialaccount import views as social_views
from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.generic import RedirectView

from ragsite.accounts import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.overview, name="account_overview"),
    path("login/", views.SignInView.as_view(), name="account_login"),
    path("logout/", account_views.logout, name="account_logout"),
    path("inactive/", account_views.account_inactive, name="account_inactive"),
    path("reauthenticate/", account_views.reauthenticate, name="account_reauthenticate"),
    path("signup/", account_views.signup, name="account_signup"),
    path("invitation/<str:token>/", views.invitation, name="account_invitation"),
    path("confirm-email/", account_views.email_verification_sent, name="account_email_verification_sent"),
    re_path(r"^confirm-email/(?P<key>[-:\w]+)/$", account_views.confirm_email, name="account_confirm_email"),
    # allauth's pages link here for a new confirmation, which is sent at the next attempt to sign in.
    path("email/", RedirectView.as_view(pattern_name="account_overview"), name="account_email"),
    path("password/change/", account_views.password_change, name="account_change_password"),
    path("password/set/", views.password_elsewhere, name="account_set_password"),
    path("password/reset/", views.PasswordResetView.as_view(), name="account_reset_password"),
    path("password/reset/done/", account_views.password_reset_done, name="account_reset_password_done"),
    re_path(
        r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        account_views.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "password/reset/key/done/",
        account_views.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("2fa/", include("allauth.mfa.urls")),
    path("sso/cancelled/", social_views.login_cancelled, name="socialaccount_login_cancelled"),
    path("sso/error/", social_views.login_error, name="socialaccount_login_error"),
    path("sso/signup/", social_views.signup, name="socialaccount_signup"),
    path("oidc/<str:provider_id>/login/", views.sso_login, name="openid_connect_login"),
    path("oidc/<str:provider_id>/login/callback/", views.sso_callback, name="openid_connect_callback"),
]
if settings.SAML_ENTITY_ID:
    urlpatterns.append(path("", include("allauth.socialaccount.providers.saml.urls")))
