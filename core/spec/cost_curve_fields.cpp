#include "core/spec/cost_curve_fields.hpp"

#include <fmt/format.h>

#include <string>

namespace shardwright {

namespace {

constexpr NumberRange kCurveTime{0.0, 10.0, false};
constexpr IntegerRange kCurveMembers{2, 10'000'000};
constexpr IntegerRange kCurveNodes{1, 10'000'000};

}  // namespace

void describe(KernelCurve& curve, FieldVisitor& fields) {
  using enum OpKind;
  fields.choice_between("kind", curve.kind, Gemm, HostOptimizer, kRequired, "the kind of kernel");
  fields.choice("phase", curve.phase, kRequired, "recomputation counts as forward");
  fields.number("overhead_s", curve.overhead, kCurveTime, kRequired,
                "time of an empty kernel, with the time from one op of a stream to the next");
  fields.only_where("kind", curve.kind, {Gemm, GroupedGemm, Attention}, [&] {
    fields.number("flop_per_s", curve.flop_rate, kPositive, kRequired, "rate of large products");
  });
  fields.only_where("kind", curve.kind, {Gemm, GroupedGemm}, [&] {
    const char* meaning =
        "the size from which on the moving of an operand costs less than its products";
    fields.number("edge_m", curve.edge_m, kNonNegative, kRequired, meaning);
    fields.number("edge_n", curve.edge_n, kNonNegative, kRequired, meaning);
    fields.number("edge_k", curve.edge_k, kNonNegative, kRequired, meaning);
  });
  fields.only_where("kind", curve.kind, {Attention}, [&] {
    fields.number("score_s", curve.score, kCurveTime, kRequired, "time of one attention score");
  });
  fields.except_where("kind", curve.kind, {Gemm, GroupedGemm, Attention}, [&] {
    fields.number("bandwidth_bytes_per_s", curve.bandwidth, kPositive, kRequired,
                  "bandwidth of what is read and written");
  });
}

void describe(ExchangeCurve& curve, FieldVisitor& fields) {
  using enum OpKind;
  fields.choice_between("kind", curve.kind, AllReduce, Receive, kRequired,
                        "the collective or message");
  fields.integer("members", curve.members, kCurveMembers, kRequired, "ranks of one group");
  fields.integer("nodes", curve.nodes, kCurveNodes, kRequired, "nodes that hold members");
  fields.integer("span", curve.span, kCurveNodes, kRequired,
                 "nodes from the first to the last of the group, or of the pipeline whose "
                 "neighbours exchange messages");
  fields.number("alpha_s", curve.alpha, kCurveTime, kRequired, "time of an empty exchange");
  fields.number("beta_bytes_per_s", curve.beta, kPositive, kRequired,
                "bandwidth of large exchanges");
  fields.number("least_bytes", curve.least, kNonNegative, kRequired,
                "smallest size that was timed; 0: `alpha_s` and `beta_bytes_per_s` are what the "
                "formulas say");
  fields.number("most_bytes", curve.most, kNonNegative, kRequired, "largest size that was timed");
  fields.number("skew_s", curve.skew, kCurveTime, kOptional,
                "how much later than the mean the last member comes in a training step");
}

void describe_price(DollarsPerSecond& price, FieldVisitor& fields) {
  // Fifteen digits give back the number that a file held in spite of the two roundings.
  double per_hour = std::stod(fmt::format("{:.15g}", price.value() * 3600.0));
  fields.number("price_dollars_per_hour", per_hour, kNonNegative, kOmissible,
                "listed price of renting one accelerator; 0: not known");
  price = dollars_per_hour(per_hour);
}

}  // namespace shardwright
