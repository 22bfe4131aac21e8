#include "core/base/pickle.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright {

// What a value is, and where its contents are.
struct PickleNode {
  PickleKind kind = PickleKind::None;
  // Of Text, Binary and Global.
  std::uint32_t length = 0;
  // The number itself, the first byte of a text or name, or the place of the items.
  union {
    std::int64_t integer = 0;
    double real;
    std::size_t at;
  };
};

struct PickleStore {
  // The stream, in which texts stand as they are, and the names of globals.
  std::string bytes, globals;
  std::vector<PickleNode> nodes;
  std::vector<std::vector<std::uint32_t>> items;
};

namespace {

using Index = std::uint32_t;

bool has_items(PickleKind kind) {
  return kind == PickleKind::List || kind == PickleKind::Tuple || kind == PickleKind::Set ||
         kind == PickleKind::Dict || kind == PickleKind::Call;
}

// The machine of pickle without its calls. Each operation takes at least one byte of the stream and
// adds at most one value, so that memory grows with the stream alone, whatever it says.
class PickleMachine {
 public:
  PickleMachine(PickleStore& store, const std::string& source,
                const std::function<void(std::size_t)>& advanced)
      : store_(store), source_(source), advanced_(advanced), length_(store.bytes.size()) {
    if (length_ >= kMostBytes) refuse("a pickle of more than 4 GB", "a smaller one");
  }

  // Returns the value at which the program stops.
  Index run() {
    while (!stopped_) {
      at_ = next_;
      if (advanced_ && at_ >= reported_ + kBetweenReports) advanced_(reported_ = at_);
      step(static_cast<unsigned char>(take(1)[0]));
    }
    return pop();
  }

  std::size_t end() const { return next_; }

 private:
  static constexpr std::size_t kMostBytes = 0xffff'ffffU;
  static constexpr std::size_t kBetweenReports = 1U << 20U;
  static constexpr Index kForgotten = ~Index{0};

  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const {
    throw InputError(source_, {{fmt::format("byte {} of the pickle", at_), found, expected}});
  }

  std::string_view take(std::size_t count) {
    if (count > length_ - next_)
      refuse("the end of the data", format_plural(static_cast<std::int64_t>(count), "more byte"));
    next_ += count;
    return std::string_view(store_.bytes).substr(next_ - count, count);
  }

  // A number of so many bytes, the lowest first.
  std::uint64_t take_number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view digits = take(bytes);
    for (std::size_t i = bytes; i > 0; --i)
      value = value << 8U | static_cast<unsigned char>(digits[i - 1]);
    return value;
  }

  std::string_view take_line() {
    const std::size_t end = store_.bytes.find('\n', next_);
    if (end == std::string::npos || end >= length_) refuse("the end of the data", "a line");
    const std::string_view line = take(end - next_);
    take(1);
    return line;
  }

  Index add(PickleNode node) {
    store_.nodes.push_back(node);
    return static_cast<Index>(store_.nodes.size() - 1);
  }

  void push(Index index) { stack_.push_back(index); }

  void push_integer(PickleKind kind, std::int64_t value) {
    PickleNode node{kind, 0, {}};
    node.integer = value;
    push(add(node));
  }

  void push_real(double value) {
    PickleNode node{PickleKind::Real, 0, {}};
    node.real = value;
    push(add(node));
  }

  // The last bytes that were taken.
  void push_text(PickleKind kind, std::string_view text) {
    PickleNode node{kind, static_cast<std::uint32_t>(text.size()), {}};
    node.at = static_cast<std::size_t>(text.data() - store_.bytes.data());
    push(add(node));
  }

  Index add_items(PickleKind kind, std::vector<Index> items) {
    store_.items.push_back(std::move(items));
    PickleNode node{kind, 0, {}};
    node.at = store_.items.size() - 1;
    return add(node);
  }

