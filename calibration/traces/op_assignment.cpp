#include "calibration/traces/op_assignment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace shardwright::calibration {
namespace {

// Sizes that differ by less are those of one tensor with other padding.
constexpr double kSameSize = 0.03;

bool is_near(double a, double b) {
  return std::abs(a - b) <= kSameSize * std::max(std::abs(a), std::abs(b));
}

// The sizes of a product. Which operand is called the left one depends on layout, so that m and n
// are interchangeable: m <= n.
struct ProductSizes {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;

  auto operator<=>(const ProductSizes&) const = default;
};

ProductSizes sizes_of(const GemmWork& work) {
  return {std::min(work.m, work.n), std::max(work.m, work.n), work.k, work.batch};
}

bool are_near(const ProductSizes& a, const ProductSizes& b) {
  const auto near = [](std::int64_t x, std::int64_t y) {
    return is_near(static_cast<double>(x), static_cast<double>(y));
  };
  return near(a.m, b.m) && near(a.n, b.n) && near(a.k, b.k) && a.batch == b.batch;
}

// The kinds of communication as traces name them.
std::string kind_in_traces(OpKind kind) {
  if (kind == OpKind::RingShift) return "send_receive";
  return name_of(kind);
}

// Among more ops than a layer has, place tells little.
constexpr std::ptrdiff_t kMostBetween = 64;

// Ops by number and calls by number, both ascending. Those that find a partner leave the lists.
using Numbers = std::deque<std::size_t>;

// The calls of one step that belong to each op.
class Assignment {
 public:
  Assignment(const std::vector<PlannedOp>& ops, std::int64_t repetitions,
             const std::vector<KernelCall>& calls, const NameTable& names, bool forward_only)
      : ops_(ops),
        repetitions_(repetitions),
        calls_(calls),
        names_(names),
        is_forward_only_(forward_only) {
    result_.calls_of.resize(ops.size() * static_cast<std::size_t>(repetitions));
    result_.is_taken.assign(calls.size(), false);
    is_sure_.assign(result_.calls_of.size(), false);
    match_attention();
    match_products();
    match_communication();
    name_kinds();
    settle_kinds();
  }

  OpAssignment take_result() { return std::move(result_); }

 private:
  void take(std::size_t op, std::size_t call) {
    result_.calls_of[op].push_back(call);
    result_.is_taken[call] = true;
  }

  // Numbers of ops in all repetitions: i + r * ops.
  template <class Choice>
  Numbers ops_that(Choice choice) const {
    Numbers numbers;
    for (std::int64_t r = 0; r < repetitions_; ++r)
      for (std::size_t i = 0; i < ops_.size(); ++i)
        if (is_recorded(ops_[i], is_forward_only_) && choice(ops_[i]))
          numbers.push_back(i + static_cast<std::size_t>(r) * ops_.size());
    return numbers;
  }

  template <class Choice>
  Numbers calls_that(Choice choice) const {
    Numbers numbers;
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (!result_.is_taken[i] && choice(calls_[i])) numbers.push_back(i);
    return numbers;
  }

  void pair_up(Numbers& ops, Numbers& calls) {
    const bool is_sure = ops.size() == calls.size();
    for (; !ops.empty() && !calls.empty(); ops.pop_front(), calls.pop_front()) {
      take(ops.front(), calls.front());
      is_sure_[ops.front()] = is_sure;
    }
  }

  const PlannedOp& op(std::size_t number) const { return ops_[number % ops_.size()]; }

