"""A discrete-event simulation of the queues of searches: arrivals, batches, busy partitions and files.

Time is in seconds. The seed determines the result. The simulation does not include cold starts, throttling,
failures, the ramp-up of pollers, the growth of the delay of a busy partition, and messages that outlive their
visibility timeout.
"""

import functools
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

# From shared/engine/saga/src/settings.rs: a busy partition is retried in place, then by a later delivery.
BUSY_TRIES, BUSY_WAIT, BUSY_VISIBILITY = 5, 0.05, 1.0
# From the announcement to the file's upload; assumed.
UPLOAD = 1.0


@dataclass(frozen=True)
class Load:
    """The arrivals: a number of searches per second for some seconds, or an initial backlog."""

    per_second: float = 0.0
    seconds: float = 60.0
    files: int = 1
    backlog: int = 0  # messages, each of a different search
    hot: bool = False  # all of them are of one search


@dataclass(frozen=True)
class Service:
    saga: int  # concurrent executions
    parse: int
    batch: int = 10
    window: float = 0.0
    base: float = 0.02  # a batch
    each: float = 0.003  # each partition in it
    file: float = 1.0
    cores: int = 0  # shared by all workers; 0: each has its own
    on_core: float = 0.0  # of a partition's time, on these


@dataclass
class Result:
    handled: int = 0
    ended: float = 0.0
    waits: list[float] = field(default_factory=list)
    parse_waits: list[float] = field(default_factory=list)
    deliveries: int = 0
    busy: int = 0
    worked: float = 0.0
    peak_saga: int = 0
    peak_parse: int = 0
    in_flight: int = 0
    area: float = 0.0  # messages waiting, over time

    def per_second(self) -> float:
        return self.handled / self.ended if self.ended else 0.0

    def utilisation(self, executions: int) -> float:
        return self.worked / (executions * self.ended) if self.ended else 0.0


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[int(part * (len(values) - 1))] if values else 0.0


@dataclass(frozen=True)
class Message:
    search: int
    sent: float
    kind: str


class Simulation:
    def __init__(self, load: Load, service: Service, seed: int = 1) -> None:
        self.load, self.service, self.random = load, service, random.Random(seed)
        self.now, self.order = 0.0, itertools.count()
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.queue: deque[Message] = deque()
        self.files: deque[tuple[int, float]] = deque()
        self.inside: set[int] = set()
        self.saga = self.parse = self.taken = 0
        self.cores = [0.0] * service.cores
        self.result = Result()

    def at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (time, next(self.order), event))

    def run(self) -> Result:
        for number in range(self.load.backlog):
            self.queue.append(Message(0 if self.load.hot else number, 0.0, "backlog"))
        self.at(0.0, self.take)
        if self.load.per_second:
            time, search = self.random.expovariate(self.load.per_second), 0
            while time < self.load.seconds:
                self.announce(time, 0 if self.load.hot else search)
                time, search = time + self.random.expovariate(self.load.per_second), search + 1
        while self.events:
            time, _, event = heapq.heappop(self.events)
            self.result.area += len(self.queue) * (time - self.now)
            self.now = time
            event()
        return self.result

    def announce(self, time: float, search: int) -> None:
        self.at(time, lambda: self.send(search, "announced"))
        for _ in range(self.load.files):
            self.at(time + UPLOAD, lambda: self.send(search, "stored"))

    def send(self, search: int, kind: str) -> None:
        self.put(Message(search, self.now, kind))

    def put(self, message: Message) -> None:
        self.queue.append(message)
        self.take()
        if self.service.window:
            self.at(self.now + self.service.window, self.take)

    def take(self) -> None:
        service = self.service
        while self.queue and self.saga < service.saga:
            ripe = self.now >= self.queue[0].sent + service.window
            if not ripe and len(self.queue) < service.batch:
                return
            batch = [self.queue.popleft() for _ in range(min(service.batch, len(self.queue)))]
            self.result.waits += [self.now - message.sent for message in batch]
            self.result.deliveries += len(batch)
            self.saga += 1
            self.taken += len(batch)
            self.result.peak_saga = max(self.result.peak_saga, self.saga)
            self.result.in_flight = max(self.result.in_flight, self.taken)
            self.enter(batch, self.now)

    def enter(self, batch: list[Message], began: float, tries: int = 0) -> None:
        """Handles the free partitions. The others are retried in place, then left for a later delivery."""
        busy = [message for message in batch if message.search in self.inside]
        free = [message for message in batch if message.search not in self.inside]
        if not tries:
            self.result.busy += len(busy)
        searches = {message.search for message in free}
        self.inside |= searches
        done = self.now if not free else self.served(len(searches))
        self.at(done, lambda: self.leave(free, busy, searches, began, tries))

    def served(self, partitions: int) -> float:
        """Returns the end of work that starts now. Work that needs a core waits until one is free."""
        took = self.service.base + partitions * self.service.each
        if not self.cores:
            return self.now + took
        on_core = partitions * self.service.on_core
        core = self.cores.index(min(self.cores))
        self.cores[core] = max(self.cores[core], self.now) + on_core
        return self.cores[core] + max(0.0, took - on_core)

    def leave(
        self, done: list[Message], busy: list[Message], searches: set[int], began: float, tries: int
    ) -> None:
        self.inside -= searches
        self.result.handled += len(done)
        self.taken -= len(done)
        for message in done:
            if message.kind == "stored":
                self.files.append((message.search, self.now))
        self.read()
        if busy and tries < BUSY_TRIES:
            wait = BUSY_WAIT * (0.5 + self.random.random() / 2)
            self.at(self.now + wait, lambda: self.enter(busy, began, tries + 1))
            return
        self.taken -= len(busy)
        for message in busy:
            self.later(message)
        self.saga -= 1
        self.result.worked += self.now - began
        self.result.ended = self.now
        self.take()

    def later(self, message: Message) -> None:
        again = self.now + BUSY_VISIBILITY
        self.at(again, lambda: self.put(Message(message.search, again, message.kind)))

    def read(self) -> None:
        while self.files and self.parse < self.service.parse:
            search, sent = self.files.popleft()
            self.parse += 1
            self.result.peak_parse = max(self.result.peak_parse, self.parse)
            self.result.parse_waits.append(self.now - sent)
            self.at(self.now + self.service.file, functools.partial(self.replied, search))

    def replied(self, search: int) -> None:
        self.parse -= 1
        self.send(search, "replied")
        self.read()
