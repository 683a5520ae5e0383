"""The model's queues and simulations beside others: SimPy for buffers, the textbook recursion for networks.

Called with the example `simulate` of keepup-model. Nothing in here is taken from keepup's code: stages are SimPy
processes, and networks are worked out with the recursion over full queue lengths, in 60 digits because it subtracts.

Cases without chance must agree to rounding. In cases with chance each figure is a mean over seeds; the two means
must lie within four standard errors of their difference, and that error within a tenth of the figure (a quarter for
the largest fill, which is an extreme), or a case would say nothing.
"""

import json
import math
import random
import statistics
import subprocess
import sys
from decimal import Decimal, getcontext

import simpy

EVENT_BYTES = 1000.0
SEEDS = range(101, 117)
ROUNDING = 1e-6
STANDARD_ERRORS = 4.0
ERROR_SHARE_MAX = {"fill_max": 0.25, "latency_max": 0.25}


def draw(what, rng):
    (kind, value), = what.items()
    if kind == "fixed":
        return value
    return rng.expovariate(1.0 / value) if kind == "exponential" else rng.choice(value)


class Stage:
    """A buffer with servers, each of which is a process."""

    def __init__(self, env, case, seed):
        self.env, self.case, self.rng = env, case, random.Random(seed)
        buffer = case["buffer_bytes"]
        self.slots = math.inf if buffer is None else round(buffer / EVENT_BYTES)
        self.store, self.fill, self.fill_max, self.full, self.full_since = simpy.Store(env), 0, 0, 0.0, None
        self.waits, self.room = [], []
        self.working, self.stall_begins = None, env.event()
        self.after = None

    def start(self):
        for _ in range(self.case["servers"]):
            self.env.process(self.serve())
        if self.case["stalls"]:
            self.env.process(self.stall(*self.case["stalls"]))

    def stall(self, gap, length):
        while True:
            yield self.env.timeout(draw(gap, self.rng))
            self.working = self.env.event()
            begins, self.stall_begins = self.stall_begins, self.env.event()
            begins.succeed()
            yield self.env.timeout(draw(length, self.rng))
            working, self.working = self.working, None
            working.succeed()

    def put(self, event):
        assert self.fill < self.slots
        self.fill += 1
        self.fill_max = max(self.fill_max, self.fill)
        if self.fill >= self.slots:
            self.full_since = self.env.now
        self.store.put((event, self.env.now))

    def leave(self):
        self.fill -= 1
        if self.full_since is not None:
            self.full += self.env.now - self.full_since
            self.full_since = None
        if self.room:
            self.room.pop(0).succeed()

    def has_room(self):
        # Who waits already goes first.
        return self.fill < self.slots and not self.room

    def wait_for_room(self):
        event = self.env.event()
        self.room.append(event)
        return event

    def serve(self):
        mean = EVENT_BYTES / self.case["bytes_per_second"] + self.case["event_seconds"]
        while True:
            while self.working is not None:
                yield self.working
            event, came = yield self.store.get()
            while self.working is not None:
                yield self.working
            self.waits.append(self.env.now - came)
            left = self.rng.expovariate(1.0 / mean) if self.case["is_exponential"] else mean
            while True:
                began, end = self.env.now, self.env.timeout(left)
                if end in (yield end | self.stall_begins):
                    break
                left -= self.env.now - began
                while self.working is not None:
                    yield self.working
            if not self.after.has_room():
                yield self.after.wait_for_room()
            self.after.put(event)
            self.leave()


class Out:
    """Where the events go."""

    def __init__(self, env, expected):
        self.env, self.latencies, self.expected, self.done = env, [], expected, env.event()

    def has_room(self):
        return True

    def put(self, due):
        self.latencies.append(self.env.now - due)
        self.one_less()

    def one_less(self):
        self.expected -= 1
        if self.expected == 0:
            self.done.succeed()


