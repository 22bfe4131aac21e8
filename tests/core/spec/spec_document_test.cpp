#include "core/spec/spec_document.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright {
namespace {

using nlohmann::json;

std::vector<std::string> names_of(SpecKind kind) {
  return kind == SpecKind::Model     ? shipped_models()
         : kind == SpecKind::Cluster ? shipped_clusters()
                                     : shipped_stacks();
}

json as_patch(const std::string& base, const json& changes) {
  json patch = changes;
  patch["base"] = base;
  return patch;
}

// The merge patch that turns `from` into `to`; `to` holds no null, which a patch cannot set.
json smallest_patch(const json& from, const json& to) {
  if (!from.is_object() || !to.is_object()) return to;
  json patch = json::object();
  for (const auto& [key, value] : to.items()) {
    const auto before = from.find(key);
    if (before == from.end())
      patch[key] = value;
    else if (*before != value)
      patch[key] = smallest_patch(*before, value);
  }
  for (const auto& [key, value] : from.items())
    if (!to.contains(key)) patch[key] = nullptr;
  return patch;
}

RC_GTEST_PROP(SpecDocument, SmallestPatchTurnsOneShippedDocumentIntoAnother, ()) {
  const auto kind = *rc::gen::element(SpecKind::Model, SpecKind::Cluster, SpecKind::Stack);
  const std::vector<std::string> names = names_of(kind);
  const std::string from = *rc::gen::elementOf(names), to = *rc::gen::elementOf(names);
  const json& wanted = shipped_document(kind, to);
  const json changes = smallest_patch(shipped_document(kind, from), wanted);
  RC_ASSERT(whole_document(kind, as_patch(from, changes), "test") == wanted);
  RC_ASSERT((from == to) == changes.empty());
}

TEST(SpecDocument, PatchOfNothingIsTheShippedSpec) {
  for (const ModelSpec& model : shipped_model_specs())
    EXPECT_EQ(read_given_model(as_patch(model.name, json::object()), "test"), model) << model.name;
  for (const std::string& name : shipped_clusters())
    EXPECT_EQ(read_given_cluster(as_patch(name, json::object()), "test"), load_cluster(name))
        << name;
  for (const std::string& name : shipped_stacks())
    EXPECT_EQ(read_given_stack(as_patch(name, json::object()), "test"), load_stack(name)) << name;
  for (const std::string& name : shipped_runs())
    EXPECT_EQ(read_given_run(as_patch(name, json::object()), "test"), load_run(name)) << name;
}

TEST(SpecDocument, PatchReachesAClustersPartsAndKeepsTheRest) {
  ClusterSpec expected = load_cluster("dgx-h100");
  const json patch = {{"base", "dgx-h100"}, {"node", {{"nic", {{"per_node", {{"value", 4}}}}}}}};
  expected.node.nic.per_node = 4;
  EXPECT_EQ(read_given_cluster(patch, "test"), expected);
}

TEST(SpecDocument, FigureWithoutItsSourceIsAnAssumption) {
  const StackSpec stack =
      read_given_stack({{"base", "megatron-core"}, {"host", {{"launch_s", 3e-6}}}}, "test");
  EXPECT_EQ(stack.host.launch_time, microseconds(3.0));
  EXPECT_EQ(stack.sources.at("/host/launch_s").confidence, Confidence::Assumed);
}

TEST(SpecDocument, ModelsAreKnownByTheirAliasesToo) {
  for (const ModelSpec& model : shipped_model_specs()) {
    for (const std::string& alias : model.aliases)
      EXPECT_EQ(read_given_model(alias, "test"), model) << alias;
  }
}

// The only problem of a patch.
Problem problem_of(SpecKind kind, const json& patch) {
  try {
    switch (kind) {
      case SpecKind::Model:
        read_given_model(patch, "test");
        break;
      case SpecKind::Cluster:
        read_given_cluster(patch, "test");
        break;
      case SpecKind::Stack:
        read_given_stack(patch, "test");
        break;
      case SpecKind::Run:
        read_given_run(patch, "test");
        break;
      case SpecKind::Batch:
        read_given_batch(patch, "test");
    }
  } catch (const InputError& error) {
    EXPECT_EQ(error.source(), "test");
    EXPECT_EQ(error.problems().size(), 1u);
    return error.problems().front();
  }
  ADD_FAILURE() << "no problem: " << patch;
  return {};
}

TEST(SpecDocument, UnknownBaseIsRefusedWithTheNearestName) {
  const Problem problem = problem_of(SpecKind::Cluster, {{"base", "dgx-h10"}});
  EXPECT_EQ(problem.where, "/base");
  EXPECT_EQ(problem.expected.nearest, "dgx-h100");
  EXPECT_EQ(problem_of(SpecKind::Stack, {{"base", 5}}).where, "/base");
  EXPECT_EQ(problem_of(SpecKind::Run, {{"base", "setled-fleet"}}).expected.nearest,
            "settled-fleet");
  EXPECT_EQ(problem_of(SpecKind::Batch, {{"base", "kaplan-2021"}}).expected.nearest, "kaplan-2020");
}

TEST(SpecDocument, UnknownKeyOfAPatchIsRefusedWithTheNearestKey) {
  const Problem problem = problem_of(
      SpecKind::Cluster, {{"base", "dgx-h100"}, {"node", {{"nic", {{"per_nodes", 4}}}}}});
  EXPECT_EQ(problem.where, "/node/nic/per_nodes");
  EXPECT_EQ(problem.expected.nearest, "per_node");
}

}  // namespace
}  // namespace shardwright
