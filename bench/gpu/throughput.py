#!/usr/bin/env python3
"""The executor's training throughput on one GPU beside PyTorch's on the same card.

    bench/gpu/throughput.py --bin FOLDER [--cluster NAME|FILE] [--no-pytorch] [--steps N]
                            [gpt2-124m] [llama-1.3b]

FOLDER holds `shardwright` and `shardwright-executor`. For each model prints tokens/s of both, their
ratio, and the MFU against the dense bf16 rate that the device's profile states (6 FLOP a parameter and
token, and attention's products under a causal mask; docs/models/flop_and_mfu.md). The profile is that of
--cluster, otherwise that of a probe of this machine, which describes any GPU that computes in bf16. The
runs' metrics.jsonl counts the whole score matrix. A microbatch that does not fit into the device's memory
is halved, on both sides, until it does. Steps whose ops are recorded are not counted: only the first
ones, which warm up, are recorded.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from random_tokens import write_tokens

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_UP_STEPS = 3
DOES_NOT_FIT = 4  # exit code of `shardwright simulate`

# Sequence length, microbatch, sequences a step.
MODELS = {"gpt2-124m": (1024, 32, 256), "llama-1.3b": (2048, 8, 64)}

def spec_of(name):
    with open(os.path.join(HERE, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def flop_per_token(spec, seq_len):
    attention, mlp = spec["attention"], spec["mlp"]
    dim, heads = attention["head_dim"], attention["heads"]
    projections = (2 * heads + 2 * attention["kv_heads"]) * dim * spec["hidden"]
    feed_forward = (3 if mlp["gated"] else 2) * spec["hidden"] * mlp["ffn_hidden"]
    products = spec["layers"] * (projections + feed_forward) + spec["vocab"] * spec["hidden"]
    return 6 * products + 6 * spec["layers"] * heads * dim * seq_len


def write_plan(name, micro, options, plan):
    """False where it does not fit into the device's memory."""
    seq_len, _, batch = MODELS[name]
    done = subprocess.run(
        [os.path.join(options.bin, "shardwright"), "simulate", "--model",
         os.path.join(HERE, name + ".json"), "--cluster", options.cluster, "--gpus", "1", "--stack",
         "shardwright", "--precision", "bf16", "--global-batch", str(batch), "--micro-batch",
         str(micro), "--seq-len", str(seq_len), "--out", plan, "--force"], check=False,
        stdout=subprocess.DEVNULL)
    if done.returncode not in (0, DOES_NOT_FIT):
        done.check_returncode()
    return done.returncode == 0


def largest_plan(name, options, plan):
    """Writes the plan; its microbatch, or None where none fits."""
    micro = MODELS[name][1]
    while micro > 0 and not write_plan(name, micro, options, plan):
        micro //= 2
    return micro or None


def peak_of(plan):
    with open(plan, encoding="utf-8") as file:
        figure = json.load(file)["cluster"]["accelerator"]["matrix"]["bf16_flop_per_s"]
    return figure["value"] if isinstance(figure, dict) else figure  # with its source, or alone


def executor_tokens_per_s(name, options, plan, folder):
    seq_len, _, batch = MODELS[name]
    data, out = (os.path.join(folder, f) for f in ("tokens.u16", "run"))
    write_tokens(data, spec_of(name)["vocab"], batch * (seq_len + 1) * 4)
    subprocess.run(
        [os.path.join(options.bin, "shardwright-executor"), plan, "--data", data, "--out", out,
         "--steps", str(WARM_UP_STEPS + options.steps), "--device", "cuda", "--timeline-steps", "0",
         "--no-progress"], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return batch * seq_len / statistics.median(r["step_s"] for r in rows[WARM_UP_STEPS:])


def pytorch_tokens_per_s(name, micro, steps):
    """None where it fails, as for want of memory; it says why on standard error."""
    seq_len, _, batch = MODELS[name]
    done = subprocess.run(
        [sys.executable, os.path.join(HERE, "pytorch_reference.py"),
         os.path.join(HERE, name + ".json"), "--seq-len", str(seq_len), "--micro-batch",
         str(micro), "--global-batch", str(batch), "--steps", str(steps)], check=False,
        stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return None
    return json.loads(done.stdout.splitlines()[-1])["tokens_per_s"]


def row_of(name, options):
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "plan.json")
        micro = largest_plan(name, options, plan)
        if micro is None:
            return f"| {name} | | does not fit | | | |"
        own = executor_tokens_per_s(name, options, plan, folder)
        mfu = own * flop_per_token(spec_of(name), MODELS[name][0]) / peak_of(plan)
    left = f"| {name} | {micro} | {own:,.0f} | {mfu:.1%} |"
    if options.no_pytorch:
        return f"{left} not run | |"
    other = pytorch_tokens_per_s(name, micro, options.steps)
    return f"{left} failed | |" if other is None else f"{left} {other:,.0f} | {own / other:.2f} |"


def probe(options, out):
    subprocess.run([os.path.join(options.bin, "shardwright"), "probe", "--device", "cuda", "--ranks",
                    "1", "--out", out], check=True, stdout=subprocess.DEVNULL)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cluster")
    parser.add_argument("--no-pytorch", action="store_true")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    unknown = [name for name in options.models if name not in MODELS]
    if unknown:
        parser.error(f"no model {unknown[0]}; there are {', '.join(MODELS)}")
    with tempfile.TemporaryDirectory() as folder:
        options.cluster = options.cluster or probe(options, os.path.join(folder, "here.json"))
        print("| model | microbatch | executor, tokens/s | MFU | PyTorch, tokens/s | ratio |\n"
              "| --- | --- | --- | --- | --- | --- |")
        for name in options.models:
            print(row_of(name, options), flush=True)


if __name__ == "__main__":
    main()
