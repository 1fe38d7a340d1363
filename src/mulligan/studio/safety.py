"""Protects the studio: a middleware in front of every page.

It refuses a Host that was made to point here (DNS rebinding), visitors without the token if one is set, changes to a
read-only studio, and posts from other sites (CSRF). Its headers allow a browser to load and run only the studio's own
files, whatever text a page shows.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mulligan.serving import HostPolicy, Token
from mulligan.studio.rendering import Studio

MAX_FORM_BYTES, MAX_FORM_FIELDS = 1_000_000, 1000

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send no Origin with posts
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Safety:
    """The middleware.

    Args:
        policy: which Host and Origin headers are accepted.
        tokens: visitors must send one of them. Without any, everyone on this machine may visit.
        cookie: the name of the cookie that holds the token.
    """

    def __init__(self, app: ASGIApp, studio: Studio, policy: HostPolicy, tokens: Sequence[Token], cookie: str) -> None:
        self._app, self._studio, self._policy = app, studio, policy
        self._tokens, self._cookie = tokens, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        request = Request(scope, receive)
        response = self._check_visitor(request) or await self._check_change(request)
        await (response or self._app)(scope, receive, send_with_headers)

    def _check_visitor(self, request: Request) -> Response | None:
        """A refusal of an unknown Host or a missing token. A token in the address is moved into a cookie."""
        if not self._policy.allows_host(request.headers.get("host")):
            return _refused(421, "This host name is not allowed. Use the address that the studio printed.")
        if not self._tokens:
            return None
        if (token := request.query_params.get("token")) is not None and Token.with_secret(token, self._tokens):
            rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
            page = RedirectResponse(f"{request.url.path}{'?' if rest else ''}{urlencode(rest)}", 303)
            page.set_cookie(self._cookie, token, httponly=True, samesite="strict", path="/")
            return page
        if Token.with_secret(request.cookies.get(self._cookie, ""), self._tokens):
            return None
        return _refused(401, "This studio requires a token. Open its address once with ?token=TOKEN.")

    async def _check_change(self, request: Request) -> Response | None:
        """A refusal of a change that is not allowed. Reads the form of a POST, which pages get from `form_of`."""
        if request.method in ("GET", "HEAD"):
            return None
        if request.method != "POST":
            return _refused(405, "Only GET and POST requests are allowed.")
        if not self._studio.write:
            return _refused(403, "This studio is read-only. To make changes, start it with --write.")
        if not self._policy.allows_origin(request.headers.get("origin")):
            return _refused(403, "Pages from other sites cannot change anything here.")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _refused(403, "Pages from other sites cannot change anything here.")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_FORM_BYTES:
                return _refused(413, f"This form contains more than {MAX_FORM_BYTES:,} bytes. Shorten its text.")
        if body.count(b"&") >= MAX_FORM_FIELDS:
            return _refused(413, f"This form contains more than {MAX_FORM_FIELDS:,} fields. Select fewer items.")
        fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        if not hmac.compare_digest(fields.pop("csrf", "").encode(), self._studio.csrf.encode()):
            return _refused(
                403, "This form was opened in another studio, or before this studio started. Reload the page."
            )
        request.scope["mulligan.form"] = fields
        return None


def form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form that `Safety` accepted: the last value of each name."""
    return request.scope["mulligan.form"]


def _refused(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status)
