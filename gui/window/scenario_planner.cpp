#include "gui/window/scenario_planner.hpp"

#include <QFileInfo>
#include <QSettings>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/freed_memory.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/sweep_figures.hpp"
#include "gui/models/text.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/views/scenario_view.hpp"
#include "gui/views/why_view.hpp"
#include "gui/window/opened_files.hpp"
#include "gui/window/step_presenter.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

ScenarioChoice tiny_choice() {
  ScenarioChoice choice;
  choice.model = "tiny-llama";
  choice.seq_len = 64;
  return choice;
}

// Throws InputError.
Plan read_chosen_plan(const std::string& text) {
  const nlohmann::json document = parse_json(text, "session");
  ProblemList problems("session");
  ObjectReader object(document, "", problems);
  Plan plan = read_plan(object);
  problems.throw_if_any();
  return plan;
}

}  // namespace

ScenarioPlanner::ScenarioPlanner(const Parts& parts, QObject* parent)
    : QObject(parent),
      parts_(parts),
      baseline_job_(
          this,
          [this](const auto& baseline) {
            if (!parts_.selection->baseline()) parts_.selection->pin(*baseline);
          },
          [this](const QString& error) {
            parts_.messages->say(
                u"baseline"_s, Tone::Problem,
                tr("The baseline of the last session cannot be used: %1").arg(error));
          }) {
  connect(&search_, &PlanSearch::started, this, [this] {
    parts_.plans->show_waiting(tr("Searching …"));
    parts_.why->show_obstacle({});
  });
  // A search that checks plans has found nothing wrong with the fields.
  connect(&search_, &PlanSearch::progressed, this, [this] {
    parts_.scenario->show_problems({});
    parts_.messages->take_back(u"search"_s);
  });
  connect(&search_, &PlanSearch::found, this, [this](const PlanSetPointer& set) {
    shown_ = parts_.document->choice();
    parts_.scenario->show_problems({});
    parts_.scenario->show_origin({});
    parts_.messages->take_back(u"search"_s);
    parts_.opened->set(OpenedKind::Plans, {});
    complete_baseline(set);
    parts_.selection->show(set);
  });
  connect(&search_, &PlanSearch::finished, this, [] { return_freed_memory(); });
  connect(&search_, &PlanSearch::failed, this, &ScenarioPlanner::show_problems);
  connect(&probe_, &MachineProbe::ended, this, &ScenarioPlanner::take_this_machine);
}

void ScenarioPlanner::follow_document() {
  connect(parts_.document, &ScenarioDocument::changed, this, [this] {
    parts_.opened->set(OpenedKind::Scenario, {});
    plan_anew();
  });
  connect(parts_.selection, &Selection::set_changed, this, &ScenarioPlanner::compare_as_before);
}

// Compares with the plan of the last session once it is found, unless another one is compared.
void ScenarioPlanner::compare_as_before() {
  if (!compared_wanted_) return;
  if (!parts_.selection->compared()) parts_.selection->compare_with(*compared_wanted_);
  if (parts_.selection->compared()) compared_wanted_.reset();
}

void ScenarioPlanner::start() {
  search_.request(parts_.document->choice());
}

// Marks the shown plans, which stay until others come, as those of the former scenario.
void ScenarioPlanner::plan_anew() {
  watch_parts();
  parts_.messages->take_back(u"replanning"_s);
  if (adopts_) return;
  parts_.selection->prefer(std::nullopt);
  compared_wanted_.reset();
  parts_.step->leave_timelines();
  parts_.scenario->show_origin({});
  parts_.plans->mark_outdated();
  start();
}

void ScenarioPlanner::adopt(const QString& edit, const ScenarioChoice& choice) {
  adopts_ = true;
  parts_.document->replace(edit, choice);
  adopts_ = false;
  shown_ = choice;
}

bool ScenarioPlanner::is_of_fields() {
  if (!shown_)
    parts_.messages->say(u"command"_s, Tone::Problem,
                         tr("The plans shown come from a file that the fields of Scenario do not "
                            "describe. Choose its model and cluster there first."));
  return shown_.has_value();
}

void ScenarioPlanner::show_problems(const std::vector<Problem>& problems) {
  QStringList texts;
  for (const Problem& problem : parts_.scenario->show_problems(problems))
    texts.append(problem_text(problem));
  parts_.messages->say(u"search"_s, Tone::Problem, texts.join(u'\n'));
  const QString obstacle = tr("The scenario has a problem: see its fields.");
  parts_.plans->show_waiting(obstacle);
  parts_.why->show_obstacle(obstacle);
}

