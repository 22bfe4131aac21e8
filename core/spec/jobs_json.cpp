#include "core/spec/jobs_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json_reader.hpp"
#include "core/spec/field_json.hpp"

namespace shardwright {
namespace {

constexpr NumberRange kJobTime{0.0, 1e9, false};

void describe_training_job(TrainingJobSpec& job, FieldVisitor& fields) {
  fields.text("name", job.name, kRequired, "name of the job");
  fields.text("plan", job.plan, kRequired,
              "[plan file](plan.md); a relative path starts at the folder of this file");
  fields.text("nodes", job.nodes, kOmissible,
              "nodes that the job lies on, in the order of its ranks, such as `0-15,32`; empty: "
              "those that share the fewest links with the other jobs "
              "([placement](../models/jobs.md#placement))");
  fields.number("start_s", job.start, kJobTime, kOmissible, "start of its first step");
}

void describe_storage_traffic(StorageTrafficSpec& traffic, FieldVisitor& fields) {
  fields.text("name", traffic.name, kRequired, "name of the traffic");
  fields.choice("direction", traffic.direction, kRequired,
                "write: from the nodes to the store; read: back");
  fields.text("nodes", traffic.nodes, kRequired, "nodes that write or read, such as `0-15`");
  fields.text("servers", traffic.servers, kOmissible,
              "nodes that store, one after the other for the nodes that use them; empty: the store "
              "lies above all switches and is no limit");
  fields.number("bytes", traffic.bytes, kPositive, kRequired, "bytes of a burst, of all nodes");
  fields.number("every_s", traffic.every, kJobTime, kOmissible,
                "time from the start of a burst to that of the next one, which waits for its end");
  fields.number("bytes_per_s", traffic.bandwidth, kNonNegative, kOmissible,
                "most that the burst takes, of all nodes; 0: what the links carry");
  fields.number("start_s", traffic.start, kJobTime, kOmissible, "start of the first burst");
}

void check_names(const JobsSpec& jobs, ProblemList& problems) {
  std::set<std::string> names;
  const auto check = [&](const char* list, const auto& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (names.insert(items[i].name).second) continue;
      problems.add(fmt::format("/{}/{}/name", list, i), fmt::format("\"{}\" again", items[i].name),
                   "a name of its own");
    }
  };
  check("training", jobs.training);
  check("storage", jobs.storage);
}

// Takes a number off the front of the text.
std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t most) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number > most) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

void describe(JobsSpec& jobs, FieldVisitor& fields) {
  fields.header(kJobsSchema, false);
  fields.list("training", jobs.training, kRequired, "training jobs, at least one",
              [&](TrainingJobSpec& job) { describe_training_job(job, fields); });
  fields.list("storage", jobs.storage, kOmissible, "traffic of storage",
              [&](StorageTrafficSpec& traffic) { describe_storage_traffic(traffic, fields); });
  fields.integer("steps", jobs.steps, {1, 1'000'000}, kOmissible,
                 "steps that each training job makes at least, once all jobs have started");
}

bool is_jobs_document(const nlohmann::json& document) {
  return document.is_object() && document.value("schema", nlohmann::json()) == kJobsSchema;
}

JobsSpec read_jobs(const nlohmann::json& document, const std::string& source) {
  ProblemList problems(source);
  JobsSpec jobs;
  ObjectReader object(document, "", problems);
  read_fields(object, [&](FieldVisitor& fields) { describe(jobs, fields); });
  if (problems.empty() && jobs.training.empty())
    problems.add("/training", "no jobs", "at least one training job");
  if (problems.empty()) check_names(jobs, problems);
  problems.throw_if_any();
  return jobs;
}

std::optional<std::vector<std::int64_t>> node_list(const std::string& text, std::int64_t most) {
  std::vector<std::int64_t> nodes;
  std::string_view rest = text;
  do {
    const auto first = take_number(rest, most);
    const auto last = first && take(rest, '-') ? take_number(rest, most) : first;
    if (!last || *last < *first) return std::nullopt;
    for (std::int64_t node = *first; node <= *last; ++node) nodes.push_back(node);
  } while (take(rest, ','));
  const bool distinct = std::set(nodes.begin(), nodes.end()).size() == nodes.size();
  return rest.empty() && distinct ? std::optional(nodes) : std::nullopt;
}

std::string node_list_text(const std::vector<std::int64_t>& nodes) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0, last = 0; i < nodes.size(); i = last + 1) {
    last = i;
    while (last + 1 < nodes.size() && nodes[last + 1] == nodes[last] + 1) ++last;
    ranges.push_back(last == i ? fmt::format("{}", nodes[i])
                               : fmt::format("{}-{}", nodes[i], nodes[last]));
  }
  return fmt::format("{}", fmt::join(ranges, ","));
}

}  // namespace shardwright
