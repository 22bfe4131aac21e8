#include "sim/validation/noted_optimizer.hpp"

#include <fmt/format.h>

#include <optional>
#include <regex>

#include "sim/validation/negation.hpp"

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

struct Moments {
  const char* name;
  double bytes;  // per parameter
};

const std::regex& muon() {
  static const std::regex kMuon(R"(\bmuon\b)", icase);
  return kMuon;
}

bool names_optimizer(const std::string& notes, const std::regex& pattern) {
  return !affirmed_match(notes, pattern).empty();
}

std::optional<Moments> moments_in(const std::string& notes) {
  static const std::regex kEightBit(
      R"(\b8[- ]?bit (?:paged )?(?:adamw?|optimi[sz]er)|\b(?:paged)?[-_ ]?adamw?[-_ ]?(?:bnb[-_ ])?8[-_ ]?bit)",
      icase);
  static const std::regex kHalf(
      R"(\b(?:bf16|bfloat16) (?:(?:optimi[sz]er|adamw?) )?(?:states|moments)\b)"
      R"(|\b(?:(?:optimi[sz]er|adamw?) states|moments)(?: are| were| kept)? in (?:bf16|bfloat16)\b)",
      icase);
  static const std::regex kAdafactor(R"(\badafactor\b)", icase);
  static const std::regex kLion(R"(\blion optimi[sz]er|\boptim(?:i[sz]er)? ?[=:]? ?lion\b)", icase);
  static const std::regex kSgd(
      R"(\bsgd optimi[sz]er|\boptim(?:i[sz]er)? ?[=:]? ?sgd\b|\b(?:with|plain|using) sgd\b|^sgd\b)",
      icase);
  if (names_optimizer(notes, kEightBit)) return Moments{"8-bit Adam", 2.0};
  if (names_optimizer(notes, kAdafactor)) return Moments{"Adafactor", 0.0};
  if (names_optimizer(notes, kLion)) return Moments{"Lion", 4.0};
  if (names_optimizer(notes, muon())) return Moments{"Muon", 4.0};
  if (names_optimizer(notes, kSgd))
    return affirms_any(notes, {"momentum"}) ? Moments{"SGD with momentum", 4.0}
                                            : Moments{"SGD", 0.0};
  if (names_optimizer(notes, kHalf) || affirms_any(notes, {"pure bf16", "pure bfloat16"}))
    return Moments{"moments in bf16", 4.0};
  return std::nullopt;
}

}  // namespace

void set_optimizer_by_notes(const TrainingRow& row, StackSpec& stack,
                            std::vector<std::string>& filled_in) {
  static const std::regex kPaged(R"(\bpaged[-_ ]?(?:adamw?|optimi[sz]er))", icase);
  static const std::regex kInBackward(R"(\boptimi[sz]er[-_ ]in[-_ ](?:the[-_ ])?(?:bwd|backward))",
                                      icase);
  if (const auto moments = moments_in(row.notes)) {
    stack.memory.optimizer_state_bytes = Bytes(moments->bytes);
    filled_in.push_back(fmt::format("optimizer: {}, {} bytes of states a parameter, by the notes",
                                    moments->name, moments->bytes));
  }
  const bool pure = affirms_any(row.notes, {"pure bf16", "pure bfloat16"});
  if (pure || denies_any(row.notes, {"master weight", "fp32 master", "fp32 copy of the weights"})) {
    stack.memory.master_weight_bytes = Bytes(0);
    filled_in.emplace_back("optimizer: no fp32 copy of the weights, by the notes");
  }
  if (pure) stack.gradients.fp32_accumulation = false;
  if (affirms_any(row.notes, {"bf16 master weight", "bfloat16 master weight"})) {
    stack.memory.master_weight_bytes = Bytes(2);
    filled_in.emplace_back("optimizer: a bf16 copy of the weights, by the notes");
  }
  if (names_optimizer(row.notes, kPaged))
    filled_in.emplace_back("states paged to the host, by the notes: not simulated");
  if (names_optimizer(row.notes, kInBackward))
    filled_in.emplace_back("the step inside of the backward pass, by the notes: not simulated");
  if (names_optimizer(row.notes, muon()))
    filled_in.emplace_back("Muon's orthogonalisation, by the notes: not simulated");
}

}  // namespace shardwright::sim
