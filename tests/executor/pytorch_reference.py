#!/usr/bin/env python3
"""Loss and gradients of small models of several families in PyTorch, fp64, as JSON on standard output.

    tests/executor/pytorch_reference.py > tests/executor/runtime/pytorch_reference.json

Needs PyTorch (Debian: python3-torch). Weights are a formula of the parameter's number and the
element's index that the test knows as well; names, order and shapes are those of `parameter_tensors`.
"""
import json
import math

import torch

torch.set_default_dtype(torch.float64)
SEQUENCES, TOKENS, VOCABULARY, HIDDEN, HEADS, HEAD_DIM, FFN, LAYERS = 2, 6, 11, 8, 4, 2, 12, 2
EXPERTS, TOP_K, EXPERT_FFN, SHARED_FFN = 4, 2, 10, 6
# Latent attention: the ranks of its bottlenecks, and the parts of a head.
Q_RANK, KV_RANK, NOPE, ROPE, VALUE = 6, 4, 3, 4, 5
# YaRN as DeepSeek-V2 has it: the first pair of a head turns as before, the second one slower.
YARN_FACTOR, YARN_MSCALE, YARN_MSCALE_ALL_DIM = 8.0, 0.707, 0.5


def formula(number, name, shape):
    count = math.prod(shape)
    values = 0.4 * torch.sin(0.9 * torch.arange(count) + 1.7 * number)
    if name.endswith("norm.weight"):
        values = values + 1.0
    # Rounded to what the executor starts from.
    return values.float().double().reshape(shape).requires_grad_()


def tokens(offset):
    flat = [(7 * i * i + 3 * i + offset) % VOCABULARY for i in range(SEQUENCES * TOKENS)]
    return torch.tensor(flat).reshape(SEQUENCES, TOKENS)


def linear_shapes(prefix, outputs, inputs, bias):
    shapes = [(prefix + ".weight", (outputs, inputs))]
    return shapes + [(prefix + ".bias", (outputs,))] if bias else shapes


def expert_shapes(prefix, shared):
    shapes = [(prefix + "router.weight", (EXPERTS, HIDDEN)),
              (prefix + "experts.gate_proj.weight", (EXPERTS, EXPERT_FFN, HIDDEN)),
              (prefix + "experts.up_proj.weight", (EXPERTS, EXPERT_FFN, HIDDEN)),
              (prefix + "experts.down_proj.weight", (EXPERTS, HIDDEN, EXPERT_FFN))]
    if not shared:
        return shapes
    return shapes + [(prefix + "shared_experts.gate_proj.weight", (SHARED_FFN, HIDDEN)),
                     (prefix + "shared_experts.up_proj.weight", (SHARED_FFN, HIDDEN)),
                     (prefix + "shared_experts.down_proj.weight", (HIDDEN, SHARED_FFN)),
                     (prefix + "shared_expert_gate.weight", (1, HIDDEN))]


def latent_shapes(prefix, compresses):
    """Queries are projected at once, or pass a bottleneck as keys and values do; these projections down have biases."""
    if compresses:
        shapes = linear_shapes(prefix + "q_a_proj", Q_RANK, HIDDEN, True)
        shapes += [(prefix + "q_a_norm.weight", (Q_RANK,)),
                   (prefix + "q_b_proj.weight", (HEADS * (NOPE + ROPE), Q_RANK))]
    else:
        shapes = [(prefix + "q_proj.weight", (HEADS * (NOPE + ROPE), HIDDEN))]
    shapes += linear_shapes(prefix + "kv_a_proj", KV_RANK + ROPE, HIDDEN, compresses)
    shapes += [(prefix + "kv_a_norm.weight", (KV_RANK,)),
               (prefix + "kv_b_proj.weight", (HEADS * (NOPE + VALUE), KV_RANK))]
    return shapes + linear_shapes(prefix + "o_proj", HIDDEN, HEADS * VALUE, compresses)


