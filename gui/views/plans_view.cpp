#include "gui/views/plans_view.hpp"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMouseEvent>
#include <QResizeEvent>
#include <QSettings>
#include <QShortcut>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "core/spec/pools.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/step_parts.hpp"
#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/baseline_bar.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/filter_chips.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/plan_columns.hpp"
#include "gui/views/plan_scatter.hpp"
#include "gui/views/query_completer.hpp"
#include "gui/views/scatter_pane.hpp"
#include "gui/views/widgets.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

constexpr int kLeastTableWidth = 280;
// Keeps the text below the table apart from that below the plot.
constexpr int kBesidePlot = 10;
// A few rows of the table, and the plot with its legend and axes.
constexpr int kStackedHeight = 170;

QString rejected_text(const planner::SearchCounts& counts) {
  auto rejected = counts.rejected;
  std::stable_sort(rejected.begin(), rejected.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  QStringList parts;
  for (const planner::Rejection& rejection : rejected)
    parts.append(to_qstring(rejection.rule) + u' ' + count_text(rejection.count));
  return parts.join(u", "_s);
}

// " On one pool alone: h100 3.86 s (plan 4), a100 no plan."; empty on a cluster of one pool.
QString pools_alone_text(const PlanSet& set) {
  const ClusterSpec& cluster = set.request.cluster;
  if (cluster.pools.empty()) return {};
  QStringList parts;
  for (const std::string& pool : names_of_pools(cluster)) {
    const auto best = best_on_pool(set, pool);
    parts.append(best ? PlansView::tr("%1 %2 (plan %3)")
                            .arg(to_qstring(pool), time_text(set.plans[*best].result.step),
                                 count_text(*best + 1))
                      : PlansView::tr("%1 no plan").arg(to_qstring(pool)));
  }
  return PlansView::tr(" The best plan of each pool alone: %1.").arg(parts.join(u", "_s));
}

// Keeps the current row in sight as the table gets lower. `before`: the size of its viewport.
void keep_current_in_sight(QTableView& view, const QSize& before) {
  if (!QRect(QPoint(), before).intersects(view.visualRect(view.currentIndex()))) return;
  const auto scroll = [&view] { view.scrollTo(view.currentIndex()); };
  QMetaObject::invokeMethod(&view, scroll, Qt::QueuedConnection);
}

}  // namespace

PlansView::PlansView(Selection* selection, QWidget* parent)
    : View(parent), selection_(selection), model_(new PlanTableModel(this)) {
  plot_ = new ScatterPane;
  scatter_ = &plot_->scatter();
  auto* panes = new PaneRow({create_table(), plot_}, {640, 480});
  panes->set_stacked_height(kStackedHeight);
  // Table and plot give way to the line of the baseline before the view scrolls.
  panes->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  empty_ = new EmptyState(panes);
  QVBoxLayout* layout = scrolled_column(*this);
  layout->setContentsMargins(6, 6, 6, 6);
  outdated_ = named<QLabel>(u"outdated"_s, tr("⚠ These are plans of the former scenario."));
  outdated_->hide();
  layout->addWidget(outdated_);
  auto* baseline = named<BaselineBar>(u"baseline"_s, selection_);
  connect(baseline, &BaselineBar::return_wanted, this, &PlansView::return_wanted);
  layout->addWidget(baseline);
  layout->addWidget(empty_, 1);
  setFocusProxy(view_);
  columns_ = new PlanColumns(model_, view_, columns_button_);
  connect_models();
  show_waiting(
      tr("Choose a model and a cluster in <b>Scenario</b>: plans are searched for at "
         "once.<br>Or drop a plan file here."));
}

QWidget* PlansView::create_table() {
  QWidget* filter = create_filter();
  create_rows();
  terms_problem_ = wrapped_label(u"filter_problem"_s);
  terms_problem_->hide();
  summary_ = named<HintLabel>(u"summary"_s);
  summary_->setContentsMargins(0, 0, kBesidePlot, 0);
  chips_ = new FilterChips(terms_);
  rows_ = new EmptyState(view_);
  rows_->show_content();
  return column_of({filter, chips_, terms_problem_, rows_, summary_}, rows_);
}

