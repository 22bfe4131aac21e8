#include "gui/views/forecast_view.hpp"

#include <QComboBox>
#include <QLineEdit>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/spec/profile_library.hpp"
#include "gui/models/opened_file.hpp"
#include "gui/models/text.hpp"
#include "gui/views/bar_chart.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/forecast_charts.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/widgets.hpp"
#include "planner/run_wording.hpp"

namespace shardwright::gui {
namespace {

constexpr int kLeastTrajectoryHeight = 280, kLeastBarsHeight = 170;
constexpr std::size_t kFigures = 7;
constexpr const char* kFirstTokens = "2T";
constexpr const char* kFirstLoss = "1.95";
constexpr const char* kFirstRun = "settled-fleet";
constexpr const char* kFirstLaws = "hoffmann-corrected";
constexpr int kGoalOfTokens = 0, kGoalOfLoss = 1;

// A share of the run's time as a bar of percent.
Bar bar_of(const RunShare& share) {
  const QString label = run_share_text(share.share);
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
          this,
          [this](const auto& run) {
            take(run);
            call_ready();
          },
          [this](const QString& error) {
            end();
            show_hint(error.toHtmlEscaped().replace(u'\n', u"<br>"_s));
            call_ready();
          }) {
  QWidget* charts = create_charts();
  QWidget* figures = create_figures();
  warning_ = wrapped_label(u"forecast_warning"_s);
  tokens_text_ = wrapped_label(u"forecast_tokens_text"_s);
  laws_text_ = named<HintLabel>(u"forecast_laws_text"_s);
  for (QLabel* label : {warning_, tokens_text_, laws_text_}) label->setTextFormat(Qt::PlainText);
  QWidget* content = column_of({figures, tokens_text_, warning_, charts, laws_text_}, charts);
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
  create_profiles();
  progress_ = new ShareBar;
  stop_ = tool_button(u"stop_forecast"_s, tr("Stop"), tr("Stops the simulation of the run"));
  end();
  auto* controls = new QWidget;
  auto* line = new FlowLayout(controls);
  line->setContentsMargins(0, 0, 0, 0);
  line->addWidget(create_goal());
  line->addWidget(loss_row_);
  line->addWidget(row_of({new QLabel(tr("with the")), runs_.box}));
  line->addWidget(progress_);
  line->addWidget(stop_);
  loss_row_->hide();
  connect(stop_, &QToolButton::clicked, this, &ForecastView::stop);
  return controls;
}

QWidget* ForecastView::create_goal() {
  goal_ = named<QComboBox>(u"forecast_goal"_s);
  goal_->addItems({tr("Train on"), tr("Train to a loss of")});
  goal_->setToolTip(tr("The end of the run: a number of tokens, or a loss"));
  leave_wheel_to_scrolling(*goal_);
  tokens_ = named<QLineEdit>(u"forecast_tokens"_s, to_qstring(kFirstTokens));
  tokens_->setToolTip(
      tr("The tokens to train on: 15T or 300B (T = 1,000,000,000,000, B = 1,000,000,000)"));
  loss_ = named<QLineEdit>(u"forecast_loss"_s, to_qstring(kFirstLoss));
  loss_->setToolTip(
      tr("The training loss to reach, in nats per token (the natural logarithm of the "
         "perplexity), as in 1.95"));
  for (QLineEdit* field : {tokens_, loss_}) {
    follow_letters(*field, [field] { field->setFixedWidth(6 * field->fontMetrics().height()); });
    field->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    connect(field, &QLineEdit::editingFinished, this, &ForecastView::follow);
  }
  tokens_row_ = row_of({tokens_, new QLabel(tr("tokens"))});
  loss_row_ = row_of({loss_, new QLabel(tr("nats, by the law")), laws_.box});
  connect(goal_, &QComboBox::currentIndexChanged, this, [this] {
    tokens_row_->setVisible(!wants_loss());
    loss_row_->setVisible(wants_loss());
    follow();
  });
  return row_of({goal_, tokens_row_});
}

void ForecastView::create_profiles() {
  runs_.box = new ProfileBox(u"forecast_profile"_s, tr("Run profile"));
  runs_.box->setToolTip(
      tr("How often the machines fail, and how a run is saved, restarted and paid for"));
  runs_.add_shipped(shipped_runs(), load_run);
  runs_.box->choose(to_qstring(kFirstRun));
  laws_.box = new ProfileBox(u"forecast_laws"_s, tr("Batch profile"));
  laws_.box->setToolTip(
      tr("The scaling law that says how many tokens the loss takes, and how many more a large "
         "batch needs"));
  laws_.add_shipped(shipped_batches(), load_batch);
  laws_.box->choose(to_qstring(kFirstLaws));
  for (ProfileBox* box : {runs_.box, laws_.box}) {
    connect(box, &ProfileBox::chosen_changed, this, &ForecastView::follow);
    connect(box, &ProfileBox::file_wanted, this, &ForecastView::file_wanted);
  }
}

void ForecastView::offer(const QString& path, const RunSpec& run, bool choose) {
  runs_.add(path, run);
  if (choose) runs_.box->choose(path);
  follow();
}

void ForecastView::offer(const QString& path, const BatchSpec& laws, bool choose) {
  laws_.add(path, laws);
  if (choose) {
    laws_.box->choose(path);
    goal_->setCurrentIndex(kGoalOfLoss);
  }
  follow();
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
                             {430, 330, 360});
  trajectory_->setMinimumHeight(kLeastTrajectoryHeight);
  for (BarChart* bars : {lost_, gains_}) bars->setMinimumHeight(kLeastBarsHeight);
  return charts;
}

bool ForecastView::wants_loss() const {
  return goal_->currentIndex() == kGoalOfLoss;
}

std::optional<std::variant<double, LossGoal>> ForecastView::goal() const {
  if (!wants_loss()) {
    const auto tokens = tokens_of(tokens_->text());
    return tokens ? std::optional<std::variant<double, LossGoal>>(*tokens) : std::nullopt;
  }
  const auto loss = planner::parse_loss(loss_->text().trimmed().toStdString());
  if (!loss) return std::nullopt;
  return LossGoal{*loss, laws_.chosen()};
}

std::optional<RunQuestion> ForecastView::question() const {
  auto scenario = selection_->scenario();
  auto wanted = goal();
  if (!scenario || !wanted) return std::nullopt;
  const QString profile = runs_.box->chosen();
  const bool is_file = runs_.box->files().contains(profile);
  return RunQuestion{*std::move(scenario), runs_.chosen(), *std::move(wanted),
                     is_file ? profile.toStdString() : std::string()};
}

QString ForecastView::hint_without_question() const {
  if (!selection_->scenario()) {
    return tr(
        "Choose a plan in <b>Plans</b> to see how many days and dollars its whole run takes, "
        "with its failures.");
  }
  if (wants_loss()) {
    return tr("“%1” is no loss. Type %2.")
        .arg(loss_->text().toHtmlEscaped(), to_qstring(planner::kExpectedLoss));
  }
  return tr("“%1” is no number of tokens. Type it as 15T or 300B: T is a million millions, B is a "
            "thousand millions.")
      .arg(tokens_->text().toHtmlEscaped());
}

void ForecastView::follow() {
  // A search that goes on names the same plan again and again.
  if (const auto now = question(); now && now == asked_) return;
  asked_.reset();
  look_again();
  call_ready();
}

void ForecastView::look_again() {
  if (asked_) return;
  if (is_wanted()) return begin();
  job_.cancel();
  end();
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
  call_ready();
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
  const QStringList notes = warnings(*run_);
  warning_->setText(u"⚠ "_s + notes.join(u"\n⚠ "_s));
  warning_->setVisible(!notes.isEmpty());
  laws_text_->setText(laws_text(*run_));
  tokens_text_->setText(tokens_of_loss_text(*run_));
  for (QLabel* label : {tokens_text_, laws_text_}) label->setVisible(!run_->laws.empty());
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
  settings.setValue(u"forecast/goal"_s, wants_loss() ? u"loss"_s : u"tokens"_s);
  settings.setValue(u"forecast/tokens"_s, tokens_->text());
  settings.setValue(u"forecast/loss"_s, loss_->text());
  settings.setValue(u"forecast/profile"_s, runs_.box->chosen());
  settings.setValue(u"forecast/laws"_s, laws_.box->chosen());
}

QStringList ForecastView::restore(const QSettings& settings) {
  const auto text = [&](const char* key) {
    return settings.value(u"forecast/"_s + to_qstring(key)).toString();
  };
  if (tokens_of(text("tokens"))) tokens_->setText(text("tokens"));
  if (planner::parse_loss(text("loss").toStdString())) loss_->setText(text("loss"));
  if (text("goal") == u"loss"_s) goal_->setCurrentIndex(kGoalOfLoss);
  QStringList problems;
  for (const char* key : {"profile", "laws"}) {
    ProfileBox& box = key == std::string_view("laws") ? *laws_.box : *runs_.box;
    const QString value = text(key);
    if (value.isEmpty() || box.choose(value)) continue;
    try {
      const OpenedFile file = open_file(value);
      if (const auto* run = std::get_if<RunSpec>(&file.content)) runs_.add(value, *run);
      if (const auto* laws = std::get_if<BatchSpec>(&file.content)) laws_.add(value, *laws);
    } catch (const InputError& error) {
      problems.append(error_text(error));
    }
    box.choose(value);
  }
  return problems;
}

std::vector<ReportPart> ForecastView::report() const {
  if (!run_) return {};
  TextTable figures{{tr("Figure"), tr("Value"), tr("Detail")}, {}};
  for (const Tile& tile : tiles_) {
    if (!tile.widget->isHidden())
      figures.rows.push_back({tile.title->text(), tile.value->text(), tile.detail->text()});
  }
  return {{{}, tokens_text_->text(), nullptr, figures},
          {tr("Tokens over the days of the run"), {}, trajectory_, {}},
          {tr("Time that does not go into steps"), {}, lost_, {}},
          {tr("What 10 % less of each would save"), laws_text_->text(), gains_, {}}};
}

}  // namespace shardwright::gui
