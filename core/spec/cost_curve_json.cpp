#include "core/spec/cost_curve_json.hpp"

#include <nlohmann/json.hpp>

namespace shardwright {
namespace {

using nlohmann::ordered_json;

constexpr NumberRange kTime{0.0, 10.0, false};
constexpr IntegerRange kMembers{2, 10'000'000};
constexpr IntegerRange kNodes{1, 10'000'000};

bool is_product(OpKind kind) {
  return kind == OpKind::Gemm || kind == OpKind::GroupedGemm;
}

KernelCurve read_kernel_curve(ObjectReader& object) {
  KernelCurve curve;
  curve.kind = object.choice("kind", enum_names<OpKind>(static_cast<int>(OpKind::AllReduce)));
  curve.phase = object.choice("phase", enum_names<Phase>(kPhases));
  curve.overhead = Seconds(object.number("overhead_s", kTime));
  if (is_product(curve.kind)) {
    curve.flop_rate = FlopPerSecond(object.number("flop_per_s"));
    curve.edge_m = object.number("edge_m", kNonNegative);
    curve.edge_n = object.number("edge_n", kNonNegative);
    curve.edge_k = object.number("edge_k", kNonNegative);
  } else if (curve.kind == OpKind::Attention) {
    curve.flop_rate = FlopPerSecond(object.number("flop_per_s"));
    curve.score = Seconds(object.number("score_s", kTime));
  } else {
    curve.bandwidth = BytesPerSecond(object.number("bandwidth_bytes_per_s"));
  }
  object.refuse_unknown_keys();
  return curve;
}

EnumNames<OpKind> exchange_names() {
  const EnumNames<OpKind> all = enum_names<OpKind>(kOpKinds);
  return {all.begin() + static_cast<int>(OpKind::AllReduce), all.end()};
}

ExchangeCurve read_exchange_curve(ObjectReader& object) {
  ExchangeCurve curve;
  curve.kind = object.choice("kind", exchange_names());
  curve.members = object.integer("members", kMembers);
  curve.nodes = object.integer("nodes", kNodes);
  curve.span = object.integer("span", kNodes);
  curve.alpha = Seconds(object.number("alpha_s", kTime));
  curve.beta = BytesPerSecond(object.number("beta_bytes_per_s"));
  curve.least = Bytes(object.number("least_bytes", kNonNegative));
  curve.most = Bytes(object.number("most_bytes", kNonNegative));
  curve.skew = Seconds(object.number_or("skew_s", 0.0, kTime));
  object.refuse_unknown_keys();
  return curve;
}

}  // namespace

std::vector<KernelCurve> read_kernel_curves(ObjectReader& profile, const char* key) {
  std::vector<KernelCurve> curves;
  if (!profile.has(key)) return curves;
  for (ObjectReader& each : profile.objects(key)) curves.push_back(read_kernel_curve(each));
  return curves;
}

std::vector<ExchangeCurve> read_exchange_curves(ObjectReader& profile, const char* key) {
  std::vector<ExchangeCurve> curves;
  if (!profile.has(key)) return curves;
  for (ObjectReader& each : profile.objects(key)) curves.push_back(read_exchange_curve(each));
  return curves;
}

ordered_json to_json(const std::vector<KernelCurve>& curves) {
  ordered_json result = ordered_json::array();
  for (const KernelCurve& curve : curves) {
    ordered_json& each = result.emplace_back(ordered_json{{"kind", name_of(curve.kind)},
                                                          {"phase", name_of(curve.phase)},
                                                          {"overhead_s", curve.overhead.value()}});
    if (is_product(curve.kind)) {
      each["flop_per_s"] = curve.flop_rate.value();
      each["edge_m"] = curve.edge_m;
      each["edge_n"] = curve.edge_n;
      each["edge_k"] = curve.edge_k;
    } else if (curve.kind == OpKind::Attention) {
      each["flop_per_s"] = curve.flop_rate.value();
      each["score_s"] = curve.score.value();
    } else {
      each["bandwidth_bytes_per_s"] = curve.bandwidth.value();
    }
  }
  return result;
}

ordered_json to_json(const std::vector<ExchangeCurve>& curves) {
  ordered_json result = ordered_json::array();
  for (const ExchangeCurve& curve : curves) {
    result.push_back({{"kind", name_of(curve.kind)},
                      {"members", curve.members},
                      {"nodes", curve.nodes},
                      {"span", curve.span},
                      {"alpha_s", curve.alpha.value()},
                      {"beta_bytes_per_s", curve.beta.value()},
                      {"least_bytes", curve.least.value()},
                      {"most_bytes", curve.most.value()},
                      {"skew_s", curve.skew.value()}});
  }
  return result;
}

}  // namespace shardwright