  void match_products() {
    std::map<ProductSizes, Numbers> ops, calls;
    for (const std::size_t i : ops_that([](const PlannedOp& each) {
           return is_matrix_product(each.kind) && std::holds_alternative<GemmWork>(each.work);
         }))
      ops[sizes_of(std::get<GemmWork>(op(i).work))].push_back(i);
    for (const std::size_t i :
         calls_that([](const KernelCall& call) { return call.product.has_value(); }))
      calls[sizes_of(std::get<GemmWork>(calls_[i].product->work))].push_back(i);
    if (calls.empty()) {
      match_products_by_order();
      return;
    }
    const auto pair_same_sizes = [&](auto may_pair) {
      for (auto& [sizes, numbers] : ops)
        if (const auto same = calls.find(sizes);
            same != calls.end() && may_pair(numbers, same->second))
          pair_up(numbers, same->second);
    };
    pair_same_sizes([](const Numbers& a, const Numbers& b) { return a.size() == b.size(); });
    match_between_sure(ops, calls);
    for (auto* lists : {&ops, &calls})
      for (auto& [sizes, numbers] : *lists)
        std::erase_if(numbers, [&](std::size_t i) {
          return lists == &ops ? !result_.calls_of[i].empty() : result_.is_taken[i];
        });
    pair_same_sizes([](const Numbers&, const Numbers&) { return true; });
    for (auto& [sizes, numbers] : ops)
      for (auto& [other, candidates] : calls)
        if (!numbers.empty() && are_near(sizes, other)) pair_up(numbers, candidates);
    for (auto& [sizes, numbers] : ops)
      if (!numbers.empty()) match_parts(sizes, numbers, 0, calls_.size());
  }

  // Pairs products that lie between two ops whose calls are sure with calls between those.
  void match_between_sure(const std::map<ProductSizes, Numbers>& ops,
                          const std::map<ProductSizes, Numbers>& calls) {
    std::set<std::size_t> open;
    for (const auto& [sizes, numbers] : ops) open.insert(numbers.begin(), numbers.end());
    for (auto first = open.begin(); first != open.end();) {
      std::size_t before = *first;
      while (before > 0 && !is_sure_[before - 1]) --before;
      std::size_t behind = *first;
      while (behind < is_sure_.size() && !is_sure_[behind]) ++behind;
      const std::size_t begin = before > 0 ? result_.calls_of[before - 1].back() + 1 : 0;
      const std::size_t end =
          behind < is_sure_.size() ? result_.calls_of[behind].front() : calls_.size();
      const auto last = open.lower_bound(behind);
      if (std::distance(first, last) <= kMostBetween)
        for (auto each = first; each != last; ++each) match_within(*each, begin, end, calls);
      first = last;
    }
  }

  // Gives a product the first call with its sizes from `begin` to `end`, or, if no call at all had
  // them, parts of it there.
  void match_within(std::size_t number, std::size_t begin, std::size_t end,
                    const std::map<ProductSizes, Numbers>& calls) {
    const ProductSizes sizes = sizes_of(std::get<GemmWork>(op(number).work));
    for (std::size_t i = begin; i < end; ++i)
      if (!result_.is_taken[i] && calls_[i].product &&
          sizes_of(std::get<GemmWork>(calls_[i].product->work)) == sizes) {
        take(number, i);
        return;
      }
    if (calls.contains(sizes)) return;
    Numbers alone = {number};
    match_parts(sizes, alone, begin, end);
  }

  // Pairs products whose shapes the trace does not tell, if there are as many as the plan has.
  void match_products_by_order() {
    Numbers ops = ops_that([](const PlannedOp& each) { return is_matrix_product(each.kind); });
    Numbers calls =
        calls_that([](const KernelCall& call) { return call.category == KernelCategory::Gemm; });
    if (ops.size() == calls.size()) pair_up(ops, calls);
  }

  // The size in which a call is a part of an op that has the other two; none if it is no part.
  static std::optional<std::int64_t> part_of(const ProductSizes& whole, const ProductSizes& part,
                                             int direction) {
    if (part.batch != whole.batch) return std::nullopt;
    const auto other_of = [&](std::int64_t common) -> std::optional<std::int64_t> {
      if (part.m == common) return part.n;
      if (part.n == common) return part.m;
      return std::nullopt;
    };
    std::optional<std::int64_t> size;
    std::int64_t most = whole.k;
    if (direction == 0) {
      if (part.m == whole.m && part.n == whole.n) size = part.k;
    } else if (part.k == whole.k) {
      size = other_of(direction == 1 ? whole.m : whole.n);
      most = direction == 1 ? whole.n : whole.m;
    }
    return size && *size < most ? size : std::nullopt;
  }