void ScenarioPlanner::watch_parts() {
  QStringList files;
  for (const std::string& part :
       {parts_.document->choice().model, parts_.document->choice().cluster}) {
    const QString path = to_qstring(part);
    if (QFileInfo(path).isAbsolute() && QFileInfo(path).isFile()) files.append(path);
  }
  parts_.opened->set(OpenedKind::Parts, files);
}

void ScenarioPlanner::plan_on(const Scenario& scenario, const QString& cluster) {
  const QString name = QFileInfo(cluster).fileName();
  parts_.document->replace(tr("planning on %1").arg(name),
                           choice_of(scenario, cluster.toStdString()));
  parts_.messages->say(u"replanning"_s, Tone::Notice,
                       tr("Planning on %1. Undo returns to the former scenario.").arg(name));
}

void ScenarioPlanner::plan_on_this_machine(bool tiny) {
  tiny_ = tiny;
  if (is_probed()) return take_this_machine({});
  // A search would take a part of the machine that is measured.
  interrupted_ = interrupted_ || search_.is_running();
  search_.stop();
  probe_.start();
  parts_.messages->say(u"probe"_s, Tone::Notice,
                       tr("Probing this machine, which takes half a minute if it is idle and "
                          "longer with GPUs. Then the search for plans begins."),
                       {tr("Stop"), [this] { probe_.stop(); }});
}

void ScenarioPlanner::take_this_machine(const QString& problem) {
  parts_.messages->say(u"probe"_s, Tone::Problem, problem);
  const bool interrupted = std::exchange(interrupted_, false);
  if (!problem.isEmpty() || !is_probed()) {
    if (interrupted) start();
    return;
  }
  try {
    parts_.document->replace(tr("planning on this machine"),
                             on_this_machine(tiny_ ? tiny_choice() : parts_.document->choice()));
  } catch (const InputError& error) {
    parts_.messages->say(u"probe"_s, Tone::Problem, error_text(error));
  }
}

void ScenarioPlanner::plan_with_more(planner::Resource resource) {
  if (!is_of_fields()) return;
  ScenarioChoice choice = parts_.document->choice();
  int& percent = choice.what_if[resource];
  percent = std::min(static_cast<int>(kWhatIfRange.most),
                     static_cast<int>(std::lround(percent * (1.0 + planner::kSensitivityStep))));
  parts_.document->replace(tr("more of %1").arg(what_if_title(resource)), choice);
}

void ScenarioPlanner::plan_with(const std::vector<planner::Remedy>& remedies) {
  if (!is_of_fields()) return;
  const PlanSet& set = *parts_.selection->set();
  const ClusterSpec& cluster = set.request.cluster;
  // On several pools the changes help the one that they are of.
  const auto pool =
      set.infeasible ? pool_cluster(cluster, set.infeasible->pool) : std::optional<ClusterSpec>();
  const auto choice =
      with_remedies(parts_.document->choice(), remedies, pool.value_or(cluster).accelerator.memory);
  const QString text = to_qstring(planner::remedy_text(remedies, cluster));
  if (choice) return parts_.document->replace(text, *choice);
  parts_.messages->say(u"command"_s, Tone::Problem,
                       tr("No field of Scenario can take this change: %1.").arg(text));
}

void ScenarioPlanner::plan_at(planner::SweepAxis axis, const planner::SweepPoint& point) {
  if (!is_of_fields()) return;
  ScenarioChoice choice = parts_.document->choice();
  const auto count = static_cast<std::int64_t>(point.value);
  if (axis == planner::SweepAxis::Gpus) choice.gpus = count;
  if (axis == planner::SweepAxis::GlobalBatch) choice.global_batch = count;
  if (axis == planner::SweepAxis::SeqLen) choice.seq_len = count;
  parts_.document->replace(tr("a point of the sweep"), choice);
  if (!point.fits && !point.preliminary) say_why_none(axis, point);
  if (!point.candidate) return;
  const Plan& plan = point.candidate->plan;
  // The plans of the present scenario are there; those of another one come from its search.
  if (shown_ == choice && find_plan(*parts_.selection->set(), plan))
    return parts_.selection->choose(plan);
  parts_.selection->prefer(plan);
}

void ScenarioPlanner::say_why_none(planner::SweepAxis axis, const planner::SweepPoint& point) {
  const ClusterSpec& cluster = parts_.selection->set()->request.cluster;
  const QString why = to_qstring(planner::obstacle_text(point, cluster));
  parts_.messages->say(
      u"replanning"_s, Tone::Notice,
      tr("The sweep has no plan that runs at this point (%1: %2): %3. Plans shows "
         "what a search finds there; Undo returns to the former scenario.")
          .arg(title_of(axis, accelerator_word(cluster)), axis_text(axis, point.value), why));
}

