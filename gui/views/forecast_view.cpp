#include "gui/views/forecast_view.hpp"

#include <QComboBox>
#include <QLineEdit>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/spec/profile_library.hpp"
#include "gui/models/scenario_choice.hpp"
#include "gui/models/text.hpp"
#include "gui/views/bar_chart.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/forecast_charts.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kLeastTrajectoryHeight = 250, kLeastBarsHeight = 170;
constexpr std::size_t kFigures = 7;
constexpr const char* kFirstTokens = "2T";
constexpr const char* kFirstProfile = "settled-fleet";

// A share of the run's time as a bar of percent.
Bar bar_of(const RunShare& share) {
  const QString label = fixed_text(100.0 * share.share, 2) + u" %"_s;
  return {share.title,
          100.0 * share.share,
          label,
          share.tip,
          share.part ? series_of(*share.part) : 0,
          share.part ? hatch_of(*share.part) : Qt::SolidPattern};
}

std::vector<Bar> bars_of(const std::vector<RunShare>& shares, std::size_t most) {
  std::vector<Bar> bars;
  for (const RunShare& share : shares)
    if (bars.size() < most) bars.push_back(bar_of(share));
  return bars;
}

}  // namespace

ForecastView::ForecastView(Selection* selection, QWidget* parent)
    : View(parent),
      selection_(selection),
      job_(
          this, [this](const auto& run) { take(run); },
          [this](const QString& error) {
            end();
            show_hint(error.toHtmlEscaped());
          }) {
  QWidget* charts = create_charts();
  QWidget* figures = create_figures();
  warning_ = wrapped_label(u"forecast_warning"_s);
  QWidget* content = column_of({figures, warning_, charts}, charts);
  content->layout()->setSpacing(4);
  empty_ = new EmptyState(content);
  QVBoxLayout* layout = scrolled_column(*this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(create_controls());
  layout->addWidget(empty_, 1);
  connect(selection_, &Selection::chosen_changed, this, &ForecastView::follow);
  show_hint(hint_without_question());
}

QWidget* ForecastView::create_controls() {
  tokens_ = named<QLineEdit>(u"forecast_tokens"_s, to_qstring(kFirstTokens));
  tokens_->setFixedWidth(90);
  tokens_->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  tokens_->setToolTip(
      tr("The tokens to train on: 15T or 300B (T = 1,000,000,000,000, B = 1,000,000,000)"));
  profile_ = named<QComboBox>(u"forecast_profile"_s);
  for (const std::string& name : shipped_profiles("runs")) {
    profile_->addItem(to_qstring(name).replace(u'-', u' '), to_qstring(name));
    profile_->setItemData(profile_->count() - 1, to_qstring(load_run(name).notes), Qt::ToolTipRole);
  }
  profile_->setCurrentIndex(std::max(0, profile_->findData(to_qstring(kFirstProfile))));
  profile_->setToolTip(
      tr("How often the machines fail, and how a run is saved, restarted and paid for"));
  leave_wheel_to_scrolling(*profile_);
  progress_ = new ShareBar;
  stop_ = tool_button(u"stop_forecast"_s, tr("Stop"), tr("Stops the simulation of the run"));
  end();
  auto* controls = new QWidget;
  auto* line = new FlowLayout(controls);
  line->setContentsMargins(0, 0, 0, 0);
  line->addWidget(row_of({new QLabel(tr("Train on")), tokens_, new QLabel(tr("tokens"))}));
  line->addWidget(row_of({new QLabel(tr("with the")), profile_}));
  line->addWidget(progress_);
  line->addWidget(stop_);
  connect(tokens_, &QLineEdit::editingFinished, this, &ForecastView::follow);
  connect(profile_, &QComboBox::currentIndexChanged, this, &ForecastView::follow);
  connect(stop_, &QToolButton::clicked, this, &ForecastView::stop);
  return controls;
}

QWidget* ForecastView::create_figures() {
  auto* figures = named<QWidget>(u"forecast_figures"_s);
  auto* line = new FlowLayout(figures);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(18);
  for (std::size_t i = 0; i < kFigures; ++i) {
    Tile tile{nullptr, new HintLabel, new QLabel, new HintLabel};
    for (QLabel* label : {tile.title, tile.value, tile.detail}) label->setWordWrap(false);
    make_bold(*tile.value);
    tile.widget = column_of({tile.title, tile.value, tile.detail});
    tile.widget->layout()->setSpacing(0);
    line->addWidget(tile.widget);
    tiles_.push_back(tile);
  }
  return figures;
}

QWidget* ForecastView::create_charts() {
  trajectory_ = new TrajectoryChart;
  lost_ = named<BarChart>(u"forecast_lost"_s, tr("of the time (%)"));
  gains_ = named<BarChart>(u"forecast_gains"_s, tr("shorter run (%)"));
  auto* charts = new PaneRow({titled(tr("Tokens over the days of the run"), trajectory_),
                              titled(tr("Time that does not go into steps"), lost_),
                              titled(tr("What 10 % less of each would save"), gains_)},
                             {540, 340, 240});
  trajectory_->setMinimumHeight(kLeastTrajectoryHeight);
  for (BarChart* bars : {lost_, gains_}) bars->setMinimumHeight(kLeastBarsHeight);
  return charts;
}

std::optional<RunQuestion> ForecastView::question() const {
  auto scenario = selection_->scenario();
  const auto tokens = tokens_of(tokens_->text());
  if (!scenario || !tokens) return std::nullopt;
  return RunQuestion{*std::move(scenario), profile_->currentData().toString().toStdString(),
                     *tokens};
}

QString ForecastView::hint_without_question() const {
  if (!selection_->scenario()) {
    return tr(
        "Choose a plan in <b>Plans</b> to see how many days and dollars its whole run takes, "
        "with its failures.");
  }
  return tr("“%1” is no number of tokens. Type it as 15T or 300B: T is a million millions, B is a "
            "thousand millions.")
      .arg(tokens_->text().toHtmlEscaped());
}

void ForecastView::follow() {
  // A search that goes on names the same plan again and again.
  if (const auto now = question(); now && now == asked_) return;
  asked_.reset();
  if (isVisible()) begin();
}

void ForecastView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  if (!asked_) begin();
}

