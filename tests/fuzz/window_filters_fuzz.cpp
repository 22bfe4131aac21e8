// The lines in which people say which plans, and which spans of a timeline, they mean.
#include <memory>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "gui/models/plan_table_model.hpp"
#include "gui/timeline/span_query.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

namespace {

gui::PlanSetPointer some_plans() {
  planner::PlanRequest request;
  request.model = load_model("tiny-llama");
  request.cluster = load_cluster("h100-pcie-server");
  request.stack = load_stack("megatron-core");
  request.gpus = 4;
  request.global_batch = 8;
  request.threads = 1;
  return std::make_shared<gui::PlanSet>(gui::plan_set_of(request, planner::search(request)));
}

Span some_span() {
  Span span;
  span.name = "mlp.up";
  span.kind = OpKind::Gemm;
  span.layer = 3;
  return span;
}

void try_plan_filter(const QString& line) {
  static gui::PlanTableModel kept, others;
  if (!kept.set()) {
    kept.show(some_plans());
    others.show(kept.set());
  }
  const QString problem = kept.set_terms(line);
  const bool one_term = !line.contains(QLatin1Char(',')) && !line.trimmed().isEmpty() &&
                        !line.trimmed().startsWith(QLatin1Char('-'));
  if (!problem.isEmpty() || !one_term) return;
  if (!others.set_terms(QLatin1Char('-') + line.trimmed()).isEmpty()) return;
  SHARDWRIGHT_CHECK(
      kept.shown_plans().size() + others.shown_plans().size() == kept.set()->plans.size(),
      "a plan that neither the term nor its opposite keeps, or both");
}

void try_span_query(const QString& line) {
  static const Span span = some_span();
  QStringList problems;
  const gui::SpanQuery query = gui::SpanQuery::parse(line, &problems);
  const bool matches = query.matches(span);
  const QString term = line.trimmed();
  const bool one_term = !term.isEmpty() && !term.startsWith(QLatin1Char('-')) &&
                        line.simplified() == term && !term.contains(QLatin1Char(' '));
  if (!problems.isEmpty() || !one_term) return;
  const gui::SpanQuery opposite = gui::SpanQuery::parse(QLatin1Char('-') + term);
  SHARDWRIGHT_CHECK(opposite.matches(span) != matches,
                    "a span that matches both a term and its opposite, or neither");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    const QString line = QString::fromStdString(text);
    try_plan_filter(line);
    try_span_query(line);
  });
}