QWidget* PlansView::create_filter() {
  terms_ = named<QLineEdit>(u"filter"_s);
  terms_->setPlaceholderText(tr("Filter: tp=8, pp>=4, memory<70 GB, not zero=3, interleaved"));
  terms_->setClearButtonEnabled(true);
  terms_->setToolTip(
      tr("Shows the plans for which all of these hold, as in\n"
         "tp=8, pp>=4\t\tcolumns by name, with = != < <= > >=\n"
         "memory<70 GB\tnumbers may have a unit\n"
         "tp=4,8\t\teither value\n"
         "not zero=3\t\tthe opposite\n"
         "interleaved\t\ta word of the plan"));
  completer_ = new QueryCompleter(terms_, {});
  lasso_chip_ =
      tool_button(u"lasso_chip"_s, tr("lasso ✕"), tr("Show the plans outside of the lasso again"));
  lasso_chip_->hide();
  columns_button_ = tool_button(u"columns"_s, tr("Columns"));
  columns_button_->setPopupMode(QToolButton::InstantPopup);
  follow_letters(*columns_button_, [button = columns_button_] {
    button->setMinimumWidth(button->fontMetrics().horizontalAdvance(button->text()) + 34);
  });
  return row_of({terms_, lasso_chip_, columns_button_}, terms_);
}

void PlansView::create_rows() {
  view_ = named<QTableView>(u"plans_table"_s);
  view_->setModel(model_);
  view_->setSortingEnabled(true);
  view_->sortByColumn(-1, Qt::AscendingOrder);
  view_->setSelectionBehavior(QAbstractItemView::SelectRows);
  view_->setTabKeyNavigation(false);
  view_->setAlternatingRowColors(true);
  view_->setWordWrap(false);
  view_->setShowGrid(false);
  view_->setMinimumWidth(kLeastTableWidth);
  view_->horizontalHeader()->setMinimumSectionSize(24);
  fit_rows_to_letters(*view_);
  view_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  view_->horizontalHeader()->setSectionsMovable(true);
  view_->horizontalHeader()->setHighlightSections(false);
  view_->setContextMenuPolicy(Qt::CustomContextMenu);
  view_->viewport()->installEventFilter(this);
}

void PlansView::connect_models() {
  connect(selection_, &Selection::set_changed, this, &PlansView::show_set);
  connect(selection_, &Selection::chosen_changed, this, &PlansView::follow_selection);
  connect(selection_, &Selection::compared_changed, this, [this] {
    follow_selection();
    show_compared_row();
  });
  connect(scatter_, &PlanScatter::compared, this, &PlansView::compare_or_stop);
  connect(view_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &PlansView::take_current);
  connect(terms_, &QLineEdit::textChanged, this, [this](const QString& line) {
    const QString problem = model_->set_terms(line);
    terms_problem_->setText(problem);
    terms_problem_->setVisible(!problem.isEmpty());
    update_points();
  });
  connect(lasso_chip_, &QToolButton::clicked, this, [this] {
    model_->set_lasso(std::nullopt);
    update_points();
  });
  connect(scatter_, &PlanScatter::lassoed, this, [this](const std::set<int>& rows) {
    model_->set_lasso(rows);
    update_points();
  });
  connect(scatter_, &PlanScatter::clicked, selection_,
          [this](int row) { selection_->choose(static_cast<std::size_t>(row)); });
  connect(empty_, &EmptyState::link_clicked, this, [this](const QString& target) {
    const auto& set = selection_->set();
    const std::size_t remedy = target.toULong();
    if (set && set->infeasible && remedy < set->infeasible->closes_it.size())
      Q_EMIT remedy_wanted(set->infeasible->closes_it[remedy]);
  });
  connect(view_, &QTableView::customContextMenuRequested, this, &PlansView::open_menu);
  // Without a mouse: holds the chosen plan, beside which the next ones are chosen.
  const auto* hold = new QShortcut(Qt::Key_Space, view_, nullptr, nullptr, Qt::WidgetShortcut);
  connect(hold, &QShortcut::activated, this, [this] {
    if (selection_->chosen()) compare_or_stop(static_cast<int>(*selection_->chosen()));
  });
}

