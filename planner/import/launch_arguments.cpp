#include "planner/import/launch_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "planner/import/shell_script.hpp"

namespace shardwright::planner {
namespace {

constexpr std::string_view kLogBegin = " arguments -----", kLogEnd = " end of arguments ---";

// Switches that turn something off (megatron/training/arguments.py at commit 000c4ac24f61 of
// https://github.com/NVIDIA/Megatron-LM), and what they turn off.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kOffSwitches = {{
    {"disable_bias_linear", "add_bias_linear"},
    {"disable_moe_token_dropping", "moe_token_dropping"},
    {"no_overlap_p2p_communication", "overlap_p2p_comm"},
    {"no_gradient_accumulation_fusion", "gradient_accumulation_fusion"},
    {"no_bias_gelu_fusion", "bias_gelu_fusion"},
    {"no_bias_swiglu_fusion", "bias_swiglu_fusion"},
    {"no_bias_dropout_fusion", "bias_dropout_fusion"},
    {"no_masked_softmax_fusion", "masked_softmax_fusion"},
    {"no_rope_fusion", "apply_rope_fusion"},
    {"no_position_embedding", "add_position_embedding"},
}};

// Arguments with another name in the namespace, and those of Megatron-DeepSpeed that Megatron-LM
// has under another name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kOtherNames = {{
    {"activations_checkpoint_num_layers", "recompute_num_layers"},
    {"checkpoint_num_layers", "recompute_num_layers"},
    {"layernorm_epsilon", "norm_epsilon"},
    {"model_parallel_size", "tensor_model_parallel_size"},
    {"moe_expert_parallel_size", "expert_model_parallel_size"},
    {"pipe_parallel_size", "pipeline_model_parallel_size"},
    {"rope_theta", "rotary_base"},
    {"rotary_position_embeddings_theta", "rotary_base"},
    {"use_custom_fsdp", "use_megatron_fsdp"},
}};

std::string underscored(std::string_view flag) {
  std::string name(flag.substr(std::min<std::size_t>(2, flag.size())));
  std::replace(name.begin(), name.end(), '-', '_');
  for (const auto& [other, usual] : kOtherNames)
    if (name == other) return std::string(usual);
  return name;
}

bool is_flag(const std::string& word) {
  return word.starts_with("--") && word.size() > 2;
}

// The flags of a command line with their values; words before the first flag do not count.
std::map<std::string, std::string> flags_of(const ShellCommand& words, std::size_t begin,
                                            std::size_t end) {
  std::map<std::string, std::string> values;
  for (std::size_t i = begin; i < end; ++i) {
    if (!is_flag(words[i])) continue;
    const std::size_t equals = words[i].find('=');
    std::string name = underscored(std::string_view(words[i]).substr(0, equals));
    std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    for (; i + 1 < end && !is_flag(words[i + 1]); ++i)
      value += (value.empty() ? "" : " ") + words[i + 1];
    if (value.empty()) {
      value = "True";
      for (const auto& [off, what] : kOffSwitches) {
        if (name != off) continue;
        name = what;
        value = "False";
      }
    }
    values[name] = value;
  }
  return values;
}

std::optional<std::int64_t> count_in(const std::string& text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  // "2:4" of elastic runs begins with the least number of nodes.
  const bool ends = end == text.data() + text.size() || *end == ':';
  if (error != std::errc() || !ends || count < 1 || count > 10'000'000) return std::nullopt;
  return count;
}

// The numbers of processes and nodes that launchers are told: torchrun, srun, mpirun, deepspeed.
class LauncherCounts {
 public:
  void add(const ShellCommand& words, std::size_t end) {
    for (auto& [name, value] : flags_of(words, 0, end)) {
      std::string count = value.substr(0, value.find(' '));
      // "gpu:4", "gpu:v100:4".
      const bool names_gpus =
          name == "gpus_per_node" || (name == "gres" && count.starts_with("gpu"));
      if (names_gpus) count.erase(0, count.rfind(':') + 1);
      if (name == "nnodes" && count.find(':') != std::string::npos) elastic_nodes_ = count;
      counts_.try_emplace(name, count_in(count));
    }
    for (std::size_t i = 0; i + 1 < end; ++i) {
      if (words[i] == "-N") counts_.try_emplace("nodes", count_in(words[i + 1]));
      if (words[i] == "-n" || words[i] == "-np")
        counts_.try_emplace("ntasks", count_in(words[i + 1]));
    }
  }

  // Of elastic runs the least number counts.
  std::string elastic() const {
    return elastic_nodes_.empty()
               ? ""
               : fmt::format("of {} nodes the first number counts", elastic_nodes_);
  }

  // What is not known where a node has more GPUs than processes; empty otherwise.
  std::string doubt() const {
    const auto tasks = first({"ntasks_per_node"});
    const auto gpus = first({"gpus_per_node", "gres"});
    if (has("nproc_per_node") || has("num_gpus") || !tasks || gpus.value_or(0) <= *tasks) return "";
    return fmt::format("whether a node's {} task{} use more than one each of its {} GPUs", *tasks,
                       *tasks == 1 ? "" : "s", *gpus);
  }

