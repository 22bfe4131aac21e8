#include "gui/models/plan_figures.hpp"

#include <QStringList>
#include <algorithm>
#include <cmath>

#include "core/spec/plan_text.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

using planner::PlanCandidate;
using Candidate = const PlanCandidate&;

template <class Value>
PlanFigure measure(const char* id, const char* title, const char* unit, int decimals, bool lower,
                   const char* tip, Value value) {
  PlanFigure figure;
  figure.id = to_qstring(id);
  figure.title = to_qstring(title);
  figure.unit = to_qstring(unit);
  figure.tip = to_qstring(tip);
  figure.decimals = decimals;
  figure.lower_is_better = lower;
  figure.value = [value](const PlanSet& set, std::size_t plan) { return value(set.plans[plan]); };
  return figure;
}

template <class Value>
PlanFigure degree(const char* id, const char* title, const char* tip, Value value) {
  PlanFigure figure = measure(id, title, "", 0, true, tip,
                              [value](Candidate c) { return static_cast<double>(value(c.plan)); });
  figure.kind = FigureKind::Degree;
  return figure;
}

template <class Name>
PlanFigure name(const char* id, const char* title, const char* tip, Name text) {
  PlanFigure figure;
  figure.id = to_qstring(id);
  figure.title = to_qstring(title);
  figure.tip = to_qstring(tip);
  figure.kind = FigureKind::Name;
  figure.name = [text](const PlanSet& set, std::size_t plan) { return text(set.plans[plan].plan); };
  return figure;
}

PlanFigure hidden(PlanFigure figure) {
  figure.shown = false;
  return figure;
}

// Hidden while there is nothing to tell of any plan.
template <class Tells>
PlanFigure where(Tells tells, PlanFigure figure) {
  figure.shown = false;
  figure.shown_for = [tells](const PlanSet& set) {
    return std::any_of(set.plans.begin(), set.plans.end(),
                       [&](Candidate candidate) { return tells(candidate.plan); });
  };
  return figure;
}

// The text of a plan that has nothing to say there.
QString dash() {
  return u"–"_s;
}

QString text_or_dash(const std::string& text) {
  return text.empty() ? dash() : to_qstring(text);
}

double share(Candidate c, Seconds part) {
  return 100.0 * (part / c.result.step);
}

// Words of few plans.
void add_placement(std::vector<PlanFigure>& figures) {
  using P = const Plan&;
  figures.push_back(where(
      [](P p) { return !layer_split_text(p).empty(); },
      name("layers", "layers",
           "How layers fall to the stages where that is not evenly: the layers of each (7×2 8×6), "
           "or evenly with embedding and head counted as layers (ends count)",
           [](P p) { return text_or_dash(layer_split_text(p)); })));
  figures.push_back(where([](P p) { return p.offloads_optimizer() || p.offload_activations; },
                          name("offload", "offload", "What lies off the GPU", [](P p) {
                            QStringList parts;
                            if (p.offloads_optimizer())
                              parts
                                  << u"optimizer to "_s + to_qstring(name_of(p.offload_optimizer));
                            if (p.offload_activations) parts << u"activations"_s;
                            return text_or_dash(parts.join(u" + "_s).toStdString());
                          })));
  figures.push_back(where(&has_own_rank_order,
                          name("ranks", "ranks", "The order of the ranks, innermost axis first",
                               [](P p) { return to_qstring(rank_order_text(p.rank_order)); })));
}

void add_degrees(std::vector<PlanFigure>& figures) {
  using P = const Plan&;
  figures.push_back(degree("dp", "dp", "Data-parallel replicas", [](P p) { return p.dp; }));
  figures.push_back(degree("tp", "tp", "Tensor-parallel ranks", [](P p) { return p.tp; }));
  figures.push_back(degree("pp", "pp", "Pipeline stages", [](P p) { return p.pp; }));
  figures.push_back(degree("cp", "cp", "Context-parallel ranks", [](P p) { return p.cp; }));
  figures.push_back(
      where([](P p) { return p.cp > 1; },
            name("cp_by", "cp by", "How context parallelism moves keys and values",
                 [](P p) { return text_or_dash(p.cp > 1 ? name_of(p.context_parallel) : ""); })));
  figures.push_back(where([](P p) { return p.ep > 1; },
                          degree("ep", "ep", "Expert-parallel ranks", [](P p) { return p.ep; })));
  figures.push_back(where([](P p) { return p.expert_tp > 1; },
                          degree("expert_tp", "expert tp", "Tensor-parallel ranks of an expert",
                                 [](P p) { return p.expert_tp; })));
  figures.push_back(
      degree("vpp", "vpp", "Model chunks of a pipeline stage", [](P p) { return p.vpp; }));
  figures.push_back(degree("zero", "ZeRO",
                           "What data-parallel ranks shard: 0 nothing, 1 optimizer, "
                           "2 and gradients, 3 and parameters",
                           [](P p) { return p.zero_stage; }));
  figures.push_back(where([](P p) { return p.shard_group > 0; },
                          degree("shard_group", "shard group",
                                 "Ranks that share one copy of what is sharded; 0: all of them",
                                 [](P p) { return p.shard_group; })));
  figures.push_back(
      degree("mb", "mb", "Sequences of a microbatch", [](P p) { return p.micro_batch; }));
  figures.push_back(name("schedule", "schedule", "Pipeline schedule",
                         [](P p) { return p.pp > 1 ? to_qstring(name_of(p.schedule)) : dash(); }));
  figures.push_back(name("recompute", "recompute", "What the backward pass runs again", [](P p) {
    QString text = to_qstring(name_of(p.recompute));
    if (p.recompute_layers > 0) text += u" %1"_s.arg(p.recompute_layers);
    return text;
  }));
  add_placement(figures);
}