def shapes_of(llama, kv_heads, experts, shared, head_norms, latent):
    bias = not llama

    def norm(name):
        return [(name + ".weight", (HIDDEN,))] + ([(name + ".bias", (HIDDEN,))] if bias else [])

    shapes = [("embedding.weight", (VOCABULARY, HIDDEN))]
    if not llama:
        shapes.append(("position_embedding.weight", (TOKENS + 2, HIDDEN)))
    for layer in range(LAYERS):
        prefix = f"layers.{layer}."
        shapes += norm(prefix + "attention_norm")
        if latent:
            shapes += latent_shapes(prefix + "attention.", latent == "v3")
        else:
            shapes += linear_shapes(prefix + "attention.q_proj", HEADS * HEAD_DIM, HIDDEN, bias)
            shapes += linear_shapes(prefix + "attention.k_proj", kv_heads * HEAD_DIM, HIDDEN, bias)
            shapes += linear_shapes(prefix + "attention.v_proj", kv_heads * HEAD_DIM, HIDDEN, bias)
            if head_norms:
                shapes += [(prefix + f"attention.{name}_norm.weight", (HEAD_DIM,)) for name in "qk"]
            shapes += linear_shapes(prefix + "attention.o_proj", HIDDEN, HEADS * HEAD_DIM, bias)
        shapes += norm(prefix + "mlp_norm")
        if experts and (not latent or layer > 0):
            layer_shapes = expert_shapes(prefix + "moe.", shared)
            shapes += layer_shapes[:-1] if latent else layer_shapes
            continue
        if llama:
            shapes += linear_shapes(prefix + "mlp.gate_proj", FFN, HIDDEN, bias)
        shapes += linear_shapes(prefix + "mlp.up_proj", FFN, HIDDEN, bias)
        shapes += linear_shapes(prefix + "mlp.down_proj", HIDDEN, FFN, bias)
    shapes += norm("final_norm")
    if llama:
        shapes.append(("head.weight", (VOCABULARY, HIDDEN)))
    return shapes


def yarn_mscale(mscale):
    return 0.1 * mscale * math.log(YARN_FACTOR) + 1.0