void PlansView::open_menu(const QPoint& at) {
  const QModelIndex cell = view_->indexAt(at);
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  if (cell.isValid()) {
    add_filters(*menu, cell);
    // The action keeps the plan, not its row: a search that goes on moves rows meanwhile.
    const Plan& plan = model_->set()->plans[model_->plan_of(cell)].plan;
    menu->addAction(tr("Compare the chosen plan with this one"), selection_,
                    [this, plan] { selection_->compare_with(plan); });
    if (selection_->compared() && selection_->compared() != selection_->chosen())
      menu->addAction(tr("Stop comparing"), selection_,
                      [this] { selection_->compare_with(std::nullopt); });
    menu->addAction(tr("Pin this plan as the baseline"), this, [this, plan] {
      selection_->choose(plan);
      Q_EMIT pin_wanted();
    });
    menu->addSeparator();
  }
  menu->addAction(tr("Copy as TSV"), this, &PlansView::copy_tsv);
  menu->addAction(tr("Copy as Markdown"), this, &PlansView::copy_markdown);
  menu->popup(view_->viewport()->mapToGlobal(at));
}

void PlansView::add_filters(QMenu& menu, const QModelIndex& cell) {
  const auto offer = [&](const QString& text, const QString& added) {
    menu.addAction(text, chips_, [this, added] { chips_->add(added); });
  };
  for (const char relation : {'=', '<', '>'}) {
    const QString term = model_->term_for(cell, QLatin1Char(relation));
    if (term.isEmpty()) continue;
    offer(tr("Only %1").arg(term), term);
    if (relation == '=') offer(tr("Without %1").arg(term), u'-' + term);
  }
  if (!menu.isEmpty()) menu.addSeparator();
}

void PlansView::show_waiting(const QString& text) {
  if (!selection_->set() || selection_->set()->plans.empty()) empty_->show_hint(text);
}

void PlansView::mark_outdated() {
  const bool shows_plans = selection_->set() && !selection_->set()->plans.empty();
  set_text_colour(*outdated_, colours_for(palette()).warning);
  outdated_->setVisible(shows_plans);
}

void PlansView::show_infeasible(const planner::NoFeasiblePlan& none) {
  const planner::PlanRequest& request = selection_->set()->request;
  QString text = u"<h3>%1</h3><p>%2</p>"_s.arg(
      tr("No plan fits"), to_qstring(planner::no_plan_text(request, none)).toHtmlEscaped());
  if (none.nearest) {
    text += u"<p>%1</p>"_s.arg(
        tr("Closest plan: %1; %2 short of the %3 that it needs per accelerator.")
            .arg(plan_text(*none.nearest), bytes_text(none.shortfall), bytes_text(none.needed))
            .toHtmlEscaped());
  }
  if (none.closes_it.empty()) {
    text += u"<p>%1</p>"_s.arg(tr("No single change was found that makes a plan fit."));
  } else {
    text += tr("<p>What would help:</p>") + u"<p>"_s;
    for (std::size_t i = 0; i < none.closes_it.size(); ++i)
      text += u"• <a href=\"%1\">%2</a><br>"_s.arg(i).arg(
          to_qstring(planner::remedy_text(none.closes_it[i], request.cluster)).toHtmlEscaped());
    text += u"</p>"_s;
  }
  empty_->show_hint(text);
}

void PlansView::show_set() {
  const PlanSetPointer set = selection_->set();
  outdated_->hide();
  const std::set<QString> lassoed = lassoed_plans();
  model_->set_lasso(std::nullopt);
  model_->show(set);
  lasso_again(lassoed);
  if (set && set->infeasible && set->plans.empty()) {
    show_infeasible(*set->infeasible);
  } else if (!set || set->plans.empty()) {
    empty_->show_hint(tr("No plans were found."));
  } else {
    empty_->show_content();
    columns_->follow(*set);
    completer_->offer(plan_completions(*set));
  }
  update_points();
}

std::set<QString> PlansView::lassoed_plans() const {
  std::set<QString> plans;
  if (!model_->lasso()) return plans;
  for (const int row : *model_->lasso()) plans.insert(model_->plan_words(row));
  return plans;
}

void PlansView::lasso_again(const std::set<QString>& lassoed) {
  if (lassoed.empty() || !model_->set()) return;
  std::set<int> plans;
  for (int plan = 0; plan < static_cast<int>(model_->set()->plans.size()); ++plan) {
    if (lassoed.contains(model_->plan_words(plan))) plans.insert(plan);
  }
  if (!plans.empty()) model_->set_lasso(std::move(plans));
}

