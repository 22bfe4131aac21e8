#include "sim/validation/accelerator_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <regex>
#include <string_view>

#include "core/base/letters_and_digits.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

// GB, GiB and usable against nominal memory differ by less than this.
constexpr double kSameMemory = 0.08;

// Machines of these names have eight accelerators.
constexpr std::int64_t kVendorNode = 8;

// Memories in GB that products are sold with beside that of the profile (vendors' datasheets;
// Leonardo's A100 and Grand Teton's H100 are made to order).
struct Memories {
  std::string_view product;  // the beginning of its profile's name
  std::array<double, 3> gigabytes;
};

constexpr std::array kMemories = {
    Memories{"v100", {16, 32}},     Memories{"a100", {40, 64, 80}}, Memories{"a800", {40, 80}},
    Memories{"h100", {64, 80, 96}}, Memories{"h800", {80, 94}},     Memories{"h20", {96, 141}},
    Memories{"gh200", {96, 144}},   Memories{"b200", {180, 192}},   Memories{"b300", {270, 288}},
    Memories{"gb200", {186, 192}},  Memories{"gb300", {279, 288}},  Memories{"rtx4090", {24, 48}},
    Memories{"mi250x", {64}},
};

bool is_sold_with(const std::string& profile, double gigabytes) {
  const auto same = [gigabytes](double sold) {
    return sold > 0.0 && std::abs(gigabytes - sold) <= kSameMemory * sold;
  };
  if (same(load_accelerator(profile).memory / shardwright::gigabytes(1.0))) return true;
  const auto product = profile.substr(0, profile.find('-'));
  return std::any_of(kMemories.begin(), kMemories.end(), [&](const Memories& each) {
    return each.product == product &&
           std::any_of(each.gigabytes.begin(), each.gigabytes.end(), same);
  });
}

// A size as it is written.
struct Size {
  std::string text;
  double gigabytes = 0.0;
  bool of_a_link = false;
};

struct Words {
  std::string name;  // the text without sizes and without the names of instances
  std::vector<Size> sizes;
};

// "a2-megagpu-16g": the number counts accelerators.
std::string without_instances(const std::string& text) {
  static const std::regex kInstance(R"([\w.]+-[a-z]*gpu-\d+g\b)", std::regex::icase);
  return std::regex_replace(text, kInstance, " ");
}

// The accelerators of a machine that is named: "a2-megagpu-16g", "DGX-2".
std::optional<std::int64_t> accelerators_of_machine(const std::string& text) {
  static const std::regex kInstance(R"(\ba\d-[a-z]*gpu-(\d{1,2})g\b)", std::regex::icase);
  static const std::regex kDgx2(R"(\bdgx-?2h?\b)", std::regex::icase);
  std::smatch match;
  if (std::regex_search(text, match, kInstance)) return std::stoll(match[1]);
  return std::regex_search(text, kDgx2) ? std::optional<std::int64_t>(16) : std::nullopt;
}

// "900 GB/s".
bool is_a_rate(const std::string& behind) {
  static const std::regex kPerSecond(R"(^\s*(?:/|ps\b|per\s*s))", std::regex::icase);
  return std::regex_search(behind, kPerSecond);
}

// "400G NICs", "40G RoCE Ethernet"; bytes are no link's.
bool is_of_a_link(const std::string& size, const std::string& behind) {
  static const std::regex kLink(
      R"(^\s*(?:mellanox\s+|connectx\S*\s+|cx\S*\s+)?(?:nic|ethernet|infiniband|ib\b|roce|efa\b|[ehnx]dr\b|network|link|port))",
      std::regex::icase);
  return !size.ends_with('B') && std::regex_search(behind, kLink);
}

Words read_words(const std::string& text) {
  static const std::regex kSize(R"((^|[^\w.]|\d\s?[x*]\s?)((\d{1,4})\s*G(?:i?B)?)(?!\w))",
                                std::regex::icase);
  Words words;
  std::string rest = without_instances(text);
  std::smatch match;
  while (std::regex_search(rest, match, kSize)) {
    const std::string behind = match.suffix().str();
    if (!is_a_rate(behind))
      words.sizes.push_back({match[2], std::stod(match[3]), is_of_a_link(match[2], behind)});
    words.name += match.prefix().str() + match[1].str() + ' ';
    rest = behind;
  }
  words.name += rest;
  return words;
}

