"""Lets a framework's own parser, and its checks of a configuration, read exported plans.

Usage: parse_exports.py FRAMEWORK < entries.json, in the interpreter of tools/framework_parsers.

Each entry has the exported "file", its "launch" text and the numbers "world", "dp", "pp", "tp", "cp" and "layers" of the
plan. Prints a JSON list: for each entry null, or what the framework said against it.
"""
import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
import types
import typing

import typing_extensions

import stand_ins

# Python 3.11 does not have it yet.
typing.override = typing_extensions.override


def shell_words(file, name):
    """The words of an exported Bash array."""
    command = f'. "{file}"; printf "%s\\0" "${{{name}[@]}}"'
    return subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout.split("\0")[:-1]


class Megatron:
    """Megatron-LM's argument parser, its check of all arguments, and the checks of Megatron Core's TransformerConfig."""

    def __init__(self):
        torch = stand_ins.install_torch("2.10.0")
        stand_ins.install("transformer_engine", "transformer_engine_torch")
        import transformer_engine

        transformer_engine.__version__ = "2.12.0"
        from megatron.training import arguments

        # Not before: an import of torch.cuda replaces the attribute.
        hopper = (9, 0)
        torch.cuda.get_device_capability = lambda *device: hopper
        torch.cuda.get_device_properties = lambda *device: types.SimpleNamespace(major=hopper[0], minor=hopper[1])
        self.arguments = arguments

    def read(self, entry):
        one_queue = "CUDA_DEVICE_MAX_CONNECTIONS"
        os.environ.pop(one_queue, None)
        for variable, value in re.findall(r"(\w+)=(\d+) ", entry["launch"].split("torchrun")[0]):
            os.environ[variable] = value
        os.environ["WORLD_SIZE"] = str(entry["world"])
        sys.argv = ["pretrain_gpt.py", *shell_words(entry["file"], "MEGATRON_ARGS")]
        parsed = self.arguments.validate_args(self.arguments.parse_args())
        assert parsed.data_parallel_size == entry["dp"], f"data parallel {parsed.data_parallel_size}, not {entry['dp']}"
        config = self.arguments.core_transformer_config_from_args(parsed)
        assert config.num_layers == entry["layers"]


class Torchtitan:
    """torchtitan's ConfigManager, and its checks of the degrees and of the split of layers."""

    # Runs a plan's arguments where torchtitan has no configuration of the model.
    ANY_MODEL = ["--module", "llama3", "--config", "llama3_debugmodel"]

    def __init__(self):
        stand_ins.install_torch("2.10.0")
        stand_ins.install("torchao", "torchdata", "torch_checkpointing", "spmd_types", "datasets", "tokenizers",
                          "safetensors", "tensorboard", "wandb", "einops", "PIL")
        schedules = importlib.import_module("torch.distributed.pipelining.schedules")
        single = {"GPipe", "1F1B"}
        multi = {"Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"}

        def schedule_class(name):
            assert name in single | multi, f"PyTorch has no pipeline schedule {name}"
            return type(name, (schedules.PipelineScheduleSingle if name in single else schedules.PipelineScheduleMulti,), {})

        schedules.get_schedule_class = schedule_class
        from torchtitan.config import ConfigManager
        from torchtitan.distributed import parallel_dims, pipeline_parallel

        self.manager = ConfigManager
        self.dims = parallel_dims.ParallelDims
        self.pipeline = pipeline_parallel

    def read(self, entry):
        module, function = re.search(r"--module (\w+) --config (\w+)", entry["launch"]).groups()
        named = function != "CONFIG"
        model = ["--module", module, "--config", function] if named else self.ANY_MODEL
        config = self.manager().parse_args([*model, *shell_words(entry["file"], "TORCHTITAN_FLAGS")])
        flavor = re.search(r'model_registry\("([^"]+)"', entry["launch"])
        if flavor:
            models = importlib.import_module("torchtitan.models." + module)
            config.model_spec = models.model_registry(flavor.group(1))
        dims = self.dims.from_config(config.parallelism, entry["world"])
        assert dims.dp_replicate * dims.dp_shard == entry["dp"]
        assert dims.dp_shard * dims.cp * dims.tp % dims.ep == 0, "ep does not divide the ranks that shard"
        rows = config.training.local_batch_size * entry["dp"]
        assert config.training.global_batch_size % rows == 0, "the batch is no multiple of its parts"
        divisor = (dims.tp if config.parallelism.enable_sequence_parallel else 1) * (2 * dims.cp if dims.cp > 1 else 1)
        assert config.training.seq_len % divisor == 0, f"the sequence is not divisible by {divisor}"
        if named or flavor:
            layers = len(config.model_spec.model.layers)
            assert layers == entry["layers"], f"{module} {function} has {layers} layers"
            config.model_spec.model.update_from_config(config=config)
        if dims.pp > 1:
            self.split(config, dims, entry)

    def split(self, config, dims, entry):
        model = types.SimpleNamespace(layers=[None] * entry["layers"])
        chunks, *sizes = self.pipeline._get_pipeline_metadata(dims, config.parallelism, model)
        parts = self.pipeline._generate_llm_fqn_per_model_part(chunks, *sizes)
        found = [sum(name.startswith("layers.") for name in part) for part in parts]
        assert found == entry["chunks"], f"torchtitan splits the layers into {found}, the plan into {entry['chunks']}"


class RecordingDict(dict):
    """Knows which of its keys were read."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seen = set()

    def get(self, key, *default):
        self.seen.add(key)
        return super().get(key, *default)

    def __getitem__(self, key):
        self.seen.add(key)
        return super().__getitem__(key)

    def __copy__(self):
        return self


class DeepSpeed:
    """DeepSpeed's DeepSpeedConfig, which refuses unknown keys below the first level, and its check of AutoEP."""

    def __init__(self):
        stand_ins.install_torch("2.10.0")
        stand_ins.install("hjson", "psutil", "cpuinfo", "ninja", "einops", "msgpack", "tqdm")
        from deepspeed.module_inject import auto_ep_config
        from deepspeed.runtime import config

        self.config = config
        self.check_experts = auto_ep_config.validate_autoep_config

    def read(self, entry):
        with open(entry["file"]) as file:
            document = RecordingDict(json.load(file))
        self.config.dist = types.SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda: entry["world"])
        ranks = types.SimpleNamespace(get_data_parallel_world_size=lambda: entry["dp"])
        config = self.config.DeepSpeedConfig(document, mpu=ranks)
        unknown = sorted(set(document) - document.seen)
        assert not unknown, f"unknown keys {unknown}"
        pipelined = entry["pp"] > 1
        assert not (pipelined and config.zero_optimization_stage >= 2), \
            "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism (deepspeed/runtime/pipe/engine.py)"
        self.check_experts(config.expert_parallel_config, entry["world"], entry["pp"], entry["tp"], entry["cp"],
                           zero_stage=config.zero_optimization_stage,
                           zero_offload_optimizer=config.zero_config.offload_optimizer is not None)


FRAMEWORKS = {"megatron": Megatron, "torchtitan": Torchtitan, "deepspeed": DeepSpeed}


def complaint(framework, entry):
    """What the framework says against an export; None where it accepts it."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            framework.read(entry)
    except SystemExit:
        return re.sub(r"[\s╭╮╰╯│─]+", " ", said.getvalue()).strip()[-300:]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def main():
    entries = json.load(sys.stdin)
    answer = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        framework = FRAMEWORKS[sys.argv[1]]()
        complaints = [complaint(framework, entry) for entry in entries]
    json.dump(complaints, answer)


main()
