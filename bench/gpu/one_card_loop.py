#!/usr/bin/env python3
"""The closed loop on one machine: run plans, calibrate on two of them, predict the others.

    bench/gpu/one_card_loop.py --bin FOLDER --out FOLDER [--device cuda|cpu] [--ranks N]
                               [--cluster NAME|FILE] [--profile FILE] [--steps N] [--check]

It begins with a probe of the machine, which describes any GPU that computes in bf16, or with --cluster.
--ranks 2 makes ranks share the card (--share-gpu), whose times are not a cluster's. --device cpu shows
that this program works. Plans that do not fit into the device's memory are left out. --profile gets the
calibrated profile. With --check it fails where a predicted step is off by more than 10 % or Kendall's
tau of measured and predicted order is below 0.8.

Writes a table in Markdown to standard output.
"""
import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys

from random_tokens import write_tokens

HERE = os.path.dirname(os.path.abspath(__file__))
WORST_ERROR = 0.10
LEAST_TAU = 0.8
FEWEST_PREDICTED = 2  # plans: fewer have no order
CALIBRATED = 2  # the first plans
DOES_NOT_FIT = 4  # exit code of `shardwright simulate`

# Options of `shardwright simulate` by ranks; batch and sequence come from the device's setting.
PLANS = {
    1: {
        "mb2": ["--micro-batch", "2"],
        "mb8-full": ["--micro-batch", "8", "--recompute", "full"],
        "mb1": ["--micro-batch", "1"],
        "mb4": ["--micro-batch", "4"],
        "mb8": ["--micro-batch", "8"],
        "mb2-full": ["--micro-batch", "2", "--recompute", "full"],
        "mb4-batch16": ["--micro-batch", "4", "--global-batch", "16"],
    },
    2: {
        "dp2": ["--dp", "2", "--zero", "0", "--micro-batch", "2"],
        "tp2": ["--tp", "2", "--micro-batch", "4"],
        "pp2": ["--pp", "2", "--micro-batch", "2"],
        "dp2-zero1": ["--dp", "2", "--zero", "1", "--micro-batch", "4"],
        "tp2-mb8": ["--tp", "2", "--micro-batch", "8"],
        "pp2-mb1": ["--pp", "2", "--micro-batch", "1"],
        "dp2-mb1-full": ["--dp", "2", "--zero", "0", "--micro-batch", "1", "--recompute", "full"],
    },
}

class Setting:
    """What differs between the devices."""

    def __init__(self, device):
        on_gpu = device == "cuda"
        self.model = os.path.join(HERE, "gpt2-124m.json") if on_gpu else "tiny-llama"
        self.vocabulary = 50304 if on_gpu else 256
        self.batch, self.seq_len = (32, 1024) if on_gpu else (16, 64)
        self.precision = "bf16" if on_gpu else "fp32"


def run(*words, accepted=(0,), **options):
    done = subprocess.run([str(word) for word in words], check=False, **options)
    if done.returncode not in accepted:
        done.check_returncode()
    return done


