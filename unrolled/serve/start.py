"""Start a server: check who may reach it, then listen until it is stopped."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from unrolled.core.errors import CannotWrite, UsageError, needs_extra
from unrolled.core.front import speak_to
from unrolled.runs.storage import atomic
from unrolled.serve.counted import Counted
from unrolled.serve.found import find, folders
from unrolled.serve.guard import LOCAL, App
from unrolled.serve.limits import Limits
from unrolled.serve.log import take_over, write

LEAST_TOKEN = 16  # letters


def require_extra() -> None:
    """That the packages of a server are installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
    except ImportError as error:
        raise needs_extra(error, "serve", "a server") from None


def make(
    paths: Iterable[str],
    limits: Limits,
    host: str = "127.0.0.1",
    token: str | None = None,
    allowed: Iterable[str] = (),
    own_file: str | None = None,
    growing: Iterable[str] = (),
    train: str | None = None,
    weights: str | None = None,
) -> App:
    """The server of some runs as an ASGI application.

    `growing` are folders that may be empty yet; `train` is one in which visitors of the page may start comparisons.
    `weights` are what those of every run are rounded to that can be (`load`).
    """
    require_extra()
    if weights is not None:
        from unrolled.runs.narrowed import form_of

        form_of(weights)
    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UsageError(f"a token has at least {LEAST_TOKEN} letters of ASCII")
    if host not in LOCAL and token is None:
        raise UsageError(
            f"everybody who reaches {host} could use the server: give a token with --token-file FILE, or UNROLLED_TOKEN"
        )
    from unrolled.serve.app import make_app
    from unrolled.serve.contests import Contests
    from unrolled.serve.hosted import Hosted
    from unrolled.serve.trained import Trained

    speak_to("python")  # clients name settings as they are in JSON
    paths, growing, trained = [*paths], [*growing], None
    if train is not None:
        trained = Trained(_own_folder(train), limits)
        growing.append(str(trained.folder))
    look = partial(find, paths, growing)
    hosted = Hosted(look(), limits, Counted(), own_file, weights)
    hosted.look = look
    return make_app(hosted, {*LOCAL, host, *allowed}, token, Contests(partial(folders, [*paths, *growing]), trained))


def _own_folder(train: str) -> Path:
    """A folder that can be written to, which is made if need be."""
    folder = Path(train).absolute()
    atomic.make_directory(folder)
    if not os.access(folder, os.W_OK):
        raise CannotWrite(f"{train} cannot be written to; name another folder with --train")
    return folder


def listen(host: str, port: int) -> socket.socket:
    """The address, taken before anything else is done."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(128)  # who connects from now on is answered when the server has started
    except OSError as error:
        found.close()
        raise CannotWrite(
            f"{host}:{port} cannot be listened on ({error.strerror or error}); give another --port"
        ) from None
    return found


def server(app: App, limits: Limits) -> Any:
    """The HTTP server of an application."""
    import uvicorn

    from unrolled.serve.impatient import Impatient

    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, date_header=True, timeout_keep_alive=5,
        limit_concurrency=4 * limits.concurrent + 16, h11_max_incomplete_event_size=64 * 2**10, http=Impatient,
        ws="websockets-sansio", ws_max_size=limits.body, timeout_graceful_shutdown=5, lifespan="on",
    )  # fmt: skip
    take_over("uvicorn.error")
    return uvicorn.Server(config)


def serve(app: App, limits: Limits, host: str, port: int, opened: Callable[[str], Any] = str) -> None:
    """Listen until Ctrl-C or SIGTERM; `opened` is given the address once it can be visited."""
    taken = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{taken.getsockname()[1]}/"
    print(f"Serving at {address} (Ctrl-C stops)", flush=True)
    opened(address)
    write("listening", host=host, port=taken.getsockname()[1])
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # uvicorn ends by it, and then raises it once more
    try:
        server(app, limits).run(sockets=[taken])
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
        taken.close()
        write("stopped")
