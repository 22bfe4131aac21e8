#include "sim/validation/noted_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "core/base/letters_and_digits.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

using Number = std::optional<std::int64_t>;

// "512", "1,024", "4.5".
const std::string kNumber = R"((\d{1,3}(?:,\d{3})+|\d{1,8}(?:\.\d{1,3})?))";
// Between a name and its number: "size 8", "=8", " of 8".
const std::string kIs = R"((?: ?(?:=|:|->) ?|[- ](?:of |is |was )?|(?= ?\d)))";
// Behind a number stands no other one that it may be exchanged for: "2048/4096", "1 or 2", "1-4".
const std::string kAlone =
    R"((?![\w%]|[.,]\d| ?(?:[-/~*x]|->|–|→) ?\d| (?:to|or|and|vs\.?|then) \d|(?:,|,? per|/| each) ?(?:gpu|device|rank|replica|accelerator|node)))";

// Up to and with the next of `signs`; a comma in "1,024" and the point of "4.5" end nothing.
std::vector<std::string> parts_of(const std::string& text, std::string_view signs) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    parts.back() += text[i];
    const bool is_point = text[i] == '.' || text[i] == ',';
    const bool in_word = is_point && i + 1 < text.size() && text[i + 1] != ' ';
    if (!in_word && signs.find(text[i]) != std::string_view::npos) parts.emplace_back();
  }
  return parts;
}

// What a sentence guesses.
bool is_guess(const std::string& sentence) {
  static const std::regex kGuess(
      R"(\b(?:assum\w{0,5}|infer\w{0,5}|probabl[ey]|presumabl[ey]|likely|perhaps|maybe|possibly|guess\w{0,3}|estimated?|recalled)\b)",
      icase);
  return std::regex_search(sentence, kGuess);
}

// What a clause says of another run or of what the model can do, not of the steps that were timed:
// "the 160-GPU run used GBS 1280" in a row of 80 accelerators, "supports 128k context".
bool is_of_another(const std::string& clause, std::int64_t accelerators) {
  static const std::regex kCount(
      R"(\b(\d{1,7})[- ](?:gpus?|accelerators?|tpus?|chips) (?:\w{1,20} ){0,2}(?:runs?|rows?|jobs?|experiments?)\b)",
      icase);
  static const std::regex kOther(
      R"(\b(?:max(?:imum|imal)?|supports?|up to|extend(?:ed|s)?|extensible|defaults?|instead|later|next|other|others|another|earlier|previous|elsewhere|inference|evaluat\w{0,4}|not (?:stated|given|said|known|in the)|native|originally|pre-?trained with|critical|would|could|can|if|unlike|compared|versus|vs|than|same|oom|out of memory|ran out|does not fit|ramp\w{0,6}|warm-?up|phase|about|roughly|around|approximately)\b|~ ?\d)",
      icase);
  std::smatch match;
  if (std::regex_search(clause, match, kCount) && std::stoll(match[1]) != accelerators) return true;
  return std::regex_search(clause, kOther);
}

// What brackets say of the words before them, "seq 4096 (assumed)", takes these away, too.
std::string of_this_run(const TrainingRow& row) {
  std::vector<std::string> kept(1);
  bool in_brackets = false;
  for (const std::string& sentence : parts_of(row.notes.substr(0, kMostRead), ".;()\n")) {
    std::string rest;
    bool whole = !is_guess(sentence);
    if (whole) {
      for (const std::string& clause : parts_of(sentence, ",")) {
        const bool other = is_of_another(clause, row.cluster.gpus);
        whole = whole && !other;
        if (!other) rest += clause;
      }
    }
    if (in_brackets && !whole) kept.back().clear();
    kept.push_back(std::move(rest));
    in_brackets = sentence.ends_with('(');
  }
  std::string text;
  for (const std::string& sentence : kept) text += sentence + ' ';
  return text;
}

// "32k" of tokens are 32,768, "4M" 4,194,304 where `length` divides that alone; 0 where it is none.
std::int64_t scaled(const std::string& digits, const std::string& unit, std::int64_t length) {
  std::string plain = digits;
  std::erase(plain, ',');
  const double number = std::stod(plain);
  const char letter = unit.empty() ? ' ' : lower_case(unit).front();
  const int power = letter == 'k' ? 1 : letter == 'm' ? 2 : 0;
  const double decimal = number * std::pow(1000.0, power);
  const double binary = number * std::pow(1024.0, power);
  const auto divides = [length](double tokens) {
    return std::fmod(tokens, static_cast<double>(length)) == 0.0;
  };
  return std::llround(power > 0 && (divides(binary) || !divides(decimal)) ? binary : decimal);
}

// The number that all affirmed matches of the pattern agree on; of each pair of groups that
// matches, the first has its digits and the second its unit.
Number number_of(const std::string& text, const std::regex& pattern, std::int64_t length = 1) {
  std::set<std::int64_t> said;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    std::string found = match->str();
    found.erase(found.begin(), std::find_if(found.begin(), found.end(), is_letter_or_digit));
    if (!affirms_any(text, {found})) continue;
    std::size_t group = 1;
    while (!(*match)[group].matched) group += 2;
    said.insert(scaled((*match)[group], (*match)[group + 1], length));
  }
  return said.size() == 1 && *said.begin() > 0 ? Number(*said.begin()) : std::nullopt;
}

