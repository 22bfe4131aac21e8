#include "gui/models/plan_figures.hpp"

#include <QSet>
#include <algorithm>
#include <cmath>

#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"
#include "gui/models/query.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

using Candidate = const planner::PlanCandidate&;
using P = const Plan&;

QString dash() {
  return u"–"_s;
}

QString text_or_dash(const std::string& text) {
  return text.empty() ? dash() : to_qstring(text);
}

double share(Candidate c, Seconds part) {
  return 100.0 * (part / c.result.step);
}

// Each function appends a figure and returns it.
class FigureList {
 public:
  template <class Value>
  PlanFigure& measure(const char* id, const char* title, const char* unit, int decimals, bool lower,
                      const char* tip, Value value) {
    PlanFigure& figure = add(FigureKind::Measure, id, title, tip);
    figure.unit = to_qstring(unit);
    figure.decimals = decimals;
    figure.lower_is_better = lower;
    figure.value = [value](const PlanSet& set, std::size_t plan) { return value(set.plans[plan]); };
    return figure;
  }

  template <class Value>
  PlanFigure& degree(const char* id, const char* title, const char* tip, Value value) {
    PlanFigure& figure = measure(id, title, "", 0, true, tip, [value](Candidate c) {
      return static_cast<double>(value(c.plan));
    });
    figure.kind = FigureKind::Degree;
    return figure;
  }

  template <class Name>
  PlanFigure& name(const char* id, const char* title, const char* tip, Name text) {
    PlanFigure& figure = add(FigureKind::Name, id, title, tip);
    figure.name = [text](const PlanSet& set, std::size_t plan) {
      return text(set.plans[plan].plan);
    };
    return figure;
  }

  std::vector<PlanFigure> take() { return std::move(figures_); }

 private:
  PlanFigure& add(FigureKind kind, const char* id, const char* title, const char* tip) {
    PlanFigure& figure = figures_.emplace_back();
    figure.kind = kind;
    figure.id = to_qstring(id);
    figure.title = to_qstring(title);
    figure.tip = to_qstring(tip);
    return figure;
  }

  std::vector<PlanFigure> figures_;
};

// Shows the figure only if it says something about one of the plans.
template <class Says>
void show_where(PlanFigure& figure, Says says) {
  figure.shown = false;
  figure.shown_for = [says](const PlanSet& set) {
    return std::any_of(set.plans.begin(), set.plans.end(),
                       [&](Candidate candidate) { return says(candidate.plan); });
  };
}

void add_rates(FigureList& list) {
  list.measure("step", "Step", "s", 3, true, "Time of one training step",
               [](Candidate c) { return c.result.step.value(); });
  list.measure("rate", "Tokens/s", "per GPU", 0, false, "Tokens per second and GPU",
               [](Candidate c) { return c.result.throughput.tokens_per_s_per_gpu; });
  list.measure("mfu", "MFU", "%", 1, false,
               "Model FLOPs utilisation: the share of the number format's peak",
               [](Candidate c) { return 100.0 * c.result.throughput.mfu; });
  list.measure(
          "hfu", "HFU", "%", 1, false,
          "Hardware FLOPs utilisation: the FLOP that kernels compute. It counts recomputation, but "
          "no scores that a causal mask drops, which MFU counts, and may lie below MFU",
          [](Candidate c) { return 100.0 * c.result.throughput.hfu; })
      .shown = false;
  list.measure("tflops", "Rate", "TFLOP/s per GPU", 0, false, "Model FLOP per second and GPU",
               [](Candidate c) { return c.result.throughput.tflops_per_gpu; })
      .shown = false;
  list.measure("memory", "Memory", "GB", 1, true, "Peak memory of the fullest GPU",
               [](Candidate c) { return c.result.memory().peak / gigabytes(1.0); });
}

