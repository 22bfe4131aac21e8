#include "sim/validation/training_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/model_limits.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/validation/json_lines.hpp"

namespace shardwright::sim {
namespace {

using OptionalInteger = std::optional<std::int64_t>;
using OptionalNumber = std::optional<double>;

constexpr IntegerRange kDegrees{1, kMaxDegree};
// An MFU is a ratio, or a percentage where it is above 1.
constexpr NumberRange kMfu{0.0, 100.0, true};

OptionalInteger integer_if(ObjectReader& object, const std::string& key, IntegerRange range = {}) {
  return object.has(key) ? OptionalInteger(object.integer(key, range)) : std::nullopt;
}

OptionalNumber number_if(ObjectReader& object, const std::string& key,
                         NumberRange range = kPositive) {
  return object.has(key) ? OptionalNumber(object.number(key, range)) : std::nullopt;
}

std::optional<bool> boolean_if(ObjectReader& object, const std::string& key) {
  return object.has(key) ? std::optional<bool>(object.boolean(key)) : std::nullopt;
}

MoeRow read_moe(ObjectReader object) {
  MoeRow moe;
  moe.experts = integer_if(object, "experts", kExpertRange);
  moe.top_k = integer_if(object, "top_k", kExpertRange);
  moe.expert_ffn = integer_if(object, "expert_ffn", kWidthRange);
  moe.shared_experts = integer_if(object, "shared_experts", kExpertOrZeroRange);
  moe.dense_layers = integer_if(object, "dense_layers", kLayerCountOrZeroRange);
  return moe;
}

ModelRow read_model_row(ObjectReader object) {
  ModelRow model;
  model.name = object.text_or("name", "");
  model.layers = integer_if(object, "layers", kLayerRange);
  model.hidden = integer_if(object, "hidden", kWidthRange);
  model.ffn_hidden = integer_if(object, "ffn_hidden", kWidthRange);
  model.heads = integer_if(object, "heads", kHeadRange);
  model.kv_heads = integer_if(object, "kv_heads", kHeadRange);
  model.head_dim = integer_if(object, "head_dim", kHeadDimRange);
  model.vocab = integer_if(object, "vocab", kVocabRange);
  model.seq_len = integer_if(object, "seq_len", kTokenRange);
  model.gated_mlp = boolean_if(object, "gated_mlp");
  model.tied_embeddings = boolean_if(object, "tied_embeddings");
  if (auto moe = object.object_if("moe")) model.moe = read_moe(*moe);
  return model;
}

ClusterRow read_cluster_row(ObjectReader object) {
  ClusterRow cluster;
  cluster.gpu = object.text_or("gpu", "");
  cluster.gpus = integer_if(object, "gpus", {1, kMaxWorld}).value_or(0);
  cluster.gpus_per_node = integer_if(object, "gpus_per_node", {1, kMaxWorld});
  cluster.intra_node = object.text_or("intra_node", "");
  cluster.inter_node = object.text_or("inter_node", "");
  return cluster;
}

// Many sources say no more than whether they recompute, some the share of the layers.
std::string recompute_text(ObjectReader& object) {
  const nlohmann::json& stated = object.raw("recompute");
  if (stated.is_number_float()) return stated.dump();
  if (!stated.is_boolean()) return object.text_or("recompute", "");
  return object.boolean("recompute") ? "full" : "none";
}

PlanRow read_plan_row(ObjectReader object) {
  PlanRow plan;
  plan.dp = integer_if(object, "dp", kDegrees);
  plan.tp = integer_if(object, "tp", kDegrees);
  plan.pp = integer_if(object, "pp", kDegrees);
  plan.cp = integer_if(object, "cp", kDegrees);
  plan.ep = integer_if(object, "ep", kDegrees);
  plan.virtual_pp = integer_if(object, "virtual_pp", kDegrees);
  plan.micro_batch = integer_if(object, "micro_batch", {1, kMaxBatch});
  plan.global_batch = integer_if(object, "global_batch", {1, kMaxBatch});
  plan.zero_stage = integer_if(object, "zero_stage", {0, 3});
  plan.sequence_parallel = boolean_if(object, "sequence_parallel");
  plan.overlap_grad_reduce = boolean_if(object, "overlap_grad_reduce");
  plan.recompute = recompute_text(object);
  plan.precision = object.text_or("precision", "");
  plan.schedule = object.text_or("schedule", "");
  return plan;
}

MeasuredRow read_measured_row(ObjectReader object) {
  MeasuredRow measured;
  measured.iteration_s = number_if(object, "iteration_s");
  measured.tflops_per_gpu = number_if(object, "tflops_per_gpu");
  measured.mfu = number_if(object, "mfu", kMfu);
  measured.tokens_per_s_per_gpu = number_if(object, "tokens_per_s_per_gpu");
  measured.peak_memory_gb = number_if(object, "peak_memory_gb");
  measured.oom = object.boolean_or("oom", false);
  measured.ran = object.has("oom") && !measured.oom;
  for (const std::string& key : object.keys()) {
    const bool known =
        std::find(kMeasuredKeys.begin(), kMeasuredKeys.end(), key) != kMeasuredKeys.end();
    if (!known && object.raw(key).is_number()) measured.others.push_back(key);
  }
  return measured;
}

std::optional<TargetRow> read_target_row(ObjectReader object) {
  if (!object.has("metric") || !object.has("value")) return std::nullopt;
  enum class Metric : std::uint8_t { Known };
  static const EnumNames<Metric> kMetrics = {{"step_s", Metric::Known},
                                             {"tokens_per_s_per_gpu", Metric::Known},
                                             {"tflops_per_gpu", Metric::Known},
                                             {"mfu", Metric::Known}};
  TargetRow target;
  target.metric = object.text("metric");
  object.choice("metric", kMetrics);
  target.derived = object.raw("derived") == true;
  target.value = object.number("value", target.metric == "mfu" ? kMfu : kPositive);
  return target;
}

void read_source(ObjectReader& object, TrainingRow& row) {
  row.source_title = source_of(object);
  if (!object.raw("source").is_object()) return;
  ObjectReader source = object.object("source");
  row.source_address = source.text_or("where", "");
  row.source_year = integer_if(source, "year");
}

// Options that have no field of their own say what notes would: "; compile=true".
std::string options_as_notes(ObjectReader& options) {
  std::string text;
  for (const std::string& key : options.keys()) {
    const nlohmann::json& value = options.raw(key);
    if (key == "attention_kernel" || value.is_null() || value.is_structured()) continue;
    text +=
        fmt::format("; {}={}", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

TrainingRow read_row(ObjectReader& object) {
  TrainingRow row;
  row.id = object.text_or("id", "");
  row.verified = object.raw("verified") == true;
  read_source(object, row);
  if (auto model = object.object_if("model")) row.model = read_model_row(*model);
  if (auto cluster = object.object_if("cluster")) row.cluster = read_cluster_row(*cluster);
  if (auto plan = object.object_if("plan")) row.plan = read_plan_row(*plan);
  if (auto measured = object.object_if("measured")) row.measured = read_measured_row(*measured);
  if (auto target = object.object_if("target")) row.target = read_target_row(*target);
  row.flops_convention = object.text_or("flops_convention", "");
  row.notes = object.text_or("notes", "");
  row.stack = object.text_or("stack", "");
  if (auto options = object.object_if("stack_options")) {
    row.attention_kernel = options->text_or("attention_kernel", "");
    row.notes += options_as_notes(*options);
  }
  row.grade = object.text_or("grade", "");
  if (row.grade == "a" || row.grade == "b" || row.grade == "c")
    row.grade.front() = static_cast<char>(row.grade.front() - 'a' + 'A');
  row.group = object.text_or("group", "");
  return row;
}

void fill_in_accelerators(TrainingRow& row) {
  if (row.cluster.gpus > 0 || !row.unreadable.empty()) return;
  const PlanRow& plan = row.plan;
  if (!plan.dp || !plan.tp || !plan.pp) {
    row.unreadable = "the source does not say the number of accelerators";
    return;
  }
  double product = 1.0;
  for (const std::int64_t degree : {*plan.dp, *plan.tp, *plan.pp, plan.cp.value_or(1)})
    product *= static_cast<double>(degree);
  if (product > static_cast<double>(kMaxWorld)) {
    row.unreadable = fmt::format("degrees for more than {} accelerators", kMaxWorld);
    return;
  }
  row.cluster.gpus = static_cast<std::int64_t>(product);
  row.filled_in.push_back(fmt::format("gpus: {}, the product of the degrees", row.cluster.gpus));
}

// No step does more than its accelerators can.
void read_percentages(TrainingRow& row) {
  const auto read = [&row](double& mfu, const char* key) {
    if (mfu <= 1.0) return;
    row.filled_in.push_back(fmt::format("{}: {}, as {} is a percentage", key, mfu / 100.0, mfu));
    mfu /= 100.0;
  };
  if (row.measured.mfu) read(*row.measured.mfu, "mfu");
  if (row.target && row.target->metric == "mfu") read(row.target->value, "target");
}

// The figure to hold a prediction against: the step time before a rate.
void fill_in_target(TrainingRow& row) {
  if (row.target || row.measured.oom) return;
  const auto take = [&row](const char* metric, const OptionalNumber& figure) {
    if (row.target || !figure) return;
    row.target = TargetRow{metric, *figure};
    row.filled_in.push_back(fmt::format("target: {}, as measured", metric));
  };
  take("step_s", row.measured.iteration_s);
  take("tokens_per_s_per_gpu", row.measured.tokens_per_s_per_gpu);
  take("tflops_per_gpu", row.measured.tflops_per_gpu);
  take("mfu", row.measured.mfu);
}

}  // namespace

std::vector<TrainingRow> read_training_rows(const std::string& file) {
  std::ifstream stream = open_json_lines(file);
  return read_training_rows(stream, file);
}

std::vector<TrainingRow> read_training_rows(std::istream& stream, const std::string& source) {
  std::vector<TrainingRow> rows = read_rows<TrainingRow>(
      stream, source,
      {read_row, &TrainingRow::unreadable, "training rows (docs/formats/training_rows.md)"});
  for (TrainingRow& row : rows) {
    row.file = source;
    fill_in_accelerators(row);
    read_percentages(row);
    fill_in_target(row);
  }
  return rows;
}

std::vector<TrainingRow> read_training_rows(const std::vector<std::string>& files) {
  std::vector<TrainingRow> rows;
  std::vector<InputError> errors;
  std::set<std::filesystem::path> read;
  for (const std::string& file : files) {
    std::error_code unknown;
    // A row counts once, however often its file is named.
    const auto path = std::filesystem::weakly_canonical(file, unknown);
    if (!unknown && !read.insert(path).second) continue;
    try {
      std::vector<TrainingRow> more = read_training_rows(file);
      std::move(more.begin(), more.end(), std::back_inserter(rows));
    } catch (const InputError& error) {
      errors.push_back(error);
    }
  }
  if (errors.empty()) return rows;
  if (errors.size() == 1) throw InputError(errors.front());
  ProblemList problems("training rows");
  for (const InputError& error : errors) {
    for (const Problem& problem : error.problems()) {
      const std::string where = problem.where.empty() ? "" : ": " + problem.where;
      problems.add(error.source() + where, problem.found, problem.expected);
    }
  }
  problems.throw_if_any();
  return rows;
}

TrainingRow find_training_row(const std::string& file, const std::string& id) {
  std::vector<TrainingRow> rows = read_training_rows(file);
  const auto has_id = [&](const TrainingRow& row) { return row.id == id; };
  const auto found = std::find_if(rows.begin(), rows.end(), has_id);
  if (const auto count = std::count_if(rows.begin(), rows.end(), has_id); count > 1)
    throw InputError(file, {{"", fmt::format("{} rows \"{}\"", count, id), "an id of one row"}});
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
