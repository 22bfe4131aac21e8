#include "core/lowering/modules/block_builder.hpp"

#include <algorithm>
#include <boost/container/flat_map.hpp>
#include <optional>

#include "core/base/error.hpp"

namespace shardwright {

TensorId TensorTable::add(std::string_view name, MemoryCategory category, Bytes bytes,
                          Lifetime lifetime, bool per_microbatch) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].name == name) {
      SHARDWRIGHT_CHECK(tensors_[i].bytes == bytes,
                        "tensor " + tensors_[i].name + " with two sizes");
      return static_cast<TensorId>(i);
    }
  }
  tensors_.push_back({std::string(name), category, bytes, lifetime, per_microbatch});
  return static_cast<TensorId>(tensors_.size() - 1);
}

void derive_waits(std::vector<Op>& ops) {
  struct Uses {
    std::optional<std::uint16_t> writer;
    // The ops that have read it since then.
    std::vector<std::uint16_t> readers;
  };
  boost::container::flat_map<TensorRef, Uses> uses;
  uses.reserve(4 * ops.size());
  std::optional<std::uint16_t> last_kernel;
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(ops.size()); ++i) {
    Op& op = ops[i];
    op.waits.clear();
    const auto wait_for = [&](std::uint16_t on) {
      if (ops[on].stream != op.stream) op.waits.push_back(on);
    };
    if (op.after_kernels && last_kernel) wait_for(*last_kernel);
    if (op.stream == Stream::Compute) last_kernel = i;
    for (const TensorRef ref : op.reads) {
      const Uses& before = uses[ref];
      if (before.writer) wait_for(*before.writer);
    }
    for (const TensorRef ref : op.writes) {
      for (const std::uint16_t reader : uses[ref].readers) wait_for(reader);
      uses[ref] = {i, {}};
    }
    for (const TensorRef ref : op.reads) uses[ref].readers.push_back(i);
    std::sort(op.waits.begin(), op.waits.end());
    op.waits.erase(std::unique(op.waits.begin(), op.waits.end()), op.waits.end());
  }
}

namespace {

bool contains(std::span<const TensorRef> refs, TensorRef ref) {
  return std::find(refs.begin(), refs.end(), ref) != refs.end();
}

void free_after(Op& op, TensorRef ref) {
  if (!contains(op.frees, ref)) op.frees.push_back(ref);
}

// Walks the ops in order and remembers, for each value that is alive, the op that used it last.
class LivenessPass {
 public:
  LivenessPass(const std::vector<TensorSpec>& tensors, std::span<const TensorRef> passed_on)
      : tensors_(tensors), passed_on_(passed_on) {
    last_use_.reserve(tensors.size());
  }

  void visit(Op& op) {
    for (const TensorRef ref : op.reads) {
      const auto found = last_use_.find(ref);
      if (found != last_use_.end()) {
        found->second = &op;
      } else if (tensors_[ref.tensor].lifetime == Lifetime::Borrowed) {
        last_use_[ref] = &op;
      }
    }
    for (const TensorRef ref : op.writes) define(op, ref);
  }

  void enter_with(TensorRef ref) { last_use_[ref] = nullptr; }

  // Frees what the blocks so far have borrowed; those to come borrow it anew.
  void return_borrowed() {
    for (auto it = last_use_.begin(); it != last_use_.end();) {
      if (tensors_[it->first.tensor].lifetime == Lifetime::Borrowed) {
        free_after(*it->second, it->first);
        it = last_use_.erase(it);
      } else {
        ++it;
      }
    }
  }

  void end() {
    for (auto& [ref, op] : last_use_) {
      if (op != nullptr) free_after(*op, ref);
    }
  }

 private:
  void define(Op& op, TensorRef ref) {
    if (contains(passed_on_, ref)) return;
    const auto found = last_use_.find(ref);
    const bool in_place = contains(op.reads, ref);
    if (found != last_use_.end() && !in_place && found->second != nullptr)
      free_after(*found->second, ref);
    last_use_[ref] = &op;
  }

  const std::vector<TensorSpec>& tensors_;
  std::span<const TensorRef> passed_on_;
  boost::container::flat_map<TensorRef, Op*> last_use_;
};

}  // namespace

void derive_frees(std::span<Block* const> in_order, const std::vector<TensorSpec>& tensors,
                  std::span<const TensorRef> passed_on, std::span<const TensorRef> passed_in) {
  LivenessPass pass(tensors, passed_on);
  for (const TensorRef ref : passed_in) pass.enter_with(ref);
  for (Block* block : in_order) {
    for (Op& op : block->ops) op.frees.clear();
    for (Op& op : block->ops) pass.visit(op);
    // The backward pass comes much later; recomputation and backward follow each other at once.
    if (block == in_order.front()) pass.return_borrowed();
  }
  pass.end();
}

}  // namespace shardwright
