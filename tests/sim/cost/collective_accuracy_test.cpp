// Predicted against published collective times (tests/ground_truth/collectives.jsonl).
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "sim/cost/collective_cost.hpp"
#include "tests/sim/cost/ground_truth.hpp"
#include "tests/sim/cost/reference_hardware.hpp"

namespace shardwright::sim {
namespace {

using nlohmann::json;

OpKind kind_of(const json& row) {
  static const std::map<std::string, OpKind> kinds = {{"all_reduce", OpKind::AllReduce},
                                                      {"all_gather", OpKind::AllGather},
                                                      {"reduce_scatter", OpKind::ReduceScatter},
                                                      {"alltoall", OpKind::AllToAll},
                                                      {"sendrecv", OpKind::Send}};
  return kinds.at(row.at("collective"));
}

// The whole world is one group. A ring of sends fills every member's NIC.
GroupPlacement placement_of(const json& row, const ClusterSpec& cluster) {
  const std::int64_t members = row.at("gpus");
  const std::int64_t nodes = (members + domain_size(cluster) - 1) / domain_size(cluster);
  const std::int64_t per_node = (members + nodes - 1) / nodes;
  const bool pairs = kind_of(row) == OpKind::Send;
  return {.size = pairs ? 2 : members,
          .per_node = pairs ? 1 : per_node,
          .nodes = nodes,
          .groups_per_node = pairs ? per_node : 1,
          .span = nodes};
}

// Seconds; 0 where the row has neither a time nor a bandwidth with enough digits.
double measured_s(const json& row) {
  if (row.contains("time_us")) return row.at("time_us").get<double>() * 1e-6;
  const double bus = row.value("busbw_gbs", 0.0);
  if (bus < 0.1) return 0.0;
  const double factor = bus_factor(kind_of(row), row.at("gpus").get<std::int64_t>());
  return row.at("size_bytes").get<double>() * factor / (bus * 1e9);
}

TEST(CollectiveAccuracy, PrintedTablesAreNearTheirMeasurements) {
  testing::Residuals residuals;
  for (const json& row : testing::read_rows("collectives.jsonl")) {
    if (!row.value("fit", false) || !row.contains("size_bytes")) continue;
    const auto cluster = testing::cluster_of(row.at("system"), row.value("gpu", ""));
    const double measured = measured_s(row);
    if (!cluster || measured == 0.0) continue;
    std::optional<Algorithm> forced;
    if (row.value("algo", "").rfind("Ring", 0) == 0) forced = Algorithm::Ring;
    const CollectiveCost cost =
        collective_cost(kind_of(row), Bytes(row.at("size_bytes").get<double>()),
                        placement_of(row, *cluster), *cluster, StackSpec{}, forced);
    residuals.add(row.at("system").get<std::string>().substr(0, 40) + " " +
                      row.at("collective").get<std::string>() + " " +
                      std::to_string(row.at("gpus").get<int>()),
                  cost.time.value(), measured);
  }
  std::ostringstream table;
  residuals.print(table);
  RecordProperty("residuals", table.str());
  EXPECT_GT(residuals.count(), 600U);
  EXPECT_LE(residuals.quantile(0.5), 0.12) << table.str();
  EXPECT_LE(residuals.quantile(0.9), 0.38) << table.str();
}

}  // namespace
}  // namespace shardwright::sim
