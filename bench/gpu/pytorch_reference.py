#!/usr/bin/env python3
"""Training throughput of PyTorch on one GPU, for comparison with the executor's.

    bench/gpu/pytorch_reference.py MODEL --seq-len N --micro-batch N --global-batch N --steps N

MODEL is a model spec (bench/gpu/*.json). The model is compiled (torch.compile), computes in bf16 under
autocast with fp32 weights, uses flash attention (scaled_dot_product_attention), clips gradients and
steps a fused AdamW, as the executor does. Prints one line of JSON. Needs PyTorch 2.4 or later.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

WARM_UP_STEPS = 3


class Norm(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.layer = spec.get("norm") == "layernorm"
        self.weight = nn.Parameter(torch.ones(spec["hidden"]))
        self.bias = nn.Parameter(torch.zeros(spec["hidden"])) if spec.get("norm_bias") else None

    def forward(self, x):
        if self.layer:
            return functional.layer_norm(x, x.shape[-1:], self.weight, self.bias, 1e-5)
        return functional.rms_norm(x, x.shape[-1:], self.weight, 1e-5)


class Attention(nn.Module):
    def __init__(self, spec):
        super().__init__()
        attention = spec["attention"]
        self.heads, self.kv_heads = attention["heads"], attention["kv_heads"]
        self.dim, self.rotates = attention["head_dim"], spec.get("position", "rope") != "learned"
        width = (self.heads + 2 * self.kv_heads) * self.dim
        self.qkv = nn.Linear(spec["hidden"], width, bias=attention.get("qkv_bias", False))
        self.out = nn.Linear(self.heads * self.dim, spec["hidden"],
                             bias=attention.get("output_bias", False))

    def rotate(self, x, turns):
        if not self.rotates:
            return x
        first, second = x.chunk(2, dim=-1)
        cosine, sine = turns
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)

    def forward(self, x, turns):
        batch, tokens, _ = x.shape
        heads = self.qkv(x).view(batch, tokens, -1, self.dim).transpose(1, 2)
        q, k, v = heads.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        out = functional.scaled_dot_product_attention(
            self.rotate(q, turns), self.rotate(k, turns), v, is_causal=True,
            enable_gqa=self.heads != self.kv_heads)
        return self.out(out.transpose(1, 2).reshape(batch, tokens, -1))


class FeedForward(nn.Module):
    def __init__(self, spec):
        super().__init__()
        mlp = spec["mlp"]
        self.gated, width = mlp["gated"], mlp["ffn_hidden"]
        bias = mlp.get("bias", False)
        self.up = nn.Linear(spec["hidden"], width * (2 if self.gated else 1), bias=bias)
        self.down = nn.Linear(width, spec["hidden"], bias=bias)

    def forward(self, x):
        up = self.up(x)
        if self.gated:
            gate, rest = up.chunk(2, dim=-1)
            return self.down(functional.silu(gate) * rest)
        return self.down(functional.gelu(up, approximate="tanh"))


class Layer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.attention_norm, self.mlp_norm = Norm(spec), Norm(spec)
        self.attention, self.mlp = Attention(spec), FeedForward(spec)

    def forward(self, x, turns):
        x = x + self.attention(self.attention_norm(x), turns)
        return x + self.mlp(self.mlp_norm(x))


class Decoder(nn.Module):
    def __init__(self, spec, seq_len):
        super().__init__()
        self.embedding = nn.Embedding(spec["vocab"], spec["hidden"])
        learned = spec.get("position", "rope") == "learned"
        self.positions = nn.Embedding(seq_len, spec["hidden"]) if learned else None
        self.layers = nn.ModuleList(Layer(spec) for _ in range(spec["layers"]))
        self.norm = Norm(spec)
        self.head = nn.Linear(spec["hidden"], spec["vocab"], bias=False)
        if spec.get("tied_embeddings"):
            self.head.weight = self.embedding.weight
        dim = spec["attention"]["head_dim"]
        angles = torch.outer(torch.arange(seq_len), 10000.0 ** (-torch.arange(0, dim, 2) / dim))
        self.register_buffer("cosine", angles.cos().bfloat16())
        self.register_buffer("sine", angles.sin().bfloat16())

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, (self.cosine, self.sine))
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def optimizer_of(model):
    decays = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), fused=True)


def train_step(model, compiled, optimizer, batches):
    for tokens, targets in batches:
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(tokens, targets) / len(batches)
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def seconds_of_steps(model, options, vocabulary):
    compiled, optimizer = torch.compile(model), optimizer_of(model)
    shape = (options.micro_batch, options.seq_len)
    seconds = []
    for _ in range(WARM_UP_STEPS + options.steps):
        batches = [(torch.randint(vocabulary, shape, device="cuda"),
                    torch.randint(vocabulary, shape, device="cuda"))
                   for _ in range(options.global_batch // options.micro_batch)]
        torch.cuda.synchronize()
        start = time.perf_counter()
        train_step(model, compiled, optimizer, batches)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds[WARM_UP_STEPS:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    for name in ("seq-len", "micro-batch", "global-batch", "steps"):
        parser.add_argument("--" + name, type=int, required=True)
    options = parser.parse_args()
    with open(options.model, encoding="utf-8") as file:
        spec = json.load(file)
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Decoder(spec, options.seq_len).cuda()
    step = statistics.median(seconds_of_steps(model, options, spec["vocab"]))
    print(json.dumps({"pytorch": torch.__version__, "device": torch.cuda.get_device_name(),
                      "step_s": step,
                      "tokens_per_s": options.global_batch * options.seq_len / step}))


if __name__ == "__main__":
    main()