void add_degrees(FigureList& list) {
  list.degree("dp", "dp", "Data-parallel replicas", [](P p) { return p.dp; });
  list.degree("tp", "tp", "Tensor-parallel ranks", [](P p) { return p.tp; });
  list.degree("pp", "pp", "Pipeline stages", [](P p) { return p.pp; });
  list.degree("cp", "cp", "Context-parallel ranks", [](P p) { return p.cp; });
  show_where(
      list.name("cp_by", "cp method", "Method by which context parallelism moves keys and values",
                [](P p) { return text_or_dash(p.cp > 1 ? name_of(p.context_parallel) : ""); }),
      [](P p) { return p.cp > 1; });
  show_where(list.degree("ep", "ep", "Expert-parallel ranks", [](P p) { return p.ep; }),
             [](P p) { return p.ep > 1; });
  show_where(list.degree("expert_tp", "expert tp", "Tensor-parallel ranks of an expert",
                         [](P p) { return p.expert_tp; }),
             [](P p) { return p.expert_tp > 1; });
  list.degree("vpp", "vpp", "Model chunks of a pipeline stage", [](P p) { return p.vpp; });
  list.degree("zero", "ZeRO",
              "States that data-parallel ranks shard: 0 none, 1 optimizer, 2 gradients too, 3 "
              "parameters too",
              [](P p) { return p.zero_stage; });
  show_where(list.degree("shard_group", "shard group",
                         "Ranks that share one copy of the sharded states; 0: all of them",
                         [](P p) { return p.shard_group; }),
             [](P p) { return p.shard_group > 0; });
  list.degree("mb", "mb", "Sequences of a microbatch", [](P p) { return p.micro_batch; });
}

void add_names(FigureList& list) {
  show_where(
      list.name("pools", "pools",
                "The pool of the stages, or the number of stages on each pool, in the order of the "
                "pipeline (h100×3 a100×1)",
                [](P p) { return text_or_dash(pools_text(p)); }),
      [](P p) { return names_pools(p); });
  list.name("schedule", "schedule", "Pipeline schedule",
            [](P p) { return p.pp > 1 ? to_qstring(name_of(p.schedule)) : dash(); });
  list.name("recompute", "recompute", "Activations that the backward pass computes again",
            [](P p) { return to_qstring(recompute_text(p)); });
  show_where(list.name("layers", "layers",
                       "Layers of each stage if they are not split evenly (7×2 8×6), or an even "
                       "split in which embedding and head count as layers (ends as layers)",
                       [](P p) { return text_or_dash(layer_split_text(p)); }),
             [](P p) { return !layer_split_text(p).empty(); });
  show_where(list.name("states", "states", "Formats of the optimizer's states",
                       [](P p) { return to_qstring(name_of(p.optimizer_states)); }),
             [](P p) { return p.optimizer_states != OptimizerStates::OfStack; });
  show_where(list.name("offload", "offload", "Data that lie outside of the GPU's memory",
                       [](P p) {
                         QStringList parts;
                         if (p.offloads_optimizer())
                           parts << u"optimizer to "_s + to_qstring(name_of(p.offload_optimizer));
                         if (p.offload_activations)
                           parts << to_qstring(offloaded_activations_text(p));
                         return text_or_dash(parts.join(u" + "_s).toStdString());
                       }),
             [](P p) { return p.offloads_optimizer() || p.offload_activations; });
  show_where(list.name("ranks", "ranks", "Order of the ranks, innermost axis first",
                       [](P p) { return to_qstring(rank_order_text(p.rank_order)); }),
             &has_own_rank_order);
}

void add_shares(FigureList& list) {
  list.measure("exposed", "Exposed", "%", 1, true,
               "Exposed communication, during which GPUs compute nothing, as a share of the step",
               [](Candidate c) { return share(c, c.result.time().exposed_total()); });
  list.measure("bubble", "Bubble", "%", 1, true,
               "Share of the step in which a stage waits for others",
               [](Candidate c) { return share(c, c.result.time().bubble); });
  list.measure("host", "Host", "%", 1, true,
               "Share of the step in which the GPU waits for the host to launch kernels",
               [](Candidate c) { return share(c, c.result.time().host); })
      .shown = false;
  list.measure("recomputed", "Recomputed", "%", 1, true,
               "Share of the step that recomputation takes",
               [](Candidate c) { return share(c, c.result.time().recompute); })
      .shown = false;
}

void add_expenses(FigureList& list) {
  list.measure("cost", "Cost", "$ per Mtoken", 3, true,
               "Rent of the machine for a million tokens; 0 if the profiles have no price",
               [](Candidate c) { return 1e6 * c.dollars_per_token(); });
  list.measure("energy", "Energy", "kJ per ktoken", 3, true,
               "Energy of the whole machine for a thousand tokens",
               [](Candidate c) { return c.joules_per_step.value() / c.tokens(); })
      .shown = false;
  list.measure("gpus", "GPUs", "", 0, true, "Accelerators",
               [](Candidate c) { return static_cast<double>(c.plan.world_size()); })
      .shown = false;
  PlanFigure& batch =
      list.measure("batch", "Batch", "sequences", 0, true, "Global batch",
                   [](Candidate c) { return static_cast<double>(c.plan.global_batch); });
  batch.shown = false;
  batch.shown_for = [](const PlanSet& set) { return set.request.global_batch == 0; };
  list.measure("microbatches", "Microbatches", "", 0, true, "Microbatches of a replica in a step",
               [](Candidate c) { return static_cast<double>(c.plan.microbatches()); })
      .shown = false;
  list.measure("bound", "Bound", "s", 3, true,
               "Lower bound of the step time that pruned the search",
               [](Candidate c) { return c.bound.value(); })
      .shown = false;
}