void PlansView::update_points() {
  lasso_chip_->setVisible(model_->lasso().has_value());
  plot_->name_accelerators(accelerator_word(model_->set()));
  scatter_->show(model_->set(), model_->shown_plans());
  show_filtered_out();
  update_summary();
  follow_selection();
}

void PlansView::show_filtered_out() {
  const bool none_passes =
      model_->rowCount() == 0 && model_->set() && !model_->set()->plans.empty();
  for (EmptyState* part : {rows_, &plot_->points()}) {
    if (!none_passes) {
      part->show_content();
    } else if (model_->lasso()) {
      part->show_hint(
          tr("<b>No plan in the lasso passes the filter</b><br>Clear or widen either "
             "above the table."));
    } else {
      part->show_hint(tr("<b>No plan passes the filter</b><br>Clear or widen it above the table."));
    }
  }
}

void PlansView::update_summary() {
  const PlanSetPointer set = model_->set();
  if (!set) return summary_->clear();
  QString text = tr("%1 of %2 shown.")
                     .arg(count_text(model_->rowCount()), counted_text(set->plans.size(), "plan"));
  summary_->setToolTip({});
  if (set->counts.space > 0) {
    text += tr(" Searched %1 in %2: %3 rejected, %4 evaluated, %5 simulated.")
                .arg(count_text(set->counts.space), time_text(Seconds(set->wall_s)),
                     count_text(set->counts.rejected_total()), count_text(set->counts.evaluated),
                     count_text(set->counts.simulated));
    summary_->setToolTip(tr("Rejected by: %1").arg(rejected_text(set->counts)));
  }
  if (!set->complete) text += tr(" Not the whole space yet.");
  if (set->request.global_batch == 0 && !set->plans.empty()) {
    text += tr(" Batch: %1 (chosen: the throughput knee).")
                .arg(counted_text(set->plans.front().plan.global_batch, "sequence"));
  }
  if (!set->plans.empty()) {
    const planner::PlanRequest& request = set->request;
    text += pools_alone_text(*set);
    const QString warning =
        memory_warning(tr("The best plan"), set->plans.front().result, set->scenario(0));
    if (!warning.isEmpty()) text += u" ⚠ "_s + warning;
    text += u' ' + figures_text(request.cluster, request.stack);
  }
  summary_->setText(text);
}

void PlansView::follow_selection() {
  scatter_->mark(selection_->chosen(), selection_->compared());
  const auto chosen = selection_->chosen(), other = selection_->compared();
  model_->mark_compared(chosen && other && *chosen != *other
                            ? std::optional(std::pair(*chosen, *other))
                            : std::nullopt);
  if (!chosen) return;
  const QModelIndex index = model_->index_of(*chosen);
  if (!index.isValid() || view_->currentIndex().row() == index.row()) return;
  int column = view_->currentIndex().column();
  if (column < 0) column = view_->horizontalHeader()->logicalIndexAt(0);
  view_->selectRow(index.row());
  view_->scrollTo(index.siblingAtColumn(std::max(column, 0)));
}