// The accelerators of a node, as far as the text or the row says.
std::optional<std::int64_t> node_of(const std::string& text, std::optional<std::int64_t> per_node) {
  static const std::regex kCount(R"((?:^|[^\w])(\d{1,2})\s?[x*]\s?[a-z])", std::regex::icase);
  std::smatch match;
  if (std::regex_search(text, match, kCount)) return std::stoll(match[1]);
  if (per_node) return per_node;
  return says_any(text, {"dgx", "hgx"}) ? std::optional(kVendorNode) : std::nullopt;
}

// The profile of that memory; a card's where the text speaks of one.
std::optional<std::string> profile_with(const Words& words, const std::string& plain, double size) {
  auto found = find_accelerator(fmt::format("{} {:.0f}GB", words.name, size));
  if (found && says(plain, "pcie") && !says(*found, "pcie")) return std::nullopt;
  return found;
}

// Takes a size of one accelerator; false where the product is not sold with it.
bool take_memory(const Words& words, double size, AcceleratorText& read) {
  const std::string plain = *read.profile;
  if (const auto own = profile_with(words, plain, size)) {
    read.profile = own;
    return true;
  }
  if (!is_sold_with(plain, size)) return false;
  read.memory = gigabytes(size);
  return true;
}

bool take_share(const Words& words, const Size& size, std::optional<std::int64_t> node,
                AcceleratorText& read) {
  if (!node || *node < 2) return false;
  const double share = size.gigabytes / static_cast<double>(*node);
  if (!take_memory(words, share, read)) return false;
  read.filled_in.push_back(
      fmt::format("accelerator: {:g} GB each, a share of the node's {}", share, size.text));
  return true;
}

struct Product {
  std::size_t place;  // in the text
  std::string name;   // in small letters
};

// "H100/H200 mix": the products of the text, each once.
std::vector<Product> products_in(const std::string& text) {
  static const std::regex kProduct(R"(\b(?:GB|GH|MI|RTX|[ABHLV])\s?\d{2,4}[A-Z]?\b)",
                                   std::regex::icase);
  std::vector<Product> products;
  for (std::sregex_iterator match(text.begin(), text.end(), kProduct), end; match != end; ++match) {
    const std::string name = lower_case(match->str());
    const auto same = [&name](const Product& each) { return each.name == name; };
    if (std::none_of(products.begin(), products.end(), same))
      products.push_back({static_cast<std::size_t>(match->position()), name});
  }
  return products;
}

// What a text says of the first product that it does not deny: "H100 (also run on A100)", "not A100
// but H100".
std::string of_one_product(const std::string& text) {
  const std::vector<Product> products = products_in(text);
  const auto first = std::find_if(products.begin(), products.end(), [&](const Product& product) {
    return !denies_any(text, {product.name});
  });
  if (first == products.end()) return text;
  const auto next = std::next(first);
  const std::size_t begin = first == products.begin() ? 0 : first->place;
  const std::size_t end = next == products.end() ? text.size() : next->place;
  const std::string one = text.substr(begin, end - begin);
  return find_accelerator(read_words(one).name) ? one : text;
}

// Machines that are named in place of what they hold (clouds' and vendors' own documentation);
// architectures stand for the product that most of their clusters have.
struct Machine {
  std::string_view name;  // the beginning of a word
  std::string_view accelerator;
};