  Index pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
      refuse("no value", "a value that an operation before it left");
    const Index top = stack_.back();
    stack_.pop_back();
    return top;
  }

  std::vector<Index> pop_to_mark() {
    if (marks_.empty()) refuse("no mark", "a mark that an operation before it left");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Index> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  // The items of the value on top, which is of that kind; objects that fill themselves are Calls,
  // whose items are dropped.
  std::vector<Index>* items_of_top(PickleKind kind) {
    const Index top = pop();
    push(top);
    const PickleNode& node = store_.nodes[top];
    if (node.kind == kind) return &store_.items[node.at];
    if (node.kind != PickleKind::Call)
      refuse("items of another kind of value", "a list, a set or a dict");
    return nullptr;
  }

  void extend_top(PickleKind kind, const std::vector<Index>& more) {
    if (kind == PickleKind::Dict && more.size() % 2 != 0) refuse("a key without a value", "pairs");
    if (auto* items = items_of_top(kind)) items->insert(items->end(), more.begin(), more.end());
  }

  void push_tuple(std::size_t count) {
    std::vector<Index> items(count);
    for (std::size_t i = count; i > 0; --i) items[i - 1] = pop();
    push(add_items(PickleKind::Tuple, std::move(items)));
  }

  void push_call(std::size_t arguments) {
    std::vector<Index> items(3, none());
    for (std::size_t i = arguments; i > 0; --i) items[1] = pop();
    items[0] = pop();
    push(add_items(PickleKind::Call, std::move(items)));
  }

  void set_state() {
    const Index state = pop();
    const Index top = pop();
    push(top);
    const PickleNode& node = store_.nodes[top];
    if (node.kind == PickleKind::Call) store_.items[node.at][2] = state;
  }

  Index none() { return add({PickleKind::None, 0, {}}); }

  // "module name" of two texts.
  void push_global(std::string_view module, std::string_view name) {
    const std::string text = fmt::format("{} {}", module, name);
    PickleNode node{PickleKind::Global, static_cast<std::uint32_t>(text.size()), {}};
    const auto [known, is_new] = globals_.try_emplace(text, store_.globals.size());
    if (is_new) store_.globals += text;
    node.at = known->second;
    push(add(node));
  }

  void push_stacked_global() {
    const Index name = pop(), module = pop();
    const auto text_of = [&](Index index) {
      const PickleNode& node = store_.nodes[index];
      if (node.kind != PickleKind::Text) refuse("a global without a name", "a text");
      return std::string_view(store_.bytes).substr(node.at, node.length);
    };
    push_global(text_of(module), text_of(name));
  }

  void push_long(std::size_t bytes) {
    const std::string_view digits = take(bytes);
    if (bytes > sizeof(std::int64_t)) return push_text(PickleKind::Binary, digits);
    next_ -= bytes;
    std::uint64_t value = take_number(bytes);
    const std::size_t unused = 64 - 8 * bytes;
    if (bytes == 0) return push_integer(PickleKind::Integer, 0);
    value <<= unused;
    push_integer(PickleKind::Integer, static_cast<std::int64_t>(value) >> unused);
  }

  // The decimal numbers of protocol 0.
  void push_decimal() {
    std::string_view line = take_line();
    if (line == "00" || line == "01") return push_integer(PickleKind::Bool, line == "01" ? 1 : 0);
    if (line.ends_with('L')) line.remove_suffix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || end != line.data() + line.size())
      refuse("no number", "a whole number");
    push_integer(PickleKind::Integer, value);
  }

  // A number on a line of its own, by which protocol 0 names what it remembers.
  std::uint64_t take_memo() {
    const std::string_view line = take_line();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || end != line.data() + line.size())
      refuse("no number", "the number of a memo");
    return value;
  }

  void push_real_line() {
    const std::string_view line = take_line();
    double value = 0.0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || end != line.data() + line.size())
      refuse("no number", "a real number");
    push_real(value);
  }

  // The text of a line in which backslashes and ends of lines are written by their numbers; it
  // becomes shorter in its place. Other letters that are written so are left as they are.
  void push_escaped_line() {
    const std::string_view line = take_line();
    char* const begin = store_.bytes.data() + (line.data() - store_.bytes.data());
    std::size_t length = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string_view escape = line.substr(i, 6);
      const bool is_backslash = escape == "\\u005c", is_end = escape == "\\u000a";
      begin[length++] = is_backslash ? '\\' : is_end ? '\n' : line[i];
      if (is_backslash || is_end) i += escape.size() - 1;
    }
    push_text(PickleKind::Text, std::string_view(begin, length));
  }

  // 'text' of Python 2 within its quotation marks.
  void push_quoted_line() {
    std::string_view line = take_line();
    if (line.size() < 2 || line.front() != line.back() || (line[0] != '\'' && line[0] != '"'))
      refuse("no text in quotation marks", "'text'");
    push_text(PickleKind::Text, line.substr(1, line.size() - 2));
  }

  void memorize(std::uint64_t number) {
    const Index top = pop();
    push(top);
    // No stream numbers more values than it has bytes.
    if (number >= length_)
      refuse(fmt::format("memo {}", number), "a number within the stream's length");
    if (number >= memo_.size()) memo_.resize(number + 1, kForgotten);
    if (memo_[number] == kForgotten) ++remembered_;
    memo_[number] = top;
  }

  void recall(std::uint64_t number) {
    if (number >= memo_.size() || memo_[number] == kForgotten)
      refuse(fmt::format("memo {}", number), "a value that was remembered before");
    push(memo_[number]);
  }

  void step(unsigned char operation);
  bool step_number(unsigned char operation);
  bool step_text(unsigned char operation);
  bool step_container(unsigned char operation);
  bool step_filling(unsigned char operation);
  bool step_object(unsigned char operation);
  bool step_stack(unsigned char operation);

  PickleStore& store_;
  const std::string& source_;
  const std::function<void(std::size_t)>& advanced_;
  const std::size_t length_;
  // The operation, and the byte behind what was taken of it.
  std::size_t at_ = 0, next_ = 0;
  std::size_t reported_ = 0;
  bool stopped_ = false;
  std::vector<Index> stack_;
  std::vector<std::size_t> marks_;
  // By number, and how many of them are set.
  std::vector<Index> memo_;
  std::size_t remembered_ = 0;
  // Where the text of each stands.
  std::map<std::string, std::size_t> globals_;
};