// Highlights the compared plan beside the chosen one, whichever way it was chosen.
void PlansView::show_compared_row() {
  const auto compared = selection_->compared();
  QItemSelectionModel* rows = view_->selectionModel();
  if (!compared) {
    rows->select(view_->currentIndex(),
                 QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    return;
  }
  const QModelIndex row = model_->index_of(*compared);
  if (!row.isValid() || rows->isRowSelected(row.row(), {})) return;
  rows->select(view_->currentIndex(),
               QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  rows->select(row, QItemSelectionModel::Select | QItemSelectionModel::Rows);
}

void PlansView::take_current(const QModelIndex& current) {
  if (current.isValid()) selection_->choose(model_->plan_of(current));
}

// Keeps presses from the table, which would choose the plan of each pressed row. A press with Ctrl
// compares with that row and marks it for copying; one of the right button only opens the menu.
bool PlansView::eventFilter(QObject* watched, QEvent* event) {
  const QEvent::Type type = event->type();
  const bool is_press = type == QEvent::MouseButtonPress || type == QEvent::MouseButtonDblClick;
  const bool ends = type == QEvent::MouseButtonRelease;
  if (watched == view_->viewport() && type == QEvent::Resize)
    keep_current_in_sight(*view_, static_cast<const QResizeEvent&>(*event).oldSize());
  if (watched != view_->viewport() || !(is_press || ends || type == QEvent::MouseMove))
    return View::eventFilter(watched, event);
  if (is_press) press_row(static_cast<const QMouseEvent&>(*event));
  return !(ends ? std::exchange(press_chooses_, true) : press_chooses_);
}

void PlansView::press_row(const QMouseEvent& press) {
  const bool compares =
      press.button() == Qt::LeftButton && press.modifiers() == Qt::ControlModifier;
  press_chooses_ = !compares && press.button() != Qt::RightButton;
  const QModelIndex row = view_->indexAt(press.position().toPoint());
  if (!compares || !row.isValid()) return;
  view_->selectionModel()->select(row, QItemSelectionModel::Toggle | QItemSelectionModel::Rows);
  compare_or_stop(static_cast<int>(model_->plan_of(row)));
}

void PlansView::compare_or_stop(int plan) {
  const auto wanted = static_cast<std::size_t>(plan);
  selection_->compare_with(wanted == selection_->compared() ? std::nullopt : std::optional(wanted));
}

std::vector<int> PlansView::shown_columns() const {
  std::vector<int> columns;
  const QHeaderView* header = view_->horizontalHeader();
  for (int visual = 0; visual < header->count(); ++visual) {
    const int column = header->logicalIndex(visual);
    if (!view_->isColumnHidden(column)) columns.push_back(column);
  }
  return columns;
}

TextTable PlansView::table() const {
  return text_table(*model_, shown_columns(), Qt::EditRole);
}

TextTable PlansView::chosen_table(Qt::ItemDataRole role) const {
  std::vector<int> rows;
  for (const QModelIndex& index : view_->selectionModel()->selectedRows())
    rows.push_back(index.row());
  std::sort(rows.begin(), rows.end());
  return rows.size() > 1 ? text_table(*model_, rows, shown_columns(), role)
                         : text_table(*model_, shown_columns(), role);
}

void PlansView::copy_tsv() const {
  QGuiApplication::clipboard()->setText(to_tsv(chosen_table(Qt::EditRole)));
}

void PlansView::copy_markdown() const {
  QGuiApplication::clipboard()->setText(to_markdown(chosen_table(Qt::DisplayRole)));
}

// The line of the filter gives the focus back to the table that it filters.
void PlansView::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape && terms_->hasFocus()) return view_->setFocus();
  View::keyPressEvent(event);
}

void PlansView::focus_filter() {
  terms_->setFocus();
  terms_->selectAll();
}

void PlansView::save(QSettings& settings) const {
  columns_->save(settings);
  settings.setValue(u"plans/filter"_s, terms_->text());
  plot_->save(settings);
}

void PlansView::restore(const QSettings& settings) {
  columns_->restore(settings);
  terms_->setText(settings.value(u"plans/filter"_s).toString());
  plot_->restore(settings);
}

std::vector<ReportPart> PlansView::report() const {
  if (!model_->set() || model_->rowCount() == 0) return {};
  constexpr int kMostRows = 15;
  TextTable plans{{tr("Plan")}, {}};
  std::vector<const PlanFigure*> figures;
  for (const char* id : {"step", "rate", "mfu", "memory", "cost"}) {
    figures.push_back(&plan_figure(figure_index(to_qstring(id))));
    plans.header.append(figures.back()->heading(accelerator_word(model_->set())));
  }
  // The text of a plan has all of its choices, whose columns would not fit on a page.
  for (int row = 0; row < std::min(kMostRows, model_->rowCount()); ++row) {
    const std::size_t plan = model_->plan_of(model_->index(row, 0));
    QStringList cells = {plan_text(model_->set()->plans[plan].plan)};
    for (const PlanFigure* figure : figures) cells.append(figure->text(*model_->set(), plan));
    plans.rows.push_back(cells);
  }
  return {{plot_->title(), {}, scatter_, {}},
          {tr("The first plans of the table"), summary_->text(), nullptr, plans}};
}

}  // namespace shardwright::gui