void ScenarioPlanner::pin() {
  parts_.selection->pin(shown_);
}

// The pinned set may be one that a search had found so far. The baseline gets all plans once the
// search for its fields has ended.
void ScenarioPlanner::complete_baseline(const PlanSetPointer& set) {
  const std::optional<Baseline>& baseline = parts_.selection->baseline();
  if (!baseline || baseline->set->complete || !set->complete || baseline->choice != shown_) return;
  const Plan& pinned = baseline->set->plans[baseline->plan].plan;
  if (const auto plan = find_plan(*set, pinned))
    parts_.selection->pin(Baseline{set, *plan, baseline->choice});
}

// Shows the plans of the baseline as they were found. If their search was stopped, it goes on. A
// search for the fields of the baseline that is still at work is left alone.
void ScenarioPlanner::return_to_baseline() {
  const std::optional<Baseline> baseline = parts_.selection->baseline();
  if (!baseline) return;
  const Plan& pinned = baseline->set->plans[baseline->plan].plan;
  const PlanSetPointer& set = parts_.selection->set();
  const bool is_at_work = search_.is_running() && baseline->choice && shown_ == baseline->choice &&
                          parts_.document->choice() == *baseline->choice;
  parts_.step->leave_timelines();
  if (is_at_work && set && find_plan(*set, pinned)) return parts_.selection->choose(pinned);
  abandon();
  parts_.messages->take_back(u"search"_s);
  parts_.opened->set(OpenedKind::Plans, {});
  parts_.scenario->show_problems({});
  parts_.selection->show(baseline->set);
  parts_.selection->choose(baseline->plan);
  if (!baseline->choice) return disown();
  adopt(tr("return to the baseline"), *baseline->choice);
  if (baseline->set->complete) return;
  parts_.selection->prefer(pinned);
  search_.resume(*baseline->choice, baseline->set->plans);
}

void ScenarioPlanner::save(QSettings& settings) const {
  const auto keep_plan = [&](const QString& key, const std::optional<Plan>& plan) {
    settings.setValue(key, plan ? to_qstring(to_json(*plan).dump()) : QString());
  };
  keep_plan(u"plans/chosen"_s, parts_.selection->preference());
  const auto compared = parts_.selection->compared_scenario();
  keep_plan(u"plans/compared"_s, compared ? std::optional(compared->plan) : compared_wanted_);
  if (baseline_job_.is_running()) return;  // The session has the baseline that is being read.
  const std::optional<Baseline>& baseline = parts_.selection->baseline();
  settings.remove(u"baseline"_s);
  if (!baseline) return;
  const auto keep = [&](const QString& key, const nlohmann::ordered_json& value) {
    settings.setValue(u"baseline/"_s + key, to_qstring(value.dump()));
  };
  keep(u"plan"_s, to_json(baseline->set->scenario(baseline->plan)));
  if (baseline->choice) keep(u"scenario"_s, to_json(*baseline->choice));
}

void ScenarioPlanner::restore(const QSettings& settings) {
  const auto text = [&](const QString& key) {
    return settings.value(key).toString().toStdString();
  };
  const auto plan = [&](const QString& key) {
    const std::string kept = text(key);
    return kept.empty() ? std::nullopt : std::optional(read_chosen_plan(kept));
  };
  try {
    parts_.selection->prefer(plan(u"plans/chosen"_s));
    compared_wanted_ = plan(u"plans/compared"_s);
  } catch (const InputError& error) {
    parts_.messages->say(u"chosen"_s, Tone::Problem,
                         tr("The plan that was chosen in the last session cannot be used: %1")
                             .arg(error_text(error)));
  }
  restore_baseline(text(u"baseline/plan"_s), text(u"baseline/scenario"_s));
}

// The plans that were found beside the baseline are not kept, so that a return to it searches for
// them.
void ScenarioPlanner::restore_baseline(const std::string& plan, const std::string& fields) {
  if (plan.empty()) return;
  baseline_job_.start([plan, fields](const std::stop_token&) {
    Baseline baseline;
    auto set = plan_set_of(read_scenario(parse_json(plan, "baseline"), "baseline"), tr("session"));
    set.complete = false;
    baseline.set = std::make_shared<const PlanSet>(std::move(set));
    std::vector<Problem> replaced;
    if (!fields.empty()) baseline.choice = read_choice(parse_json(fields, "baseline"), replaced);
    return baseline;
  });
}

void ScenarioPlanner::plan_example() {
  parts_.document->replace(tr("worked example"), ScenarioChoice());
  start();
}

}  // namespace shardwright::gui
