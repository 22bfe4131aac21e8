#include "core/spec/exchange_sample.hpp"

#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {

nlohmann::ordered_json to_json(const std::vector<ExchangeSample>& samples) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ExchangeSample& sample : samples) {
    rows.push_back({{"kind", name_of(sample.kind)},
                    {"members", sample.members},
                    {"stride", sample.stride},
                    {"bytes", sample.bytes.value()},
                    {"time_s", sample.time.value()}});
    if (!sample.spread) continue;
    rows.back()["hosts"] = sample.spread->hosts;
    rows.back()["groups_per_host"] = sample.spread->groups_per_host;
  }
  return {{"schema", kExchangesSchema}, {"version", 1}, {"samples", std::move(rows)}};
}

std::vector<ExchangeSample> read_exchanges(const nlohmann::json& document,
                                           const std::string& source) {
  constexpr IntegerRange kRanks{1, 10'000'000};
  ProblemList problems(source);
  ObjectReader object(document, "", problems);
  check_schema(object, kExchangesSchema);
  std::vector<ExchangeSample> samples;
  for (ObjectReader& row : object.objects("samples")) {
    ExchangeSample& sample = samples.emplace_back();
    sample.kind = row.choice<OpKind>("kind");
    if (!is_communication(sample.kind))
      row.problem("kind", name_of(sample.kind), "a collective or send");
    sample.members = row.integer("members", {2, kRanks.most});
    sample.stride = row.integer("stride", kRanks);
    sample.bytes = Bytes(row.number("bytes"));
    sample.time = Seconds(row.number("time_s"));
    if (row.has("hosts"))
      sample.spread =
          HostSpread{row.integer("hosts", kRanks), row.integer("groups_per_host", kRanks)};
    row.refuse_unknown_keys();
  }
  object.refuse_unknown_keys();
  problems.throw_if_any();
  return samples;
}

}  // namespace shardwright