  // What was found in place of the number of processes, of which a flag has no value; empty if
  // nothing was.
  std::string found(const ShellScript& script) const {
    for (const auto& [flag, cause] : script.without_value)
      if (has(underscored(flag)) && !counts_.at(underscored(flag)))
        return fmt::format("{} without a value, as it is {}", flag, cause);
    return "";
  }

  std::optional<std::int64_t> ranks() const {
    const auto nodes = first({"nnodes", "nodes", "num_nodes"});
    const auto each = first({"nproc_per_node", "num_gpus"});
    if (each) return nodes.value_or(1) * *each;
    if (has("nproc_per_node")) return std::nullopt;
    if (const auto tasks = first({"ntasks"})) return tasks;
    const auto tasks = first({"ntasks_per_node", "gpus_per_node"});
    if (tasks) return nodes.value_or(1) * *tasks;
    return std::nullopt;
  }

 private:
  bool has(const std::string& name) const { return counts_.contains(name); }

  std::optional<std::int64_t> first(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      const auto found = counts_.find(name);
      if (found != counts_.end() && found->second) return found->second;
    }
    return std::nullopt;
  }

  std::map<std::string, std::optional<std::int64_t>> counts_;
  std::string elastic_nodes_;
};

// Names by which arguments state the number of layers: also by the pattern of a hybrid model, or
// that of an encoder.
constexpr std::array<const char*, 4> kLayers = {"num_layers", "hybrid_layer_pattern",
                                                "hybrid_override_pattern", "encoder_num_layers"};

bool describes_a_model(const std::map<std::string, std::string>& values) {
  return values.contains("hidden_size") &&
         std::ranges::any_of(kLayers, [&](const char* name) { return values.contains(name); });
}

bool is_program(const std::string& word) {
  return word.ends_with(".py") && !word.starts_with("-");
}

// Scripts print a command before they run it.
bool prints(const std::string& word) {
  return word == "echo" || word == "printf";
}

// A command within quotes: bash -c "torchrun … pretrain_gpt.py …".
std::vector<ShellCommand> with_quoted_commands(std::vector<ShellCommand> commands) {
  std::vector<ShellCommand> all;
  for (ShellCommand& command : commands) {
    for (const std::string& word : command) {
      if (word.find(".py ") == std::string::npos) continue;
      // The launcher's words before it tell the processes.
      ShellCommand whole(command.begin(), std::find(command.begin(), command.end(), word));
      for (const ShellCommand& inner : read_shell_script(word, "quoted command").commands) {
        whole.insert(whole.end(), inner.begin(), inner.end());
        all.push_back(whole);
      }
    }
    all.push_back(std::move(command));
  }
  return all;
}

// Where ranks find each other, and which one a process is, says nothing on the plan.
bool tells_a_place(const std::string& text) {
  for (const char* word : {"ADDR", "PORT", "HOST", "host"})
    if (text.find(word) != std::string::npos) return true;
  return text == "RANK" || text.ends_with("_RANK");
}

std::string counted_assignment(const std::string& name, const ConditionalAssignment& assignment) {
  if (!assignment.first_value.empty())
    return fmt::format("of the loop \"{}\" in line {} the first turn counts, with {}",
                       assignment.text, assignment.line, assignment.first_value);
  return fmt::format("\"{}\" in line {} counts as if its condition held (without it {} {})",
                     assignment.text, assignment.line, name,
                     assignment.otherwise.empty() ? "has no value" : "is " + assignment.otherwise);
}

std::vector<std::string> unknown_in(const ShellScript& script) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : script.defaults)
    if (!tells_a_place(name)) unknown.push_back(fmt::format("{} has its default {}", name, value));
  for (const std::string& name : script.taken_as_unset)
    if (!tells_a_place(name)) unknown.push_back(name + " counts as not set");
  for (const auto& [name, assignment] : script.conditional)
    if (!tells_a_place(name)) unknown.push_back(counted_assignment(name, assignment));
  for (const std::string& command : script.substitutions)
    if (!tells_a_place(command))
      unknown.push_back(fmt::format("the output of {} is left out", command));
  return unknown;
}

// A command that launches a model, and the place of its program within it.
struct LaunchingCommand {
  ShellCommand words;
  std::size_t program = 0;
  std::map<std::string, std::string> values;
};

std::vector<LaunchingCommand> launching(const std::vector<ShellCommand>& commands) {
  std::vector<LaunchingCommand> found;
  for (const ShellCommand& command : with_quoted_commands(commands)) {
    const auto program = std::find_if(command.begin(), command.end(), is_program);
    if (program == command.end() || std::any_of(command.begin(), program, prints)) continue;
    const auto at = static_cast<std::size_t>(program - command.begin());
    LaunchingCommand each{command, at, flags_of(command, at + 1, command.size())};
    if (describes_a_model(each.values)) found.push_back(std::move(each));
  }
  return found;
}

