"""Tasks with priorities, worked off one after another."""

import heapq
import itertools
import time


class Task:
    def __init__(self, name, run, priority=0, not_before=0.0):
        self.name = name
        self.run = run
        self.priority = priority
        self.not_before = not_before


class TaskQueue:
    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._heap = []
        self._order = itertools.count()
        self.failed = []

    def put(self, task):
        heapq.heappush(self._heap, (-task.priority, next(self._order), task))

    def take(self):
        later = []
        try:
            while self._heap:
                entry = heapq.heappop(self._heap)
                if entry[2].not_before <= self._clock():
                    return entry[2]
                later.append(entry)
            return None
        finally:
            for entry in later:
                heapq.heappush(self._heap, entry)

    def work(self):
        done = 0
        while (task := self.take()) is not None:
            try:
                task.run()
            except Exception as error:
                self.failed.append((task.name, error))
            else:
                done += 1
        return done

    def __len__(self):
        return len(self._heap)
