"""A real Chromium, controlled by the DevTools protocol over a pipe."""

import itertools
import json
import os
import select
import shutil
import subprocess
import time


class Browser:
    """One page. The names in `names` resolve to 127.0.0.1."""

    def __init__(self, folder, names=()):
        to_browser, from_browser = os.pipe(), os.pipe()
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        assert program, "there is no Chromium: install the package chromium"
        rules = ", ".join(f"MAP {name} 127.0.0.1" for name in names)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync", f"--user-data-dir={folder}", f"--host-resolver-rules={rules}", "about:blank"]
        shell = f'exec "$0" "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
        self.process = subprocess.Popen(["bash", "-c", shell, program, *arguments], pass_fds=(to_browser[0], from_browser[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.write, self.read = to_browser[1], from_browser[0]
        self.ids, self.received, self.events, self.session = itertools.count(1), b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def message(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.read], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self.read, 1 << 16)
            assert piece, "the browser has ended"
            self.received += piece
        message, _, self.received = self.received.partition(b"\0")
        return json.loads(message)

    def call(self, method, seconds=60, **parameters):
        number = next(self.ids)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message(seconds)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer.get("method"))

    def open(self, url, seconds=60):
        """Opens a page and waits until the page is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.message(seconds).get("method"))

    def run(self, script):
        """Returns the value of an expression in the page; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def close(self):
        os.close(self.write)
        os.close(self.read)
        self.process.terminate()
        self.process.wait(30)