std::optional<LaunchArguments> launched_by(const std::vector<ShellCommand>& commands,
                                           const ShellScript& script) {
  const std::vector<LaunchingCommand> launches = launching(commands);
  if (launches.empty()) return std::nullopt;
  const auto& [command, at, values] = launches.front();
  LaunchArguments launch;
  launch.values = values;
  LauncherCounts counts;
  counts.add(command, at);
  for (const ShellCommand& comment : script.commented_commands)
    if (comment.front() == "SBATCH") counts.add(comment, comment.size());
  launch.ranks = counts.ranks();
  if (!launch.ranks) launch.found_ranks = counts.found(script);
  launch.program = command[at];
  for (const auto& [flag, cause] : script.without_value)
    launch.without_value.emplace(underscored(flag), cause);
  if (!script.comments.empty()) launch.title = script.comments.front();
  launch.unknown = unknown_in(script);
  for (std::string doubt : {counts.doubt(), counts.elastic()})
    if (!doubt.empty()) launch.unknown.push_back(std::move(doubt));
  const auto others = std::ranges::count_if(
      launches, [&](const LaunchingCommand& each) { return each.values != values; });
  if (others > 0)
    launch.unknown.push_back(fmt::format("of its {} launches the first counts", others + 1));
  return launch;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  text.remove_prefix(begin);
  const std::size_t last = text.find_last_not_of(" \t\r");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// The words of a Python list: "moe core_attn" of "['moe', 'core_attn']".
std::string without_brackets(std::string_view value) {
  const bool is_list = value.size() >= 2 && ((value.front() == '[' && value.back() == ']') ||
                                             (value.front() == '(' && value.back() == ')'));
  if (!is_list || value.find('*') != std::string_view::npos) return std::string(value);
  std::string words;
  for (const char c : value.substr(1, value.size() - 2))
    if (c != '\'' && c != ',') words += c;
  return words;
}

// A line of the log: "  num_layers ......................... 32". What stands before the name, such
// as the number of the rank, does not count.
void read_logged_line(std::string_view line, std::map<std::string, std::string>& values) {
  const std::size_t dots = line.find(" ...");
  if (dots == std::string_view::npos) return;
  const std::string_view before = trimmed(line.substr(0, dots));
  const std::size_t blank = before.find_last_of(" \t:");
  const std::string_view name = blank == std::string_view::npos ? before : before.substr(blank + 1);
  const std::size_t behind = line.find_first_not_of('.', dots + 1);
  if (name.empty() || behind == std::string_view::npos) return;
  const std::string_view value = trimmed(line.substr(behind));
  if (value == "None" || value.empty()) return;
  std::string known(name);
  for (const auto& [other, usual] : kOtherNames)
    if (known == other) known = usual;
  values[known] = without_brackets(value);
}

std::optional<LaunchArguments> logged_in(std::string_view text) {
  std::size_t begin = text.find(kLogBegin);
  const std::size_t end = text.find(kLogEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
    return std::nullopt;
  LaunchArguments launch;
  launch.complete = true;
  while (begin < end) {
    const std::size_t next = std::min(text.find('\n', begin), end);
    read_logged_line(text.substr(begin, next - begin), launch.values);
    begin = next + 1;
  }
  if (!describes_a_model(launch.values)) return std::nullopt;
  if (const auto world = launch.values.find("world_size"); world != launch.values.end())
    launch.ranks = count_in(world->second);
  return launch;
}

// True if a text has a flag of this name, with dashes or with underscores.
bool has_flag(std::string_view text, std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return text.find("--" + dashed) != std::string_view::npos ||
         text.find(fmt::format("--{}", name)) != std::string_view::npos;
}

bool states_layers(std::string_view text) {
  return std::ranges::any_of(kLayers, [&](const char* name) { return has_flag(text, name); });
}

}  // namespace

bool states_a_model(std::string_view text) {
  return states_layers(text) && has_flag(text, "hidden_size");
}

bool states_a_launch(std::string_view text) {
  const auto has = [&](std::string_view words) {
    return text.find(words) != std::string_view::npos;
  };
  return has("torchrun ") || has("-m torch.distributed.") || has("-m torchtitan") ||
         (has("[parallelism]") && has("tensor_parallel_degree"));
}

std::optional<LaunchArguments> find_launch_arguments(std::string_view text,
                                                     const std::string& source,
                                                     const ScriptParameters& parameters) {
  std::optional<LaunchArguments> launch = logged_in(text);
  if (!launch && states_layers(text)) {
    const ShellScript script = read_shell_script(text, source, parameters);
    launch = launched_by(script.commands, script);
    // Exports have the arguments in a list, and the command in a comment.
    if (!launch) launch = launched_by(script.commented_commands, script);
  }
  if (launch) launch->source = source;
  return launch;
}

}  // namespace shardwright::planner
