// A published measurement of a training step, with its whole configuration.
//
// Rows come as JSON lines. A missing or null field means that the source does not say. Keys that
// are not known here are skipped: the tables say more than a simulation needs. A row whose values
// make no sense stays in the list with the reason, so that the others of its file can be used; so
// does a line that is no JSON.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::sim {

struct MoeRow {
  std::optional<std::int64_t> experts, top_k, expert_ffn, shared_experts, dense_layers;

  bool operator==(const MoeRow&) const = default;
};

struct ModelRow {
  std::string name;
  std::optional<std::int64_t> layers, hidden, ffn_hidden, heads, kv_heads, head_dim, vocab;
  std::optional<std::int64_t> seq_len;  // tokens
  std::optional<bool> gated_mlp, tied_embeddings;
  std::optional<MoeRow> moe;

  bool operator==(const ModelRow&) const = default;
};

struct ClusterRow {
  std::string gpu;
  std::int64_t gpus = 1;
  std::optional<std::int64_t> gpus_per_node;
  std::string intra_node, inter_node;  // free text; empty: the source does not say

  bool operator==(const ClusterRow&) const = default;
};

// Texts are empty where the source does not say.
struct PlanRow {
  std::optional<std::int64_t> dp, tp, pp, cp, ep, virtual_pp;
  std::optional<std::int64_t> micro_batch, global_batch;  // sequences
  std::optional<std::int64_t> zero_stage;                 // 3: FSDP
  std::optional<bool> sequence_parallel, overlap_grad_reduce;
  std::string recompute, precision, schedule;

  bool operator==(const PlanRow&) const = default;
};

// The figures that are read, and "oom".
inline constexpr std::array<std::string_view, 6> kMeasuredKeys = {
    "iteration_s", "tflops_per_gpu", "mfu", "tokens_per_s_per_gpu", "peak_memory_gb", "oom"};

struct MeasuredRow {
  std::optional<double> iteration_s, tflops_per_gpu, mfu, tokens_per_s_per_gpu;
  std::optional<double> peak_memory_gb;  // GB or GiB, allocated or of the whole device: `notes`
  bool oom = false;                      // the source reports that it does not fit
  bool ran = false;                      // … or, by "oom": false, that it does
  std::vector<std::string> others{};     // keys of figures that are not read: "iteration_ms"

  bool operator==(const MeasuredRow&) const = default;
};

// What a prediction is held against.
struct TargetRow {
  std::string metric;  // "step_s", "tokens_per_s_per_gpu", "tflops_per_gpu" or "mfu"
  double value = 0.0;
  bool derived = false;

  bool operator==(const TargetRow&) const = default;
};

struct TrainingRow {
  std::string id;
  std::string file;  // that it was read from
  std::string source_title, source_address;
  std::optional<std::int64_t> source_year;
  bool verified = false;
  ModelRow model;
  ClusterRow cluster;
  PlanRow plan;
  MeasuredRow measured;
  std::optional<TargetRow> target;
  std::string flops_convention, notes;
  std::string stack;
  std::string attention_kernel;        // of `stack_options`; empty: the stack's own
  std::string grade;                   // "A", "B" or "C"; empty for rows that ran out of memory
  std::string group;                   // rows of one group can be ranked against each other
  std::vector<std::string> filled_in;  // what the reader took from other fields of the row
  std::string unreadable;  // why the row means nothing: its problems, or what nothing tells

  bool operator==(const TrainingRow&) const = default;
};

// Reads all rows of a file; empty lines are skipped. A value of the wrong type or out of range
// makes its row `unreadable`, "line 3/model/layers: found …", and so does text that is no JSON.
// What a row leaves open but tells elsewhere is filled in: an id from the line, accelerators from
// the degrees, the target from the figures. Throws InputError if no row can be read or a hundred
// lines are no JSON.
std::vector<TrainingRow> read_training_rows(const std::string& file);

// The same of a stream's lines; `source` names it in errors and in the rows.
std::vector<TrainingRow> read_training_rows(std::istream& stream, const std::string& source);

// Those of several files, one after the other, each file once. Throws InputError with the problems
// of all of them.
std::vector<TrainingRow> read_training_rows(const std::vector<std::string>& files);

// The row of this id. Throws InputError, with the nearest id, if there is none or several.
TrainingRow find_training_row(const std::string& file, const std::string& id);

}  // namespace shardwright::sim