// The names of operations are those of Lib/pickletools.py of CPython.
bool PickleMachine::step_number(unsigned char operation) {
  switch (operation) {
    case 'N':
      push(none());
      return true;
    case 0x88:
      push_integer(PickleKind::Bool, 1);
      return true;  // NEWTRUE
    case 0x89:
      push_integer(PickleKind::Bool, 0);
      return true;  // NEWFALSE
    case 'I':       // INT
    case 'L':
      push_decimal();
      return true;  // LONG
    case 'J':       // BININT
      push_integer(PickleKind::Integer, static_cast<std::int32_t>(take_number(4)));
      return true;
    case 'K':
      push_integer(PickleKind::Integer, static_cast<std::int64_t>(take_number(1)));
      return true;  // BININT1
    case 'M':
      push_integer(PickleKind::Integer, static_cast<std::int64_t>(take_number(2)));
      return true;  // BININT2
    case 0x8a:
      push_long(take_number(1));
      return true;  // LONG1
    case 0x8b:
      push_long(take_number(4));
      return true;  // LONG4
    case 'F':       // FLOAT
      push_real_line();
      return true;
    case 'G': {  // BINFLOAT, the highest byte first
      std::uint64_t bits = 0;
      for (const char c : take(8)) bits = bits << 8U | static_cast<unsigned char>(c);
      push_real(std::bit_cast<double>(bits));
      return true;
    }
    default:
      return false;
  }
}