def simulated(case, seed):
    env, rng = simpy.Environment(), random.Random(seed)
    stages = [Stage(env, stage, 1000 * seed + n) for n, stage in enumerate(case["stages"])]
    out = Out(env, case["events"])
    for stage, after in zip(stages, stages[1:] + [out]):
        stage.after = after
        stage.start()
    found = {"lost": 0, "held": 0.0}

    def source():
        for sent in range(1, case["events"] + 1):
            due = env.now
            if stages[0].has_room():
                stages[0].put(due)
            elif case["waits"]:
                yield stages[0].wait_for_room()
                found["held"] += env.now - due
                stages[0].put(due)
            else:
                found["lost"] += 1
                out.one_less()
            pattern, gap = case["pattern"], case["period_seconds"]
            if pattern == "poisson":
                gap = rng.expovariate(1.0 / gap)
            elif isinstance(pattern, dict) and sent % pattern["bursts"]["events"] == 0:
                gap = pattern["bursts"]["pause_seconds"]
            yield env.timeout(gap)

    env.process(source())
    env.run(until=out.done)
    latencies = sorted(out.latencies)
    return {
        "rate_out": len(latencies) * EVENT_BYTES / env.now,
        "events_lost": found["lost"],
        "dead_seconds": found["held"] if case["waits"] else stages[0].full,
        "latency_mean": statistics.fmean(latencies),
        "latency_p99": latencies[math.ceil(0.99 * len(latencies)) - 1],
        "latency_max": latencies[-1],
        "fill_max": [stage.fill_max * EVENT_BYTES for stage in stages],
        "wait_mean": [statistics.fmean(stage.waits) for stage in stages],
    }


def stage(seconds, slots=None, servers=1, is_exponential=False, stalls=None):
    """Half of the time for its bytes, half for being an event."""
    return {
        "buffer_bytes": None if slots is None else slots * EVENT_BYTES,
        "bytes_per_second": 2.0 * EVENT_BYTES / seconds, "event_seconds": seconds / 2.0,
        "is_exponential": is_exponential, "servers": servers, "stalls": stalls,
    }


def case(pattern, period, stages, events, waits=False):
    return {"event_bytes": EVENT_BYTES, "period_seconds": period, "pattern": pattern, "waits": waits,
            "stages": stages, "events": events, "seed": 1}


def bursts(events, pause):
    return {"bursts": {"events": events, "pause_seconds": pause}}


# Times are chosen so that nothing happens at the same moment as something else that it matters to.
FIXED = {
    "stalls that come before the backlog of the last is gone, with loss": case(
        "regular", 1e-3, [stage(0.830093e-3, 6, stalls=({"fixed": 0.0301}, {"fixed": 0.0057}))], 5000),
    "bursts into two stages of which the second stalls, held back": case(
        bursts(40, 0.0507), 0.11e-3,
        [stage(0.53e-3, 12), stage(0.97e-3, 3, stalls=({"fixed": 0.2003}, {"fixed": 0.0301}))], 4000, waits=True),
    "a long stall and room for all": case(
        "regular", 1e-3, [stage(0.61e-3, stalls=({"fixed": 1.00037}, {"fixed": 0.3001}))], 5000),
    "three servers that stall together": case(
        "regular", 0.41e-3, [stage(1.130071e-3, 25, servers=3, stalls=({"fixed": 0.0503}, {"fixed": 0.0061}))], 5000),
}
CHANCE = {
    "M/M/1": case("poisson", 1.0, [stage(0.7, is_exponential=True)], 20000),
    "M/D/1 with room for six": case("poisson", 1.0, [stage(0.9, 6)], 10000),
    "M/M/3 that stalls, with loss": case(
        "poisson", 1.0,
        [stage(2.1, 20, servers=3, is_exponential=True, stalls=({"exponential": 30.0}, {"exponential": 5.0}))], 10000),
    "three stages with little room, with loss": case(
        "poisson", 1.0, [stage(0.7, 4, is_exponential=True), stage(0.8, 2, is_exponential=True),
                         stage(0.75, 3, is_exponential=True)], 10000),
    "stalls of measured lengths at random times, with loss": case(
        "regular", 1.0, [stage(0.6, 40, stalls=({"exponential": 120.0}, {"measured": [5.0, 20.0, 40.0, 70.0]}))], 10000),
    "stalls by chance, held back": case(
        "poisson", 1.0, [stage(0.8, 10, stalls=({"exponential": 50.0}, {"exponential": 15.0}))], 10000, waits=True),
}


def figures(result):
    """Each figure by a name of its own."""
    for name in ("rate_out", "events_lost", "dead_seconds", "latency_mean", "latency_p99", "latency_max"):
        yield name, result[name]
    for name in ("fill_max", "wait_mean"):
        for number, value in enumerate(result[name], 1):
            yield f"{name} of stage {number}", value


def near(found, wanted, share):
    return abs(found - wanted) <= share * abs(wanted) + 1e-12