class Model:
    def __init__(self, llama, kv_heads, experts=False, shared=False, head_norms=False, latent=None):
        self.llama, self.kv_heads, self.shared = llama, kv_heads, shared
        self.head_norms, self.latent = head_norms, latent
        shapes = shapes_of(llama, kv_heads, experts, shared, head_norms, latent)
        self.weights = {name: formula(number, name, shape)
                        for number, (name, shape) in enumerate(shapes)}

    def norm(self, name, x, epsilon=1e-5):
        if self.llama:
            scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)
            return x * scale * self.weights[name + ".weight"]
        return torch.nn.functional.layer_norm(
            x, (HIDDEN,), self.weights[name + ".weight"], self.weights[name + ".bias"], 1e-5)

    def linear(self, name, x):
        return torch.nn.functional.linear(
            x, self.weights[name + ".weight"], self.weights.get(name + ".bias"))

    def heads(self, x, count):
        return x.reshape(SEQUENCES, TOKENS, count, HEAD_DIM).transpose(1, 2)

    def rotate(self, x):
        if not self.llama:
            return x
        frequencies = 10000.0 ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
        angles = torch.arange(TOKENS)[:, None] * frequencies
        cosine, sine = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
        first, second = x.chunk(2, dim=-1)
        return x * cosine + torch.cat((-second, first), dim=-1) * sine

    def attention(self, prefix, x):
        q = self.heads(self.linear(prefix + "q_proj", x), HEADS)
        k = self.heads(self.linear(prefix + "k_proj", x), self.kv_heads)
        if self.head_norms:
            q, k = self.norm(prefix + "q_norm", q), self.norm(prefix + "k_norm", k)
        q, k = self.rotate(q), self.rotate(k)
        v = self.heads(self.linear(prefix + "v_proj", x), self.kv_heads)
        group = HEADS // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(HEAD_DIM)
        scores = scores.masked_fill(torch.ones(TOKENS, TOKENS).triu(1).bool(), -math.inf)
        out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(SEQUENCES, TOKENS, -1)
        return self.linear(prefix + "o_proj", out)

    def rotate_pairs(self, x):
        """Neighbours are pairs, as in the checkpoints of DeepSeek."""
        frequencies = 10000.0 ** (-torch.arange(0, ROPE, 2) / ROPE)
        magnitude = 1.0
        if self.latent == "v2":
            frequencies = frequencies * torch.tensor([1.0, 1.0 / YARN_FACTOR])
            magnitude = yarn_mscale(YARN_MSCALE) / yarn_mscale(YARN_MSCALE_ALL_DIM)
        turns = torch.polar(torch.tensor(magnitude), torch.arange(TOKENS)[:, None] * frequencies)
        pairs = torch.view_as_complex(x.contiguous().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns).flatten(-2)

    def latent_attention(self, prefix, x):
        """modeling_deepseek.py of DeepSeek-V2 and DeepSeek-V3."""
        def heads(projected):
            return projected.reshape(SEQUENCES, TOKENS, HEADS, -1).transpose(1, 2)

        if self.latent == "v3":
            x_of_queries = self.norm(prefix + "q_a_norm", self.linear(prefix + "q_a_proj", x), 1e-6)
            q = heads(self.linear(prefix + "q_b_proj", x_of_queries))
        else:
            q = heads(self.linear(prefix + "q_proj", x))
        latent, key = self.linear(prefix + "kv_a_proj", x).split([KV_RANK, ROPE], dim=-1)
        latent = self.norm(prefix + "kv_a_norm", latent, 1e-6)
        k, v = heads(self.linear(prefix + "kv_b_proj", latent)).split([NOPE, VALUE], dim=-1)
        rotary = self.rotate_pairs(key)[:, None].expand(-1, HEADS, -1, -1)
        q = torch.cat((q[..., :NOPE], self.rotate_pairs(q[..., NOPE:])), dim=-1)
        scale = (NOPE + ROPE) ** -0.5
        if self.latent == "v2":
            scale *= yarn_mscale(YARN_MSCALE_ALL_DIM) ** 2
        scores = q @ torch.cat((k, rotary), dim=-1).transpose(-1, -2) * scale
        scores = scores.masked_fill(torch.ones(TOKENS, TOKENS).triu(1).bool(), -math.inf)
        out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(SEQUENCES, TOKENS, -1)
        return self.linear(prefix + "o_proj", out)

    def feed_forward(self, prefix, x):
        up = self.linear(prefix + "up_proj", x)
        if self.llama:
            up = torch.nn.functional.silu(self.linear(prefix + "gate_proj", x)) * up
        else:
            up = torch.nn.functional.gelu(up, approximate="tanh")
        return self.linear(prefix + "down_proj", up)

    def mixture(self, prefix, x):
        """As transformers computes Mixtral, Qwen2-MoE (shared experts with a gate) and DeepSeek-V2 (without)."""
        def expert(e, row):
            gate, up, down = (self.weights[f"{prefix}experts.{name}_proj.weight"][e]
                              for name in ("gate", "up", "down"))
            return down @ (torch.nn.functional.silu(gate @ row) * (up @ row))

        out = []
        for row in x.reshape(-1, HIDDEN):
            shares, chosen = (self.weights[prefix + "router.weight"] @ row).softmax(-1).topk(TOP_K)
            if not self.shared:
                shares = shares / shares.sum()
            out.append(sum(share * expert(e, row) for share, e in zip(shares, chosen)))
        out = torch.stack(out).reshape(x.shape)
        if not self.shared:
            return out
        of_shared = self.feed_forward(prefix + "shared_experts.", x)
        if self.latent:
            return out + of_shared
        return out + torch.sigmoid(self.linear(prefix + "shared_expert_gate", x)) * of_shared

    def loss(self):
        x = self.weights["embedding.weight"][tokens(0)]
        if not self.llama:
            x = x + self.weights["position_embedding.weight"][:TOKENS]
        for layer in range(LAYERS):
            prefix = f"layers.{layer}."
            attention = self.latent_attention if self.latent else self.attention
            x = x + attention(prefix + "attention.", self.norm(prefix + "attention_norm", x))
            norm = self.norm(prefix + "mlp_norm", x)
            sparse = prefix + "moe.router.weight" in self.weights
            x = x + (self.mixture(prefix + "moe.", norm) if sparse else
                     self.feed_forward(prefix + "mlp.", norm))
        head = self.weights.get("head.weight", self.weights["embedding.weight"])
        logits = self.norm("final_norm", x) @ head.T
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens(5).flatten())


def reference(*arguments, **named):
    model = Model(*arguments, **named)
    loss = model.loss()
    loss.backward()
    gradients = {name: [float(f"{value:.9e}") for value in weight.grad.flatten()]
                 for name, weight in model.weights.items()}
    return {"loss": loss.item(), "gradients": gradients}


print(json.dumps({"pytorch": torch.__version__, "gpt2": reference(False, HEADS),
                  "llama": reference(True, 2),
                  "qwen3": reference(True, 2, head_norms=True), "mixtral": reference(True, 2, True),
                  "qwen2_moe": reference(True, 2, True, True),
                  "deepseek_v2": reference(True, HEADS, True, True, latent="v2"),
                  "deepseek_v3": reference(True, HEADS, latent="v3")}, indent=None, separators=(",", ":")))