bool PickleMachine::step_text(unsigned char operation) {
  switch (operation) {
    case 'X':  // BINUNICODE
    case 'T':
      push_text(PickleKind::Text, take(take_number(4)));
      return true;  // BINSTRING
    case 0x8c:      // SHORT_BINUNICODE
    case 'U':
      push_text(PickleKind::Text, take(take_number(1)));
      return true;  // SHORT_BINSTRING
    case 0x8d:
      push_text(PickleKind::Text, take(take_number(8)));
      return true;  // BINUNICODE8
    case 'V':       // UNICODE
      push_escaped_line();
      return true;
    case 'S':  // STRING
      push_quoted_line();
      return true;
    case 'B':
      push_text(PickleKind::Binary, take(take_number(4)));
      return true;  // BINBYTES
    case 'C':
      push_text(PickleKind::Binary, take(take_number(1)));
      return true;  // SHORT_BINBYTES
    case 0x8e:      // BINBYTES8
    case 0x96:
      push_text(PickleKind::Binary, take(take_number(8)));
      return true;  // BYTEARRAY8
    default:
      return false;
  }
}

bool PickleMachine::step_container(unsigned char operation) {
  switch (operation) {
    case ']':
      push(add_items(PickleKind::List, {}));
      return true;
    case '}':
      push(add_items(PickleKind::Dict, {}));
      return true;
    case ')':
      push(add_items(PickleKind::Tuple, {}));
      return true;
    case 0x8f:
      push(add_items(PickleKind::Set, {}));
      return true;  // EMPTY_SET
    case 'l':
      push(add_items(PickleKind::List, pop_to_mark()));
      return true;
    case 't':
      push(add_items(PickleKind::Tuple, pop_to_mark()));
      return true;
    case 0x91:
      push(add_items(PickleKind::Set, pop_to_mark()));
      return true;  // FROZENSET
    case 'd': {     // DICT
      const std::vector<Index> pairs = pop_to_mark();
      push(add_items(PickleKind::Dict, {}));
      extend_top(PickleKind::Dict, pairs);
      return true;
    }
    case 0x85:  // TUPLE1 to TUPLE3
    case 0x86:
    case 0x87:
      push_tuple(operation - 0x84U);
      return true;
    default:
      return false;
  }
}

// What adds to the container on top.
bool PickleMachine::step_filling(unsigned char operation) {
  switch (operation) {
    case 'a': {  // APPEND
      const Index value = pop();
      extend_top(PickleKind::List, {value});
      return true;
    }
    case 'e':
      extend_top(PickleKind::List, pop_to_mark());
      return true;  // APPENDS
    case 0x90:
      extend_top(PickleKind::Set, pop_to_mark());
      return true;  // ADDITEMS
    case 's': {     // SETITEM
      const Index value = pop(), key = pop();
      extend_top(PickleKind::Dict, {key, value});
      return true;
    }
    case 'u':
      extend_top(PickleKind::Dict, pop_to_mark());
      return true;  // SETITEMS
    default:
      return false;
  }
}

bool PickleMachine::step_object(unsigned char operation) {
  switch (operation) {
    case 'c': {  // GLOBAL
      const std::string_view module = take_line();
      push_global(module, take_line());
      return true;
    }
    case 0x93:
      push_stacked_global();
      return true;  // STACK_GLOBAL
    case 'R':       // REDUCE
    case 0x81:
      push_call(1);
      return true;  // NEWOBJ
    case 0x92: {    // NEWOBJ_EX, whose arguments by keyword are left out
      pop();
      push_call(1);
      return true;
    }
    case 'b':
      set_state();
      return true;  // BUILD
    case 'Q':
      pop();  // BINPERSID
      push(add({PickleKind::Persistent, 0, {}}));
      return true;
    case 'P':
      take_line();  // PERSID
      push(add({PickleKind::Persistent, 0, {}}));
      return true;
    default:
      return false;
  }
}