void add_rates(std::vector<PlanFigure>& figures) {
  figures.push_back(measure("step", "Step", "s", 3, true, "Time of one training step",
                            [](Candidate c) { return c.result.step.value(); }));
  figures.push_back(measure("rate", "Tokens/s", "per GPU", 0, false, "Tokens per second and GPU",
                            [](Candidate c) { return c.result.throughput.tokens_per_s_per_gpu; }));
  figures.push_back(measure("mfu", "MFU", "%", 1, false,
                            "Model FLOP utilisation: of the peak of the number format",
                            [](Candidate c) { return 100.0 * c.result.throughput.mfu; }));
  figures.push_back(hidden(measure("hfu", "HFU", "%", 1, false,
                                   "The same with the FLOP that really run, recomputation included",
                                   [](Candidate c) { return 100.0 * c.result.throughput.hfu; })));
  figures.push_back(
      hidden(measure("tflops", "Rate", "TFLOP/s per GPU", 0, false, "Model FLOP per second and GPU",
                     [](Candidate c) { return c.result.throughput.tflops_per_gpu; })));
  figures.push_back(measure("memory", "Memory", "GB", 1, true, "Peak of the fullest GPU",
                            [](Candidate c) { return c.result.memory().peak.value() / 1e9; }));
}

void add_shares(std::vector<PlanFigure>& figures) {
  figures.push_back(measure("exposed", "Exposed", "%", 1, true,
                            "Communication that nothing runs beside, of the step",
                            [](Candidate c) { return share(c, c.result.time().exposed_total()); }));
  figures.push_back(measure("bubble", "Bubble", "%", 1, true,
                            "Waiting for other stages, of the step",
                            [](Candidate c) { return share(c, c.result.time().bubble); }));
  figures.push_back(
      hidden(measure("host", "Host", "%", 1, true, "Waiting for the host to launch, of the step",
                     [](Candidate c) { return share(c, c.result.time().host); })));
  figures.push_back(hidden(measure(
      "recomputed", "Recomputed", "%", 1, true, "Running the forward pass again, of the step",
      [](Candidate c) { return share(c, c.result.time().recompute); })));
}

void add_expenses(std::vector<PlanFigure>& figures) {
  figures.push_back(
      measure("cost", "Cost", "$ per Mtoken", 3, true,
              "Rent of the machine for a million tokens; 0 where profiles have no price",
              [](Candidate c) { return 1e6 * c.dollars_per_token(); }));
  figures.push_back(
      hidden(measure("energy", "Energy", "kJ per ktoken", 3, true,
                     "Energy of the whole machine for a thousand tokens",
                     [](Candidate c) { return c.joules_per_step.value() / c.tokens(); })));
  figures.push_back(hidden(measure("gpus", "GPUs", "", 0, true, "Accelerators", [](Candidate c) {
    return static_cast<double>(c.plan.world_size());
  })));
  figures.push_back(
      hidden(measure("batch", "Batch", "sequences", 0, true, "Global batch",
                     [](Candidate c) { return static_cast<double>(c.plan.global_batch); })));
  // A batch that the search chose.
  figures.back().shown_for = [](const PlanSet& set) { return set.request.global_batch == 0; };
  figures.push_back(hidden(
      measure("microbatches", "Microbatches", "", 0, true, "Microbatches of a replica in a step",
              [](Candidate c) { return static_cast<double>(c.plan.microbatches()); })));
  figures.push_back(hidden(measure("bound", "Bound", "s", 3, true,
                                   "Lower bound of the step that pruned the search",
                                   [](Candidate c) { return c.bound.value(); })));
}

std::vector<PlanFigure> all_figures() {
  std::vector<PlanFigure> figures;
  add_rates(figures);
  add_degrees(figures);
  add_shares(figures);
  add_expenses(figures);
  return figures;
}

}  // namespace

QString PlanFigure::heading() const {
  return unit.isEmpty() ? title : u"%1 (%2)"_s.arg(title, unit);
}

bool PlanFigure::is_shown(const PlanSet& set) const {
  return shown_for ? shown_for(set) : shown;
}

QString PlanFigure::text(const PlanSet& set, std::size_t plan) const {
  if (name) return name(set, plan);
  const double number = value(set, plan);
  // The usual decimals would leave nothing of a step of milliseconds.
  const bool small =
      decimals > 1 && number != 0.0 && std::abs(number) < std::pow(10.0, 2 - decimals);
  return small ? QString::number(number, 'g', 3) : fixed_text(number, decimals);
}

const std::vector<PlanFigure>& plan_figures() {
  static const std::vector<PlanFigure> kFigures = all_figures();
  return kFigures;
}

QString plan_tip(const PlanSet& set, std::size_t plan) {
  QStringList lines;
  for (const PlanFigure& figure : plan_figures()) {
    if (figure.kind == FigureKind::Measure || !figure.is_shown(set)) continue;
    const QString text = figure.text(set, plan);
    if (text == dash()) continue;
    lines.append(
        u"<b>%1 %2</b>: %3"_s.arg(figure.title, text.toHtmlEscaped(), figure.tip.toHtmlEscaped()));
  }
  return lines.join(u"<br>"_s);
}

int figure_index(const QString& id) {
  const auto& figures = plan_figures();
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const PlanFigure& figure) { return figure.id == id; });
  return found == figures.end() ? -1 : static_cast<int>(found - figures.begin());
}

}  // namespace shardwright::gui