std::vector<PlanFigure> all_figures() {
  FigureList list;
  add_rates(list);
  add_degrees(list);
  add_names(list);
  add_shares(list);
  add_expenses(list);
  return list.take();
}

}  // namespace

namespace {

constexpr int kSmallDigits = 3;

// Returns the usual decimals unless they would leave nothing of a step of milliseconds or of the
// memory of a tiny model, which are shown with three digits.
int decimals_of(const PlanFigure& figure, double number) {
  const double size = std::abs(number);
  const bool is_share = figure.unit == u"%"_s;
  const double least = std::min(1.0, std::pow(10.0, 2 - figure.decimals));
  if (is_share || figure.decimals == 0 || size == 0.0 || size >= least) return figure.decimals;
  return kSmallDigits - 1 - static_cast<int>(std::floor(std::log10(size)));
}

}  // namespace

QString PlanFigure::heading(const char* accelerator) const {
  return with_accelerator(unit.isEmpty() ? title : u"%1 (%2)"_s.arg(title, unit), accelerator);
}

bool PlanFigure::is_shown(const PlanSet& set) const {
  return shown_for ? shown_for(set) : shown;
}

bool PlanFigure::tells_apart(const PlanSet& set) const {
  // The last plans of a large set are the worst; reading all of their names would take long.
  constexpr std::size_t kMostRead = 2000;
  const bool is_layout = id == u"dp"_s || id == u"tp"_s || id == u"pp"_s;
  if (kind == FigureKind::Measure || is_layout || set.plans.size() < 2) return true;
  for (std::size_t plan = 1; plan < std::min(kMostRead, set.plans.size()); ++plan) {
    if (name ? name(set, plan) != name(set, 0) : value(set, plan) != value(set, 0)) return true;
  }
  return false;
}

QString PlanFigure::text(const PlanSet& set, std::size_t plan) const {
  if (name) return name(set, plan);
  return number_text(value(set, plan));
}

QString PlanFigure::number_text(double number) const {
  return fixed_text(number, decimals_of(*this, number));
}

double PlanFigure::shown_number(double number) const {
  const double scale = std::pow(10.0, decimals_of(*this, number));
  return std::round(number * scale) / scale;
}

const std::vector<PlanFigure>& plan_figures() {
  static const std::vector<PlanFigure> kFigures = all_figures();
  return kFigures;
}

const PlanFigure& plan_figure(int index) {
  return plan_figures()[static_cast<std::size_t>(index)];
}

QString plan_tip(const PlanSet& set, std::size_t plan) {
  std::vector<TipLine> lines;
  const char* word = accelerator_word(set.request.cluster);
  for (const PlanFigure& figure : plan_figures()) {
    if (figure.kind == FigureKind::Measure || !figure.is_shown(set)) continue;
    const QString text = figure.text(set, plan);
    if (text != dash())
      lines.push_back({figure.title + u' ' + text, with_accelerator(figure.tip, word)});
  }
  return tool_tip(u"plan %1"_s.arg(count_text(plan + 1)), source_of(set), lines);
}

QStringList plan_completions(const PlanSet& set) {
  // The best plans have all names that matter.
  constexpr std::size_t kMostRead = 500;
  QStringList completions;
  for (const PlanFigure& figure : plan_figures()) {
    const bool compares = figure.kind == FigureKind::Measure;
    completions.append(figure.id + (!compares ? u'=' : figure.lower_is_better ? u'<' : u'>'));
    if (!figure.name) continue;
    QSet<QString> names;
    for (std::size_t plan = 0; plan < std::min(kMostRead, set.plans.size()); ++plan)
      names.insert(figure.id + u'=' + quoted(figure.name(set, plan)));
    names.remove(figure.id + u'=' + dash());
    completions.append(QStringList(names.begin(), names.end()));
  }
  completions.sort();
  return completions;
}

int figure_index(const QString& id) {
  const auto& figures = plan_figures();
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const PlanFigure& figure) { return figure.id == id; });
  return found == figures.end() ? -1 : static_cast<int>(found - figures.begin());
}

}  // namespace shardwright::gui