  // Products one after the other that add up to an op: the queries', keys' and values' projections
  // of a framework that does not join them.
  void match_parts(const ProductSizes& whole, Numbers& ops, std::size_t begin, std::size_t end) {
    const std::array<std::int64_t, 3> wholes = {whole.k, whole.n, whole.m};
    for (int direction = 0; direction < 3; ++direction) {
      std::deque<std::pair<std::size_t, std::int64_t>> parts;
      std::int64_t sum = 0;
      for (std::size_t i = begin; i < end; ++i) {
        if (ops.empty()) return;
        if (result_.is_taken[i] || !calls_[i].product) continue;
        const auto size =
            part_of(whole, sizes_of(std::get<GemmWork>(calls_[i].product->work)), direction);
        if (!size) continue;
        parts.emplace_back(i, *size);
        sum += *size;
        const std::int64_t wanted = wholes[static_cast<std::size_t>(direction)];
        for (; sum > wanted; parts.pop_front()) sum -= parts.front().second;
        if (sum != wanted) continue;
        for (const auto& [call, part] : parts) take(ops.front(), call);
        ops.pop_front();
        parts.clear();
        sum = 0;
      }
    }
  }

  void match_attention() {
    for (const bool backward : {false, true}) {
      Numbers ops = ops_that([&](const PlannedOp& each) {
        return each.kind == OpKind::Attention &&
               (each.phase != Phase::Forward && each.phase != Phase::Recompute) == backward;
      });
      Numbers calls = calls_that([&](const KernelCall& call) {
        return call.category == KernelCategory::Attention && call.backward == backward;
      });
      pair_up(ops, calls);
    }
  }

  void match_communication() {
    std::set<std::string> kinds;
    for (const PlannedOp& each : ops_)
      if (is_communication(each.kind)) kinds.insert(kind_in_traces(each.kind));
    for (const std::string& kind : kinds) {
      Numbers ops = ops_that([&](const PlannedOp& each) {
        return is_communication(each.kind) && kind_in_traces(each.kind) == kind;
      });
      Numbers calls = calls_that([&](const KernelCall& call) { return call.collective == kind; });
      pair_by_bytes(ops, calls);
      Numbers rest = calls_that([&](const KernelCall& call) {
        return call.collective == kind && (call.arguments == nullptr || !call.arguments->bytes);
      });
      pair_up(ops, rest);
    }
  }

  // Leaves those without a partner in `ops`.
  void pair_by_bytes(Numbers& ops, const Numbers& calls) {
    std::map<double, Numbers> by_size;
    for (const std::size_t i : calls)
      if (calls_[i].arguments != nullptr && calls_[i].arguments->bytes)
        by_size[static_cast<double>(*calls_[i].arguments->bytes)].push_back(i);
    Numbers left;
    for (const std::size_t i : ops) {
      const double bytes = std::get<CommunicationWork>(op(i).work).bytes.value();
      auto found = by_size.lower_bound(bytes * (1.0 - kSameSize));
      while (found != by_size.end() && is_near(found->first, bytes) && found->second.empty())
        ++found;
      if (found == by_size.end() || !is_near(found->first, bytes)) {
        left.push_back(i);
        continue;
      }
      take(i, found->second.front());
      found->second.pop_front();
    }
    ops = std::move(left);
  }

  // Finds kinds by the words in names.
  void name_kinds() {
    result_.memory_bound.resize(calls_.size());
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (is_memory_bound(calls_[i]))
        result_.memory_bound[i] = memory_bound_kind(name_of_kernel(i), name_of_op(i));
  }

  // Gives kernels of arithmetic the only kind that the program has between the products or
  // attention before and behind them.
  void settle_kinds() {
    std::optional<std::size_t> before;
    std::map<OpKind, std::size_t> between;
    for (std::size_t number = 0; number < result_.calls_of.size(); ++number) {
      const PlannedOp& each = op(number);
      if (std::holds_alternative<MemoryWork>(each.work)) ++between[each.kind];
      if (is_communication(each.kind) || result_.calls_of[number].empty()) continue;
      if (before && *before < result_.calls_of[number].front())
        settle_kinds_between(*before, result_.calls_of[number].front(), between,
                             each.phase == Phase::Forward);
      before = result_.calls_of[number].back();
      between.clear();
    }
  }