void ForecastView::begin() {
  job_.cancel();
  end();
  asked_ = question();
  if (!asked_) return show_hint(hint_without_question());
  show_hint(tr("Simulating the run …"));
  progress_->begin();
  stop_->show();
  job_.start([question = *asked_, report = progress_->reporter()](const std::stop_token& stop) {
    return forecast_run(question, report, stop);
  });
}

void ForecastView::stop() {
  job_.cancel();
  end();
  show_hint(tr("Stopped. Choose another plan, other tokens or another profile to begin again."));
}

void ForecastView::end() {
  progress_->hide();
  stop_->hide();
}

void ForecastView::show_hint(const QString& hint) {
  run_.reset();
  trajectory_->show_nothing();
  empty_->show_hint(hint);
}

void ForecastView::take(std::shared_ptr<const RunForecast> run) {
  end();
  if (!run->ends()) {
    return show_hint(
        tr("<b>This run does not end.</b> Failures stop it more often than it gets from "
           "one checkpoint to the next."));
  }
  run_ = std::move(run);
  empty_->show_content();
  show_figures();
  show_bars();
  trajectory_->show(run_);
}

void ForecastView::show_figures() {
  const std::vector<RunFigure> figures = run_figures(*run_);
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const Tile& tile = tiles_[i];
    tile.title->setText(figures[i].title);
    tile.value->setText(figures[i].value);
    tile.detail->setText(figures[i].detail);
    tile.widget->setToolTip(figures[i].tip);
  }
  const QString warning = unfinished_text(*run_);
  warning_->setText(u"⚠ "_s + warning);
  warning_->setVisible(!warning.isEmpty());
}

void ForecastView::show_bars() {
  constexpr std::size_t kMostBars = 9;
  lost_->show_bars(bars_of(lost_times(*run_), kMostBars));
  gains_->show_bars(bars_of(worthwhile_gains(*run_), kMostBars));
}

TextTable ForecastView::table() const {
  return run_ ? table_of(*run_) : TextTable();
}

void ForecastView::save(QSettings& settings) const {
  settings.setValue(u"forecast/tokens"_s, tokens_->text());
  settings.setValue(u"forecast/profile"_s, profile_->currentData());
}

void ForecastView::restore(const QSettings& settings) {
  const QString tokens = settings.value(u"forecast/tokens"_s).toString();
  if (tokens_of(tokens)) tokens_->setText(tokens);
  const int profile = profile_->findData(settings.value(u"forecast/profile"_s));
  if (profile >= 0) profile_->setCurrentIndex(profile);
}

}  // namespace shardwright::gui
