#include "sim/network/scenario_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"

namespace shardwright::sim {
namespace {

using nlohmann::json;

// More names are not compared: "did you mean" would cost more than it helps.
constexpr std::size_t kMostNamesToCompare = 1000;

// An integer's decimal text, so that 1 and "1" are the same id; none for other values.
std::optional<std::string> id_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return value.dump();
  return std::nullopt;
}

// Null, with a problem, where there is none.
const json& id_list(ObjectReader& reader, const std::string& key) {
  const json& list = reader.raw(key);
  if (list.is_array()) return list;
  static const json kEmpty;
  reader.problem_with(key, "an array of ids");
  return kEmpty;
}

// The ids of the links or the flows of a file.
class IdTable {
 public:
  explicit IdTable(std::string what) : what_(std::move(what)) {}

  void add(ObjectReader& reader) {
    const json& value = reader.raw("id");
    const std::string id = id_text(value).value_or("");
    const auto index = static_cast<std::uint32_t>(names_.size());
    const bool is_new = numbers_.emplace(id, index).second;
    if (!id_text(value)) {
      reader.problem_with("id", "a text or an integer");
    } else if (!is_new && !id.empty()) {
      reader.problem(
          "id", shown(value) + " for a second time",
          fmt::format("an id that no other {} has, where 1 and \"1\" are the same", what_));
    }
    names_.push_back(id);
  }

  const std::string& name(std::size_t index) const { return names_[index]; }

  // The numbers that a list of ids stands for; unknown and repeated ones are problems.
  std::vector<std::uint32_t> look_up(ObjectReader& reader, const std::string& key) const {
    std::vector<std::uint32_t> found;
    const json& ids = id_list(reader, key);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::optional<std::string> id = id_text(ids[i]);
      const auto place = id ? numbers_.find(*id) : numbers_.end();
      const std::string where = fmt::format("{}/{}", key, i);
      if (place == numbers_.end()) {
        add_problem(reader, where, shown(ids[i]), expected_id(id.value_or("")));
      } else if (std::find(found.begin(), found.end(), place->second) != found.end()) {
        add_problem(reader, where, shown(ids[i]) + " for a second time",
                    fmt::format("each {} once", what_));
      } else {
        found.push_back(place->second);
      }
    }
    return found;
  }

 private:
  static void add_problem(ObjectReader& reader, const std::string& below, std::string found,
                          Expected expected) {
    reader.problems().add(reader.pointer() + "/" + below, std::move(found), std::move(expected));
  }

  Expected expected_id(const std::string& id) const {
    const auto count = std::min(names_.size(), kMostNamesToCompare);
    return {fmt::format("the id of a {}", what_), nearest_name(id, std::span(names_).first(count))};
  }

  std::string what_;
  std::vector<std::string> names_;
  // Numbers are looked up only, never walked.
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

class ScenarioReader {
 public:
  ScenarioReader(const json& document, const std::string& source)
      : problems_(source), root_(document, "", problems_) {}

  FlowScenario read() {
    auto links = root_.objects("links");
    auto flows = root_.objects("flows");
    root_.refuse_unknown_keys();
    for (ObjectReader& link : links) read_link(link);
    // Flows may wait for later ones, so all ids are known before any list is read.
    for (ObjectReader& flow : flows) flow_ids_.add(flow);
    for (std::size_t i = 0; i < flows.size(); ++i) read_flow(flows[i], flow_ids_.name(i));
    problems_.throw_if_any();
    refuse_cycle();
    return std::move(scenario_);
  }

 private:
  // Every route would be wrong, too, without the links.
  std::vector<LinkIndex> read_route(ObjectReader& flow) {
    if (root_.raw("links").is_array()) return link_ids_.look_up(flow, "route");
    id_list(flow, "route");
    return {};
  }

  void read_link(ObjectReader& reader) {
    link_ids_.add(reader);
    const BytesPerSecond bandwidth(reader.number("bandwidth_bytes_per_s", kPositive));
    const Seconds latency(reader.number("latency_s", kNonNegative));
    reader.refuse_unknown_keys();
    scenario_.add_link(link_ids_.name(scenario_.links().size()), bandwidth, latency);
  }

  void read_flow(ObjectReader& reader, const std::string& id) {
    const Bytes bytes(reader.number("bytes", kNonNegative));
    const auto route = read_route(reader);
    const bool waits = reader.has("after"), starts = reader.has("start_s");
    if (waits == starts) {
      reader.problem("", waits ? "both start_s and after" : "neither start_s nor after",
                     "one of them, where null is as none");
    }
    const Seconds start(reader.number_or("start_s", 0.0, kNonNegative));
    if (waits) {
      scenario_.add_flow_after(id, bytes, route, flow_ids_.look_up(reader, "after"));
    } else {
      scenario_.add_flow(id, bytes, route, start);
    }
    reader.refuse_unknown_keys();
  }

  void refuse_cycle() {
    const auto cycle = find_dependency_cycle(scenario_);
    if (cycle.empty()) return;
    std::string ids;
    for (const FlowIndex flow : cycle) ids += scenario_.id(flow) + " after ";
    problems_.add(fmt::format("/flows/{}/after", cycle.front()),
                  "flows that wait for each other: " + ids + scenario_.id(cycle.front()),
                  "flows of which one can start first");
    problems_.throw_if_any();
  }

  ProblemList problems_;
  ObjectReader root_;
  IdTable link_ids_{"link"};
  IdTable flow_ids_{"flow"};
  FlowScenario scenario_;
};

}  // namespace

FlowScenario read_flow_scenario(const json& document, const std::string& source) {
  return ScenarioReader(document, source).read();
}

nlohmann::ordered_json write_flow_result(const json& scenario, const FlowResult& result,
                                         Seconds wall) {
  nlohmann::ordered_json document;
  document["makespan_s"] = result.makespan.value();
  auto& flows = document["flows"] = nlohmann::ordered_json::array();
  for (FlowIndex i = 0; i < result.flows.size(); ++i) {
    flows.push_back({{"id", scenario["flows"][i]["id"]},
                     {"start_s", result.flows[i].start.value()},
                     {"finish_s", result.flows[i].finish.value()}});
  }
  document["wall_s"] = wall.value();
  return document;
}

}  // namespace shardwright::sim