  // Between two calls. `between` counts the ops there of each kind that memory traffic limits.
  void settle_kinds_between(std::size_t first, std::size_t last,
                            std::map<OpKind, std::size_t> between, bool forward) {
    const std::size_t additions = between[OpKind::Residual];
    between.erase(OpKind::Residual);
    between.erase(OpKind::GradientAccumulation);
    if (between.size() != 1) return;
    const OpKind only = between.begin()->first;
    Numbers added;
    for (std::size_t i = first + 1; i < last; ++i) {
      std::optional<OpKind>& kind = result_.memory_bound[i];
      if (!is_arithmetic(i) || calls_[i].main->stream != calls_[first].main->stream) continue;
      if (kind == OpKind::Residual)
        added.push_back(i);
      else if (!kind || kind == OpKind::Cast)
        kind = only;
    }
    // A norm adds, too, and less than the residual connection does. Gradients may add up anywhere.
    if (!forward) return;
    std::ranges::stable_sort(added, std::greater<>(),
                             [&](std::size_t i) { return calls_[i].time; });
    for (std::size_t i = additions; i < added.size(); ++i) result_.memory_bound[added[i]] = only;
  }

  bool is_memory_bound(const KernelCall& call) const {
    return call.category == KernelCategory::Elementwise || call.category == KernelCategory::Other;
  }

  // True of kernels that PyTorch names after their arithmetic. What its compiler fuses may belong
  // to several ops. Kernels that copy shards of parameters and gradients stand between any two
  // products.
  bool is_arithmetic(std::size_t call) const {
    if (!is_memory_bound(calls_[call])) return false;
    const std::string &kernel = name_of_kernel(call), &op = name_of_op(call);
    for (const char* word : {"fsdp::", "split_with_sizes_copy", "chunk_cat", "_foreach"})
      if (op.find(word) != std::string::npos) return false;
    return kernel.find("at::native") != std::string::npos;
  }

  const std::string& name_of_kernel(std::size_t call) const {
    return names_[calls_[call].main->name];
  }

  const std::string& name_of_op(std::size_t call) const {
    static const std::string kNoName;
    const TraceIndex op = calls_[call].main->op;
    return op == kNoIndex ? kNoName : names_[op];
  }

  const std::vector<PlannedOp>& ops_;
  std::int64_t repetitions_;
  const std::vector<KernelCall>& calls_;
  const NameTable& names_;
  const bool is_forward_only_;
  // An op in `result_` is sure if no other call could be its own.
  std::vector<bool> is_sure_;
  OpAssignment result_;
};

// Attentions tell it, which libraries launch once each, or else products.
std::int64_t repetitions_without_shapes(const std::vector<KernelCall>& calls,
                                        const std::vector<PlannedOp>& ops, bool forward_only) {
  for (const auto& [kind, category] : {std::pair(OpKind::Attention, KernelCategory::Attention),
                                       {OpKind::Gemm, KernelCategory::Gemm}}) {
    const auto planned = std::ranges::count_if(ops, [&](const PlannedOp& each) {
      return each.kind == kind && is_recorded(each, forward_only);
    });
    const auto called = std::ranges::count(calls, category, &KernelCall::category);
    if (planned > 0 && called > 0)
      return std::max<std::int64_t>(1, (2 * called + planned) / (2 * planned));
  }
  return 1;
}

}  // namespace

bool is_recorded(const PlannedOp& op, bool forward_only) {
  return !forward_only || op.phase == Phase::Forward;
}

std::int64_t repetitions_in(const std::vector<KernelCall>& calls, const std::vector<PlannedOp>& ops,
                            bool forward_only) {
  std::map<ProductSizes, std::pair<double, double>> counts;
  for (const PlannedOp& each : ops)
    if (const auto* work = std::get_if<GemmWork>(&each.work);
        work != nullptr && is_recorded(each, forward_only))
      ++counts[sizes_of(*work)].first;
  for (const KernelCall& call : calls)
    if (call.product) ++counts[sizes_of(std::get<GemmWork>(call.product->work))].second;
  std::vector<double> ratios;
  for (const auto& [sizes, count] : counts)
    if (count.first > 0 && count.second > 0) ratios.push_back(count.second / count.first);
  if (ratios.empty()) return repetitions_without_shapes(calls, ops, forward_only);
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2),
                   ratios.end());
  return std::max<std::int64_t>(1, std::llround(ratios[ratios.size() / 2]));
}

OpAssignment assign_ops(const std::vector<PlannedOp>& ops, std::int64_t repetitions,
                        const std::vector<KernelCall>& calls, const NameTable& names,
                        bool forward_only) {
  return Assignment(ops, repetitions, calls, names, forward_only).take_result();
}

}  // namespace shardwright::calibration
