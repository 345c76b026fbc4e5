"""Text on its way to a server, while its sender makes more."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, List, Optional

from . import _native


#: What is handed over becomes one request up to here. A server does more per request with larger ones, and less at the
#: same time: it reads one request while the one before is synced.
JOINED_BYTES_MAX = 8 << 20


class Outbox:
    """Sends in a thread of its own, one request after the other. What is handed over meanwhile goes with the next one, up
    to :data:`JOINED_BYTES_MAX`: a server that is waited for gets larger requests, one that waits gets its rows at once.

    When a request fails, what waits behind it is dropped, and the next call raises what became of it.
    """

    def __init__(self, send: Callable[[List[_native.Piece]], None]) -> None:
        self._send = send
        self._executor: Optional[ThreadPoolExecutor] = None
        #: Guards what follows; told whenever it changes.
        self._changed = threading.Condition()
        self._waiting: List[_native.Piece] = []
        self._waiting_bytes = 0
        self._is_sending = False
        self._error: Optional[BaseException] = None

    def put(self, pieces: List[_native.Piece]) -> None:
        """Hands over text. Waits as long as it is too much to go with what waits already.

        :raises Error: of an earlier request
        """
        with self._changed:
            size = sum(map(len, pieces))
            while self._is_sending and self._waiting and self._waiting_bytes + size > JOINED_BYTES_MAX:
                self._changed.wait()
            self._raise()
            self._waiting += pieces
            self._waiting_bytes += size
            if not self._is_sending:
                if self._executor is None:
                    self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tidalite-sender")
                self._executor.submit(self._send_all)
                self._is_sending = True

    def arrived(self) -> None:
        """Waits until everything is acknowledged. A wait that is interrupted goes on with the next call.

        :raises Error: of a request that failed
        """
        with self._changed:
            while self._is_sending:
                self._changed.wait()
            self._raise()

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _send_all(self) -> None:
        """Until nothing waits."""
        error: Optional[BaseException] = None
        while True:
            with self._changed:
                pieces, self._waiting, self._waiting_bytes = self._waiting, [], 0
                self._is_sending, self._error = bool(pieces) and error is None, error
                self._changed.notify_all()
                if not self._is_sending:
                    return
            try:
                self._send(pieces)
            except BaseException as failed:
                error = failed
