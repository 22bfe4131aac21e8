#!/usr/bin/env python3
"""The executor's training throughput on one GPU beside PyTorch's on the same card.

    bench/gpu/throughput.py --bin FOLDER [--no-pytorch] [--steps N] [gpt2-124m] [llama-1.3b]

FOLDER holds `shardwright` and `shardwright-executor`. For each model prints tokens/s of both, their
ratio, and the MFU against the dense bf16 rate of the device (6 FLOP a parameter and token, and
attention's products under a causal mask; docs/models/flop_and_mfu.md). The runs' metrics.jsonl counts
the whole score matrix. Steps whose ops are recorded are not counted: only the first ones, which warm
up, are recorded.
"""
import argparse
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_UP_STEPS = 3

# Sequence length, microbatch, sequences a step.
MODELS = {"gpt2-124m": (1024, 32, 256), "llama-1.3b": (2048, 8, 64)}

# Dense bf16 FLOP/s by the vendor's datasheets, by part of the device's name; the first that fits.
PEAKS = {"A100": 312e12, "H100 PCIe": 756e12, "H100 NVL": 835e12, "H100": 989e12, "H200 NVL": 835e12,
         "H200": 989e12, "B200": 2250e12}


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


def write_tokens(file, vocabulary, count):
    """Random tokens as nanoGPT stores them: uint16 without a header."""
    draw = random.Random(1)
    with open(file, "wb") as stream:
        stream.write(struct.pack(f"<{count}H", *(draw.randrange(vocabulary) for _ in range(count))))


def executor_tokens_per_s(name, programs, steps, folder):
    seq_len, micro, batch = MODELS[name]
    plan, data, out = (os.path.join(folder, f) for f in ("plan.json", "tokens.u16", "run"))
    write_tokens(data, spec_of(name)["vocab"], batch * (seq_len + 1) * 4)
    subprocess.run(
        [os.path.join(programs, "shardwright"), "simulate", "--model",
         os.path.join(HERE, name + ".json"), "--cluster", "dgx-h200", "--gpus", "1", "--stack",
         "shardwright", "--precision", "bf16", "--global-batch", str(batch), "--micro-batch",
         str(micro), "--seq-len", str(seq_len), "--out", plan], check=True,
        stdout=subprocess.DEVNULL)
    subprocess.run(
        [os.path.join(programs, "shardwright-executor"), plan, "--data", data, "--out", out,
         "--steps", str(WARM_UP_STEPS + steps), "--device", "cuda", "--timeline-steps", "0",
         "--no-progress"], check=True,
        stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return batch * seq_len / statistics.median(r["step_s"] for r in rows[WARM_UP_STEPS:])


def pytorch_tokens_per_s(name, steps):
    seq_len, micro, batch = MODELS[name]
    done = subprocess.run(
        [sys.executable, os.path.join(HERE, "pytorch_reference.py"),
         os.path.join(HERE, name + ".json"), "--seq-len", str(seq_len), "--micro-batch",
         str(micro), "--global-batch", str(batch), "--steps", str(steps)], check=True,
        stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])["tokens_per_s"]


def device_name():
    done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()[0].strip()


def row_of(name, options, device):
    with tempfile.TemporaryDirectory() as folder:
        own = executor_tokens_per_s(name, options.bin, options.steps, folder)
    peak = next((rate for part, rate in PEAKS.items() if part in device), None)
    rate = own * flop_per_token(spec_of(name), MODELS[name][0])
    mfu = f"{rate / peak:.1%}" if peak else "unknown"
    if options.no_pytorch:
        return f"| {name} | {own:,.0f} | {mfu} | not run | |"
    other = pytorch_tokens_per_s(name, options.steps)
    return f"| {name} | {own:,.0f} | {mfu} | {other:,.0f} | {own / other:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--no-pytorch", action="store_true")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    device = device_name()
    print("| model | executor, tokens/s | MFU | PyTorch, tokens/s | ratio |\n| --- | --- | --- | --- | --- |")
    for name in options.models:
        print(row_of(name, options, device), flush=True)


if __name__ == "__main__":
    main()
