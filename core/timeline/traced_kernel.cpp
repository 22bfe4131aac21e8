#include "core/timeline/traced_kernel.hpp"

#include "core/base/printable_text.hpp"

namespace shardwright {
namespace {

std::string cut_to(const std::string& text, std::size_t longest) {
  return printable(text.size() <= longest ? text : text.substr(0, longest - 1) + "…");
}

}  // namespace

const char* title_of(KernelCategory category) {
  constexpr EnumArray<KernelCategory, const char*> kTitles{
      {"matrix products and convolutions", "attention", "elementwise and reductions", "collectives",
       "memory copies and fills", "other kernels"}};
  return kTitles[category];
}

std::string short_kernel_name(std::string name, std::size_t longest) {
  for (const std::string noise :
       {"void ", "at::native::", "(anonymous namespace)::", "<unnamed>::",
        "cutlass::device_kernel<", "flash::enable_sm90_or_later<", "c10::", "_RING_LL"})
    for (std::size_t at = name.find(noise); at != std::string::npos; at = name.find(noise, at))
      name.erase(at, noise.size());
  // The types of a plain function's parameters.
  const std::size_t parameters = name.find('(');
  const bool is_template = name.find('<') < parameters;
  if (parameters != std::string::npos && !is_template) name.resize(parameters);
  if (is_template || name.size() <= longest) return cut_to(name, longest);
  constexpr std::size_t kTail = 9;
  return printable(name.substr(0, longest - kTail - 1) + "…" + name.substr(name.size() - kTail));
}

}  // namespace shardwright