class Loop:
    def __init__(self, options):
        self.options, self.setting = options, Setting(options.device)
        self.command = os.path.join(options.bin, "shardwright")
        self.executor = os.path.join(options.bin, "shardwright-executor")
        self.tokens = self.file("tokens.u16")
        write_tokens(self.tokens, self.setting.vocabulary, 64 * (self.setting.seq_len + 1))

    def file(self, name):
        return os.path.join(self.options.out, name)

    def shares_gpu(self):
        return ["--share-gpu"] if self.options.device == "cuda" and self.options.ranks > 1 else []

    def first_profile(self):
        """The profile that calibration begins with: a name or a file."""
        if self.options.cluster:
            return self.options.cluster
        run(self.command, "probe", "--device", self.options.device, "--ranks", self.options.ranks,
            *self.shares_gpu(), "--out", self.file("first.json"), "--force",
            stdout=subprocess.DEVNULL)
        return self.file("first.json")

    def write_plan(self, name, choices, profile):
        """False where it does not fit into the device's memory."""
        given = ["--global-batch", self.setting.batch] if "--global-batch" not in choices else []
        stack = ["--stack", "shardwright"] if self.options.device == "cuda" else []
        done = run(self.command, "simulate", "--model", self.setting.model, "--cluster", profile,
                   "--gpus", self.options.ranks, "--precision", self.setting.precision, "--seq-len",
                   self.setting.seq_len, *stack, *given, *choices, "--out",
                   self.file(f"{name}.json"), "--force", accepted=(0, DOES_NOT_FIT),
                   stdout=subprocess.DEVNULL)
        return done.returncode == 0

    def measure(self, name):
        out = self.file(f"run-{name}")
        run(self.executor, self.file(f"{name}.json"), "--data", self.tokens, "--out", out, "--steps",
            self.options.steps, "--device", self.options.device, "--no-progress", "--force",
            *self.shares_gpu(), stdout=subprocess.DEVNULL)
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as lines:
            times = [json.loads(line)["step_s"] for line in lines]
        # Recording its ops lengthens a step on a GPU.
        warm = range(len(times) // 5, len(times))
        plain = [step for step in warm
                 if not os.path.exists(os.path.join(out, f"timeline-{step}-0.json"))]
        return statistics.median(times[step] for step in plain or warm)

    def predict(self, name, profile):
        done = run(self.command, "simulate", "--plan", self.file(f"{name}.json"), "--cluster",
                   profile, "--json", "-", stdout=subprocess.PIPE)
        return json.loads(done.stdout)["step_s"]

    def calibrate(self, names, profile):
        out = self.file("calibrated.json")
        run(self.command, "calibrate", *(self.file(f"run-{name}") for name in names), "--cluster",
            profile, "--out", out, "--force", stdout=subprocess.DEVNULL)
        return out


def kendall_tau(pairs):
    sign = lambda x: (x > 0) - (x < 0)
    both = list(itertools.combinations(pairs, 2))
    return sum(sign(a[0] - b[0]) * sign(a[1] - b[1]) for a, b in both) / len(both)


def close_the_loop(loop):
    first = loop.first_profile()
    names = [name for name, choices in PLANS[loop.options.ranks].items()
             if loop.write_plan(name, choices, first)]
    if len(names) < CALIBRATED + FEWEST_PREDICTED:
        raise SystemExit(f"one_card_loop: only {len(names)} plans fit into the device's memory")
    measured = {name: loop.measure(name) for name in names}
    calibrated = loop.calibrate(names[:CALIBRATED], first)
    print("| plan | | measured, ms | profile before | error | calibrated | error |\n"
          "| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    after = {}
    for i, name in enumerate(names):
        before, after[name] = loop.predict(name, first), loop.predict(name, calibrated)
        role = "calibrated on" if i < CALIBRATED else "predicted"
        cells = [f"{measured[name] * 1e3:.2f}"]
        for predicted in (before, after[name]):
            cells += [f"{predicted * 1e3:.2f}", f"{predicted / measured[name] - 1:+.1%}"]
        print(f"| {name} | {role} | {' | '.join(cells)} |", flush=True)
    unseen = names[CALIBRATED:]
    worst = max(abs(after[name] / measured[name] - 1) for name in unseen)
    tau = kendall_tau([(measured[name], after[name]) for name in unseen])
    print(f"\nLargest error of a predicted step: {worst:.1%}; Kendall's tau of the {len(unseen)} "
          f"plans that were not calibrated on: {tau:.2f}.")
    if loop.options.profile:
        shutil.copyfile(calibrated, loop.options.profile)
    return worst <= WORST_ERROR and tau >= LEAST_TAU


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--ranks", type=int, choices=sorted(PLANS), default=1)
    parser.add_argument("--cluster")
    parser.add_argument("--profile")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    passed = close_the_loop(Loop(options))
    sys.exit(1 if options.check and not passed else 0)


if __name__ == "__main__":
    main()
