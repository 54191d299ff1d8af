"""Limits on wrong tokens, for the API and for OpenAI's protocol; and the status of a refused attempt to sign in."""

from __future__ import annotations

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from rest_framework import status

from ragsite.http.errors import problem
from ragsite.models import ApiKey
from ragsite.sign_in import limits
from ragsite.sign_in.backend import describe_wait

_PREFIXES = ("/api/", "/v1/")


class SignInMiddleware:
    """Refuses tokens from an address that sent too many wrong ones, before any of them is looked up."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response):  # type: ignore[no-untyped-def]
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest):  # type: ignore[no-untyped-def]
        if self.is_async:
            return self._acall(request)
        caller = _caller(request)
        allowance = limits.token_allowance(caller) if caller is not None else None
        if allowance is not None and allowance.wait_seconds:
            return _refusal(request, allowance.wait_seconds)
        response = self.get_response(request)
        if caller is not None and allowance is not None:
            _count(request, response, caller, allowance)
        return _with_status(request, response)

    async def _acall(self, request: HttpRequest) -> HttpResponseBase:
        caller = _caller(request)
        allowance = await sync_to_async(limits.token_allowance)(caller) if caller is not None else None
        if allowance is not None and allowance.wait_seconds:
            return _refusal(request, allowance.wait_seconds)
        response: HttpResponseBase = await self.get_response(request)
        if caller is not None and allowance is not None:
            await sync_to_async(_count)(request, response, caller, allowance)
        return _with_status(request, response)


def _caller(request: HttpRequest) -> limits.Caller | None:
    """Who sends a token; None for a request without one."""
    scheme, _space, token = request.headers.get("Authorization", "").strip().partition(" ")
    if scheme.lower() not in ("token", "bearer") or not request.path.startswith(_PREFIXES):
        return None
    return limits.caller_of(request, token.strip(), is_name=False)


def _refusal(request: HttpRequest, wait_seconds: int) -> HttpResponseBase:
    """In the form of the API that was called."""
    limits.REFUSALS.labels(reason="tokens").inc()
    sentence = describe_wait(wait_seconds)
    # Only callers of the APIs send tokens: for them there always is a body.
    body = problem(request.path, status.HTTP_429_TOO_MANY_REQUESTS, sentence, "rate_limit_exceeded")
    response = JsonResponse(body, status=status.HTTP_429_TOO_MANY_REQUESTS)
    response["Retry-After"] = str(wait_seconds)
    return response


def _count(
    request: HttpRequest, response: HttpResponseBase, caller: limits.Caller, allowance: limits.Allowance
) -> None:
    if response.status_code == status.HTTP_401_UNAUTHORIZED:
        limits.count_token_failure(caller)
    elif not allowance.is_clean and isinstance(getattr(request, "auth", None), ApiKey):
        limits.count_success(caller, with_failures=False)


def _with_status(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    refusal = getattr(request, "sign_in_refusal", None)
    if refusal is not None:
        response.status_code, wait_seconds = refusal
        response["Retry-After"] = str(wait_seconds)
    return response
