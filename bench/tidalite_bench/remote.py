"""A client on another host: servers run in a network namespace of their own, behind a virtual cable.

Their packets go through the whole network stack of both sides (no loopback), and --delay-ms adds the way of a real network.
Processors and disk are still shared: it is the protocol that is measured, not a second machine. Without the right to make
namespaces it says so and measures nothing.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
import systems  # noqa: E402

CLIENT, SERVER = "10.213.77.1", "10.213.77.2"


class TwoHosts:
    def __init__(self, delay_ms=0.0):
        self.delay_ms = delay_ms
        self.name = f"tidalite-bench-{os.getpid()}"
        # Names of network devices have at most 15 characters.
        self.near, self.far = f"tbn{os.getpid()}", f"tbf{os.getpid()}"
        self.described = f"in another network namespace than the servers, {delay_ms} ms added each way"

    def connect(self):
        """From now on servers start there."""
        try:
            run("ip", "netns", "add", self.name)
            run("ip", "link", "add", self.near, "type", "veth", "peer", "name", self.far, "netns", self.name)
            run("ip", "addr", "add", f"{CLIENT}/30", "dev", self.near)
            run("ip", "link", "set", self.near, "up")
            run(*self.within("ip", "addr", "add", f"{SERVER}/30", "dev", self.far))
            run(*self.within("ip", "link", "set", self.far, "up"))
            run(*self.within("ip", "link", "set", "lo", "up"))
            if self.delay_ms:
                run("tc", "qdisc", "add", "dev", self.near, "root", "netem", "delay", f"{self.delay_ms}ms")
                run(*self.within("tc", "qdisc", "add", "dev", self.far, "root", "netem", "delay", f"{self.delay_ms}ms"))
        except RuntimeError:
            self.close()
            raise
        systems.HOST, systems.BEFORE = SERVER, self.within()
        return self

    def within(self, *command):
        return ["ip", "netns", "exec", self.name, *command]

    def close(self):
        """The devices go with the namespace."""
        systems.HOST, systems.BEFORE = "127.0.0.1", []
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError as error:
        said = str(error)
    if said:
        raise RuntimeError(f"a remote client needs two network namespaces, which cannot be had here: {' '.join(command[:4])}: {said}")
