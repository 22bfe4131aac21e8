#include "sim/validation/training_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "sim/validation/json_lines.hpp"

namespace shardwright::sim {
namespace {

using OptionalInteger = std::optional<std::int64_t>;
using OptionalNumber = std::optional<double>;

OptionalInteger integer_if(ObjectReader& object, const std::string& key, IntegerRange range = {}) {
  return object.has(key) ? OptionalInteger(object.integer(key, range)) : std::nullopt;
}

OptionalNumber number_if(ObjectReader& object, const std::string& key) {
  return object.has(key) ? OptionalNumber(object.number(key)) : std::nullopt;
}

std::optional<bool> boolean_if(ObjectReader& object, const std::string& key) {
  return object.has(key) ? std::optional<bool>(object.boolean(key)) : std::nullopt;
}

MoeRow read_moe(ObjectReader object) {
  MoeRow moe;
  moe.experts = object.integer("experts");
  moe.top_k = object.integer("top_k");
  moe.expert_ffn = object.integer("expert_ffn");
  moe.shared_experts = object.integer_or("shared_experts", 0, {0});
  moe.dense_layers = integer_if(object, "dense_layers", {0});
  return moe;
}

ModelRow read_model_row(ObjectReader object) {
  ModelRow model;
  model.name = object.text("name");
  model.layers = integer_if(object, "layers");
  model.hidden = integer_if(object, "hidden");
  model.ffn_hidden = integer_if(object, "ffn_hidden");
  model.heads = integer_if(object, "heads");
  model.kv_heads = integer_if(object, "kv_heads");
  model.head_dim = integer_if(object, "head_dim");
  model.vocab = integer_if(object, "vocab");
  model.seq_len = integer_if(object, "seq_len");
  model.gated_mlp = boolean_if(object, "gated_mlp");
  model.tied_embeddings = boolean_if(object, "tied_embeddings");
  if (auto moe = object.object_if("moe")) model.moe = read_moe(*moe);
  return model;
}

ClusterRow read_cluster_row(ObjectReader object) {
  ClusterRow cluster;
  cluster.gpu = object.text("gpu");
  cluster.gpus = object.integer("gpus");
  cluster.gpus_per_node = integer_if(object, "gpus_per_node");
  cluster.intra_node = object.text_or("intra_node", "");
  cluster.inter_node = object.text_or("inter_node", "");
  return cluster;
}

PlanRow read_plan_row(ObjectReader object) {
  PlanRow plan;
  plan.dp = integer_if(object, "dp");
  plan.tp = integer_if(object, "tp");
  plan.pp = integer_if(object, "pp");
  plan.cp = integer_if(object, "cp");
  plan.ep = integer_if(object, "ep");
  plan.virtual_pp = integer_if(object, "virtual_pp");
  plan.micro_batch = integer_if(object, "micro_batch");
  plan.global_batch = integer_if(object, "global_batch");
  plan.zero_stage = integer_if(object, "zero_stage", {0, 3});
  plan.sequence_parallel = boolean_if(object, "sequence_parallel");
  plan.overlap_grad_reduce = boolean_if(object, "overlap_grad_reduce");
  plan.recompute = object.text_or("recompute", "");
  plan.precision = object.text_or("precision", "");
  plan.schedule = object.text_or("schedule", "");
  return plan;
}

MeasuredRow read_measured_row(ObjectReader object) {
  MeasuredRow measured;
  measured.iteration_s = number_if(object, "iteration_s");
  measured.tflops_per_gpu = number_if(object, "tflops_per_gpu");
  measured.mfu = number_if(object, "mfu");
  measured.tokens_per_s_per_gpu = number_if(object, "tokens_per_s_per_gpu");
  measured.peak_memory_gb = number_if(object, "peak_memory_gb");
  measured.oom = object.boolean_or("oom", false);
  return measured;
}

TargetRow read_target_row(ObjectReader object) {
  enum class Metric : std::uint8_t { Known };
  static const EnumNames<Metric> kMetrics = {{"step_s", Metric::Known},
                                             {"tokens_per_s_per_gpu", Metric::Known},
                                             {"tflops_per_gpu", Metric::Known},
                                             {"mfu", Metric::Known}};
  TargetRow target;
  target.metric = object.text("metric");
  object.choice("metric", kMetrics);
  target.value = object.number("value");
  return target;
}

TrainingRow read_row(ObjectReader object) {
  TrainingRow row;
  row.id = object.text("id");
  ObjectReader source = object.object("source");
  row.source_title = source.text_or("title", "");
  row.source_address = source.text_or("where", "");
  if (source.has("year")) row.source_year = source.integer("year");
  row.model = read_model_row(object.object("model"));
  row.cluster = read_cluster_row(object.object("cluster"));
  row.plan = read_plan_row(object.object("plan"));
  row.measured = read_measured_row(object.object("measured"));
  if (auto target = object.object_if("target")) row.target = read_target_row(*target);
  row.flops_convention = object.text_or("flops_convention", "");
  row.notes = object.text_or("notes", "");
  row.stack = object.text_or("stack", "");
  if (auto options = object.object_if("stack_options"))
    row.attention_kernel = options->text_or("attention_kernel", "");
  row.grade = object.text_or("grade", "");
  row.group = object.text_or("group", "");
  return row;
}

}  // namespace

std::vector<TrainingRow> read_training_rows(const std::string& file) {
  std::vector<TrainingRow> rows;
  RowIds ids;
  for_each_json_line(file, [&](ObjectReader& object) {
    rows.push_back(read_row(object));
    rows.back().file = file;
    ids.add(object, rows.back().id);
  });
  return rows;
}

TrainingRow find_training_row(const std::string& file, const std::string& id) {
  std::vector<TrainingRow> rows = read_training_rows(file);
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const TrainingRow& row) { return row.id == id; });
  if (found != rows.end()) return *found;
  std::vector<std::string> ids;
  for (const TrainingRow& row : rows) ids.push_back(row.id);
  const std::string near = nearest_name(id, ids);
  throw InputError(file,
                   {{"", fmt::format("no row \"{}\"", id),
                     near.empty() ? fmt::format("the id of one of its {} rows", rows.size())
                                  : fmt::format("an id of the file; did you mean {}?", near)}});
}

}  // namespace shardwright::sim
