// The row that saves the profile of a calibration and plans with it.
#pragma once

#include <QString>
#include <QWidget>

#include "core/spec/cluster_spec.hpp"

class QLineEdit;

namespace shardwright::gui {

// Saves a refitted profile and plans for it. Hidden until there is a profile.
class ProfileRow : public QWidget {
  Q_OBJECT

 public:
  explicit ProfileRow(QWidget* parent = nullptr);

  void offer(const ClusterSpec& profile, const QString& file);

 Q_SIGNALS:
  void saved(const QString& file);
  void problem(const QString& text);
  // The file holds the profile by the time of this signal.
  void replan_wanted(const QString& file);

 private:
  void choose_file();
  // Returns false, after `problem`, if the profile cannot be written.
  bool save();
  void replan();

  QLineEdit* file_ = nullptr;
  ClusterSpec profile_;
  // The file that holds the profile; empty if it was not saved yet.
  QString saved_;
};

}  // namespace shardwright::gui