constexpr std::array kMachines = {
    Machine{"p3dn.24xlarge", "V100 32GB"},
    Machine{"p3.16xlarge", "V100 16GB"},
    Machine{"p4d.24xlarge", "A100 40GB"},
    Machine{"p4de.24xlarge", "A100 80GB"},
    Machine{"p5.48xlarge", "H100 80GB"},
    Machine{"p5e.48xlarge", "H200"},
    Machine{"p5en.48xlarge", "H200"},
    Machine{"p6-b200.48xlarge", "B200"},
    Machine{"a2-highgpu", "A100 40GB"},
    Machine{"a2-megagpu", "A100 40GB"},
    Machine{"a2-ultragpu", "A100 80GB"},
    Machine{"a3-highgpu", "H100 80GB"},
    Machine{"a3-megagpu", "H100 80GB"},
    Machine{"a3-ultragpu", "H200"},
    Machine{"a4-highgpu", "B200"},
    Machine{"dgx-1", "V100 32GB"},
    Machine{"dgx-2", "V100 32GB"},
    Machine{"selene", "A100 80GB"},
    Machine{"standard_nd96asr", "A100 40GB"},
    Machine{"standard_nd96amsr", "A100 80GB"},
    Machine{"volta", "V100 32GB"},
    Machine{"ampere", "A100 80GB"},
    Machine{"hopper", "H100 80GB"},
    Machine{"blackwell ultra", "B300"},
    Machine{"blackwell", "B200"},
};

// Nothing where a product of another name stands beside ("RTX Pro 6000 Blackwell").
std::optional<std::string_view> accelerator_of_machine(const std::string& text) {
  static const std::regex kOther(
      R"(\brtx|\bpro\b|\bgb\d|\b(?:t4|a10g?|a16|a30|a40|l40?|a[2-6]000|[pk]\d{2,3})\b|jetson|geforce|titan|quadro)",
      std::regex::icase);
  const std::string words = ' ' + lower_case(text);
  if (std::regex_search(words, kOther)) return std::nullopt;
  for (const Machine& machine : kMachines) {
    const auto place = words.find(machine.name);
    if (place != std::string::npos && !is_letter_or_digit(words[place - 1]))
      return machine.accelerator;
  }
  return std::nullopt;
}

// The accelerator of a machine, with a memory that stands beside its name: "DGX-1V 16GB".
std::string with_stated_memory(std::string_view inside, const Words& words) {
  const std::string product(inside.substr(0, inside.find(' ')));
  const auto plain = find_accelerator(std::string(inside));
  for (const Size& size : words.sizes)
    if (plain && !size.of_a_link && is_sold_with(*plain, size.gigabytes))
      return fmt::format("{} {:.0f}GB", product, size.gigabytes);
  return std::string(inside);
}

}  // namespace

AcceleratorText read_accelerator_text(const std::string& whole,
                                      std::optional<std::int64_t> per_node) {
  const std::string stated = whole.substr(0, kMostOfName);
  const std::string text = of_one_product(stated);
  const Words words = read_words(text);
  AcceleratorText read{find_accelerator(words.name), Bytes(0), accelerators_of_machine(stated), {}};
  const auto& sizes = words.sizes;
  // A product may be shipped with some of its memories alone.
  for (auto size = sizes.begin(); !read.profile && size != sizes.end(); ++size)
    if (!size->of_a_link)
      read.profile = find_accelerator(fmt::format("{} {:.0f}GB", words.name, size->gigabytes));
  if (!read.profile) {
    const auto inside = accelerator_of_machine(text);
    if (!inside) return read;
    const std::string accelerator = with_stated_memory(*inside, words);
    const auto of_machine = read.per_node;
    read = read_accelerator_text(accelerator, per_node);
    read.per_node = of_machine;
    read.filled_in.push_back(fmt::format("accelerator: {} for \"{}\"", accelerator, text));
    return read;
  }
  const auto node = node_of(text, per_node);
  bool taken = false;
  for (const Size& size : sizes) {
    if (!taken && !size.of_a_link) {
      taken = take_memory(words, size.gigabytes, read) || take_share(words, size, node, read);
      if (taken) continue;
    }
    read.filled_in.push_back(
        fmt::format("accelerator: \"{}\" of \"{}\" is not taken for memory", size.text, text));
  }
  // NVIDIA's H20 of 2025, with HBM3e.
  static const std::regex kLargerH20(R"(\bh20[- ]?3e\b)", std::regex::icase);
  if (!taken && std::regex_search(text, kLargerH20)) take_memory(words, 141.0, read);
  if (products_in(stated).size() > 1)
    read.filled_in.push_back(
        fmt::format("accelerator: {} for \"{}\", which names several", *read.profile, stated));
  return read;
}

std::string accelerator_name(const std::string& text) {
  return read_accelerator_text(text, std::nullopt).profile.value_or(text);
}

}  // namespace shardwright::sim
