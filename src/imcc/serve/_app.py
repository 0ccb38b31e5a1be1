"""The application: its addresses, its limits, and the thread that computes."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import warnings
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import threadpool_limits

from imcc._utils.errors import ImccError, message_of
from imcc._utils.optional import require
from imcc._utils.validation import check_count, check_number
from imcc.persistence._errors import ModelFileError
from imcc.persistence._file import load_with_digest
from imcc.serve._pages import about_model, docs_page, form_page, openapi, template
from imcc.serve._rows import parse_rows, rows_for_model
from imcc.tables._predict import predictions

#: Limits on a request, unless others are given.
MAX_BYTES, MAX_ROWS, MAX_SECONDS = 2**20, 1000, 10.0
# Connections of a process at a time; each may hold the body of a request in memory.
_CONNECTIONS = 256
# By which name a browser reaches this machine; under another one, a page of the Internet would.
_LOCAL = ("localhost", "127.0.0.1", "::1", "[::1]")
# Seconds that requests have to end when the server is stopped.
_GRACE = 5
# How processes that serve the same model learn what to do.
_ENVIRONMENT = "IMCC_SERVE"
_PURPOSE = "Serving a model"
# Pages run our script only, and ask this address only; other pages may not frame them.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The page about the model contains its script, and asks nothing.
_MODEL_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def make_app(
    path: str | os.PathLike[str],
    *,
    trusted: Collection[str] = (),
    max_bytes: int = MAX_BYTES,
    max_rows: int = MAX_ROWS,
    max_seconds: float = MAX_SECONDS,
    ignore_extra: bool = False,
    local: bool = False,
) -> Any:
    """Return an ASGI application that answers with the predictions of a model file.

    ``POST /predict`` takes a row or a list of rows as JSON, and returns the labels of each with
    their probabilities.  ``/`` is a form, ``/model`` describes the model, ``/docs`` and
    ``/openapi.json`` the requests, and ``/health`` says that the server is there.  Predictions are
    computed in one thread per process, with one thread of BLAS.

    Parameters
    ----------
    path : path-like
        Model file.  It is read once, and no code from it is run.
    trusted : collection of str, default=()
        As for :func:`imcc.load_model`.
    max_bytes, max_rows : int, default=1048576, 1000
        Maximum size of the body of a request, and number of rows in it.
    max_seconds : float, default=10
        Seconds after which a request is answered with an error.
    ignore_extra : bool, default=False
        Whether columns that the model does not use are ignored, instead of an error.
    local : bool, default=False
        Whether only requests to ``localhost`` by that name or by its address are answered, so that
        pages of the Internet cannot ask the model through a browser on this machine.

    Returns
    -------
    starlette.applications.Starlette
        The application, for any server that runs ASGI.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from starlette.testclient import TestClient
    >>> from imcc import IMCCClassifier, save_model
    >>> from imcc.serve import make_app
    >>> X, Y = make_multilabel_classification(60, n_features=4, n_classes=2, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> model = IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y)
    >>> path = save_model(model, pathlib.Path(folder.name, "model.skops"))
    >>> client = TestClient(make_app(path))
    >>> client.post("/predict", json=[3.0, 9.0, 8.0, 4.0]).json()["predictions"][0]["labels"]
    ['label1']
    >>> folder.cleanup()
    """
    applications = require("starlette.applications", _PURPOSE)
    responses = require("starlette.responses", _PURPOSE)
    requests = require("starlette.requests", _PURPOSE)
    exceptions = require("starlette.exceptions", _PURPOSE)
    routing = require("starlette.routing", _PURPOSE)
    check_count("max_bytes", max_bytes)
    check_count("max_rows", max_rows)
    check_number("max_seconds", max_seconds, above=0)
    model, card, digest = load_with_digest(path, trusted)
    values = "probability" if hasattr(model, "predict_proba") else "score"
    # One thread: Python computes in one at a time anyway, and the loop stays free to answer.
    pool = ThreadPoolExecutor(1, "predict", initializer=threadpool_limits, initargs=(1,))

    def answer(body: bytes) -> bytes:
        """Return the predictions for the rows in the body of a request, as JSON."""
        rows = parse_rows(body, max_rows)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            X = rows_for_model(model, card, rows, ignore_extra)
            # A model that was fitted to a data frame: its columns have been matched by name.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            columns = predictions(model, X, list(card.label_names), values)
        records = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        said = list(dict.fromkeys(str(warning.message) for warning in caught))
        content = {"predictions": records, "warnings": said}
        return json.dumps(content, allow_nan=False).encode("ascii")

    def fixed(address: str, text: str, kind: str = "text/html", policy: str = _POLICY) -> Any:
        """Return the route of an address that answers with the same text every time."""
        headers = {"content-security-policy": policy, "x-content-type-options": "nosniff"}
        response = responses.Response(text, headers=headers, media_type=kind)
        return routing.Route(address, response, methods=["GET"])

    def problem(status: int, text: str, headers: Any = None) -> Any:
        # As ASCII: a message may quote characters of a request that cannot be encoded.
        content = json.dumps({"error": text})
        return responses.Response(content, status, headers, media_type="application/json")

    async def body_of(request: Any) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            # A page elsewhere can send other types without asking the server first.
            raise exceptions.HTTPException(415, "the content type must be application/json")
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > max_bytes:
                raise exceptions.HTTPException(
                    413, f"the body is larger than {max_bytes:,} bytes, the limit of this server"
                )
            parts.append(part)
        return b"".join(parts)

    async def predict(request: Any) -> Any:
        body = None
        try:
            async with asyncio.timeout(max_seconds):
                body = await body_of(request)
                loop = asyncio.get_running_loop()
                content = await loop.run_in_executor(pool, answer, body)
        except TimeoutError:
            if body is None:
                return problem(408, f"the body did not arrive within {max_seconds:g} seconds")
            return problem(503, f"there is no answer within {max_seconds:g} seconds: try later")
        except requests.ClientDisconnect:
            return problem(400, "the client has gone")
        except (ImccError, ValueError) as error:
            return problem(422, str(message_of(error)))
        return responses.Response(content, media_type="application/json")

    health = {"status": "ok", "model": card.model}
    described = openapi(model, card, max_rows, ignore_extra)
    limits = f"{max_bytes:,} bytes, {max_rows:,} rows and {max_seconds:g} seconds"

    async def refused(_: Any, error: Any) -> Any:
        return problem(error.status_code, error.detail, error.headers)

    async def failed(_: Any, __: Exception) -> Any:
        return problem(500, "the server failed, through no fault of the request; its log says how")

    app = applications.Starlette(
        routes=[
            routing.Route("/predict", predict, methods=["POST"]),
            fixed("/health", json.dumps(health), "application/json"),
            fixed("/", form_page(model, card)),
            fixed("/form.js", template("form.js"), "text/javascript"),
            fixed("/model", about_model(model, card), policy=_MODEL_POLICY),
            fixed("/docs", docs_page(described, limits)),
            fixed("/openapi.json", json.dumps(described), "application/json"),
        ],
        exception_handlers={exceptions.HTTPException: refused, Exception: failed},
    )
    if local:
        hosts = require("starlette.middleware.trustedhost", _PURPOSE)
        app.add_middleware(hosts.TrustedHostMiddleware, allowed_hosts=_LOCAL, www_redirect=False)
    app.state.digest = digest
    return app


def run(path: str, host: str, port: int, workers: int, **options: Any) -> None:
    """Serve a model until the process is interrupted; the options are those of :func:`make_app`.

    Each of several processes loads the file, which must be the same for all of them.
    """
    uvicorn = require("uvicorn", _PURPOSE)
    options |= {"path": path, "local": host in _LOCAL}
    app = make_app(**options)  # also for several processes: errors come before anything listens
    if workers > 1:
        os.environ[_ENVIRONMENT] = json.dumps({**options, "digest": app.state.digest})
        app = f"{__name__}:app_of_environment"
    uvicorn.run(
        app,
        factory=workers > 1,
        http=f"{__name__}:prompt_protocol",
        host=host,
        port=port,
        workers=workers,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
        ws="none",
    )


def prompt_protocol(*args: Any, **options: Any) -> Any:
    """Return uvicorn's protocol for a connection, of which small writes are sent at once.

    An answer is two writes.  asyncio asks to send them at once, but not of sockets that several
    processes share, where the second one would wait 40 ms for the other side to confirm the first.
    """
    protocol = require("uvicorn.protocols.http.h11_impl", _PURPOSE).H11Protocol(*args, **options)
    made = protocol.connection_made

    def connection_made(transport: Any) -> None:
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made(transport)

    protocol.connection_made = connection_made
    return protocol


def app_of_environment() -> Any:
    """Return the application of one of several processes."""
    options = json.loads(os.environ[_ENVIRONMENT])
    digest = options.pop("digest")
    app = make_app(**options)
    if app.state.digest != digest:
        raise ModelFileError("the file has changed since the server was started", options["path"])
    return app
