"""Latencies, counts and errors of one process of the generator, and the pipe that they are sent through."""

import asyncio
from array import array
from collections import Counter

ERROR_TEXTS_MAX = 200
SNAPSHOT_S = 1.0


class Record:
    """Measurements of one process. Latencies are in seconds."""

    def __init__(self, pipe):
        self.pipe = pipe
        self.latencies, self.counts, self.errors = {}, Counter(), Counter()
        # The longest latency of each name since the last snapshot.
        self.longest = {}

    def took(self, name, seconds):
        found = self.latencies.get(name)
        if found is None:
            found = self.latencies[name] = array("d")
        found.append(seconds)
        self.longest[name] = max(self.longest.get(name, 0.0), seconds)

    def add(self, other):
        """Adds the measurements of another record."""
        for name, values in other.latencies.items():
            for seconds in values:
                self.took(name, seconds)
        self.counts += other.counts
        self.errors += other.errors

    def failed(self, who, error):
        text = f"{who}: {str(error) or type(error).__name__}"[:400]
        self.errors[text if text in self.errors or len(self.errors) < ERROR_TEXTS_MAX else f"{who}: other errors"] += 1

    def snapshot(self):
        longest, self.longest = self.longest, {}
        self.pipe.send({"counts": dict(self.counts), "errors": dict(self.errors), "longest": longest})

    async def snapshots(self):
        while True:
            await asyncio.sleep(SNAPSHOT_S)
            self.snapshot()

    def end(self, **more):
        """Sends all latencies and `more`: the last message of the process."""
        latencies = {name: values.tobytes() for name, values in self.latencies.items()}
        self.pipe.send({"counts": dict(self.counts), "errors": dict(self.errors), "longest": self.longest, "latencies": latencies, **more})