def compare_fixed(name, ours, theirs):
    problems = [f"{name}: {figure} is {value}, SimPy's {wanted}"
                for (figure, value), (_, wanted) in zip(figures(ours), figures(theirs))
                if not near(value, wanted, ROUNDING)]
    shown = ", ".join(f"{figure} {value:.6g}" for figure, value in figures(ours))
    print(f"{name}: {shown}")
    return problems


def compare_chance(name, ours, theirs):
    problems = []
    print(f"{name}:")
    for row in zip(*(figures(result) for result in ours + theirs)):
        figure, values = row[0][0], [value for _, value in row]
        mine, other = values[:len(ours)], values[len(ours):]
        means = statistics.fmean(mine), statistics.fmean(other)
        error = math.sqrt(sum(statistics.variance(part) / len(part) for part in (mine, other)))
        print(f"  {figure}: {means[0]:.6g}, SimPy {means[1]:.6g}, standard error of the difference {error:.2g}")
        if abs(means[0] - means[1]) > STANDARD_ERRORS * error + ROUNDING * abs(means[1]):
            problems.append(f"{name}: {figure} is {means[0]}, SimPy's {means[1]}, error {error}")
        if error > ERROR_SHARE_MAX.get(figure.split(" ")[0], 0.1) * abs(means[1]):
            problems.append(f"{name}: {figure} of {means[1]} has an error of {error}: too large to say anything")
    return problems


def recursion(stations, population):
    """Rate, and queue of each station: mean value analysis with the chances of each queue length."""
    getcontext().prec = 60
    times = [Decimal(seconds) for seconds, _ in stations]
    chances = [[Decimal(1)] for _ in stations]
    for number in range(1, population + 1):
        spent = []
        for time, (_, servers), chance in zip(times, stations, chances):
            if servers is None:
                spent.append(time)
            else:
                spent.append(sum(time * n / min(n, servers) * p for n, p in enumerate(chance, 1)))
        rate = number / sum(spent)
        for at, (time, (_, servers)) in enumerate(zip(times, stations)):
            if servers is not None:
                rest = [rate * time / min(n, servers) * p for n, p in enumerate(chances[at], 1)]
                chances[at] = [1 - sum(rest)] + rest
    return float(rate), [float(rate * seconds) for seconds in spent]


def networks():
    rng = random.Random(10)
    for _ in range(40):
        stations = [[10.0 ** rng.uniform(-3, 1), rng.choice([1, 1, 2, 3, 8, 30])] for _ in range(rng.randint(1, 6))]
        if rng.random() < 0.5:
            stations.append([10.0 ** rng.uniform(-2, 2), None])
        yield {"stations": stations, "population": rng.randint(1, 60)}


def compare_network(network, ours):
    rate, queues = recursion(network["stations"], network["population"])
    problems = []
    if not near(ours["rate"], rate, 1e-9) or not ours["lower"] * (1 - 1e-9) <= rate <= ours["upper"] * (1 + 1e-9):
        problems.append(f"{network}: {ours}, by recursion {rate}")
    if not all(near(found, wanted, 1e-8) for found, wanted in zip(ours["queues"], queues)):
        problems.append(f"{network}: queues {ours['queues']}, by recursion {queues}")
    return problems


def main():
    solved = list(networks())
    cases = [{"simulation": one} for one in FIXED.values()]
    cases += [{"simulation": {**one, "seed": seed}} for one in CHANCE.values() for seed in SEEDS]
    roomy = FIXED["a long stall and room for all"]
    cases += [{"buffer": roomy}] + [{"network": one} for one in solved]
    run = subprocess.run([sys.argv[1]], input=json.dumps(cases), capture_output=True, text=True, check=True)
    results = iter(json.loads(run.stdout))
    problems = []
    for name, one in FIXED.items():
        problems += compare_fixed(name, next(results), simulated(one, 1))
    for name, one in CHANCE.items():
        ours = [next(results) for _ in SEEDS]
        problems += compare_chance(name, ours, [simulated(one, seed) for seed in SEEDS])
    buffer, fill = next(results)["bytes"], simulated(roomy, 1)["fill_max"][0]
    if buffer != fill:
        problems.append(f"a buffer of {buffer} B is said to be needed, SimPy fills {fill} B")
    for network in solved:
        problems += compare_network(network, next(results))
    for problem in problems:
        print(f"WRONG: {problem}")
    print(f"{len(FIXED)} cases without chance, {len(CHANCE)} with, {len(solved)} networks, {len(problems)} wrong")
    sys.exit(1 if problems else 0)


main()