Number length_in(const std::string& text) {
  static const std::regex kLength(
      R"(\b(?:(?:sequence|seq|context|ctx)[-_ ]?(?:length|len|size|window)s?|seq|sequences of))" +
          kIs + kNumber + R"( ?([kK]?)(?! ?(?:sequences|samples|gpus?|ranks)))" + kAlone +
          R"(|\bcontext(?: of|:)? )" + kNumber + " ?([kK])" + kAlone + R"(|\b)" + kNumber +
          R"( ?(k?)[- ]?(?:tokens? (?:context|sequences?|samples)|context|seq(?:uence)?[-_ ]?len(?:gth)?)(?![-_ ]?parallel|\w))",
      icase);
  constexpr std::int64_t kShortest = 64, kLongest = std::int64_t{1} << 24;
  const Number length = number_of(text, kLength);
  return length && *length >= kShortest && *length <= kLongest ? length : std::nullopt;
}

Number micro_batch_in(const std::string& text) {
  static const std::regex kMicro(R"(\b(?:mbs|micro[-_ ]?batch[-_ ]?size|micro[-_ ]?batch))" + kIs +
                                     R"((\d{1,5})()(?! ?(?:gpus?|tokens)| of \d))" + kAlone,
                                 icase);
  return number_of(text, kMicro);
}

// Larger numbers are of tokens.
Number sequences_in(const std::string& text) {
  constexpr std::int64_t kMostSequences = 65536;
  static const std::regex kGlobal(
      R"(\b(?:gbs|(?:global|total)[-_ ]?(?:train[-_ ])?batch(?:[-_ ]?size)?))" + kIs + kNumber +
          R"( ?([kK]?)(?! ?(?:gpus?|m?tokens|m tokens|[kKmM][- ]tokens?|million)))" + kAlone,
      icase);
  const Number sequences = number_of(text, kGlobal, 1024);
  return sequences && *sequences <= kMostSequences ? sequences : std::nullopt;
}

Number batch_tokens_in(const std::string& text, std::int64_t length) {
  static const std::regex kPartOfBatch(
      R"(\b(?:micro|local|mini|(?:per[- ])?(?:device|gpu|rank|replica))[-_ ]?batch(?:es)?\b)",
      icase);
  static const std::regex kTokens(
      R"(\b)" + kNumber +
          R"( ?([kKmM]?|million )[- ]?tokens (?:per|a|in (?:each|a)|/) ?(?:global |training )?(?:batch|step|iteration|update)\b)"
          R"(|\b(?:gbs|(?:global|total) batch(?: size)?|batch(?: size)?(?: of)?))" +
          kIs + kNumber + R"( ?([kKmM]?|million )[- ]?tokens\b)" + kAlone,
      icase);
  return number_of(std::regex_replace(text, kPartOfBatch, " "), kTokens, length);
}

// Sequences of a batch that is told in them or in tokens.
Number global_batch_in(const std::string& text, const Number& length) {
  if (const Number sequences = sequences_in(text)) return sequences;
  if (!length) return std::nullopt;
  const Number tokens = batch_tokens_in(text, *length);
  return tokens && *tokens % *length == 0 ? Number(*tokens / *length) : std::nullopt;
}

void take(Number& field, const Number& noted, const char* key,
          std::vector<std::string>& filled_in) {
  if (field || !noted) return;
  field = noted;
  filled_in.push_back(fmt::format("{}: {}, by the notes", key, *noted));
}

// 1 where the degrees do not tell.
std::int64_t replicas(const TrainingRow& row) {
  const PlanRow& plan = row.plan;
  if (plan.dp) return *plan.dp;
  if (!plan.tp || !plan.pp) return 1;
  const std::int64_t others = *plan.tp * *plan.pp;
  return others > 0 && row.cluster.gpus % others == 0
             ? std::max<std::int64_t>(1, row.cluster.gpus / others / plan.cp.value_or(1))
             : 1;
}

}  // namespace

void complete_batch(TrainingRow& row, std::vector<std::string>& filled_in) {
  if (row.model.seq_len && row.plan.micro_batch && row.plan.global_batch) return;
  const std::string text = of_this_run(row);
  take(row.model.seq_len, length_in(text), "seq_len", filled_in);
  take(row.plan.micro_batch, micro_batch_in(text), "micro_batch", filled_in);
  if (row.plan.global_batch) return;
  const Number batch = global_batch_in(text, row.model.seq_len);
  if (!batch || *batch > kMaxBatch || *batch < 1) return;
  const std::int64_t multiple = replicas(row) * row.plan.micro_batch.value_or(1);
  if (*batch % multiple == 0) {
    take(row.plan.global_batch, batch, "global_batch", filled_in);
    return;
  }
  filled_in.push_back(
      fmt::format("global_batch {} of the notes is no multiple of {} (dp x micro_batch): not taken",
                  *batch, multiple));
}

std::optional<std::int64_t> accumulation_in(const TrainingRow& row) {
  static const std::regex kAccumulation(
      R"(\b(?:gas|(?:gradient|grad)[-_ ]?accum(?:ulat(?:ion|e|ed))?(?:[-_ ]steps?)?(?: over)?))" +
          kIs + R"((\d{1,5})()(?![- ]?bit))" + kAlone +
          R"(|\b(\d{1,5})() (?:(?:gradient|grad)[-_ ]accumulation[-_ ]steps?|accumulation steps?)\b)",
      icase);
  return number_of(of_this_run(row), kAccumulation);
}

}  // namespace shardwright::sim