bool PickleMachine::step_stack(unsigned char operation) {
  switch (operation) {
    case '(':
      marks_.push_back(stack_.size());
      return true;  // MARK
    case '0':       // POP
      if (!marks_.empty() && marks_.back() == stack_.size())
        marks_.pop_back();
      else
        pop();
      return true;
    case '1':
      pop_to_mark();
      return true;  // POP_MARK
    case '2': {     // DUP
      const Index top = pop();
      push(top);
      push(top);
      return true;
    }
    case 'q':
      memorize(take_number(1));
      return true;  // BINPUT
    case 'r':
      memorize(take_number(4));
      return true;  // LONG_BINPUT
    case 0x94:
      memorize(remembered_);
      return true;  // MEMOIZE
    case 'p':       // PUT
      memorize(take_memo());
      return true;
    case 'g':  // GET
      recall(take_memo());
      return true;
    case 'h':
      recall(take_number(1));
      return true;  // BINGET
    case 'j':
      recall(take_number(4));
      return true;  // LONG_BINGET
    default:
      return false;
  }
}

void PickleMachine::step(unsigned char operation) {
  if (operation == '.') {
    stopped_ = true;
  } else if (operation == 0x80) {  // PROTO
    constexpr std::uint64_t kNewest = 5;
    const std::uint64_t protocol = take_number(1);
    if (protocol > kNewest) refuse(fmt::format("protocol {}", protocol), "0 to 5");
  } else if (operation == 0x95) {  // FRAME, which only says how much to read at once
    take_number(8);
  } else if (!step_number(operation) && !step_text(operation) && !step_container(operation) &&
             !step_filling(operation) && !step_object(operation) && !step_stack(operation)) {
    refuse(fmt::format("0x{:02x}", operation), "an operation of pickle's protocols 0 to 5");
  }
}

}  // namespace

PickleKind PickleValue::kind() const {
  return store_->nodes[index_].kind;
}

std::optional<bool> PickleValue::truth() const {
  const PickleNode& node = store_->nodes[index_];
  return node.kind == PickleKind::Bool ? std::optional(node.integer != 0) : std::nullopt;
}

std::optional<std::int64_t> PickleValue::integer() const {
  const PickleNode& node = store_->nodes[index_];
  return node.kind == PickleKind::Integer ? std::optional(node.integer) : std::nullopt;
}

std::optional<double> PickleValue::real() const {
  const PickleNode& node = store_->nodes[index_];
  if (node.kind == PickleKind::Integer) return static_cast<double>(node.integer);
  return node.kind == PickleKind::Real ? std::optional(node.real) : std::nullopt;
}

std::optional<std::string_view> PickleValue::text() const {
  const PickleNode& node = store_->nodes[index_];
  if (node.kind == PickleKind::Global)
    return std::string_view(store_->globals).substr(node.at, node.length);
  if (node.kind != PickleKind::Text && node.kind != PickleKind::Binary) return std::nullopt;
  return std::string_view(store_->bytes).substr(node.at, node.length);
}

std::size_t PickleValue::size() const {
  const PickleNode& node = store_->nodes[index_];
  return has_items(node.kind) ? store_->items[node.at].size() : 0;
}

PickleValue PickleValue::item(std::size_t i) const {
  SHARDWRIGHT_CHECK(i < size(), "an item that the value does not have");
  return {store_, store_->items[store_->nodes[index_].at][i]};
}

std::optional<PickleValue> PickleValue::find(std::string_view key) const {
  if (kind() == PickleKind::Call) {
    const PickleValue state = item(2);
    // Objects could be states of each other.
    return state.kind() == PickleKind::Dict ? state.find(key) : std::nullopt;
  }
  if (kind() != PickleKind::Dict) return std::nullopt;
  for (std::size_t i = size(); i >= 2; i -= 2)
    if (item(i - 2).text() == key) return item(i - 1);
  return std::nullopt;
}

PickleDocument read_pickle(std::string bytes, const std::string& source,
                           const std::function<void(std::size_t byte)>& advanced) {
  const auto store = std::make_shared<PickleStore>();
  store->bytes = std::move(bytes);
  PickleMachine machine(*store, source, advanced);
  const std::uint32_t root = machine.run();
  return {store, PickleValue(store.get(), root), machine.end()};
}

}  // namespace shardwright
